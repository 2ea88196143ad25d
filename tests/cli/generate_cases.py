"""mercer generate gp beyond a dense covariance: draws by a Vecchia factor."""

import gzip
import math

from harness import CliCase, read_csv


def columns(text):
    """The columns of a CSV and its comment lines."""
    lines = text.splitlines()
    comments = [line for line in lines if line.startswith("#")]
    return read_csv("\n".join(line for line in lines if not line.startswith("#"))), comments


class VecchiaDrawTest(CliCase):
    def test_large_draws_say_how_they_were_made(self):
        record = self.json("generate", "gp", "-n", 4001, "--seed", 2, "-o", "d.csv", "--quiet")
        self.assertEqual(record["draw"], {"method": "vecchia", "neighbours": 100, "raised": 0})
        table, comments = columns((self.folder / "d.csv").read_text())
        self.assertEqual(len(table["y"]), 4001)
        self.assertEqual(len(comments), 1)
        self.assertIn("Vecchia factor with m = 100 neighbours", comments[0])
        # The comment is no row and no column to those who read the file.
        plan = self.json("plan", "d.csv", "--target", "y")
        self.assertEqual((plan["n"], plan["d"]), (4001, 2))
        self.json("split", "d.csv", "--train-out", "a.csv", "--test-out", "b.csv")

    def test_small_draws_are_exact_and_have_no_comment(self):
        record = self.json("generate", "gp", "-n", 100, "--seed", 2, "-o", "d.csv")
        self.assertEqual(record["draw"], {"method": "exact"})
        self.assertTrue((self.folder / "d.csv").read_text().startswith("x1,x2,y\n"))

    def test_it_is_said_on_standard_error_and_in_help(self):
        done = self.mercer("generate", "gp", "-n", 50, "--neighbours", 10)
        self.assertIn("m = 10 neighbours", done.stderr)
        self.assertEqual(self.mercer("generate", "gp", "-n", 50, "--neighbours", 10, "--quiet").stderr, "")
        self.assertIn("--neighbours", self.mercer("generate", "--help").stdout)

    def test_same_seed_same_bytes_on_any_number_of_threads(self):
        words = ("generate", "gp", "-n", 9000, "--neighbours", 12, "-d", 3, "--quiet", "--seed")
        one = self.mercer(*words, 5, "--threads", 1).stdout
        self.assertEqual(one, self.mercer(*words, 5, "--threads", 2).stdout)
        self.assertNotEqual(one, self.mercer(*words, 6).stdout)

    def test_near_points_are_alike(self):
        # Half the mean square of the difference is 1 - k(h) in the mean; here it is taken over the nearest of 5,000 points
        # on a line, which are 1e-4 apart: 1 - exp(-h / 0.1) = 1e-3 in the mean, within a tenth (2,500 pairs and more).
        table, _ = columns(self.mercer("generate", "gp", "-n", 5000, "-d", 1, "--kernel", "matern12", "--lengthscale", 0.1,
                                       "--truth", "--quiet").stdout)
        points = sorted(zip(table["x1"], table["f"]))
        found = expected = 0.0
        for (x, f), (z, g) in zip(points, points[1:]):
            found += (f - g) ** 2 / 2
            expected += 1 - math.exp(-(z - x) / 0.1)
        # 4,999 independent terms of relative variance at most 5: 8 standard errors are 0.25.
        self.assertAlmostEqual(found / expected, 1, delta=0.25)

    def test_likelihoods_work_on_top(self):
        for name in ("bernoulli-logit", "poisson", "negative-binomial", "student-t"):
            text = self.mercer("generate", "gp", "-n", 300, "--draw", "vecchia", "--likelihood", name, "--truth",
                               "--quiet").stdout
            table, comments = columns(text)
            self.assertEqual((len(table["y"]), len(comments)), (300, 1))
            if name == "bernoulli-logit":
                self.assertEqual(set(table["y"]), {0.0, 1.0})

    def test_kernels_that_know_no_distance(self):
        for kernel in ("linear", "poly:2", "periodic", "periodic + linear", "rbf * periodic"):
            text = self.mercer("generate", "gp", "-n", 5000, "--kernel", kernel, "--quiet").stdout
            self.assertEqual(len(columns(text)[0]["y"]), 5000)

    def test_packed_output_has_the_comment_too(self):
        self.generate("a.csv.gz", "gp", "-n", 60, "--neighbours", 5)
        with gzip.open(self.folder / "a.csv.gz", "rt") as file:
            self.assertTrue(file.readline().startswith("# "))

    def test_refusals(self):
        for words, saying in ((("--draw", "magic"), "vecchia"), (("--neighbours", "0"), "--neighbours"),
                              (("--draw", "exact", "--neighbours", "5"), "--neighbours")):
            self.refused(2, "generate", "gp", "-n", 9, *words, saying=saying)
        for words in (("--draw", "vecchia"), ("--neighbours", "5")):
            self.refused(2, "generate", "friedman", "-n", 9, *words, saying="for gp")
        last = self.refused(4, "generate", "gp", "-n", 2000, "--memory", "8M", saying="rows fit")
        self.assertIn("--draw vecchia", last)
        self.mercer("generate", "gp", "-n", 2000, "--memory", "8M", "--draw", "vecchia", "-o", "g.csv")
