"""The edges: numbers at the ends of their range, options that contradict each other, small memory."""

import gzip
import math
import os
import re
import resource
import subprocess

from harness import CliCase, read_csv, run


def rows(count, *functions):
    """Lines of numbers: row i holds f(i) for each function."""
    return "".join(",".join(repr(float(f(i))) for f in functions) + "\n" for i in range(count))


class OverflowTest(CliCase):
    def setUp(self):
        super().setUp()
        self.write("d.csv", "a,b,y\n" + rows(30, lambda i: i / 10, math.cos, math.sin))
        self.mercer("fit", "d.csv", "--kernel", "poly:16", "--train", "none", "-m", "m.mcr", "--quiet")

    def test_a_row_that_overflows_is_named(self):
        self.write("far.csv", "a,b,y\n1,1,0\n0.5,0.5,0\n1e30,0,0\n")
        for words in ((), ("--json",), ("-o", "p.csv"), ("--no-variance",), ("--solver", "cg", "--json")):
            with self.subTest(words=words):
                self.refused(3, "predict", "m.mcr", "far.csv", *words, saying=("line 4", "overflows"))
        self.refused(3, "evaluate", "m.mcr", "far.csv", "--json", saying=("line 4", "overflows"))

    def test_rows_that_do_not_overflow_are_finite(self):
        self.write("near.csv", "a,b\n1,1\n1e3,-1e3\n")
        record = self.json("predict", "m.mcr", "near.csv")
        for name in ("mean", "sd_latent", "sd_obs", "q05", "q95", "error_bound"):
            self.assertTrue(all(math.isfinite(value) for value in record[name]), name)


class TrendTest(CliCase):
    """--mean linear where the inputs depend on each other."""

    def predictions_are_finite(self):
        for values in read_csv(self.mercer("predict", "m.mcr", "d.csv").stdout).values():
            self.assertTrue(all(math.isfinite(value) for value in values))

    def test_a_category_loses_one_level(self):
        levels = ("red", "green", "blue")
        self.write("d.csv", "c,a,y\n" + "".join(
            f"{levels[i * i % 3 if i % 2 else i % 3]},{math.cos(i)!r},{math.sin(i) + i % 3!r}\n"
            for i in range(40)))
        for train in (("--restarts", 0), ("--train", "none"), ("--subset", 20, "--restarts", 0)):
            record = self.json("fit", "d.csv", "--categorical", "c", "--mean", "linear", "-m", "m.mcr",
                               *train)
            self.assertEqual(record["trend_left_out"], ["c=red"])
        self.predictions_are_finite()
        done = self.mercer("fit", "d.csv", "--categorical", "c", "--mean", "linear", "--train", "none")
        self.assertIn("does without 'c=red'", done.stderr)
        self.assertEqual(self.json("info", "m.mcr")["trend_left_out"], ["c=red"])

    def test_collinear_inputs(self):
        self.write("d.csv", "a,b,c,y\n" + rows(30, math.cos, lambda i: 1e6 * (3 - 2 * math.cos(i)),
                                               lambda i: i, math.sin))
        for scale in ((), ("--no-standardize",)):
            record = self.json("fit", "d.csv", "--mean", "linear", "-m", "m.mcr", "--restarts", 0, *scale)
            self.assertEqual(record["trend_left_out"], ["b"])
            self.predictions_are_finite()

    def test_a_trend_through_all_points_is_refused(self):
        self.write("two.csv", "a,y\n1,2\n2,5\n")
        self.write("wide.csv", "a,b,c,d,e,y\n" + rows(4, *(lambda i, k=k: math.sin(k * i * i + k)
                                                          for k in range(1, 7))))
        for name in ("two.csv", "wide.csv"):
            for train in ("auto", "none"):
                self.refused(3, "fit", name, "--mean", "linear", "--train", train,
                             saying=("--mean constant", "any"))
            self.json("fit", name, "--mean", "constant", "--train", "none")


