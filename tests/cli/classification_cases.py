"""Classes: from a table to scores, learning them, and what is refused on the way."""

import json
import math
import random
import signal
import time

from harness import TIMEOUT, read_csv, rows_of, start
from likelihood_harness import FIXED, QUICK, LikelihoodCase, points


class ClassificationTest(LikelihoodCase):
    def test_two_classes_from_the_table_to_the_scores(self):
        self.classes("d.csv")
        self.classes("t.csv", n=200, seed=2)
        done = self.mercer("fit", "d.csv", "-m", "m.mcr", "--restarts", 0, "--json")
        self.assertIn("'y' has 2 integer values: these are learned as classes", done.stderr)
        self.assertIn("--task regression", done.stderr)
        record = json.loads(done.stdout)
        self.has(record, "n d task method likelihood classes kernel plan hyperparameters "
                         "log_marginal_likelihood certificate solver preconditioner newton_steps stop "
                         "steps evaluations train_method matvecs seconds peak_rss_bytes data warnings model")
        self.assertEqual((record["n"], record["d"], record["task"], record["method"]),
                         (120, 2, "classification", "gp"))
        self.assertEqual((record["likelihood"], record["classes"]), ("bernoulli-logit", ["0", "1"]))
        self.assertEqual((record["stop"], record["preconditioner"]), ("converged", "none"))
        self.assertLess(record["certificate"]["mean_error_bound"], 1e-5)
        self.assertLess(record["log_marginal_likelihood"]["value"], 0)
        info = self.json("info", "m.mcr")
        for key in ("task", "method", "likelihood", "classes", "hyperparameters", "certificate"):
            self.assertEqual(info[key], record[key])
        self.assertIn("2 classes: 0, 1", self.mercer("info", "m.mcr").stdout)
        rows = self.predict("m.mcr", "t.csv")
        self.assertEqual(list(rows[0]), ["label", "probability_0", "probability_1", "latent_mean",
                                         "latent_sd", "error_bound", "error_estimate"])
        self.check_probabilities(rows, ("0", "1"))
        self.check_scores(rows)

    def check_scores(self, rows):
        """Those of evaluate against a count by hand."""
        truth = [row["y"] for row in rows_of((self.folder / "t.csv").read_text())]
        scores = self.json("evaluate", "m.mcr", "t.csv")
        self.has(scores, "n error_rate nll brier auc calibration calibration_error variance model")
        wrong = sum(row["label"] != y for row, y in zip(rows, truth))
        chances = [float(row[f"probability_{y}"]) for row, y in zip(rows, truth)]
        self.assertEqual((scores["n"], scores["error_rate"]), (200, wrong / 200))
        self.assertLess(scores["error_rate"], 0.2)
        self.assertAlmostEqual(scores["nll"], -sum(map(math.log, chances)) / 200, places=10)
        self.assertAlmostEqual(scores["brier"], sum((1 - p) ** 2 for p in chances) / 200,
                               places=10)
        ones = [float(r["probability_1"]) for r, y in zip(rows, truth) if y == "1"]
        zeros = [float(r["probability_1"]) for r, y in zip(rows, truth) if y == "0"]
        area = sum((p > q) + 0.5 * (p == q) for p in ones for q in zeros) / len(ones) / len(zeros)
        self.assertAlmostEqual(scores["auc"], area, places=10)
        self.assertEqual(sum(bin["n"] for bin in scores["calibration"]), 200)
        text = self.mercer("evaluate", "m.mcr", "t.csv").stdout
        for word in ("error_rate", "brier", "auc", "confidence"):
            self.assertIn(word, text)

    def test_labels_are_kept_as_they_are(self):
        for labels, written in ((("-1", "1"), ("-1", "1")), (("no", "yes"), ("no", "yes")),
                                (("Zürich, Höngg", 'say "hi"'), ('"Zürich, Höngg"', '"say ""hi"""'))):
            with self.subTest(labels=labels):
                self.classes("d.csv", written)
                record = self.json("fit", "d.csv", "-m", "m.mcr", *FIXED)
                self.assertEqual((record["task"], record["classes"]),
                                 ("classification", list(labels)))
                rows = self.predict("m.mcr", "d.csv")
                self.assertEqual({row["label"] for row in rows}, set(labels))
                self.check_probabilities(rows, labels)
                self.assertLess(self.json("evaluate", "m.mcr", "d.csv")["error_rate"], 0.1)
                self.assertIn(labels[0], self.mercer("info", "m.mcr").stdout)

    def test_text_is_found_to_be_classes(self):
        self.classes("d.csv", ("no", "yes"))
        done = self.mercer("fit", "d.csv", "-m", "m.mcr", *FIXED[:-1])
        self.assertIn("2 text values", done.stderr)
        self.assertNotIn("--task regression", done.stderr)
        self.assertIn("bernoulli-logit, 2 classes: no, yes", done.stdout)

    def test_the_same_numbers_can_be_learned_as_numbers(self):
        self.classes("d.csv")
        for words in (("--task", "regression"), ("--likelihood", "gaussian"), ("--noise", "0.1")):
            record = self.json("fit", "d.csv", "-m", "m.mcr", *FIXED, *words)
            self.assertEqual(record["task"], "regression", words)
        # A trend says nothing about the target: classes have one too.
        record = self.json("fit", "d.csv", "-m", "m.mcr", *FIXED, "--mean", "constant")
        self.assertEqual((record["task"], record["mean"]), ("classification", "constant"))
        self.table("many.csv", lambda v, i: i)  # integers, but as many as rows
        self.assertEqual(self.json("fit", "many.csv", "-m", "m.mcr", *FIXED)["task"], "regression")

    def test_many_classes(self):
        self.three("d.csv", ("low", "mid", "top"))
        record = self.json("fit", "d.csv", "-m", "m.mcr", "--test-fraction", 0.3, *QUICK)
        self.assertEqual(record["classes"], ["low", "mid", "top"])
        for verb in (("fit", "d.csv", *FIXED), ("info", "m.mcr")):
            self.assertIn("one class against the rest", self.mercer(*verb).stdout)
        self.assertEqual((record["multiclass"], self.json("info", "m.mcr")["multiclass"]),
                         ("one-vs-rest", "one-vs-rest"))
        self.has(record["evaluation"], "n error_rate nll brier auc calibration")
        self.assertEqual((record["n"], record["evaluation"]["n"]), (84, 36))
        rows = self.predict("m.mcr", "d.csv")
        self.has(rows[0], "latent_mean_low latent_sd_low latent_mean_top latent_sd_top error_bound")
        self.check_probabilities(rows, ("low", "mid", "top"))
        self.assertLess(self.json("evaluate", "m.mcr", "d.csv")["error_rate"], 0.3)

    def test_both_likelihoods_of_classes(self):
        self.classes("d.csv")
        errors = set()
        for name in ("bernoulli-logit", "bernoulli-probit"):
            record = self.json("fit", "d.csv", "-m", "m.mcr", "--likelihood", name, *FIXED)
            self.assertEqual((record["task"], record["likelihood"]), ("classification", name))
            errors.add(self.json("evaluate", "m.mcr", "d.csv")["nll"])
        self.assertEqual(len(errors), 2)
        self.assertLess(max(errors), 0.4)

    def test_ways_to_read_and_write_predictions(self):
        self.three("d.csv", n=40)
        self.json("fit", "d.csv", "-m", "m.mcr", "--task", "classification", *FIXED)
        plain = self.mercer("predict", "m.mcr", "d.csv", "--quiet").stdout
        piped = self.mercer("predict", "m.mcr", "-", "--quiet",
                            stdin=(self.folder / "d.csv").read_text()).stdout
        self.assertEqual(piped, plain)
        rows = self.predict("m.mcr", "d.csv", "--with-inputs")
        self.assertEqual(list(rows[0])[:4], ["a", "b", "y", "label"])
        record = self.json("predict", "m.mcr", "d.csv")
        self.assertEqual(record["label"], [row["label"] for row in rows])
        self.assertEqual(record["probability_2"], [float(r["probability_2"]) for r in rows])
        self.assertEqual((record["n"], record["variance"]), (40, "exact"))
        self.mercer("predict", "m.mcr", "d.csv", "-o", "p.csv", "--quiet")
        self.assertEqual((self.folder / "p.csv").read_text(), plain)
        bare = self.predict("m.mcr", "d.csv", "--no-variance")
        self.assertFalse([name for name in bare[0] if "sd" in name])
        self.refused(2, "predict", "m.mcr", "d.csv", "--samples", 0, saying="--samples")

    def test_solves_agree_with_the_factorisation(self):
        self.three("d.csv")
        kept = []
        for words in ((), ("--solver", "cg", "--tolerance", 1e-8)):
            record = self.json("fit", "d.csv", "-m", "m.mcr", "--task", "classification", *FIXED, *words)
            self.assertEqual(record["stop"], "converged")
            kept.append((record["log_marginal_likelihood"], self.predict("m.mcr", "d.csv")))
        (exact, rows), (solved, others) = kept
        self.assertEqual((exact["method"], solved["method"]), ("cholesky", "lanczos"))
        self.assertLess(abs(solved["value"] - exact["value"]),
                        3 * (solved["high"] - solved["low"]) + 1e-3)
        for a, b in zip(rows, others):
            bounds = float(a["error_bound"]) + float(b["error_bound"])
            self.assertLess(bounds, 1e-5)
            self.assertAlmostEqual(float(a["latent_mean_1"]), float(b["latent_mean_1"]), delta=bounds)

    def test_the_same_bits_on_one_thread_and_two(self):
        self.three("d.csv")
        for words in ((), ("--train", "adam", "--steps", 3)):
            kept = []
            for threads in (1, 2):
                self.mercer("fit", "d.csv", "-m", "m.mcr", "--threads", threads, *words, "--quiet")
                kept.append(((self.folder / "m.mcr").read_bytes(), self.mercer(
                    "predict", "m.mcr", "d.csv", "--threads", threads, "--quiet").stdout))
            self.assertEqual(kept[0], kept[1], words)

    def test_what_can_be_separated_keeps_finite_probabilities(self):
        self.write("d.csv", "a,b,y\n" + "".join(f"{a},{b},{int(a > 0)}\n" for a, b, _ in points(80)))
        for words in ((), ("--likelihood", "bernoulli-probit"), ("--method", "klr")):
            record = self.json("fit", "d.csv", "-m", "m.mcr", *QUICK, *words)
            self.assertEqual(record["stop"], "converged")
            self.check_probabilities(self.predict("m.mcr", "d.csv"), ("0", "1"))
            scores = self.json("evaluate", "m.mcr", "d.csv")
            self.assertEqual(scores["auc"], 1)
            # At the optimum the row nearest to the boundary has a probability of about a half.
            self.assertLessEqual(scores["error_rate"], 1 / 80)
            self.assertLess(scores["nll"], 0.3)  # sure of what it has seen, not near log 2

    def test_fractions_are_classes_only_as_text(self):
        self.classes("d.csv", ("0.5", "1.5"))
        self.refused(3, "fit", "d.csv", "--task", "classification",
                     saying=("0.5", "no integer", "--categorical y"))
        record = self.json("fit", "d.csv", "--task", "classification", "--categorical", "y", "-m",
                           "m.mcr", *FIXED)
        self.assertEqual(record["classes"], ["0.5", "1.5"])


    def test_a_number_in_the_first_row_and_text_below(self):
        self.table("d.csv", lambda v, i: "1" if i == 0 or v > 0 else "no")
        self.refused(3, "fit", "d.csv", saying=("line 3, column 'y'", "not a number", "--task classification"))
        for words in (("--task", "classification"), ("--categorical", "y"), ("--method", "klr")):
            record = self.json("fit", "d.csv", *words, "-m", "m.mcr", *FIXED)
            self.assertEqual((record["task"], record["classes"]), ("classification", ["1", "no"]))
            self.assertLess(self.json("evaluate", "m.mcr", "d.csv")["error_rate"], 0.2)
        for words in (("fit", "d.csv", "--task", "regression"), ("solve", "d.csv")):
            self.refused(3, *words, saying=("'no'", "numeric column", "--target"))
            self.refused(3, *words, "--categorical", "y", saying=("categories", "--target"))
        self.classes("d.csv", ("2", "10"))  # numbers stay numbers: sorted as such
        record = self.json("fit", "d.csv", "--task", "classification", "-m", "m.mcr", *FIXED)
        self.assertEqual(record["classes"], ["2", "10"])


