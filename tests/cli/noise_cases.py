"""Noise of each row: columns of known variances and of counts, and rows that repeat."""

import math

from harness import CliCase, read_csv

FIXED = ("--train", "none", "--no-standardize", "--kernel", "rbf", "--lengthscale", "0.7",
         "--noise", "0.1", "--quiet")


def rows(n):
    """Pairs (x, y) of text; after twenty the inputs repeat."""
    return [(f"{0.1 * (i % 20):.1f}", f"{math.sin(0.37 * i):.6f}") for i in range(n)]


class MergeTest(CliCase):
    def setUp(self):
        super().setUp()
        self.write("d.csv", "x,y\n" + "".join(f"{x},{y}\n" for x, y in rows(60)))

    def fit(self, *words):
        return self.json("fit", "d.csv", "-m", "m.mcr", *FIXED, *words)

    def predictions(self):
        return read_csv(self.mercer("predict", "m.mcr", "d.csv", "--quiet").stdout)

    def test_it_changes_nothing_but_the_number_of_rows(self):
        merged, ours = self.fit("--gradient"), self.predictions()
        whole, theirs = self.fit("--no-merge", "--gradient"), self.predictions()
        self.assertEqual((merged["n"], merged["merged_rows"]), (60, 40))
        self.assertEqual((whole["n"], whole["merged_rows"]), (60, 0))
        a, b = merged["log_marginal_likelihood"], whole["log_marginal_likelihood"]
        self.assertAlmostEqual(a["value"], b["value"], places=7)
        self.assertEqual((a["rows"], b["rows"]), (60, 60))
        for name, slope in b["gradient"].items():
            self.assertAlmostEqual(a["gradient"][name], slope, places=6)
        for name in ("mean", "sd_latent", "sd_obs"):
            for p, q in zip(ours[name], theirs[name]):
                self.assertAlmostEqual(p, q, places=8)

    def test_it_is_said(self):
        done = self.mercer("fit", "d.csv", "-m", "m.mcr", "--train", "none")
        self.assertIn("40 rows", done.stderr)
        self.assertIn("--no-merge", done.stderr)
        self.assertIn("Merged       40 rows", done.stdout)
        self.assertIn("60 rows", self.mercer("info", "m.mcr").stdout)
        info = self.json("info", "m.mcr")
        self.assertEqual((info["n"], info["merged_rows"], info["record"]["merged_rows"]),
                         (60, 40, 40))

    def test_a_plan_counts_what_is_left(self):
        self.assertEqual(self.json("plan", "d.csv")["n"], 20)
        self.assertEqual(self.json("plan", "d.csv", "--no-merge")["n"], 60)
        self.refused(2, "plan", "d.csv", "--for", "solve", "--no-merge", saying="--no-merge")


