"""Learning by solves: methods, traces, checkpoints, Ctrl-C, and the likelihood with an interval."""

import json
import signal
import time

from harness import TIMEOUT, CliCase, read_csv, start


class LearningTest(CliCase):
    def setUp(self):
        super().setUp()
        self.generate("d.csv", "friedman", "-n", 300, "-d", 5, "--seed", 1)
        self.generate("v.csv", "friedman", "-n", 80, "-d", 5, "--seed", 2)

    def learn(self, method, *words):
        return self.json("fit", "d.csv", "--train", method, "-m", "m.mcr", *words)

    def test_every_method_comes_near_the_exact_one(self):
        exact = self.learn("lbfgs", "--restarts", 0)
        self.assertEqual(exact["train_method"], "exact")
        self.assertIsNone(exact["gradients"])
        best = exact["log_marginal_likelihood"]["value"]
        for method, words, allowance in (("vecchia", (), 15), ("adam", ("--steps", 80), 15)):
            record = self.learn(method, *words)
            self.assertEqual(record["train_method"], method)
            value = record["log_marginal_likelihood"]["value"]
            self.assertGreater(value, best - allowance, method)
            self.assertLess(value, best + 0.1, method)

    def test_gradients_are_reported_with_their_noise(self):
        record = self.learn("adagrad", "--steps", 3, "--probes", 4, "--probe-kind", "rademacher",
                            "--preconditioner", "nystrom")
        self.assertEqual(len(record["gradients"]["steps"]), 3)
        self.has(record["gradients"]["steps"][0], "step seconds iterations matvecs tolerance gradient_norm")
        last = record["gradients"]["last"]
        self.assertEqual(set(last), set(record["hyperparameters"]["standardised"]["parameters"]))
        self.assertTrue(all(entry["standard_error"] > 0 for entry in last.values()))

    def test_a_trace_scores_every_step(self):
        self.learn("adam", "--steps", 6, "--trace", "t.csv", "--validation", "v.csv")
        trace = read_csv((self.folder / "t.csv").read_text())
        self.assertEqual(trace["step"], [0, 1, 2, 3, 4, 5, 6])  # 0: the start values
        self.assertEqual(trace["seconds"], sorted(trace["seconds"]))
        self.assertLess(trace["rmse"][-1], trace["rmse"][0])
        exact = self.json("fit", "d.csv", "-m", "e.mcr", "--trace", "e.csv", "--validation", "v.csv")
        self.assertGreater(exact["steps"], 0)
        self.assertGreater(len(read_csv((self.folder / "e.csv").read_text())["step"]), 3)

    def test_a_trace_needs_rows_to_score(self):
        self.refused(2, "fit", "d.csv", "--trace", "t.csv", saying="--validation")
        self.refused(2, "fit", "d.csv", "--validation", "v.csv", saying="--trace")
        self.refused(2, "fit", "d.csv", "--trace", "v.csv", "--validation", "v.csv", saying="--trace")
        self.refused(3, "fit", "d.csv", "--trace", "t.csv", "--validation", "nowhere.csv", saying="nowhere.csv")
        self.refused(2, "fit", "d.csv", "--trace", "t.csv", "--validation", "v.csv", "-m", "v.csv", saying="v.csv")
        self.refused(2, "fit", "d.csv", "--train", "none", "--probes", 3, saying="--probes")
        self.refused(2, "fit", "d.csv", "--train", "vecchia", "--probes", 3, saying="--probes")
        self.refused(2, "fit", "d.csv", "--train", "exact", "--probes", 3, saying="takes no gradient from solves")
        self.refused(2, "fit", "d.csv", "--train", "adam", "--restarts", 3, saying="--restarts")
        self.refused(2, "fit", "d.csv", "--train", "adam", "--probes", 1, saying="--probes")
        self.refused(2, "fit", "d.csv", "--train", "adam", "--probe-kind", "hutchinson", saying="rademacher")

    def test_an_iterative_solve_gives_the_likelihood_an_interval(self):
        fixed = ("--train", "none", "--noise", 0.05, "--lengthscale", 2)
        exact = self.json("fit", "d.csv", *fixed)["log_marginal_likelihood"]
        estimate = self.json("fit", "d.csv", *fixed, "--solver", "cg")["log_marginal_likelihood"]
        self.assertEqual(estimate["method"], "lanczos")
        self.has(estimate, "probe_error solver_error low high")
        # Four standard errors: a false alarm in 10,000, and the seed is fixed.
        self.assertLess(abs(estimate["value"] - exact["value"]),
                        4 * estimate["probe_error"] + estimate["solver_error"])
        self.assertLess(estimate["high"] - estimate["low"], 20)

    def test_a_likelihood_that_is_not_known_says_why(self):
        fixed = ("--train", "none", "--kernel", "rbf", "--lengthscale", 10, "--noise", "1e-6")
        exact = self.json("fit", "d.csv", *fixed)["log_marginal_likelihood"]["value"]
        for seed in range(4):
            words = ("--solver", "cg", "--precision", "double", "--seed", seed, "--keep-unconverged")
            done = self.mercer("fit", "d.csv", *fixed, *words, "--json", code=None)
            estimate = json.loads(done.stdout)["log_marginal_likelihood"]
            if estimate["value"] is None:
                self.assertIn("converge", estimate["value_reason"])
            else:
                margin = estimate["high"] - estimate["low"]
                self.assertLess(abs(estimate["value"] - exact), 2 * margin + 1e-6 * abs(exact))

    def test_a_subset_has_a_trend_of_its_own(self):
        rows = [f"{0.01 * i},{1 if i in (7, 250) else 0},{(i * 37) % 11}" for i in range(300)]
        self.write("rare.csv", "a,b,y\n" + "\n".join(rows) + "\n")
        self.json("fit", "rare.csv", "--mean", "linear", "--train", "adam", "--subset", 60, "--steps", 3)

    def test_a_finished_checkpoint_is_not_learned_again(self):
        words = ("--steps", 60, "--probes", 2, "--probe-kind", "rademacher", "--checkpoint", "c.mcc")
        first, again = self.learn("adam", *words), self.learn("adam", *words)
        self.assertEqual(first["hyperparameters"], again["hyperparameters"])
        self.assertEqual(len(again["gradients"]["steps"]), 0)
        taken = len(first["gradients"]["steps"])
        self.assertEqual((first["gradients"]["resumed"], again["gradients"]["resumed"]), (0, taken))
        text = self.mercer("fit", "d.csv", "--train", "adam", *words).stdout
        self.assertIn(f"{taken} exact gradients, {taken} of them from the checkpoint: ", text)
        for other in (("--noise", 0.2), ("--max-iterations", 50), ("--operator", "stored")):
            self.refused(2, "fit", "d.csv", "--train", "adam", *words, *other, saying="c.mcc")

    def test_ctrl_c_keeps_what_was_learned(self):
        self.generate("d.csv", "friedman", "-n", 2000, "-d", 5, "--seed", 1)
        process = start("fit", "d.csv", "--train", "adam", "--steps", 100000, "-m", "m.mcr", "--trace", "t.csv",
                        "--validation", "v.csv", cwd=self.folder)
        self.wait_for(process, "t.csv")
        while len((self.folder / "t.csv").read_text().splitlines()) < 3:  # the start values, a step
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("values so far", errors)
        self.assertEqual(self.json("info", "m.mcr")["n"], 2000)