class KernelMachinesTest(LikelihoodCase):
    def test_kernel_logistic_regression_is_the_mode_alone(self):
        self.classes("d.csv")
        self.json("fit", "d.csv", "-m", "g.mcr", *FIXED)
        record = self.json("fit", "d.csv", "-m", "k.mcr", "--method", "klr", *FIXED)
        self.assertEqual((record["method"], record["task"], record["likelihood"]),
                         ("klr", "classification", "bernoulli-logit"))
        self.assertEqual(self.json("info", "k.mcr")["method"], "klr")
        self.assertIn("kernel logistic regression", self.mercer("info", "k.mcr").stdout)
        ours, theirs = self.predict("k.mcr", "d.csv"), self.predict("g.mcr", "d.csv")
        self.assertNotIn("latent_sd", ours[0])
        for k, g in zip(ours, theirs):
            f = float(k["latent_mean"])
            self.assertAlmostEqual(f, float(g["latent_mean"]), places=10)
            self.assertAlmostEqual(float(k["probability_1"]), 1 / (1 + math.exp(-f)), places=12)
            self.assertGreaterEqual(float(k["probability_" + k["label"]]),
                                    float(g["probability_" + k["label"]]))
        self.assertEqual(self.json("evaluate", "k.mcr", "d.csv")["variance"], "none")
        self.refused(2, "predict", "k.mcr", "d.csv", "--variance", "exact", saying="no uncertainty")

    def test_kernel_ridge_regression_is_the_mean_alone(self):
        self.table("d.csv", lambda v, i: f"{v:.4f}")
        record = self.json("fit", "d.csv", "-m", "r.mcr", "--method", "krr", *QUICK)
        self.json("fit", "d.csv", "-m", "g.mcr", *QUICK)
        self.assertEqual((record["method"], record["task"]), ("krr", "regression"))
        self.assertEqual(self.json("info", "r.mcr")["method"], "krr")
        self.assertIn("kernel ridge regression", self.mercer("info", "r.mcr").stdout)
        ours, theirs = self.predict("r.mcr", "d.csv"), self.predict("g.mcr", "d.csv")
        self.assertEqual(list(ours[0]), ["mean", "error_bound", "error_estimate"])
        self.assertEqual([row["mean"] for row in ours], [row["mean"] for row in theirs])
        self.refused(2, "predict", "r.mcr", "d.csv", "--variance", "exact", saying="--method gp")
        self.assertEqual(self.json("evaluate", "r.mcr", "d.csv")["variance"], "none")

    def test_methods_that_learn_something_else(self):
        self.classes("d.csv")
        for words in (("klr", "--task", "regression"), ("krr", "--task", "classification"),
                      ("klr", "--likelihood", "bernoulli-probit"), ("krr", "--likelihood", "poisson")):
            self.refused(2, "fit", "d.csv", "--method", *words, saying="--method " + words[0])


