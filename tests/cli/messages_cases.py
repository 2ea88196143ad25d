"""Sentences in the user's words: errors as JSON, options typed wrongly, what a solve used and did."""

import json

from harness import CliCase, read_csv


class ErrorObjectTest(CliCase):
    def test_every_kind_of_failure(self):
        self.generate("d.csv", "friedman", "-n", 60)
        self.write("text.csv", "a,y\n1,2\nx,3\n")
        self.write("m.mcr", "no model")
        for code, kind, words in (
                (2, "usage", ("fit", "d.csv", "--noise", "-1")),
                (2, "usage", ("fit", "d.csv", "--no-such-option")),
                (2, "usage", ("evaluate", "m.mcr")),
                (3, "data", ("fit", "text.csv")),
                (3, "data", ("plan", "nowhere.csv")),
                (4, "memory", ("solve", "d.csv", "--memory", "1M")),
                (6, "model", ("predict", "m.mcr", "d.csv")),
                (6, "model", ("info", "nowhere.mcr"))):
            done = self.mercer(*words, "--json", code=code)
            error = json.loads(done.stdout)["error"]
            self.assertEqual((error["code"], error["kind"]), (code, kind), words)
            self.assertIn(error["message"], done.stderr)

    def test_without_json_standard_output_stays_empty(self):
        self.assertEqual(self.mercer("fit", "nowhere.csv", code=3).stdout, "")

    def test_bytes_that_are_no_text_do_not_break_the_object(self):
        done = self.mercer("fit", b"\xff\xfe.csv".decode("utf-8", "surrogateescape"), "--json", code=3,
                           stdin=b"")
        self.assertEqual(json.loads(done.stdout)["error"]["code"], 3)


class TypedWronglyTest(CliCase):
    def test_values_of_options(self):
        self.generate("d.csv", "friedman", "-n", 60)
        for words, saying in (
                (("--noise", 1, "--noise", 2), ("--noise is given 2 times", "once")),
                (("--noise",), ("--noise needs a value",)),
                (("--noise=",), ("--noise needs a value",)),
                (("--no-standardize=false",), ("--no-standardize takes no value",)),
                (("--quiet=yes",), ("--quiet takes no value",))):
            last = self.refused(2, "solve", "d.csv", *words, saying=saying)
            for foreign in ("At Most", "TEXT", "required", "override"):
                self.assertNotIn(foreign, last)

    def test_a_configuration_that_is_no_json_says_where(self):
        self.generate("d.csv", "friedman", "-n", 60)
        self.write("c.json", '{\n  "noise": 0.1,\n  "kernel": rbf\n}\n')
        last = self.refused(2, "solve", "d.csv", "--config", "c.json", saying=("c.json", "line 3"))
        self.assertNotIn("exception", last)


class SolveRecordTest(CliCase):
    def test_the_history_of_residuals_and_the_values_used(self):
        self.generate("d.csv", "friedman", "-n", 200, "-d", 5)
        words = ("solve", "d.csv", "--solver", "cg", "--preconditioner", "none", "--noise", 0.05,
                 "--lengthscale", 2, "--precision", "double")
        record = self.json(*words, "--history", "h.csv")
        history = read_csv((self.folder / "h.csv").read_text())
        self.assertEqual(history["iteration"], [float(i + 1) for i in range(record["iterations"])])
        self.assertEqual(history["relative_residual"], record["residuals"])
        self.assertLessEqual(record["residuals"][-1], 1e-6)
        # The solver's own residual and the true one differ by rounding only.
        self.assertAlmostEqual(record["residuals"][-1], record["relative_residual"], delta=1e-10)
        used = record["hyperparameters"]["standardised"]
        self.assertAlmostEqual(used["noise_variance"], 0.05, delta=1e-14)
        self.assertEqual([round(l, 12) for l in used["lengthscales"]], [2] * 5)
        text = self.mercer(*words).stdout
        self.assertIn("Parameters   signal sd", text)
        self.refused(2, *words, "-o", "s.csv", "--history", "./s.csv", saying="same file")


class CompareLimitTest(CliCase):
    def test_a_limit_by_default_and_seconds_in_the_table(self):
        self.generate("d.csv", "friedman", "-n", 150, "-d", 5)
        words = ("compare", "d.csv", "--lengthscales", "0.5,2", "--noises", 0.01, "--preconditioners",
                 "none,nystrom", "--rank", 20)
        record = self.json(*words)
        self.assertEqual(record["cell_seconds"], 1)  # 300 products of so few rows take less
        self.assertEqual(self.json(*words, "--cell-seconds", 7)["cell_seconds"], 7)
        text = self.mercer(*words).stdout
        self.assertIn("seconds to build and solve", text)
        self.assertIn("4 runs in", text)
