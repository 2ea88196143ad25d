#!/usr/bin/env python3
"""mercer's classes against scikit-learn's GaussianProcessClassifier, through the command line.

Both find Laplace's approximation of a logit model. Fixed hyperparameters: f at the mode, the log
marginal likelihood, means and variances of f elsewhere agree to 1e-6, and probabilities to 1e-6
with the integral of the logistic function over scikit-learn's Gaussian by scipy's quadrature.
Learned: evidence and held-out NLL are not worse. Scores: `evaluate` against sklearn.metrics.

Two things of scikit-learn (1.2.1) are not used as they are:
- Its Newton's method takes whole steps and stops as soon as the evidence, at the curvature of the
  step before, does not rise. That is at the mode in CASES, but not always: see
  test_the_mode_where_scikit_learn_stops_before_it. It is called again from where it stopped (its
  warm start) until it stands still.
- Its predict_proba puts five error functions for the logistic one: up to 4.3e-4 off (f = 5.75, of
  variance 0), 2.0e-4 on CASES. mercer is held to the integral.

Usage: classification_test.py PATH_OF_MERCER [unittest arguments]
Data: the folder $MERCER_DATA, or ../shared/data beside the checkout; their cases are skipped when
absent, those on simulated data are not.
"""

import math
import warnings

# Before NumPy: it limits the threads, and skips where there is no scikit-learn.
from harness import FIXED, PeerCase, linear, main, matern, rational, rbf, shuffled

import numpy as np
from scipy import integrate, special
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score, zero_one_loss

AGREE = 1e-6
ERF_ERROR = 5e-4  # of scikit-learn's probabilities


def simulated(n=120, d=3):
    """Labels of a function that is not linear, one in ten of them wrong."""
    rng = np.random.default_rng(31)
    x = rng.normal(size=(n, d))
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=n) > 0
    return x, (y ^ (rng.uniform(size=n) < 0.1)).astype(int)


def three_classes(n=90):
    rng = np.random.default_rng(32)
    y = np.arange(n) % 3
    centres = np.array([[0.0, 0.0], [1.5, 0.5], [0.0, 2.0]])
    return centres[y] + rng.normal(size=(n, 2)), y


def real(name, most=None):
    """Inputs of standard deviation one, in a random order."""
    table = shuffled(name)[:most]
    x = table[:, :-1]
    scale = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(scale > 0, scale, 1), table[:, -1].astype(int)


def with_constant(v, l, c):
    return rbf(v, l) + ConstantKernel(c)


def with_linear(v, l, w):
    return matern(2.5)(v, l) + linear(w)


def ard(d):
    return ",".join(f"{2 + c % 5}" for c in range(d))


# data, mercer's kernel, the peer, further arguments of mercer
CASES = [
    (simulated, "rbf:iso", rbf, ["--lengthscale", 1.0, "--signal-variance", 2]),
    (simulated, "rbf", rbf, ["--lengthscale", "0.7,1.5,2.5", "--signal-variance", 5]),
    (simulated, "matern12:iso", matern(0.5), ["--lengthscale", 1.5, "--signal-variance", 3]),
    (simulated, "matern32:iso", matern(1.5), ["--lengthscale", 1.2, "--signal-variance", 4]),
    (simulated, "rq:iso:0.7", rational, ["--lengthscale", 0.9, "--signal-variance", 3]),
    (simulated, "rbf:iso + constant", with_constant, ["--lengthscale", 1.0]),
    (simulated, "matern52:iso + linear:iso", with_linear, ["--lengthscale", 1.0]),
    # f of many tens: probabilities that are all but certain, curvatures that all but vanish
    (simulated, "rbf:iso", rbf, ["--lengthscale", 0.6, "--signal-variance", 2000]),
    (simulated, "rbf:iso", rbf, ["--lengthscale", 1.0, "--signal-variance", 1e6]),
    ("heart", "rbf:iso", rbf, ["--lengthscale", 4.0, "--signal-variance", 3]),
    ("heart", "matern32:iso", matern(1.5), ["--lengthscale", 5.0, "--signal-variance", 20]),
    ("heart", "rbf", rbf, ["--lengthscale", ard(13), "--signal-variance", 8]),
    ("sonar", "rbf:iso", rbf, ["--lengthscale", 6.0, "--signal-variance", 30]),
    ("sonar", "matern52", matern(2.5), ["--lengthscale", ard(60), "--signal-variance", 10]),
    ("banana", "rbf:iso", rbf, ["--lengthscale", 0.7, "--signal-variance", 10]),
    ("banana", "matern32", matern(1.5), ["--lengthscale", "0.8,1.1", "--signal-variance", 10]),
    ("banana", "rq:iso:1.5", rational, ["--lengthscale", 0.8, "--signal-variance", 10]),
]