class LikelihoodLearningTest(LikelihoodCase):
    def test_a_trace_scores_every_step(self):
        self.classes("d.csv")
        self.classes("v.csv", n=60, seed=3)
        trace = ("--trace", "t.csv", "--validation", "v.csv")
        record = self.json("fit", "d.csv", "-m", "m.mcr", *trace, "--train", "adam", "--steps", 5)
        steps = read_csv((self.folder / "t.csv").read_text())
        self.assertEqual(list(steps), ["step", "seconds", "error_rate", "nll", "brier", "auc"])
        self.assertEqual(steps["step"], [0, 1, 2, 3, 4, 5])
        self.assertEqual(steps["seconds"], sorted(steps["seconds"]))
        self.assertEqual(record["train_method"], "adam")
        self.assertEqual(len(record["gradients"]["steps"]), 5)
        self.write("bad.csv", "a,b,y\n0,0,1\n0,0,9\n")
        self.refused(3, "fit", "d.csv", "--trace", "x.csv", "--validation", "bad.csv",
                     saying=("bad.csv: line 3", "9", "none of the classes"))
        self.counts("c.csv", n=30)
        self.json("fit", "c.csv", "--likelihood", "poisson", "-m", "c.mcr", "--trace", "c.trace.csv", "--validation", "c.csv",
                  *QUICK)
        self.assertIn("rmse", (self.folder / "c.trace.csv").read_text().splitlines()[0])

    def test_a_checkpoint_resumes_to_the_same_bits(self):
        self.three("d.csv", n=150)
        words = ("fit", "d.csv", "--task", "classification", "--train", "adam", "--steps", 12, "--checkpoint", "c.ckpt",
                 "--quiet")
        self.mercer(*words[:-3], "--quiet", "-m", "whole.mcr")
        process = start(*words, "-m", "m.mcr", cwd=self.folder)
        deadline = time.monotonic() + TIMEOUT
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
            if (self.folder / "c.ckpt").exists():
                process.send_signal(signal.SIGINT)
        self.assertIn(process.wait(TIMEOUT), (0, 130))
        process.stdout.close()
        process.stderr.close()
        self.mercer(*words, "-m", "m.mcr")
        self.assertEqual((self.folder / "m.mcr").read_bytes(),
                         (self.folder / "whole.mcr").read_bytes())
        again = self.json(*words, "-m", "m.mcr")
        self.assertEqual((again["resumed_evaluations"], again["gradients"]["resumed"]), (0, 12))
        self.assertIn("12 gradients by solves, 12 of them from the checkpoint: ",
                      self.mercer(*words, "-m", "m.mcr").stdout)
        self.refused(2, *words, "-m", "m.mcr", "--preconditioner", "none", saying="c.ckpt")

    def test_probes_that_had_no_part_are_said(self):
        self.classes("d.csv", n=40)
        words = ("fit", "d.csv", "-m", "m.mcr", "--restarts", 0, "--steps", 3, "--probes", 4)
        self.assertIn("--probes had no part", self.mercer(*words).stderr)
        self.assertNotIn("no part", self.mercer("fit", "d.csv", "-m", "m.mcr", "--train", "adam", "--steps", 3,
                                                "--probes", 4).stderr)

    def test_a_breakdown_is_said(self):
        self.classes("d.csv", n=40)
        words = ("--kernel", "periodic", "--lengthscale", "1e-170", "--train", "adam", "--steps", 3, "--quiet")
        for data in (("d.csv",), ("d.csv", "--task", "regression")):
            done = self.mercer("fit", *data, "-m", "m.mcr", *words)
            self.assertIn("learning broke down", done.stderr)
            self.assertIn(": breakdown", done.stdout)

    def test_a_factorisation_that_fails_is_told_for_the_likelihood(self):
        self.classes("d.csv", n=40)
        said = self.refused(5, "fit", "d.csv", "--train", "none", "--kernel", "linear", "--signal-variance",
                            "1e18", "--quiet", saying=("not positive definite", "--signal-variance"))
        for option in ("--noise", "merge"):
            self.assertNotIn(option, said)

    def test_vecchia_is_for_gaussian_noise(self):
        self.classes("d.csv", n=40)
        self.refused(2, "fit", "d.csv", "--train", "vecchia", "--quiet", saying="--train vecchia")


