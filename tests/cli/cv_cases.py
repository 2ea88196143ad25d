"""mercer cv: folds, leave-one-out, outputs, refusals."""

import math
import random
import re
import signal

from harness import CliCase, read_csv, rows_of, start

FIXED = ("--train", "none", "--no-standardize", "--kernel", "1.3*rbf:iso:lengthscale=0.7",
         "--noise", 0.04)


def table(rows, header=("a", "b", "y")):
    return ",".join(header) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


def wave(n, seed=1):
    """Rows of a smooth function with noise."""
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        a, b = rng.uniform(0, 3), rng.uniform(0, 3)
        rows.append([a, b, math.sin(2 * a) + 0.5 * b + 0.2 * rng.gauss(0, 1)])
    return rows


class CvTest(CliCase):
    def data(self, n=60, name="d.csv"):
        self.write(name, table(wave(n)))
        return name

    def predictions(self, *words):
        """Columns of what cv writes."""
        self.mercer("cv", *words, "-o", "out.csv", "--quiet")
        return read_csv((self.folder / "out.csv").read_text())

    def test_every_row_is_predicted_once_and_scored_as_evaluate_does(self):
        data = self.data()
        record = self.json("cv", data, "--folds", 5, "--train", "none", "-o", "out.csv")
        out = read_csv((self.folder / "out.csv").read_text())
        self.assertEqual(out["row"], [float(i) for i in range(1, 61)])
        self.assertEqual(sorted(set(out["fold"])), [1, 2, 3, 4, 5])
        self.assertEqual({out["fold"].count(f) for f in (1, 2, 3, 4, 5)}, {12})
        errors = [t - m for t, m in zip(out["target"], out["mean"])]
        rmse = math.sqrt(sum(e * e for e in errors) / 60)
        self.assertAlmostEqual(record["scores"]["rmse"], rmse, delta=1e-12)
        inside = sum(lo <= t <= hi for t, lo, hi in zip(out["target"], out["q05"], out["q95"]))
        self.assertAlmostEqual(record["scores"]["coverage90"], inside / 60, delta=1e-12)
        self.assertEqual((record["n"], record["d"], record["folds"], record["method"]),
                         (60, 2, 5, "refit"))
        per_fold = [fold["scores"]["rmse"] for fold in record["per_fold"]]
        mean = sum(per_fold) / 5
        error = math.sqrt(sum((r - mean)**2 for r in per_fold) / 4 / 5)
        self.assertAlmostEqual(record["standard_errors"]["rmse"], error, delta=1e-12)
        for fold in record["per_fold"]:
            self.assertEqual(fold["n"], 12)
            self.assertIn("signal_variance", fold["hyperparameters"])
            self.assertTrue(fold["converged"])

    def test_a_fold_is_what_fit_and_evaluate_give(self):
        """Scaling, learning and weights of a fold know nothing of it."""
        rows = [row[:2] + ["ab"[i % 3 == 0], row[2]] for i, row in enumerate(wave(60))]
        self.write("d.csv", table(rows, ("a", "b", "part", "y")))
        for part, other in (("a", "b"), ("b", "a")):
            self.write(part + ".csv", table([r[:2] + r[3:] for r in rows if r[2] == part]))
        record = self.json("cv", "d.csv", "--target", "y", "--fold-column", "part")
        self.assertEqual([fold["fold"] for fold in record["per_fold"]], ["a", "b"])
        for fold, other in zip(record["per_fold"], "ba"):
            fitted = self.json("fit", other + ".csv", "-m", "m.mcr")
            scores = self.json("evaluate", "m.mcr", fold["fold"] + ".csv")
            for name in ("n", "rmse", "mae", "nll", "crps", "coverage95"):
                self.assertEqual(fold["scores"][name], scores[name], name)
            self.assertEqual(fold["hyperparameters"], fitted["hyperparameters"])

    def test_the_seed_decides_and_threads_do_not(self):
        data = self.data()
        words = ("cv", data, "--folds", 4, "--restarts", 1, "-o", "out.csv", "--quiet")
        self.mercer(*words, "--threads", 1)
        first = (self.folder / "out.csv").read_text()
        self.mercer(*words, "--threads", 2)
        self.assertEqual((self.folder / "out.csv").read_text(), first)
        self.mercer(*words, "--seed", 5)
        self.assertNotEqual((self.folder / "out.csv").read_text(), first)

    def test_leave_one_out_is_refitting(self):
        """The same scale and values in every refit: one fold for each row."""
        for mean in ("zero", "constant", "linear"):
            with self.subTest(mean):
                rows = wave(25, seed=3)
                rows[7][:2] = rows[3][:2]  # a replicate: fit merges it, leave-one-out may not
                self.write("d.csv", table([[i, *row] for i, row in enumerate(rows)],
                                          ("i", "a", "b", "y")))
                words = ("d.csv", "--target", "y", "--inputs", "a,b", *FIXED, "--mean", mean)
                closed = self.predictions(*words, "--folds", "loo")
                refits = self.predictions(*words, "--fold-column", "i")
                for name in ("row", "target", "mean", "sd_latent", "sd_obs", "q05", "q95"):
                    for a, b in zip(closed[name], refits[name]):
                        self.assertAlmostEqual(a, b, delta=1e-8 * max(1, abs(b)), msg=name)

    def test_leave_one_out_with_the_noise_of_each_row(self):
        rng = random.Random(4)
        rows = [[i, *row[:2], rng.uniform(0, 0.2), rng.randint(1, 5), row[2]]
                for i, row in enumerate(wave(25, seed=3))]
        self.write("d.csv", table(rows, ("i", "a", "b", "e", "n", "y")))
        words = ("d.csv", "--target", "y", "--inputs", "a,b", *FIXED, "--noise-column", "e",
                 "--count-column", "n", "--mean", "constant")
        closed = self.predictions(*words, "--folds", "loo")
        refits = self.predictions(*words, "--fold-column", "i")
        for name in ("mean", "sd_latent", "sd_obs"):
            for a, b in zip(closed[name], refits[name]):
                self.assertAlmostEqual(a, b, delta=1e-8 * max(1, abs(b)), msg=name)

    def test_leave_one_out_learns_once_and_says_so(self):
        data = self.data(40)
        record = self.json("cv", data, "--folds", "loo")
        self.assertEqual((record["method"], record["folds"], record["per_fold"]),
                         ("closed form", 40, []))
        fitted = self.json("fit", data, "-m", "m.mcr")
        self.assertEqual(record["hyperparameters"], fitted["hyperparameters"])
        self.assertGreater(record["standard_errors"]["nll"], 0)
        text = self.mercer("cv", data, "--folds", "loo").stdout
        self.assertIn("hyperparameters and scaling are those of all rows", " ".join(text.split()))

    def test_leave_one_out_of_a_logarithm_is_refitting(self):
        rows = [[i, a, b, math.exp(y)] for i, (a, b, y) in enumerate(wave(25, seed=3))]
        self.write("d.csv", table(rows, ("i", "a", "b", "y")))
        words = ("d.csv", "--target", "y", "--inputs", "a,b", *FIXED, "--log-target")
        closed = self.predictions(*words, "--folds", "loo")
        refits = self.predictions(*words, "--fold-column", "i")
        for name in ("target", "mean", "sd_latent", "sd_obs", "q05", "q95"):
            for a, b in zip(closed[name], refits[name]):
                self.assertAlmostEqual(a, b, delta=1e-8 * max(1, abs(b)), msg=name)
        ours = self.json("cv", *words, "--folds", "loo")["scores"]
        theirs = self.json("cv", *words, "--fold-column", "i")["scores"]
        for name in ("rmse", "nll", "crps", "coverage95"):
            self.assertAlmostEqual(ours[name], theirs[name], delta=1e-8, msg=name)

    def test_leave_one_out_without_uncertainty(self):
        record = self.json("cv", self.data(40), "--folds", "loo", "--method", "krr")
        self.assertIsNone(record["scores"]["nll"])
        self.assertGreater(record["scores"]["rmse"], 0)

    def test_classes(self):
        rng = random.Random(5)
        rows = []
        for _ in range(60):
            a, b = rng.gauss(0, 1), rng.gauss(0, 1)
            rows.append([a, b, "up" if a + 0.3 * rng.gauss(0, 1) > 0.8 else "down"])
        self.write("d.csv", table(rows))
        record = self.json("cv", "d.csv", "--folds", 4, "--train", "none", "-o", "out.csv")
        out = rows_of((self.folder / "out.csv").read_text())
        self.assertEqual([row["target"] for row in out], [row[2] for row in rows])
        wrong = sum(row["label"] != row["target"] for row in out)
        self.assertAlmostEqual(record["scores"]["error_rate"], wrong / 60, delta=1e-12)
        for row in out:
            self.assertAlmostEqual(float(row["probability_up"]) + float(row["probability_down"]), 1,
                                   delta=1e-12)
        # Every fold has its share of the rarer class.
        ups = [sum(row["target"] == "up" for row in out if row["fold"] == str(f))
               for f in range(1, 5)]
        self.assertLessEqual(max(ups) - min(ups), 1)
        for name in ("error_rate", "nll", "brier", "auc"):
            self.assertIsNotNone(record["standard_errors"][name])

    def test_every_likelihood(self):
        rng = random.Random(6)
        rows = [[a, b, abs(round(3 + 2 * y + rng.gauss(0, 0.5)))] for a, b, y in wave(40)]
        self.write("counts.csv", table(rows))
        self.write("three.csv", table([[a, b, "pqr"[int(a)]] for a, b, _ in wave(45)]))
        for name, likelihood in (("counts.csv", "poisson"), ("counts.csv", "negative-binomial"),
                                 (self.data(40), "student-t"), ("three.csv", "bernoulli-probit"),
                                 ("three.csv", "softmax")):
            with self.subTest(likelihood):
                record = self.json("cv", name, "--folds", 3, "--likelihood", likelihood,
                                   "--train", "none", "--quiet")
                self.assertEqual((record["folds_done"], record["scores"]["n"]),
                                 (3, 45 if name == "three.csv" else 40))
                self.assertIsNotNone(record["scores"]["nll"])

    def test_leave_one_out_of_counts_is_by_refits(self):
        rows = [[a, b, abs(round(3 + 2 * y))] for a, b, y in wave(15)]
        self.write("d.csv", table(rows))
        record = self.json("cv", "d.csv", "--folds", "loo", "--likelihood", "poisson",
                           "--train", "none")
        self.assertEqual((record["method"], record["folds_done"]), ("refit", 15))
        self.write("d.csv", table([[a, b, abs(round(3 + y))] for a, b, y in wave(501)]))
        self.refused(2, "cv", "d.csv", "--folds", "loo", "--likelihood", "poisson", "--quiet",
                     saying=("closed form", "501 rows", "--folds 10"))

    def test_rows_left_out_of_the_file_keep_the_numbers_of_the_others(self):
        rows = wave(20)
        rows[3][2] = rows[9][0] = ""
        self.write("d.csv", table(rows))
        out = self.predictions("d.csv", "--folds", 3, "--drop-missing", "--train", "none")
        self.assertEqual(out["row"], [i for i in range(1, 21) if i not in (4, 10)])

    def test_what_cannot_be_validated_is_refused(self):
        data = self.data(12)
        rows = wave(12)
        self.write("one.csv", table([[*r[:2], "x", r[2]] for r in rows], ("a", "b", "f", "y")))
        self.write("gap.csv", table([[*r[:2], "" if i == 4 else i % 2, r[2]]
                                     for i, r in enumerate(rows)], ("a", "b", "f", "y")))
        self.write("rare.csv", table([[*r[:2], i % 2, "no" if i % 2 else "yes"]
                                      for i, r in enumerate(rows)], ("a", "b", "f", "y")))
        for code, words, saying in (
                (3, (data, "--folds", 13), ("13 folds of 12 rows", "--folds 12")),
                (2, (data, "--folds", 1), "2 or more"),
                (2, (data, "--folds", 0), "2 or more"),
                (2, (data, "--folds", -3), "2 or more"),
                (2, (data, "--folds", "2.5"), "whole number"),
                (2, (data, "--folds", "all"), "loo"),
                (3, ("one.csv", "--fold-column", "f"), ("fold column", "'x'", "two folds")),
                (3, ("gap.csv", "--fold-column", "f"), ("line 6", "column 'f'", "missing")),
                (3, ("gap.csv", "--fold-column", "nofold"), ("--fold-column", "'nofold'")),
                (2, ("gap.csv", "--fold-column", "y"), ("'y'", "fold column")),
                (2, ("gap.csv", "--fold-column", "f", "--folds", 3), "give one"),
                (3, ("rare.csv", "--fold-column", "f", "--quiet"), ("fold 0", "have class")),
                (2, (data, "--json", "-o", "-"), "standard output"),
                (4, (data, "--folds", "loo", "--memory", "1K"), "--folds 10")):
            with self.subTest(words):
                self.refused(code, "cv", *words, saying=saying)

    def test_ctrl_c_shows_the_folds_that_are_done(self):
        self.write("d.csv", table(wave(400)))
        process = start("cv", "d.csv", "--folds", 400, cwd=self.folder)
        for line in process.stderr:  # a line at the beginning, then one every five seconds
            if "fold" in line and "fold 1 of" not in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        done = re.search(r"interrupted: (\d+) of 400 folds are done", err)
        self.assertTrue(done, err)
        rows = [line.split()[1] for line in out.splitlines() if line.split()[:1] == ["all"]]
        self.assertEqual(rows, [done.group(1)])  # a row for each fold

    def test_the_table(self):
        text = self.mercer("cv", self.data(30), "--folds", 3, "--train", "none").stdout
        lines = [line.split() for line in text.splitlines()]
        self.assertIn(["fold", "rows", "rmse", "mae", "smse", "nll", "crps", "coverage90",
                       "coverage95"], lines)
        names = [line[0] for line in lines if len(line) > 7]
        self.assertEqual(names[names.index("fold"):], ["fold", "1", "2", "3", "all", "+-", "+-"])
        self.assertIn("standard error", text)
        self.assertIn("hyperparameters as given", text)
