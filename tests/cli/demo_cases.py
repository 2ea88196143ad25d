"""mercer demo --quick: the claims that it prints are computed, and they hold."""

import json
import math
import os
import re

from harness import CliCase, run


class DemoTest(CliCase):
    @classmethod
    def setUpClass(cls):
        cls.done = run("demo", "--quick", "--json", "--seed", 3)
        cls.record = json.loads(cls.done.stdout)

    def test_it_ends_well_and_leaves_no_files(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.has(self.record, "n d seed quick plan dense_bytes truth fit evaluation promises iterations "
                 "classes seconds peak_rss_bytes")
        self.assertEqual(self.record["dense_bytes"], 8 * self.record["n"] ** 2)
        self.mercer("demo", "--help")
        self.assertEqual(os.listdir(self.folder), [])

    def test_no_time_box_cut_the_quick_variant_short(self):
        fit = self.record["fit"]
        self.assertEqual((fit["stop"], fit["n"]), ("converged", self.record["n"]))
        self.assertFalse(fit["time_box_exceeded"] or fit["time_box_ended_learning"])
        for name in ("plain", "few_plain", "few_auto"):
            self.assertTrue(self.record["iterations"][name]["converged"], name)

    def test_the_truth_is_learned(self):
        truth, learned = self.record["truth"], self.record["fit"]["hyperparameters"]
        # 600 rows know a noise variance to sqrt(2 / (600 - those that the field takes up)): about a
        # tenth, so that a third is more than three standard errors.
        self.assertLess(abs(learned["noise_variance"] / truth["noise_variance"] - 1), 1 / 3)
        for value, true_value in zip(learned["lengthscales"], truth["lengthscales"]):
            self.assertLess(abs(math.log(value / true_value)), math.log(2))

    def test_intervals_cover_what_they_say(self):
        scores = self.record["evaluation"]
        for name, share in (("coverage90", 0.9), ("coverage95", 0.95)):
            # Five standard deviations of a binomial share: wrong once in a million seeds, were the
            # hyperparameters the true ones; the learned ones are close to them.
            width = 5 * math.sqrt(share * (1 - share) / scores["n"])
            self.assertLess(abs(scores[name] - share), width, name)
        # The error of y is noise and the error of f; the field was learned, so the noise dominates.
        noise = math.sqrt(self.record["truth"]["noise_variance"])
        self.assertLess(scores["latent_rmse"], noise)
        self.assertGreater(scores["rmse"], 0.8 * noise)

    def test_bounds_are_above_true_errors_and_fall_with_the_residual(self):
        checks = self.record["promises"]
        self.assertEqual([check["tolerance"] for check in checks], [1e-2, 1e-4, 1e-6, 1e-8])
        for check in checks:
            self.assertGreater(check["error"], 0)
            self.assertLessEqual(check["error"], check["bound"])
        for loose, tight in zip(checks, checks[1:]):
            self.assertLess(tight["bound"], loose["bound"])
            self.assertGreater(tight["iterations"], loose["iterations"])

    def test_the_preconditioner_saves_iterations(self):
        counts = self.record["iterations"]
        self.assertGreater(counts["ratio"], 1)
        self.assertGreater(counts["ratio_few"], 1)
        self.assertAlmostEqual(counts["ratio"],
                               counts["plain"]["iterations"] / self.record["fit"]["iterations"])

    def test_classes_are_no_better_than_the_truth_allows(self):
        classes = self.record["classes"]
        n = classes["learned"]["n"]
        # Guessing errs in half of the rows or more; three standard deviations of a share below that.
        self.assertLess(classes["learned"]["error_rate"], 0.5 - 1.5 / math.sqrt(n))
        # No probabilities have a smaller expected log loss than the true ones; the loss of a row has
        # a standard deviation of about one.
        self.assertGreater(classes["learned"]["nll"], classes["truth"]["nll"] - 3 / math.sqrt(n))

    def test_the_text_tells_the_same_numbers(self):
        done = self.mercer("demo", "--quick", "--seed", 3)
        for word in ("1. Data", "2. Plan", "3. Fit", "4. Predictions", "5. Certificate",
                     "6. Preconditioner", "7. Three classes", "8. Next", "holds each time",
                     "mercer fit data.csv"):
            self.assertIn(word, done.stdout)
        ratio = self.record["iterations"]["ratio"]
        self.assertIn(f"it takes {ratio:.0f} times fewer", re.sub(r"\s+", " ", done.stdout))
        self.assertIn("mercer demo: ", done.stderr)  # progress
