"""Classes that compete: softmax through every verb, its interruption, and what it refuses."""

import json
import math
import signal
import time

from harness import TIMEOUT, start
from likelihood_harness import FIXED, QUICK, LikelihoodCase

SOFTMAX = ("--likelihood", "softmax")


class SoftmaxTest(LikelihoodCase):
    def test_from_the_table_to_the_scores(self):
        self.three("d.csv")
        self.three("t.csv", n=200, seed=2)
        record = self.json("fit", "d.csv", *SOFTMAX, "-m", "m.mcr", *QUICK)
        self.assertEqual((record["task"], record["likelihood"], record["multiclass"]),
                         ("classification", "softmax", "softmax"))
        self.assertEqual((record["stop"], record["classes"]), ("converged", ["0", "1", "2"]))
        self.assertLess(record["certificate"]["mean_error_bound"], 1e-5)
        info = self.json("info", "m.mcr")
        self.assertEqual((info["multiclass"], info["likelihood"]), ("softmax", "softmax"))
        self.assertIn("classes that compete", self.mercer("info", "m.mcr").stdout)
        rows = self.predict("m.mcr", "t.csv")
        self.assertEqual(list(rows[0]), ["label", *(f"probability_{c}" for c in range(3)),
                                         *(f"{what}_{c}" for c in range(3)
                                           for what in ("latent_mean", "latent_sd")), "error_bound", "error_estimate"])
        self.check_probabilities(rows, ("0", "1", "2"))
        scores = self.json("evaluate", "m.mcr", "t.csv")
        self.has(scores, "n error_rate nll brier auc calibration variance sd_error_bound_reason "
                         "probability_standard_error")
        self.assertIsNone(scores["sd_error_bound"])
        self.assertLess(scores["error_rate"], 0.35)
        self.assertLess(scores["probability_standard_error"], 0.01)

    def test_every_way_to_variances(self):
        self.three("d.csv")
        self.json("fit", "d.csv", *SOFTMAX, "-m", "m.mcr", *FIXED)
        exact = self.predict("m.mcr", "d.csv", "--variance", "exact")
        solved = self.predict("m.mcr", "d.csv", "--variance", "exact", "--solver", "cg")
        for one, other in zip(exact, solved):
            for c in range(3):
                # A variance is known to 1e-4 of the prior variance, 4.
                self.assertAlmostEqual(float(one[f"latent_sd_{c}"])**2,
                                       float(other[f"latent_sd_{c}"])**2, delta=4e-4)
        mode = self.predict("m.mcr", "d.csv", "--variance", "none")
        self.assertNotIn("probability_standard_error",
                         self.json("evaluate", "m.mcr", "d.csv", "--variance", "none"))
        for row in mode:
            self.assertNotIn("latent_sd_0", row)
            weights = [math.exp(float(row[f"latent_mean_{c}"])) for c in range(3)]
            for c in range(3):
                self.assertAlmostEqual(float(row[f"probability_{c}"]), weights[c] / sum(weights),
                                       places=12)
        scores = self.json("evaluate", "m.mcr", "d.csv", "--variance", "samples")
        self.assertEqual((scores["variance"], scores["sd_error_rows"]), ("samples", 21))
        self.refused(2, "predict", "m.mcr", "d.csv", "--variance", "vecchia",
                     saying=("vecchia", "softmax", "samples"))

    def test_draws_of_all_classes(self):
        self.three("d.csv")
        self.json("fit", "d.csv", *SOFTMAX, "-m", "m.mcr", *FIXED)
        rows = self.predict("m.mcr", "d.csv", "--samples", 2)
        self.assertTrue({f"sample_{s}_{c}" for s in (1, 2) for c in range(3)} <= set(rows[0]))
        head = "\n".join((self.folder / "d.csv").read_text().splitlines()[:20]) + "\n"
        self.write("head.csv", head)
        for whole, piece in zip(rows, self.predict("m.mcr", "head.csv", "--samples", 2)):
            self.assertAlmostEqual(float(whole["sample_2_1"]), float(piece["sample_2_1"]), places=9)
        self.refused(2, "predict", "m.mcr", "d.csv", "--samples", 0, saying="--samples")

    def test_two_classes_and_labels_of_text(self):
        self.classes("d.csv", ("no", "yes"))
        record = self.json("fit", "d.csv", *SOFTMAX, "-m", "m.mcr", *FIXED)
        self.assertEqual((record["multiclass"], record["classes"]), ("softmax", ["no", "yes"]))
        rows = self.predict("m.mcr", "d.csv")
        self.assertIn("latent_mean_yes", rows[0])
        self.check_probabilities(rows, ("no", "yes"))
        # Two functions of variance 4 are the logit of one of variance 8.
        one = self.json("fit", "d.csv", "--likelihood", "bernoulli-logit", "-m", "o.mcr", "--train",
                        "none", "--lengthscale", 1, "--signal-variance", 8, "--kernel", "matern52:iso")
        self.assertAlmostEqual(record["log_marginal_likelihood"]["value"],
                               one["log_marginal_likelihood"]["value"], places=6)
        for ours, logit in zip(rows, self.predict("o.mcr", "d.csv")):
            self.assertAlmostEqual(float(ours["probability_yes"]), float(logit["probability_yes"]),
                                   places=5)

    def test_one_against_the_rest_stays_the_default(self):
        self.three("d.csv")
        record = self.json("fit", "d.csv", "--task", "classification", "-m", "m.mcr", *FIXED)
        self.assertEqual((record["likelihood"], record["multiclass"]),
                         ("bernoulli-logit", "one-vs-rest"))

    def test_learning_by_solves_with_a_trace(self):
        self.three("d.csv")
        self.three("v.csv", n=80, seed=3)
        record = self.json("fit", "d.csv", *SOFTMAX, "-m", "m.mcr", "--train", "adam", "--steps", 5,
                           "--trace", "t.csv", "--validation", "v.csv", "--solver", "cg",
                           "--kernel", "matern52:iso")
        self.assertEqual((record["train_method"], record["preconditioner"]), ("adam", "rpcholesky"))
        low, high = (record["log_marginal_likelihood"][k] for k in ("low", "high"))
        self.assertLess(low, high)
        lines = (self.folder / "t.csv").read_text().splitlines()
        self.assertEqual(lines[0], "step,seconds,error_rate,nll,brier,auc")
        self.assertGreaterEqual(len(lines), 6)

    def test_the_plan_counts_all_functions(self):
        self.three("d.csv", n=300)
        plan = self.json("plan", "d.csv", *SOFTMAX)
        rest = self.json("plan", "d.csv", "--task", "classification")
        self.assertEqual((plan["task"], plan["likelihood"]), ("classification", "softmax"))
        self.assertGreater(plan["peak_bytes"], rest["peak_bytes"])

    def test_interrupted_and_resumed(self):
        self.three("d.csv", n=400)
        words = ("fit", "d.csv", *SOFTMAX, "--train", "lbfgs", "--restarts", 3, "-m", "m.mcr", "--json",
                 "--checkpoint", "c.mck")
        whole = self.json(*words[:-2])
        run = start(*words, cwd=self.folder)
        deadline = time.monotonic() + TIMEOUT
        while not (self.folder / "c.mck").exists() and run.poll() is None:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=TIMEOUT)
        if run.returncode == 0:  # it was quicker than the signal
            record = json.loads(out)
        else:
            self.assertEqual(run.returncode, 130)
            record = self.json(*words[:-3], "--checkpoint", "c.mck")
        self.assertEqual(record["hyperparameters"], whole["hyperparameters"])
        self.assertEqual(record["log_marginal_likelihood"]["value"],
                         whole["log_marginal_likelihood"]["value"])

    def test_refusals(self):
        self.three("d.csv", n=60)
        for words, saying in (
                (("--mean", "constant"), ("softmax", "constant", "kernel")),
                (("--solver", "kcg"), ("softmax",)),
                (("--solver", "cg", "--preconditioner", "nystrom"), ("nystrom", "auto or none")),
                (("--noise", 1), ("--noise",)),
                (("--task", "regression"), ("softmax", "regression")),
                (("--method", "klr"), ("klr", "bernoulli-logit"))):
            with self.subTest(words=words):
                self.refused(2, "fit", "d.csv", *SOFTMAX, *words, saying=saying)
        self.refused(2, "generate", "gp", "-n", 9, *SOFTMAX, saying="softmax")
        self.table("n.csv", lambda v, i: f"{v:.3f}")
        self.refused(3, "fit", "n.csv", *SOFTMAX, saying="'y'")

    def test_a_damaged_model_is_not_read(self):
        self.three("d.csv", n=30)
        self.json("fit", "d.csv", *SOFTMAX, "-m", "m.mcr", *FIXED)
        whole = (self.folder / "m.mcr").read_bytes()
        for place in (0, 13, 40, len(whole) // 3, len(whole) // 2, len(whole) - 9):
            damaged = bytearray(whole)
            damaged[place] ^= 0x41
            self.write("bad.mcr", bytes(damaged))
            self.refused(6, "predict", "bad.mcr", "d.csv")