def title(source):
    return source.__name__ if callable(source) else source


def load(source):
    return source() if callable(source) else real(source, 460)


class Peer:
    """One binary Laplace approximation of scikit-learn's, carried on to the mode."""

    def __init__(self, base):
        self.base = base
        k = base.kernel_(base.X_train_)
        base.warm_start = True
        for _ in range(50):
            before = base.f_cached
            self.evidence, (base.pi_, base.W_sr_, base.L_, _, _) = base._posterior_mode(k, True)
            if np.abs(base.f_cached - before).max() <= 1e-11 * np.abs(before).max():
                break
        self.f = base.f_cached
        self.short = self.evidence - base.log_marginal_likelihood_value_

    def latent(self, x):
        """Mean and variance of f: lines 4 to 6 of its predict_proba."""
        base = self.base
        k = base.kernel_(base.X_train_, x)
        v = np.linalg.solve(base.L_, base.W_sr_[:, None] * k)
        return k.T @ (base.y_train_ - base.pi_), base.kernel_.diag(x) - np.sum(v * v, axis=0)


def probability(mean, variance):
    """The integral of the logistic function over N(mean, variance)."""
    sd = math.sqrt(variance)
    # The density beyond ten deviations is below 1e-23; the bend of the logistic function is at 0.
    bend = [-mean / sd] if abs(mean) < 9 * sd else []
    value, error = integrate.quad(
        lambda t: special.expit(mean + sd * t) * math.exp(-0.5 * t * t) / math.sqrt(2 * math.pi),
        -10, 10, points=bend or None, epsabs=1e-11, epsrel=1e-11, limit=200)
    assert error < 1e-9
    return value