class ContradictionTest(CliCase):
    def setUp(self):
        super().setUp()
        self.write("d.csv", "a,y\n" + rows(20, lambda i: i, math.sin))

    def test_options_of_learning_without_learning(self):
        for option, value in (("--steps", 5), ("--restarts", 0), ("--subset", 10), ("--checkpoint", "c")):
            self.refused(2, "fit", "d.csv", "--train", "none", option, value,
                         saying=("--train none", option))
        self.refused(2, "plan", "d.csv", "--train", "none", "--steps", 5, saying="--steps")
        self.refused(2, "plan", "d.csv", "--for", "solve", "--subset", 5, saying="--subset")

    def test_the_options_that_contradict_each_other_are_named(self):
        for option, value in (("--operator", "tiled"), ("--precision", "mixed"),
                              ("--preconditioner", "jacobi")):
            for verb in ("fit", "solve", "plan"):
                self.refused(2, verb, "d.csv", "--solver", "cholesky", option, value,
                             saying=("--solver cholesky", f"leave out {option} {value}"))

    def test_a_tolerance_that_asks_for_nothing(self):
        self.mercer("fit", "d.csv", "--train", "none", "-m", "m.mcr")
        for value in ("1", "2", "inf", "nan", "-1", "0"):
            for words in (("fit", "d.csv"), ("solve", "d.csv"), ("predict", "m.mcr", "d.csv")):
                self.refused(2, *words, "--tolerance", value, saying=("--tolerance", "below 1"))
        self.mercer("solve", "d.csv", "--tolerance", "0.99", "--solver", "cg")


