"""Variances by every method, joint samples, and what is said of their error."""

import math

from harness import CliCase, fitted, read_csv

SAMPLES = [f"sample_{s}" for s in (1, 2, 3)]


class VarianceTest(CliCase):
    def test_every_method_and_what_it_says(self):
        _, _, test, model = fitted()
        exact = self.json("predict", model, test)
        self.assertEqual(exact["variance"], "exact")
        self.assertNotIn("sd_error", exact)
        for method, words in (("vecchia", ("--neighbours", 20)), ("samples", ())):
            with self.subTest(method):
                p = self.json("predict", model, test, "--variance", method, "--check-rows", 1000, *words)
                self.assertEqual((p["variance"], p["sd_error_bound"], p["sd_error_rows"]), (method, None, 90))
                self.assertEqual(p["mean"], exact["mean"])
                errors = [abs(a - b) for a, b in zip(p["sd_latent"], exact["sd_latent"])]
                relative = [e / s for e, s in zip(errors, exact["sd_latent"])]
                # All rows are checked, by the same factor as above.
                self.assertAlmostEqual(p["sd_error"], max(errors), places=9)
                self.assertAlmostEqual(p["sd_error_rms"], math.sqrt(sum(e * e for e in errors) / 90), places=9)
                self.assertAlmostEqual(p["sd_error_relative"], max(relative), places=9)
                # By a factor, and of every row: nothing is left open.
                self.assertEqual((p["sd_error_exceeded_share"], p["sd_error_confidence"], p["sd_error_check_error"],
                                  p["sd_error_check_matvecs"]), (0, 1, 0, 0))
                scores = self.json("evaluate", model, test, "--variance", method, "--check-rows", 1000, *words)
                self.assertEqual(scores["sd_error"], p["sd_error"])
                some = self.json("evaluate", model, test, "--variance", method, *words)
                self.assertEqual(some["sd_error_rows"], 64)
                self.assertAlmostEqual(1 - (1 - some["sd_error_exceeded_share"]) ** 64, some["sd_error_confidence"])
                self.assertGreaterEqual(some["sd_error_confidence"], 0.95)
                self.assertLessEqual(some["sd_error"], p["sd_error"] * (1 + 1e-9))
                unknown = self.json("evaluate", model, test, "--variance", method, "--check-rows", 0)
                self.assertEqual((unknown["sd_error"], unknown["sd_error_rows"]), (None, 0))

    def test_few_rows_are_checked_by_solves_and_what_is_said_of_them(self):
        self.generate("d.csv", "friedman", "-n", 1300, "-d", 5, "--seed", 1)
        self.mercer("split", "d.csv", "--test-fraction", 0.2, "--train-out", "a.csv", "--test-out", "b.csv")
        self.mercer("fit", "a.csv", "--train", "none", "--kernel", "matern32:iso", "--noise", 0.01, "-m", "m.mcr")
        words = ("predict", "m.mcr", "b.csv", "--variance", "vecchia", "--neighbours", 10, "--solver", "cg")
        p, exact = self.json(*words), self.json("predict", "m.mcr", "b.csv", "--variance", "exact")
        self.assertEqual(p["sd_error_rows"], 8)
        self.assertAlmostEqual(p["sd_error_exceeded_share"], 1 / 3)
        self.assertAlmostEqual(p["sd_error_confidence"], 1 - (2 / 3) ** 8)
        self.assertGreater(p["sd_error_check_matvecs"], 8)
        self.assertLessEqual(p["sd_error_check_error"], p["sd_error_check_bound"])
        largest = max(abs(a - b) for a, b in zip(p["sd_latent"], exact["sd_latent"]))
        self.assertLessEqual(p["sd_error"], largest + p["sd_error_check_bound"])
        self.assertEqual(self.json(*words, "--check-rows", 11)["sd_error_rows"], 11)
        text = " ".join(self.mercer(*words, "-o", "p.csv").stdout.split())
        self.assertIn("fewer than 1 row in 3 is off by more, with 96 % confidence (--check-rows for more)", text)
        self.assertIn("the check itself", text)

    def test_vecchia_is_never_below_the_exact_variance(self):
        _, _, test, model = fitted()
        exact = self.json("predict", model, test)
        rough = self.json("predict", model, test, "--variance", "vecchia", "--neighbours", 5)
        for a, b in zip(rough["sd_latent"], exact["sd_latent"]):
            self.assertGreaterEqual(a, b * (1 - 1e-9))
        close = self.json("predict", model, test, "--variance", "vecchia", "--neighbours", 210)
        self.assertLess(close["sd_error_relative"], 1e-9)

    def test_text_says_the_error(self):
        _, _, test, model = fitted()
        for words in (("evaluate", model, test), ("predict", model, test, "-o", "p.csv")):
            text = self.mercer(*words, "--variance", "vecchia").stdout
            self.assertIn("on 64 random rows sd_latent is within", " ".join(text.split()))
        noted = self.mercer("predict", model, test, "--variance", "samples").stderr
        self.assertIn("sd_latent is within", noted)

    def test_without_variances(self):
        _, _, test, model = fitted()
        table = read_csv(self.mercer("predict", model, test, "--variance", "none").stdout)
        self.assertEqual(list(table), ["mean", "error_bound", "error_estimate"])
        scores = self.json("evaluate", model, test, "--variance", "none")
        self.assertEqual((scores["nll"], scores["variance"]), (None, "none"))
        self.assertEqual(scores["rmse"], self.json("evaluate", model, test)["rmse"])

    def test_joint_samples_are_the_same_functions_in_pieces(self):
        _, _, test, model = fitted()
        whole = read_csv(self.mercer("predict", model, test, "--samples", 3).stdout)
        self.assertEqual(list(whole)[-3:], SAMPLES)
        lines = test.read_text().splitlines()
        self.write("a.csv", "\n".join(lines[:31]) + "\n")
        self.write("b.csv", "\n".join(lines[:1] + lines[31:]) + "\n")
        pieces = [read_csv(self.mercer("predict", model, f"{name}.csv", "--samples", 3, "--variance", "none").stdout)
                  for name in "ab"]
        for name in SAMPLES:
            for x, y in zip(pieces[0][name] + pieces[1][name], whole[name]):
                self.assertAlmostEqual(x, y, places=7)
        again = self.mercer("predict", model, test, "--samples", 3).stdout
        self.assertEqual(read_csv(again), whole)
        other = read_csv(self.mercer("predict", model, test, "--samples", 3, "--seed", 1).stdout)
        self.assertNotEqual(other["sample_1"], whole["sample_1"])
        record = self.json("predict", model, test, "--samples", 3)
        self.assertEqual(record["sample_2"], whole["sample_2"])

    def test_memory_does_not_grow_with_the_rows(self):
        _, _, _, model = fitted()
        self.generate("few.csv", "friedman", "-n", 5000, "-d", 6, "--seed", 5)
        self.generate("many.csv", "friedman", "-n", 40000, "-d", 6, "--seed", 6)
        for words in (("--variance", "vecchia"), ("--variance", "samples", "--samples", 2)):
            # One thread: how many panels two of them hold at once is up to the scheduler.
            few, many = (self.json("predict", model, f"{name}.csv", "-o", "p.csv", "--threads", 1, *words)
                         for name in ("few", "many"))
            self.assertEqual(many["n"], 40000)
            # 35,000 rows of 6 inputs and 8 columns are 4 MB as numbers alone.
            self.assertLess(many["peak_rss_bytes"] - few["peak_rss_bytes"], 3e6, words)

    def test_plan(self):
        _, train, _, _ = fitted()
        plan = self.json("plan", train, "--for", "predict")
        self.assertEqual(plan["variance"], "exact")
        methods = [row["method"] for row in plan["methods"]]
        self.assertIn("vecchia, 100 neighbours", methods)
        self.assertIn("samples, 64 draws", methods)

    def test_refusals(self):
        _, _, test, model = fitted()
        for words, saying in ((("--variance", "exact", "--neighbours", 5), "--neighbours"),
                              (("--variance", "exact", "--check-rows", 5), "--check-rows"),
                              (("--variance", "vecchia", "--neighbours", 0), "--neighbours"),
                              (("--check-rows", -1), "--check-rows"),
                              (("--samples", 0), "--samples"),
                              (("--variance", "exact", "--no-variance"), "--no-variance")):
            with self.subTest(words=words):
                self.refused(2, "predict", model, test, *words, saying=saying)
        self.refused(4, "predict", model, test, "--samples", 100000000, saying="more than")

    def test_kernels_without_draws_are_refused_with_the_reason(self):
        self.generate("d.csv", "friedman", "-n", 60, "-d", 12)
        self.mercer("fit", "d.csv", "--kernel", "poly:6", "--train", "none", "-m", "m.mcr")
        for words in (("--variance", "samples"), ("--samples", 2)):
            self.refused(2, "predict", "m.mcr", "d.csv", *words, saying="monomials")
