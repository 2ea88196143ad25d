"""Kernels whose leaves name their inputs, from a file to a prediction."""

import math

from harness import CliCase, read_csv

KERNEL = "matern32(x,y) * matern12(t)"
FIXED = ("--train", "none", "--no-standardize", "--noise", "0.1", "--quiet")


def table(n):
    """Space, time, a category and a response, as lines of text."""
    lines = ["x,y,t,site,z"]
    for i in range(n):
        x, y, t = math.sin(1.3 * i), math.cos(2.1 * i), 0.1 * i
        site = "abc"[i % 3]
        z = math.sin(2 * x) * y + math.sin(t) + 0.3 * (site == "a")
        lines.append(f"{x:.6f},{y:.6f},{t:.3f},{site},{z:.6f}")
    return "\n".join(lines) + "\n"


def solve(matrix, vector):
    """Gaussian elimination with pivots, in plain Python."""
    rows = [list(row) + [b] for row, b in zip(matrix, vector)]
    n = len(rows)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            for j in range(k, n + 1):
                rows[i][j] -= factor * rows[k][j]
    out = [0.0] * n
    for k in reversed(range(n)):
        known = sum(rows[k][j] * out[j] for j in range(k + 1, n))
        out[k] = (rows[k][n] - known) / rows[k][k]
    return out


class NamedInputsTest(CliCase):
    def setUp(self):
        super().setUp()
        self.write("d.csv", table(60))

    def test_fit_predict_and_info(self):
        fitted = self.json("fit", "d.csv", "-m", "m.mcr", "--kernel", KERNEL, "--inputs", "x,y,t",
                           "--quiet")
        self.assertEqual(fitted["kernel"], "matern32(x,y) * matern12(t)")
        leaves = fitted["hyperparameters"]["leaves"]
        self.assertEqual([leaf["kernel"] for leaf in leaves], ["matern32", "matern12"])
        self.assertEqual([leaf["inputs"] for leaf in leaves], [[0, 1], [2]])
        self.assertEqual([len(leaf["lengthscales"]) for leaf in leaves], [2, 1])
        # Two lengthscales, one, a signal variance and the noise.
        self.assertEqual(len(fitted["hyperparameters"]["standardised"]["parameters"]), 5)
        info = self.json("info", "m.mcr")
        self.assertEqual(info["kernel"], KERNEL)
        self.assertEqual(info["hyperparameters"], fitted["hyperparameters"])
        text = self.mercer("info", "m.mcr").stdout
        self.assertIn(KERNEL, text)
        lines = [line.split() for line in text.splitlines()]
        for name in ("x", "y", "t"):  # once each: a leaf lists its own inputs only
            self.assertEqual(sum(line[:1] == [name] for line in lines), 1, text)
        means = read_csv(self.mercer("predict", "m.mcr", "d.csv", "--quiet").stdout)["mean"]
        self.assertEqual(len(means), 60)

    def test_predictions_are_those_of_the_formula(self):
        self.json("fit", "d.csv", "-m", "m.mcr", "--kernel", KERNEL, "--inputs", "x,y,t",
                  "--lengthscale", "0.8,1.2,2", *FIXED)
        ours = read_csv(self.mercer("predict", "m.mcr", "d.csv", "--quiet").stdout)["mean"]
        data = [line.split(",") for line in table(60).splitlines()[1:]]
        points = [[float(v) for v in row[:3]] for row in data]
        z = [float(row[4]) for row in data]
        # The defaults on data as they are: signal variance that of the target, mean zero.
        mean = sum(z) / len(z)
        variance = sum((v - mean) ** 2 for v in z) / len(z)

        def k(a, b):
            r = math.hypot((a[0] - b[0]) / 0.8, (a[1] - b[1]) / 1.2)
            s = math.sqrt(3) * r
            return variance * (1 + s) * math.exp(-s) * math.exp(-abs(a[2] - b[2]) / 2)

        h = [[k(a, b) + 0.1 * (i == j) for j, b in enumerate(points)]
             for i, a in enumerate(points)]
        w = solve(h, z)
        for a, m in zip(points, ours):
            self.assertAlmostEqual(m, sum(v * k(a, b) for v, b in zip(w, points)), places=6)

    def test_a_category_is_all_its_columns(self):
        fitted = self.json("fit", "d.csv", "-m", "m.mcr", "--kernel", "rbf(x,y,t) + rbf(site):iso",
                           "--categorical", "site", *FIXED)
        leaves = fitted["hyperparameters"]["leaves"]
        self.assertEqual(fitted["data"]["inputs"], ["x", "y", "t", "site=a", "site=b", "site=c"])
        self.assertEqual([leaf["inputs"] for leaf in leaves], [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(self.json("info", "m.mcr")["kernel"], "rbf(x,y,t) + rbf(site):iso")
        level = self.json("fit", "d.csv", "-m", "m.mcr", "--kernel", "rbf(x) + linear(site=a)",
                          "--categorical", "site", *FIXED)
        self.assertEqual(level["hyperparameters"]["leaves"][1]["inputs"], [3])

    def test_classes_solve_plan_and_compare_read_names_too(self):
        self.json("fit", "d.csv", "-m", "c.mcr", "--target", "site", "--inputs", "x,y,t",
                  "--kernel", "rbf(x,y) * matern12(t)", "--train", "none", "--quiet")
        self.assertEqual(self.json("info", "c.mcr")["kernel"], "rbf(x,y) * matern12(t)")
        self.mercer("predict", "c.mcr", "d.csv", "--quiet")
        words = ("d.csv", "--target", "z", "--inputs", "x,y,t", "--kernel", KERNEL)
        self.json("solve", *words, "--noise", "0.1", "--quiet")
        self.json("plan", *words)
        self.json("compare", *words, "--lengthscales", "1", "--noises", "0.01", "--solvers", "cg",
                  "--preconditioners", "none,vecchia,ski,block-jacobi,rpcholesky", "--quiet")
        done = self.mercer("generate", "gp", "-n", "20", "-d", "3", "--kernel",
                           "matern32(x1,x2) * matern12(x3)", "--seed", "1")
        self.assertTrue(done.stdout.splitlines()[0].startswith("x1,x2,x3,"), done.stdout[:80])

    def test_what_is_not_there_is_refused(self):
        words = ("fit", "d.csv", "--categorical", "site", "--kernel")
        self.refused(2, *words, "rbf(x,w)",
                     saying=("there is no input 'w'", "there are: x, y, t, site, site=a"))
        self.refused(2, *words, "rbf(0)", saying="there is no input '0'")
        self.refused(2, *words, "rbf(z)", saying="there is no input 'z'")
        self.refused(2, *words, "constant(x)", saying="sees no inputs")

    def test_help_shows_how(self):
        self.assertIn("matern32(x,y) * matern12(t)", self.mercer("fit", "--help").stdout)
