#!/usr/bin/env python3
"""mercer's softmax against a dense Laplace approximation in NumPy, through the command line.

The reference below stacks the functions of all classes into one vector of N C entries and knows
nothing of roots, blocks or solves: Newton's method with (I + W K)^-1 by LU, the evidence with the
determinant of I + W K (Rasmussen & Williams 2006, equation 3.44). Fixed hyperparameters: f at the
mode and the log evidence agree to 1e-8, means and variances elsewhere to 1e-7, probabilities within
five standard errors of 100,000 draws. Learned: the evidence is that of the reference there, and flat by
its differences. scikit-learn, which has no softmax, stands beside it one against the rest; what it
scores is printed, and nothing is asserted of it.

Usage: softmax_test.py PATH_OF_MERCER [unittest arguments]
Data: the folder $MERCER_DATA, or ../shared/data beside the checkout; their cases are skipped when
absent, those on simulated data are not.
"""

import unittest
import warnings

# Before NumPy: it limits the threads, and skips where there is no scikit-learn.
from harness import FIXED, PeerCase, matern, rbf, run_mercer, shuffled, write_csv

import numpy as np
from harness import main
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss, zero_one_loss

AGREE = 1e-8


def simulated(n=90, classes=3):
    rng = np.random.default_rng(33)
    y = np.arange(n) % classes
    centres = rng.normal(size=(classes, 2)) * 1.3
    return centres[y] + rng.normal(size=(n, 2)), y


def four_classes():
    return simulated(100, 4)


def two_classes():
    return simulated(80, 2)


def real(name, most):
    """Inputs of standard deviation one, in a random order; classes 0, 1, ..."""
    table = shuffled(name)[:most]
    x = table[:, :-1]
    scale = x.std(axis=0)
    _, y = np.unique(table[:, -1], return_inverse=True)
    return (x - x.mean(axis=0)) / np.where(scale > 0, scale, 1), y


def iris():
    return real("iris", 150)


def glass():
    return real("glass", 160)


def vehicle():
    return real("vehicle", 200)


class Reference:
    """Laplace's approximation of the softmax model, in dense algebra."""

    def __init__(self, kernel, x, y):
        self.kernel, self.x = kernel, x
        n, c = len(x), y.max() + 1
        self.n, self.c = n, c
        self.one_hot = np.eye(c)[y].T.ravel()  # function by function
        self.k = np.kron(np.eye(c), kernel(x))
        a = np.zeros(n * c)
        for _ in range(200):
            f = self.k @ a
            p, w = self.at(f)
            step = np.linalg.solve(np.eye(n * c) + w @ self.k, w @ f + self.one_hot - p) - a
            size = 1.0
            while self.objective(a + size * step) < self.objective(a) - 1e-10 and size > 1e-6:
                size /= 2
            a = a + size * step
            if np.abs(self.k @ step).max() < 1e-12 * max(1, np.abs(f).max()):
                break
        self.f = self.k @ a
        self.p, self.w = self.at(self.f)
        self.left = np.eye(n * c) + self.w @ self.k
        sign, logdet = np.linalg.slogdet(self.left)
        assert sign > 0
        self.evidence = self.objective(self.one_hot - self.p) - 0.5 * logdet

    def at(self, f):
        rows = f.reshape(self.c, self.n)
        p = np.exp(rows - rows.max(axis=0))
        p /= p.sum(axis=0)
        w = np.diag(p.ravel())
        for i in range(self.n):
            places = np.arange(self.c) * self.n + i
            w[np.ix_(places, places)] -= np.outer(p[:, i], p[:, i])
        return p.ravel(), w

    def objective(self, a):
        f = self.k @ a
        rows = f.reshape(self.c, self.n)
        top = rows.max(axis=0)
        log_sums = top + np.log(np.exp(rows - top).sum(axis=0))
        return self.one_hot @ f - log_sums.sum() - 0.5 * a @ f

    def latent(self, x):
        """Means, M x C, and covariances, M x C x C."""
        cross = self.kernel(self.x, x)
        a = (self.one_hot - self.p).reshape(self.c, self.n)
        q = np.linalg.solve(self.left, self.w)
        covariance = np.empty((len(x), self.c, self.c))
        for c in range(self.c):
            for d in range(self.c):
                block = q[c * self.n:(c + 1) * self.n, d * self.n:(d + 1) * self.n]
                covariance[:, c, d] = -np.einsum("im,ij,jm->m", cross, block, cross)
            covariance[:, c, c] += self.kernel.diag(x)
        return (a @ cross).T, covariance