class Fixed(PeerCase):
    def fixed(self, x, y, kernel, arguments, tolerance=1e-9):
        # Rounding of K a alone is a bound of 1e-5 there; f is still known far better.
        if 1e6 in arguments:
            tolerance = 2e-5
        return self.fit(x, y, kernel, *FIXED, "--task", "classification",
                        "--tolerance", tolerance, *arguments)

    def close(self, ours, theirs, what):
        """To 1e-6 of the largest, or of one."""
        np.testing.assert_allclose(ours, theirs, rtol=0, err_msg=what,
                                   atol=AGREE * max(1.0, np.abs(theirs).max()))

    def classifier(self, x, y, build, record, **options):
        parameters = record["hyperparameters"]["standardised"]["parameters"]
        return GaussianProcessClassifier(build(*parameters.values()), optimizer=None,
                                         **options).fit(x, y)

    def test_mode_evidence_variance_and_probability(self):
        for source, kernel, build, arguments in CASES:
            name = title(source)
            with self.subTest(f"{name}: {kernel}"):
                x, y = load(source)
                cut = len(x) * 7 // 8
                new = x[cut:]
                record = self.fixed(x[:cut], y[:cut], kernel, arguments)
                self.assertLess(record["certificate"]["mean_error_bound"],
                                2e-5 if 1e6 in arguments else 1e-8)
                classifier = self.classifier(x[:cut], y[:cut], build, record)
                rough = classifier.predict_proba(new)[:, 1]
                peer = Peer(classifier.base_estimator_)

                at_mode = self.predict(x[:cut])["latent_mean"]
                self.close(at_mode, peer.f, "f at the mode")
                self.close(record["log_marginal_likelihood"]["value"], peer.evidence, "evidence")
                mean, variance = peer.latent(new)
                columns = self.predict(new)
                self.close(columns["latent_mean"], mean, "latent mean")
                self.close(columns["latent_sd"]**2, variance, "latent variance")
                exact = np.array([probability(*pair) for pair in zip(mean, variance)])
                np.testing.assert_allclose(columns["probability_1"], exact, rtol=0, atol=AGREE)
                np.testing.assert_allclose(columns["probability_0"], 1 - exact, rtol=0, atol=AGREE)
                np.testing.assert_array_equal(columns["label"], columns["probability_1"] > 0.5)
                print(f"{name}, {kernel}: f off by {np.abs(at_mode - peer.f).max():.1e}; "
                      f"scikit-learn's own evidence by {peer.short:.1e}, its probabilities by "
                      f"{np.abs(rough - exact).max():.1e}", flush=True)
                self.assertLess(np.abs(rough - exact).max(), ERF_ERROR)

    def test_the_mode_where_scikit_learn_stops_before_it(self):
        x, y = simulated()
        record = self.fixed(x, y, "rbf:iso", ["--lengthscale", 1.0, "--signal-variance", 1e6])
        peer = Peer(self.classifier(x, y, rbf, record).base_estimator_)
        print(f"scikit-learn's own evidence {peer.evidence - peer.short:.3f}, at the mode "
              f"{peer.evidence:.3f}", flush=True)  # -156.126, -150.302
        self.close(self.predict(x)["latent_mean"], peer.f, "f at the mode")
        self.close(record["log_marginal_likelihood"]["value"], peer.evidence, "evidence")

    def test_the_error_bound_holds(self):
        x, y = simulated()
        cut = 100
        for tolerance in (1e-1, 1e-3, 1e-6):
            with self.subTest(tolerance):
                record = self.fixed(x[:cut], y[:cut], "rbf:iso",
                                    ["--lengthscale", 0.8, "--signal-variance", 9,
                                     "--solver", "cg", "--preconditioner", "none"], tolerance)
                peer = Peer(self.classifier(x[:cut], y[:cut], rbf, record).base_estimator_)
                columns = self.predict(x[cut:])
                error = np.abs(columns["latent_mean"] - peer.latent(x[cut:])[0])
                self.assertTrue(np.all(error <= columns["error_bound"] + 1e-12))
                # A bound that is always huge would pass too.
                self.assertLessEqual(columns["error_bound"].max(), 1.01 * tolerance)

    def test_one_against_the_rest(self):
        for source, kernel, build, arguments in [
                (three_classes, "rbf:iso", rbf, ["--lengthscale", 1.2, "--signal-variance", 4]),
                (three_classes, "matern32", matern(1.5), ["--lengthscale", "1,2"]),
                ("iris", "rbf:iso", rbf, ["--lengthscale", 1.5, "--signal-variance", 6]),
                ("iris", "rbf", rbf, ["--lengthscale", "1,2,1.5,0.8", "--signal-variance", 6])]:
            name = title(source)
            with self.subTest(f"{name}: {kernel}"):
                x, y = load(source)
                cut = len(x) * 4 // 5
                record = self.fixed(x[:cut], y[:cut], kernel, arguments)
                classifier = self.classifier(x[:cut], y[:cut], build, record,
                                             multi_class="one_vs_rest")
                rough = classifier.predict_proba(x[cut:])
                peers = [Peer(one) for one in classifier.base_estimator_.estimators_]
                # mercer has the sum of the evidences, scikit-learn their mean.
                self.close(record["log_marginal_likelihood"]["value"],
                           sum(peer.evidence for peer in peers), "evidence")
                at_mode, columns = self.predict(x[:cut]), self.predict(x[cut:])
                exact = np.empty((len(x) - cut, 3))
                for c, peer in enumerate(peers):
                    self.close(at_mode[f"latent_mean_{c}"], peer.f, f"f of class {c}")
                    mean, variance = peer.latent(x[cut:])
                    self.close(columns[f"latent_mean_{c}"], mean, f"latent mean of class {c}")
                    self.close(columns[f"latent_sd_{c}"]**2, variance, f"variance of class {c}")
                    exact[:, c] = [probability(*pair) for pair in zip(mean, variance)]
                # scikit-learn normalises the probabilities, mercer the odds: of one class being
                # true, given that exactly one is.
                shared = exact / exact.sum(axis=1, keepdims=True)
                self.assertLess(np.abs(rough - shared).max(), ERF_ERROR)
                exact /= 1 - exact
                exact /= exact.sum(axis=1, keepdims=True)
                ours = np.column_stack([columns[f"probability_{c}"] for c in range(3)])
                np.testing.assert_allclose(ours, exact, rtol=0, atol=AGREE)
                np.testing.assert_array_equal(columns["label"], exact.argmax(axis=1))

    def test_scores(self):
        for source in (simulated, three_classes, "heart", "iris"):
            name = title(source)
            with self.subTest(name):
                x, y = load(source)
                cut = len(x) // 2
                self.fixed(x[:cut], y[:cut], "rbf:iso", ["--lengthscale", 2.0,
                                                         "--signal-variance", 9])
                columns = self.predict(x[cut:])
                scores = self.evaluate(x[cut:], y[cut:])
                classes = np.unique(y)
                p = np.column_stack([columns[f"probability_{c}"] for c in classes])
                truth = y[cut:]
                expected = {"nll": log_loss(truth, p, labels=classes),
                            "error_rate": zero_one_loss(truth, columns["label"])}
                if len(classes) == 2:
                    expected["brier"] = brier_score_loss(truth, p[:, 1])
                    expected["auc"] = roc_auc_score(truth, p[:, 1])
                else:
                    gap = p - np.eye(len(classes))[truth]
                    expected["brier"] = np.mean(np.sum(gap**2, axis=1))
                    expected["auc"] = roc_auc_score(truth, p, multi_class="ovr", average="macro")
                for score, value in expected.items():
                    self.assertAlmostEqual(scores[score], value, delta=1e-10, msg=score)