class LatentRefusalsTest(LikelihoodCase):
    def test_one_class_only(self):
        for label in ("1", "x"):
            self.table("d.csv", lambda v, i: label)
            self.refused(3, "fit", "d.csv", "--task", "classification",
                         saying=("'y'", label, "nothing to learn"))

    def test_a_class_with_one_member_is_learned_and_said(self):
        self.table("d.csv", lambda v, i: 7 if i == 0 else int(v > 0))
        words = ("fit", "d.csv", "-m", "m.mcr", "--task", "classification", *FIXED)
        done = self.mercer(*words)
        self.assertIn("class '7' has one row only", done.stderr)
        self.check_probabilities(self.predict("m.mcr", "d.csv"), ("0", "1", "7"))
        record = self.json(*words)
        self.assertEqual(len(record["warnings"]), 1)

    def test_a_thousand_classes(self):
        self.table("d.csv", lambda v, i: i % 1000, n=1500)
        self.refused(3, "fit", "d.csv", "--task", "classification",
                     saying=("more than 100 classes", "--task regression"))
        self.table("d.csv", lambda v, i: f"c{i % 1000}", n=1500)
        said = self.refused(3, "fit", "d.csv", saying="more than 100 classes")
        self.assertNotIn("regression", said)

    def test_labels_that_were_not_learned(self):
        self.classes("d.csv", n=40)
        self.json("fit", "d.csv", "-m", "m.mcr", *FIXED)
        self.write("t.csv", "a,b,y\n0,0,1\n0,0,5\n")
        self.refused(3, "evaluate", "m.mcr", "t.csv",
                     saying=("t.csv: line 3", "5", "none of the classes learned", "'0', '1'"))
        self.classes("d.csv", ("no", "yes"), n=40)
        self.json("fit", "d.csv", "-m", "m.mcr", *FIXED)
        self.write("t.csv", "a,b,y\n0,0,no\n0,0,maybe\n")
        self.refused(3, "evaluate", "m.mcr", "t.csv", saying=("t.csv: line 3", "'maybe'", "'yes'"))

    def test_labels_that_are_not_there(self):
        self.classes("d.csv", n=40)
        self.json("fit", "d.csv", "-m", "m.mcr", *FIXED)
        self.write("t.csv", "a,b\n0,0\n")
        self.refused(3, "evaluate", "m.mcr", "t.csv", saying=("t.csv", "'y'"))
        self.write("t.csv", "a,b,y\n0,0,\n1,1,NA\n")
        self.refused(3, "evaluate", "m.mcr", "t.csv", saying=("t.csv", "no rows with a target"))
        self.write("t.csv", "a,b,y\n0,0,\n1,1,1\n")
        scores = self.json("evaluate", "m.mcr", "t.csv")
        self.assertEqual((scores["n"], scores["rows_missing_target"]), (1, 1))
        self.assertIsNone(scores["auc"])
        self.assertIn("class", scores["auc_reason"])

    def test_draws_belong_to_each_class(self):
        self.three("d.csv", n=60)
        self.json("fit", "d.csv", "-m", "m.mcr", "--task", "classification", *FIXED)
        rows = self.predict("m.mcr", "d.csv", "--samples", 2)
        for label in "012":
            for name in (f"sample_1_{label}", f"sample_2_{label}"):
                distance = [abs(float(row[name]) - float(row[f"latent_mean_{label}"])) / float(row[f"latent_sd_{label}"])
                            for row in rows]
                self.assertLess(max(distance), 7)  # seven standard deviations, 2e-12 a value
                self.assertGreater(max(distance), 0)
        # The same functions whatever piece of the file.
        head = (self.folder / "d.csv").read_text().splitlines(True)[:11]
        self.write("head.csv", "".join(head))
        for whole, piece in zip(rows, self.predict("m.mcr", "head.csv", "--samples", 2)):
            self.assertAlmostEqual(float(whole["sample_2_1"]), float(piece["sample_2_1"]), places=9)

    def test_options_of_gaussian_noise(self):
        self.counts("d.csv", n=30)
        for words in (("--noise", 0.1), ("--noise-column", "a"), ("--no-merge",)):
            for task in (("--likelihood", "poisson"), ("--task", "classification")):
                self.refused(2, "fit", "d.csv", *task, *words, saying=(words[0], "not Gaussian"))

    def test_likelihoods_and_tasks_that_do_not_go_together(self):
        self.classes("d.csv", n=30)
        self.refused(2, "fit", "d.csv", "--likelihood", "cauchy",
                     saying=("'cauchy'", "bernoulli-logit", "student-t"))
        self.refused(2, "fit", "d.csv", "--task", "clustering", saying="classification")
        for likelihood, task in (("bernoulli-logit", "regression"), ("poisson", "classification"),
                                 ("gaussian", "classification")):
            self.refused(2, "fit", "d.csv", "--likelihood", likelihood, "--task", task,
                         saying=(likelihood, task))
        self.classes("d.csv", ("no", "yes"), n=30)
        self.refused(3, "fit", "d.csv", "--task", "regression", saying=("'y'", "not a number"))
        self.refused(3, "fit", "d.csv", "--likelihood", "poisson", saying="'y'")

    def test_a_prediction_beyond_double_precision_names_its_line(self):
        self.write("d.csv", "x,y\n" + "".join(f"{0.1 * i:.1f},{i // 3}\n" for i in range(30)))
        self.json("fit", "d.csv", "--likelihood", "poisson", "--kernel", "poly:2", "-m", "m.mcr",
                  "--train", "none")
        self.write("t.csv", "x\n1\n1e9\n")
        self.refused(3, "predict", "m.mcr", "t.csv", "-o", "p.csv", saying=("t.csv: line 3", "far"))

    def test_a_damaged_model_is_not_read(self):
        self.three("d.csv", n=30)
        self.json("fit", "d.csv", "-m", "m.mcr", *FIXED)
        whole = (self.folder / "m.mcr").read_bytes()
        rng = random.Random(3)
        for place in [0, 9, 13, 20, 40] + [rng.randrange(len(whole)) for _ in range(12)]:
            damaged = bytearray(whole)
            damaged[place] ^= 0x41
            self.write("bad.mcr", bytes(damaged))
            for words in (("info", "bad.mcr"), ("predict", "bad.mcr", "d.csv")):
                self.refused(6, *words)
        self.write("bad.mcr", whole[: len(whole) // 2])
        self.refused(6, "evaluate", "bad.mcr", "d.csv")