class NoiseColumnTest(CliCase):
    def table(self, name, counts, noise=None):
        lines = ["x,n,e,y"] + [f"{x},{counts(i)},{noise(i) if noise else 0},{y}"
                               for i, (x, y) in enumerate(rows(20))]
        self.write(name, "\n".join(lines) + "\n")

    def test_a_mean_of_three_counts_as_three(self):
        self.table("means.csv", lambda i: 3)
        self.write("each.csv", "x,y\n" + 3 * "".join(f"{x},{y}\n" for x, y in rows(20)))
        self.json("fit", "means.csv", "-m", "a.mcr", "--count-column", "n", "--inputs", "x", *FIXED)
        self.json("fit", "each.csv", "-m", "b.mcr", *FIXED)
        a = read_csv(self.mercer("predict", "a.mcr", "each.csv", "--quiet").stdout)
        b = read_csv(self.mercer("predict", "b.mcr", "each.csv", "--quiet").stdout)
        for name in ("mean", "sd_latent", "sd_obs"):
            for p, q in zip(a[name], b[name]):
                self.assertAlmostEqual(p, q, places=8)

    def test_equal_known_noise_is_more_noise(self):
        self.table("d.csv", lambda i: 1, lambda i: 0.2)
        first = self.json("fit", "d.csv", "-m", "a.mcr", "--noise-column", "e", "--inputs", "x",
                          *FIXED)
        second = self.json("fit", "d.csv", "-m", "b.mcr", "--inputs", "x", *FIXED[:-2], "0.3",
                           "--quiet")
        self.assertAlmostEqual(first["log_marginal_likelihood"]["value"],
                               second["log_marginal_likelihood"]["value"], places=8)
        self.assertEqual(first["data"]["noise_column"], "e")
        self.assertAlmostEqual(first["hyperparameters"]["noise_variance"], 0.1, places=12)

    def test_the_columns_are_no_inputs(self):
        self.table("d.csv", lambda i: 1 + i % 3, lambda i: 0.1 * (i % 4))
        record = self.json("fit", "d.csv", "-m", "m.mcr", "--noise-column", "e", "--count-column",
                           "n", "--restarts", 0)
        self.assertEqual(record["data"]["inputs"], ["x"])
        info = self.json("info", "m.mcr")
        self.assertEqual((info["noise_column"], info["count_column"]), ("e", "n"))
        self.assertIn("known variances in e", self.mercer("info", "m.mcr").stdout)

    def test_evaluate_counts_the_noise_of_the_row(self):
        self.table("d.csv", lambda i: 1, lambda i: 0.2)
        self.json("fit", "d.csv", "-m", "m.mcr", "--noise-column", "e", "--inputs", "x", *FIXED)
        self.write("plain.csv", "x,y\n0.5,0.1\n1.5,0.3\n")
        self.write("noisy.csv", "x,e,y\n0.5,0.4,0.1\n1.5,0.4,0.3\n")
        plain = read_csv(self.mercer("predict", "m.mcr", "plain.csv", "--quiet").stdout)
        noisy = read_csv(self.mercer("predict", "m.mcr", "noisy.csv", "--quiet").stdout)
        for p, q in zip(plain["sd_obs"], noisy["sd_obs"]):
            self.assertAlmostEqual(q * q - p * p, 0.4, places=10)
        self.assertEqual(plain["sd_latent"], noisy["sd_latent"])
        self.assertNotEqual(self.json("evaluate", "m.mcr", "plain.csv")["nll"],
                            self.json("evaluate", "m.mcr", "noisy.csv")["nll"])
        self.assertIn("not there", self.mercer("evaluate", "m.mcr", "plain.csv").stderr)
        self.assertNotIn("not there", self.mercer("evaluate", "m.mcr", "noisy.csv").stderr)
        self.write("bad.csv", "x,e,y\n0.5,-1,0.1\n")
        self.refused(3, "evaluate", "m.mcr", "bad.csv", saying=("line 2", "'e'"))

    def test_values_that_make_no_sense(self):
        for cell, flag in (("-1", "--noise-column"), ("", "--noise-column"),
                           ("nan", "--noise-column"), ("0", "--count-column"),
                           ("-2", "--count-column"), ("", "--count-column")):
            with self.subTest(cell=cell, flag=flag):
                self.write("d.csv", f"x,e,y\n1,1,2\n2,{cell},3\n3,1,5\n")
                self.refused(3, "fit", "d.csv", flag, "e", saying=("line 3", "'e'"))
        self.write("d.csv", "x,e,y\n1,1,2\n2,1,3\n3,1,5\n")
        self.refused(3, "fit", "d.csv", "--noise-column", "f", saying=("--noise-column", "'f'"))
        self.refused(2, "fit", "d.csv", "--noise-column", "y", saying="target")

    def test_solve_takes_them(self):
        self.table("d.csv", lambda i: 1, lambda i: 0.2)
        words = ("--inputs", "x", "--no-standardize", "--kernel", "rbf", "--quiet")
        self.mercer("solve", "d.csv", *words, "--noise-column", "e", "--noise", "0.1", "-o", "a.csv")
        self.mercer("solve", "d.csv", *words, "--noise", "0.3", "-o", "b.csv")
        a, b = (read_csv((self.folder / name).read_text())["a"] for name in ("a.csv", "b.csv"))
        for p, q in zip(a, b):
            self.assertAlmostEqual(p, q, places=8)