class TargetTest(CliCase):
    def test_a_target_that_is_constant_once_rows_are_set_aside(self):
        # One row of twenty differs; seeds that set it aside leave a constant target.
        self.write("d.csv", "a,y\n" + rows(20, lambda i: i, lambda i: float(i == 7)))
        outcomes = set()
        for seed in range(8):
            for task, saying in (("regression", "same value 0 in all 12 rows"),
                                 ("classification", "all rows to learn from have class '0'")):
                done = run("fit", "d.csv", "--test-fraction", 0.4, "--train", "none", "--seed", seed,
                           "--task", task, cwd=self.folder)
                outcomes.add((task, done.returncode))
                if done.returncode:
                    self.assertIn(saying, done.stderr)
        self.assertEqual(outcomes, {(task, code) for task in ("regression", "classification")
                                    for code in (0, 3)})

    def test_duplicates_are_counted_among_the_rows_to_learn_from(self):
        self.write("d.csv", "a,y\n" + rows(20, lambda i: i // 2, math.sin))
        done = self.mercer("fit", "d.csv", "--test-fraction", 0.5, "--train", "none")
        self.assertRegex(done.stderr, r"[1-9] of 10 rows have the inputs of an earlier row")
        record = self.json("fit", "d.csv", "--test-fraction", 0.5, "--train", "none")
        self.assertLess(record["data"]["duplicate_inputs"], 10)
        self.assertEqual(record["data"]["rows_read"], 20)

    def test_smse_needs_a_target_that_varies(self):
        self.write("d.csv", "a,y\n" + rows(20, lambda i: i, math.sin))
        self.mercer("fit", "d.csv", "--train", "none", "-m", "m.mcr")
        for name, text in (("one.csv", "a,y\n3,1\n"), ("flat.csv", "a,y\n3,1\n4,1\n")):
            self.write(name, text)
            scores = self.json("evaluate", "m.mcr", name)
            self.assertIsNone(scores["smse"])
            self.assertIn("vary", scores["smse_reason"])
            self.assertGreater(scores["rmse"], 0)
            self.assertRegex(self.mercer("evaluate", "m.mcr", name).stdout, r"smse +none")

    def test_a_target_whose_square_is_no_number(self):
        for scale, word in ((1e-300, "narrow"), (1e-200, "narrow"), (1e200, "large"), (1e299, "large")):
            self.write("d.csv", "a,y\n" + rows(20, lambda i: i, lambda i: scale * math.sin(i)))
            for words in (("fit",), ("fit", "--no-standardize"), ("solve",), ("plan",)):
                with self.subTest(scale=scale, words=words):
                    self.refused(3, words[0], "d.csv", *words[1:], saying=(word, "'y'", "units"))
        for scale in (1e-120, 1e120):
            self.write("d.csv", "a,y\n" + rows(20, lambda i: i, lambda i: scale * math.sin(i)))
            record = self.json("fit", "d.csv", "--restarts", 0, "-m", "m.mcr")
            ratio = record["hyperparameters"]["signal_variance"] / scale / scale
            self.assertTrue(1e-3 < ratio < 1e3, ratio)
            means = read_csv(self.mercer("predict", "m.mcr", "d.csv").stdout)["mean"]
            self.assertTrue(all(0 < abs(m) < 2 * scale for m in means))


class UnitsTest(CliCase):
    def test_a_likelihood_names_its_units(self):
        self.write("d.csv", "a,y\n" + rows(20, lambda i: i, lambda i: 3 * math.sin(i)))
        words = ("fit", "d.csv", "--train", "none")
        scaled = self.json(*words)["log_marginal_likelihood"]
        raw = self.json(*words, "--no-standardize")["log_marginal_likelihood"]
        self.assertEqual((scaled["units"], raw["units"]), ("standardised", "data"))
        self.assertIn("units of the data", self.mercer(*words, "--no-standardize").stdout)


class PackedTest(CliCase):
    def test_a_name_in_gz_is_gzip_everywhere(self):
        self.write("d.csv", "a,y\n" + rows(20, lambda i: i, math.sin))
        self.mercer("split", "d.csv", "--train-out", "a.csv", "--test-out", "b.csv")
        self.mercer("split", "d.csv", "--train-out", "a.csv.gz", "--test-out", "b.csv.gz")
        self.mercer("fit", "a.csv.gz", "--train", "none", "-m", "m.mcr")
        for name in ("predict", "solve", "generate"):
            words = {"predict": ("m.mcr", "b.csv.gz"), "solve": ("d.csv",),
                     "generate": ("field", "-n", 30)}[name]
            self.mercer(name, *words, "-o", f"{name}.csv")
            self.mercer(name, *words, "-o", f"{name}.csv.gz")
        for name in ("a", "b", "predict", "solve", "generate"):
            packed = (self.folder / f"{name}.csv.gz").read_bytes()
            self.assertEqual(gzip.decompress(packed), (self.folder / f"{name}.csv").read_bytes(), name)


class MemoryTest(CliCase):
    def test_what_would_fit_does_fit(self):
        self.write("d.csv", "a,y\n" + rows(300, lambda i: i, math.sin))
        for words in (("fit", "-m", "m.mcr"), ("plan",), ("solve",)):
            last = self.refused(4, words[0], "d.csv", *words[1:], "--memory", "1M", saying="would do")
            self.assertNotIn(" 0 rows", last)
            enough = re.search(r"--memory (\d+M) would do", last).group(1)
            self.mercer(words[0], "d.csv", *words[1:], "--memory", enough)

    def test_what_would_fit_is_enough_for_learning_and_the_solve(self):
        # Learning refuses first; the solve after it needs more.
        self.generate("d.csv", "friedman", "-n", 6000)
        for words in ((), ("--train", "lbfgs"), ("--train", "vecchia"), ("--mean", "linear"),
                      ("--likelihood", "student-t"), ("--solver", "cholesky"), ("--solver", "gmres")):
            last = self.refused(4, "plan", "d.csv", *words, "--memory", "30M", saying="would do")
            enough = re.search(r"--memory (\d+M) would do", last).group(1)
            self.mercer("plan", "d.csv", *words, "--memory", enough)

    def test_generate_says_how_many_rows_fit(self):
        for name in ("gp", "friedman", "field", "grid"):
            for n in (10 ** 11, 10 ** 18):
                last = self.refused(4, "generate", name, "-n", n, "-o", "g.csv", saying=("-n", "rows fit"))
                self.assertNotIn("plan", last)
        last = self.refused(4, "generate", "gp", "-n", 2000, "--memory", "1M", saying="rows fit")
        most = re.search(r"up to ([\d,]+) rows", last).group(1).replace(",", "")
        self.mercer("generate", "gp", "-n", most, "--memory", "1M", "-o", "g.csv")
        self.refused(4, "generate", "gp", "-n", int(most) + 2, "--memory", "1M")

    def test_a_limit_on_address_space_is_no_endless_loop(self):
        self.write("d.csv", "a,y\n" + rows(300, lambda i: i, math.sin))
        program = os.environ["MERCER_PROGRAM"]

        def limited(megabytes, *words, **environment):
            def lower():
                resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
            return subprocess.run([program, *words], cwd=self.folder, preexec_fn=lower, text=True,
                                  capture_output=True, timeout=120, check=False,
                                  env={**os.environ, **environment})
        # Sanitizers and many cores need more than any limit that is interesting here.
        if limited(100000, "--version").returncode != 0 or os.cpu_count() > 16:
            self.skipTest("this program does not run under a limit on address space")
        for megabytes in (100, 300, 200 + 128 * os.cpu_count(), 4096 + 512 * os.cpu_count()):
            done = limited(megabytes, "fit", "d.csv", "-m", "m.mcr", "--train", "none")
            self.assertIn(done.returncode, (0, 4), done.stderr)
            if done.returncode == 4:
                self.assertIn("ulimit -v", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(limited(100, "fit", "d.csv").returncode, 4)