class Learned(PeerCase):
    """Each by its own L-BFGS, from its own start."""

    def compare(self, name, kernel, start):
        x, y = real(name)
        cut = len(x) * 7 // 10
        record = self.fit(x[:cut], y[:cut], kernel, "--task", "classification",
                          "--no-standardize")
        ours = self.evaluate(x[cut:], y[cut:])
        classifier = GaussianProcessClassifier(start)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a lengthscale at its bound is an irrelevant input
            classifier.fit(x[:cut], y[:cut])
        base = classifier.base_estimator_
        evidence = record["log_marginal_likelihood"]["value"]
        # scikit-learn's own evidence and slope at what mercer learned.
        values = record["hyperparameters"]["standardised"]["parameters"].values()
        value, slope = base.log_marginal_likelihood(np.log(list(values)), eval_gradient=True)
        nll = log_loss(y[cut:], classifier.predict_proba(x[cut:]))
        error = zero_one_loss(y[cut:], classifier.predict(x[cut:]))
        print(f"{name}, {kernel}: nll mercer {ours['nll']:.4f}, scikit-learn {nll:.4f}; error rate "
              f"{ours['error_rate']:.4f}, {error:.4f}; evidence {evidence:.3f}, "
              f"{base.log_marginal_likelihood_value_:.3f}; slope there {np.abs(slope).max():.1e}",
              flush=True)
        self.assertAlmostEqual(evidence, value, delta=1e-4 * cut)
        self.assertGreaterEqual(evidence, base.log_marginal_likelihood_value_ - 0.1)
        self.assertLess(np.abs(slope).max(), 0.2)
        self.assertLessEqual(ours["nll"], nll + 0.01)

    def test_heart(self):
        self.compare("heart", "rbf:iso", 1.0 * RBF(math.sqrt(13), (1e-5, 1e5)))

    def test_heart_with_a_lengthscale_per_input(self):
        self.compare("heart", "rbf", 1.0 * RBF(np.full(13, math.sqrt(13)), (1e-5, 1e5)))

    def test_diabetes(self):
        self.compare("diabetes_pima", "rbf:iso", 1.0 * RBF(math.sqrt(8), (1e-5, 1e5)))


if __name__ == "__main__":
    main()
