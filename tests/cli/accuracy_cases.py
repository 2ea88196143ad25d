"""--accuracy: solves that go on until the error bound is a share of the target's standard deviation."""

import csv
import math

from harness import CliCase


class AccuracyTest(CliCase):
    FIXED = ("--train", "none", "--kernel", "matern32", "--lengthscale", "0.5", "--signal-variance", "1", "--noise", "1e-7",
             "--no-standardize", "--solver", "cg", "--max-iterations", "20000")

    def fitted(self, *more):
        self.generate("d.csv", "gp", "-n", 300, "--kernel", "matern32", "--lengthscale", "0.5", "--noise", "1e-7", "--seed", 3)
        return self.json("fit", "d.csv", *self.FIXED, *more)

    def sd_of_target(self):
        with open(self.folder / "d.csv") as file:
            y = [float(row["y"]) for row in csv.DictReader(line for line in file if not line.startswith("#"))]
        mean = sum(y) / len(y)
        return math.sqrt(sum((v - mean) ** 2 for v in y) / len(y))

    def test_low_noise_is_certified_by_default_and_costs_more_iterations(self):
        loose = self.fitted("--accuracy", "0")
        found = self.fitted()
        self.assertGreater(loose["certificate"]["mean_error_bound"], 0.01 * self.sd_of_target())
        self.assertLessEqual(found["certificate"]["mean_error_bound"], 0.01 * self.sd_of_target())
        self.assertGreater(found["iterations"], loose["iterations"])
        self.assertEqual(found["certificate"]["accuracy"], 0.01)
        self.assertNotIn("accuracy_missed", found["certificate"])

    def test_what_cannot_be_reached_is_said_in_text_json_and_model(self):
        record = self.fitted("--accuracy", "1e-13")
        self.assertIn("falls no further", record["certificate"]["accuracy_missed"])
        done = self.mercer("fit", "d.csv", *self.FIXED, "--accuracy", "1e-13")
        self.assertEqual(done.returncode, 0)
        self.assertIn("above the accuracy asked for (--accuracy)", done.stdout)
        self.assertEqual(self.json("info", "d.mcr")["certificate"]["accuracy_missed"], record["certificate"]["accuracy_missed"])

    def test_the_limit_of_iterations_is_named_as_an_option(self):
        loose = self.fitted("--accuracy", "0")
        words = [*self.FIXED[:-1], str(loose["iterations"] + 1)]
        record = self.json("fit", "d.csv", *words)
        self.assertIn("--max-iterations", record["certificate"]["accuracy_missed"])

    def test_predictions_have_a_bound_and_an_estimate_of_each_mean(self):
        self.fitted()
        for variance in ("exact", "none"):
            self.mercer("predict", "d.mcr", "d.csv", "--variance", variance, "-o", "p.csv")
            with open(self.folder / "p.csv") as file:
                rows = list(csv.DictReader(file))
            for row in rows:
                self.assertLessEqual(float(row["error_estimate"]), float(row["error_bound"]))
                self.assertGreater(float(row["error_estimate"]), 0)

    def test_solve_goes_on_too(self):
        self.generate("d.csv", "gp", "-n", 300, "--kernel", "matern32", "--lengthscale", "0.5", "--noise", "1e-7", "--seed", 3)
        words = self.FIXED[2:]
        loose, found = self.json("solve", "d.csv", *words, "--accuracy", "0"), self.json("solve", "d.csv", *words)
        self.assertLessEqual(found["mean_error_bound"], 0.01 * self.sd_of_target())
        self.assertGreater(loose["mean_error_bound"], found["mean_error_bound"])

    def test_a_negative_accuracy_is_refused(self):
        self.generate("d.csv", "gp", "-n", 30)
        self.refused(2, "fit", "d.csv", "--accuracy", "-1", saying="accuracy")

    def test_a_system_that_is_solved_exactly_gives_a_model_that_can_be_read(self):
        self.write("n.csv", "x,y\n0,1\n1000,2\n")
        self.json("fit", "n.csv", "--task", "regression", "--kernel", "rbf", "--no-standardize", "--train", "none",
                  "--lengthscale", "1", "--signal-variance", "1", "--noise", "1", "--solver", "cg", "-m", "n.mcr")
        self.assertIsInstance(self.json("info", "n.mcr")["certificate"]["mean_error_estimate"], float)

    def test_rounding_that_keeps_the_bound_above_the_accuracy_is_said(self):
        self.generate("d.csv", "gp", "-n", 100, "--seed", 1)
        record = self.json("fit", "d.csv", "--train", "none", "--accuracy", "1e-15")
        self.assertIn("accuracy_missed", record["certificate"])

    def test_other_likelihoods_and_compare_have_no_accuracy(self):
        self.generate("c.csv", "gp", "-n", 40, "--likelihood", "poisson")
        self.refused(2, "fit", "c.csv", "--likelihood", "poisson", "--accuracy", "0.1", saying="--accuracy")