def probabilities(mean, covariance, draws=100000, seed=5):
    """And their standard errors, by draws."""
    z = np.random.default_rng(seed).normal(size=(draws, len(mean)))
    values, vectors = np.linalg.eigh(covariance)
    f = mean + z @ (vectors * np.sqrt(np.maximum(values, 0))).T
    p = np.exp(f - f.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p.mean(axis=0), p.std(axis=0) / np.sqrt(draws)


# data, mercer's kernel, the peer, further arguments of mercer
CASES = [
    (simulated, "rbf:iso", rbf, ["--lengthscale", 1.0, "--signal-variance", 2]),
    (simulated, "matern32", matern(1.5), ["--lengthscale", "0.8,1.5", "--signal-variance", 6]),
    (four_classes, "matern52:iso", matern(2.5), ["--lengthscale", 1.5, "--signal-variance", 10]),
    (two_classes, "rbf:iso", rbf, ["--lengthscale", 1.2, "--signal-variance", 4]),
    (iris, "rbf:iso", rbf, ["--lengthscale", 1.5, "--signal-variance", 6]),
    (glass, "matern32:iso", matern(1.5), ["--lengthscale", 2.0, "--signal-variance", 4]),
    (vehicle, "rbf:iso", rbf, ["--lengthscale", 4.0, "--signal-variance", 15]),
]
SOFTMAX = ("--likelihood", "softmax")


def skipping(source):
    try:
        return source()
    except unittest.SkipTest as reason:
        print(f"skipped: {reason}", flush=True)
        return None


class Fixed(PeerCase):
    def close(self, ours, theirs, what, tolerance=AGREE):
        """To a share of the largest, or of one."""
        np.testing.assert_allclose(ours, theirs, rtol=0, err_msg=what,
                                   atol=tolerance * max(1.0, np.abs(theirs).max()))

    def fixed(self, x, y, kernel, arguments):
        return self.fit(x, y, kernel, *FIXED, *SOFTMAX, "--tolerance", 1e-9, *arguments)

    def reference(self, x, y, build, record):
        parameters = record["hyperparameters"]["standardised"]["parameters"]
        return Reference(build(*parameters.values()), x, y)

    def test_mode_evidence_covariance_and_probability(self):
        for source, kernel, build, arguments in CASES:
            data = skipping(source)
            if data is None:
                continue
            with self.subTest(f"{source.__name__}: {kernel}"):
                x, y = data
                cut = len(x) * 7 // 8
                classes = range(y.max() + 1)
                record = self.fixed(x[:cut], y[:cut], kernel, arguments)
                self.assertEqual(record["multiclass"], "softmax")
                self.assertLess(record["certificate"]["mean_error_bound"], 1e-8)
                peer = self.reference(x[:cut], y[:cut], build, record)
                self.close(record["log_marginal_likelihood"]["value"], peer.evidence, "evidence")
                at_mode, columns = self.predict(x[:cut]), self.predict(x[cut:])
                f = peer.f.reshape(peer.c, peer.n)
                mean, covariance = peer.latent(x[cut:])
                for c in classes:
                    self.close(at_mode[f"latent_mean_{c}"], f[c], f"f of class {c}")
                    self.close(columns[f"latent_mean_{c}"], mean[:, c], f"mean of class {c}", 1e-7)
                    self.close(columns[f"latent_sd_{c}"]**2, covariance[:, c, c],
                               f"variance of class {c}", 1e-7)
                error = self.standard_error(x[cut:])
                for i in range(min(12, len(x) - cut)):
                    p, se = probabilities(mean[i], covariance[i])
                    for c in classes:
                        # Five standard errors of both: a false alarm in 1.7 million.
                        self.assertAlmostEqual(columns[f"probability_{c}"][i], p[c],
                                               delta=5 * np.hypot(se[c], error) + 1e-9)
                print(f"{source.__name__}, {kernel}: f off by "
                      f"{max(np.abs(at_mode[f'latent_mean_{c}'] - f[c]).max() for c in classes):.1e}"
                      f", evidence by "
                      f"{abs(record['log_marginal_likelihood']['value'] - peer.evidence):.1e}; "
                      f"standard error of probabilities {error:.1e}", flush=True)

    def standard_error(self, x):
        write_csv(self.path("new.csv"), x, y=np.zeros(len(x), int))
        record = run_mercer("predict", self.path("model.mcr"), self.path("new.csv"))
        return record.get("probability_standard_error", 0.0)

    def test_solves_agree_with_factors(self):
        x, y = four_classes()
        arguments = ["--lengthscale", 1.5, "--signal-variance", 10]
        record = self.fixed(x[:80], y[:80], "rbf:iso", [*arguments, "--solver", "cg"])
        peer = self.reference(x[:80], y[:80], rbf, record)
        at_mode = self.predict(x[:80])
        f = peer.f.reshape(peer.c, peer.n)
        for c in range(4):
            self.close(at_mode[f"latent_mean_{c}"], f[c], f"f of class {c}")
        # An interval of two standard errors: the truth is within three of them.
        likelihood = record["log_marginal_likelihood"]
        middle = 0.5 * (likelihood["low"] + likelihood["high"])
        reach = 1.5 * (likelihood["high"] - likelihood["low"]) / 2 + 1e-6
        self.assertAlmostEqual(peer.evidence, middle, delta=reach)

    def test_rows_that_count_twice(self):
        x, y = simulated()
        count = 1 + np.arange(len(y)) % 3
        arguments = ["--lengthscale", 1.0, "--signal-variance", 3]
        record = self.fit(x, y, "rbf:iso", *FIXED, *SOFTMAX, "--tolerance", 1e-9, *arguments,
                          "--count-column", "count", count=count)
        peer = Reference(rbf(3.0, 1.0), np.repeat(x, count, axis=0), np.repeat(y, count))
        self.close(record["log_marginal_likelihood"]["value"], peer.evidence, "evidence", 1e-7)


class Learned(PeerCase):
    def compare(self, source, most_slope=0.2):
        x, y = source()
        cut = len(x) * 7 // 10
        record = self.fit(x[:cut], y[:cut], "rbf:iso", *SOFTMAX, "--no-standardize")
        ours = self.evaluate(x[cut:], y[cut:])
        values = np.array(list(record["hyperparameters"]["standardised"]["parameters"].values()))
        evidence = record["log_marginal_likelihood"]["value"]
        here = Reference(rbf(*values), x[:cut], y[:cut]).evidence
        self.assertAlmostEqual(evidence, here, delta=1e-6 * abs(here))
        slopes = []
        for place in range(2):
            step = np.where(np.arange(2) == place, 1e-3, 0)
            both = [Reference(rbf(*(values * np.exp(sign * step))), x[:cut], y[:cut]).evidence
                    for sign in (1, -1)]
            slopes.append((both[0] - both[1]) / 2e-3)
        at_bound = values[0] > 99.9  # a signal variance above 100 is not learned
        start = 1.0 * RBF(np.sqrt(x.shape[1]), (1e-5, 1e5))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier = GaussianProcessClassifier(start).fit(x[:cut], y[:cut])
        proba = classifier.predict_proba(x[cut:])
        rest = self.fit(x[:cut], y[:cut], "rbf:iso", "--no-standardize", "--task",
                        "classification")
        one = self.evaluate(x[cut:], y[cut:])
        self.assertEqual(rest.get("multiclass"), "one-vs-rest")
        print(f"{source.__name__}: nll softmax {ours['nll']:.4f}, one-vs-rest {one['nll']:.4f}, "
              f"scikit-learn one-vs-rest {log_loss(y[cut:], proba, labels=classifier.classes_):.4f}; "
              f"error rate {ours['error_rate']:.4f}, {one['error_rate']:.4f}, "
              f"{zero_one_loss(y[cut:], classifier.predict(x[cut:])):.4f}; slopes {slopes}, "
              f"values {values}", flush=True)
        self.assertLess(abs(slopes[1]), most_slope)
        if at_bound:
            self.assertGreater(slopes[0], -most_slope)
        else:
            self.assertLess(abs(slopes[0]), most_slope)

    def test_simulated(self):
        self.compare(simulated)

    def test_iris(self):
        self.compare(iris)

    def test_glass(self):
        self.compare(glass)

    def test_vehicle(self):
        self.compare(vehicle)


if __name__ == "__main__":
    main()
