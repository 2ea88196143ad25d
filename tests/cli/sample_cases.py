"""mercer sample: chains, priors, checkpoints, Ctrl-C, and predictions that mix over draws."""

import json
import math
import signal
import statistics
import time

from harness import TIMEOUT, CliCase, read_csv, rows_of, start

QUICK = {"--chains": 3, "--iterations": 200, "--kernel": "rbf:iso", "--restarts": 0}


def quick(*words):
    """These words, and those of a short run that they do not say."""
    return [*words, *(word for flag, value in QUICK.items() if flag not in words for word in (flag, value))]


class SampleTest(CliCase):
    def setUp(self):
        super().setUp()
        self.generate("d.csv", "gp", "-n", 60, "-d", 1, "--seed", 3)
        self.generate("new.csv", "gp", "-n", 25, "-d", 1, "--seed", 3, "--noise", 0.2)

    def sample(self, *words, **keywords):
        return self.json("sample", "d.csv", *quick("-o", "c.csv", "-m", "m.mcr", *words), **keywords)

    def test_chains_parameters_and_model_are_written(self):
        record = self.sample()
        self.has(record, "parameters, sampler, iterations, acceptance, step, phase, seconds, certificate, draws, model")
        self.assertEqual(record["sampler"], "hmc")
        names = ["signal_variance", "lengthscale", "noise_variance"]
        self.assertEqual(list(record["parameters"]), names)
        chains = read_csv((self.folder / "c.csv").read_text())
        self.assertEqual(list(chains), ["chain", "iteration", *names])
        self.assertEqual(sorted(set(chains["chain"])), [1, 2, 3])
        self.assertEqual(len(chains["chain"]), 300)
        self.assertEqual((min(chains["iteration"]), max(chains["iteration"])), (101, 200))
        for name in names:
            entry = record["parameters"][name]
            self.has(entry, "mean sd q05 q95 rhat ess mcse prior")
            self.assertAlmostEqual(entry["mean"], statistics.fmean(chains[name]), places=9)
            self.assertAlmostEqual(entry["sd"], statistics.stdev(chains[name]), places=9)
            self.assertLess(entry["rhat"], 1.2)
            self.assertEqual(entry["prior"]["text"], "gamma(2,2)")
        self.assertEqual(record["draws"], 16)
        self.assertEqual(self.json("info", "m.mcr")["draws"], 16)

    def test_text_has_prior_and_posterior_side_by_side(self):
        done = self.mercer("sample", "d.csv", *quick("-o", "c.csv", "-m", "m.mcr", "--prior", "lengthscale=inverse-gamma(3,2)",
                                                     "--prior", "noise_variance=half-normal(0.5)"))
        for words in ("inverse-gamma(3,2)", "half-normal(0.5)", "gamma(2,2)", "posterior mean", "R-hat", "acceptance"):
            self.assertIn(words, done.stdout)

    def test_predictions_mix_over_the_draws(self):
        self.sample("--draws", 4)
        mixed = read_csv(self.mercer("predict", "m.mcr", "new.csv", "-o", "-", "--quiet", "--samples", 6).stdout)
        header = [name for name in mixed if name.startswith("sample_")]
        self.assertEqual(len(header), 6)
        chains = read_csv((self.folder / "c.csv").read_text())
        count = len(chains["chain"])
        parts = []
        for i in range(4):
            row = (2 * i + 1) * count // 8
            self.mercer("fit", "d.csv", "--train", "none", "--kernel", "rbf:iso", "-m", "one.mcr", "--quiet",
                        "--signal-variance", chains["signal_variance"][row], "--lengthscale", chains["lengthscale"][row],
                        "--noise", chains["noise_variance"][row])
            parts.append(read_csv(self.mercer("predict", "one.mcr", "new.csv", "-o", "-", "--quiet").stdout))
        for j in range(25):
            means = [part["mean"][j] for part in parts]
            variance = statistics.fmean(part["sd_obs"][j] ** 2 for part in parts) + statistics.pvariance(means)
            self.assertAlmostEqual(mixed["mean"][j], statistics.fmean(means), places=7)
            self.assertAlmostEqual(mixed["sd_obs"][j], math.sqrt(variance), places=7)
            for name, p in (("q05", 0.05), ("q95", 0.95)):
                below = statistics.fmean(
                    statistics.NormalDist(part["mean"][j], part["sd_obs"][j]).cdf(mixed[name][j]) for part in parts)
                self.assertAlmostEqual(below, p, places=7)
        scores = self.json("evaluate", "m.mcr", "new.csv")
        target = [float(row["y"]) for row in rows_of((self.folder / "new.csv").read_text())]
        nll = -statistics.fmean(
            math.log(statistics.fmean(statistics.NormalDist(part["mean"][j], part["sd_obs"][j]).pdf(target[j]) for part in parts))
            for j in range(25))
        self.assertAlmostEqual(scores["nll"], nll, places=6)
        self.assertGreater(scores["crps"], 0)

    def test_a_picture_shows_every_parameter(self):
        self.sample("--picture", "p.svg")
        text = (self.folder / "p.svg").read_text()
        self.assertTrue(text.startswith("<svg") or text.startswith("<?xml"), text[:80])
        for name in ("signal_variance", "lengthscale", "noise_variance", "R-hat"):
            self.assertIn(name, text)

    def test_every_sampler_draws(self):
        for sampler, words in (("mh", ("--iterations", 2000)), ("sgld", ("--iterations", 800, "--phase-ratio", 0.3))):
            record = self.sample("--sampler", sampler, *words)
            self.assertEqual(record["sampler"], sampler)
            self.assertGreater(record["phase"]["kept_draws"], 0)
        delayed = self.sample("--sampler", "da", "--iterations", 60, "--surrogate-steps", 5)
        self.assertEqual(delayed["sampler"], "da")
        self.assertEqual(delayed["evidence_error"], 0)
        self.assertGreater(delayed["acceptance"], 0.5)
        self.assertGreater(delayed["walk_acceptance"], 0)
        self.assertIsNone(record["acceptance"])
        self.assertEqual(len(record["phase"]["langevin_from"]), 3)
        self.assertTrue(all(first % 100 == 0 for first in record["phase"]["langevin_from"]))
        self.has(record["solves"], "gradients iterations_per_gradient continued_share extra_iterations relative_sd")
        self.assertIs(record["solves"]["unbiased"], True)
        self.assertEqual(record["phase"]["scale"], [1, 1, 1])
        self.assertEqual(record["phase"]["half_steps"], 3 * 60)  # of 80 for each chain, a quarter to settle
        for entry in record["parameters"].values():
            self.has(entry["step_bias"], "mean sd mean_error sd_error")
        self.assertEqual(record["solves"]["gradients"], record["evaluations"] - record["failed_evaluations"])

    def test_solves_that_stop_at_random_are_a_choice(self):
        words = ("--sampler", "sgld", "--iterations", 400, "--phase-ratio", 0.5)
        record = self.sample(*words, "--unbiased", "no", "--half-steps", 0)
        self.assertEqual(record["phase"]["half_steps"], 0)
        self.assertNotIn("step_bias", record["parameters"]["lengthscale"])
        self.assertIs(record["solves"]["unbiased"], False)
        self.assertNotIn("relative_sd", record["solves"])
        self.generate("k.csv", "gp", "-n", 60, "-d", 1, "--seed", 2, "--likelihood", "bernoulli-logit")
        done = self.mercer("sample", "k.csv", *quick(*words, "--unbiased", "yes", "-o", "c.csv", "-m", "k.mcr"), code=2)
        self.assertIn("--unbiased yes", done.stderr)
        self.assertIn("Gaussian noise", done.stderr)

    def test_what_went_wrong_is_said(self):
        words = ("--sampler", "sgld", "--iterations", 300, "--phase-ratio", 0.9, "--preconditioner", "none", "--max-iterations", 1)
        record = self.sample(*words, "--warmup", 250)
        self.assertGreater(record["solves"]["unconverged_gradients"], 0)
        self.assertTrue(any("did not reach their tolerance" in w for w in record["warnings"]), record["warnings"])
        # Draws are kept after the warm-up, but the phase began where the step was frozen.
        self.assertEqual(record["phase"]["kept_from"], 251)
        self.assertTrue(all(frozen % 100 == 0 for frozen in record["phase"]["langevin_from"]), record["phase"])
        few = self.sample("--sampler", "mh", "--iterations", 6, "--keep-unconverged")
        self.assertTrue(any("too few draws" in w for w in few["warnings"]), few["warnings"])
        # Walks that lead nowhere propose nothing, and are no acceptances.
        record = self.sample("--sampler", "da", "--iterations", 60, "--surrogate-steps", 1, "--chains", 1)
        chain = read_csv((self.folder / "c.csv").read_text())["lengthscale"]
        moves = sum(a != b for a, b in zip(chain, chain[1:]))
        self.assertLess(moves, 0.8 * len(chain))
        self.assertGreaterEqual(record["acceptance"] * len(chain), moves)

    def test_threads_do_not_change_a_draw(self):
        self.sample("--threads", 1)
        one = (self.folder / "c.csv").read_bytes()
        self.sample("--threads", 3)
        self.assertEqual((self.folder / "c.csv").read_bytes(), one)

    def test_one_chain_has_no_r_hat_and_says_so(self):
        record = self.sample("--chains", 1)
        entry = record["parameters"]["lengthscale"]
        self.assertIsNone(entry["rhat"])
        self.assertIn("one chain", entry["rhat_reason"])
        done = self.mercer("sample", "d.csv", *quick("--chains", 1, "-o", "c.csv", "-m", "m.mcr"))
        self.assertIn("R-hat", done.stderr)

    def test_classes_and_counts_are_sampled_through_laplace(self):
        self.generate("k.csv", "gp", "-n", 60, "-d", 1, "--seed", 2, "--likelihood", "bernoulli-logit")
        self.json("sample", "k.csv", *quick("--draws", 3, "--iterations", 60, "-o", "c.csv", "-m", "k.mcr"))
        rows = rows_of(self.mercer("predict", "k.mcr", "k.csv", "-o", "-", "--quiet").stdout)
        for row in rows:
            total = sum(float(value) for name, value in row.items() if name.startswith("probability_"))
            self.assertAlmostEqual(total, 1, places=9)
        self.generate("p.csv", "gp", "-n", 60, "-d", 1, "--seed", 2, "--likelihood", "poisson")
        self.json("sample", "p.csv", *quick("--likelihood", "poisson", "--draws", 3, "--iterations", 60, "-o", "c.csv",
                                           "-m", "p.mcr"))
        rows = rows_of(self.mercer("predict", "p.mcr", "p.csv", "-o", "-", "--quiet").stdout)
        self.assertTrue(all(float(row["q05"]).is_integer() and float(row["q05"]) <= float(row["q95"]) for row in rows))
        self.assertGreater(self.json("evaluate", "p.mcr", "p.csv")["nll"], 0)

    def test_a_checkpoint_goes_on_to_the_same_bits(self):
        words = ("sample", "d.csv", *quick("--iterations", 40000, "--sampler", "mh", "-m", "m.mcr"), "--checkpoint", "k")
        process = start(*words, "-o", "c.csv", cwd=self.folder)
        self.wait_for(process, "k")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 143)
        self.assertFalse((self.folder / "c.csv").exists())
        self.mercer(*words, "-o", "resumed.csv", "--quiet")
        self.mercer(*words[:-2], "-o", "whole.csv", "--quiet")
        self.assertEqual((self.folder / "resumed.csv").read_bytes(), (self.folder / "whole.csv").read_bytes())
        other = self.mercer("sample", "d.csv", *quick("--sampler", "mh", "-m", "m.mcr", "--checkpoint", "k"), code=2)
        self.assertIn("checkpoint", other.stderr)

    def test_ctrl_c_keeps_what_was_drawn(self):
        process = start("sample", "d.csv", *quick("--iterations", 4000000, "--warmup", 100, "--sampler", "mh", "-m", "m.mcr",
                                                 "-o", "c.csv", "--checkpoint", "k", "--json"), cwd=self.folder)
        self.wait_for(process, "k")
        time.sleep(0.5)  # the warm-up takes some milliseconds
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 130, err)
        if not out:  # it came before any draw was kept
            return
        record = json.loads(out)
        self.assertTrue(record["interrupted"])
        self.assertGreater(record["phase"]["kept_draws"], 0)
        self.assertLess(record["phase"]["kept_draws"], 3 * 3999900)
        self.assertTrue((self.folder / "m.mcr").exists())

    def test_bad_input_is_answered(self):
        base = ("sample", "d.csv", "-o", "c.csv", "-m", "m.mcr")
        self.refused(2, *base, "--prior", "lengthscale=flat", saying=("improper", "--prior"))
        self.refused(2, *base, "--prior", "period=gamma(2,2)", saying=("period", "noise_variance"))
        self.refused(2, *base, "--prior", "lengthscale=gamma(2)", saying="gamma(SHAPE,RATE)")
        self.refused(2, *base, "--iterations", 0, saying="--iterations")
        self.refused(2, *base, "--iterations", 10, "--warmup", 10, saying="no draw would be kept")
        self.refused(2, *base, "--chains", 0, saying="--chains")
        self.refused(2, *base, "--draws", 0, saying="--draws")
        self.refused(2, *base, "--sampler", "nuts", saying=("nuts", "hmc"))
        self.refused(2, *base, "--sampler", "hmc", "--redraw", 7, saying=("--redraw", "sgld"))
        self.refused(2, *base, "--sampler", "mh", "--half-steps", 7, saying=("--half-steps", "sgld"))
        self.refused(2, *base, "--train", "none", saying="--train")
        self.refused(2, "sample", "d.csv", "-m", "m.mcr", "--json", "-o", "-", saying="-o")
        self.refused(2, "sample", "d.csv", "-o", "same", "-m", "same", saying="--output")
        self.refused(5, *quick(*base, "--sampler", "sgld", "--iterations", 150, "--phase-ratio", 1e-9), saying="--phase-ratio")
        self.refused(2, *quick(*base, "--sampler", "sgld", "--iterations", 99), saying=("--iterations", "100"))
        self.refused(2, *quick(*base, "--sampler", "sgld", "--first-step", 0.01, "--last-step", 0.1), saying="--last-step")
        self.refused(2, *quick(*base, "--sampler", "hmc", "--probes", 4), saying="--probes")
        self.refused(2, *quick(*base, "--sampler", "mh", "--probe-kind", "gaussian"), saying="--probe-kind")
        self.refused(2, *quick(*base, "--sampler", "sgld", "--unbiased", "yes", "--preconditioner", "regularized"),
                     saying="--preconditioner regularized")
