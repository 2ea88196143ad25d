#!/usr/bin/env python3
"""Sparse approximations against dense NumPy and scikit-learn, through the command line.

Fixed hyperparameters and given base points: FITC's and VFE's evidence, means and variances equal a
short dense computation with N x N matrices, and the subset of regressors equals ridge regression on
scikit-learn's Nystroem features, all to 1e-8. The base points are 12 well separated rows, so that
K(b, b) has a condition of about 1e3 and rounding stays below 1e-11.

Usage: sparse_test.py PATH_OF_MERCER [unittest arguments]
"""

# Before NumPy: it limits the threads, and skips where there is no scikit-learn.
from harness import FIXED, PeerCase, main, write_csv

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge

SIGNAL, SCALE, NOISE = 1.3, 0.9, 0.05
HYPER = ("--lengthscale", SCALE, "--signal-variance", SIGNAL, "--noise", NOISE)


def kernel(a, b):
    apart = ((a[:, None, :] - b[None, :, :])**2).sum(axis=2)
    return SIGNAL * np.exp(-0.5 * apart / SCALE**2)


def log_normal_density(y, covariance):
    factor = np.linalg.cholesky(covariance)
    z = np.linalg.solve(factor, y)
    return -0.5 * z @ z - np.log(np.diag(factor)).sum() - 0.5 * len(y) * np.log(2 * np.pi)


class SparseApproximations(PeerCase):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(7)
        self.x = rng.uniform(-2, 2, size=(70, 2))
        self.y = np.sin(2 * self.x[:, 0]) + 0.5 * self.x[:, 1] + 0.2 * rng.normal(size=70)
        grid = np.linspace(-1.8, 1.8, 4)
        self.base = np.array([(u, v) for u in grid for v in (-1.5, 0.0, 1.5)])
        self.new = rng.uniform(-2.2, 2.2, size=(15, 2))
        write_csv(self.path("base.csv"), self.base, y=np.zeros(len(self.base), int))

    def sparse(self, method):
        record = self.fit(self.x, self.y, "rbf:iso", *FIXED, *HYPER, "--method", method, "--base",
                          self.path("base.csv"))
        return record["log_marginal_likelihood"], self.predict(self.new)

    def parts(self):
        """K_bb, K_bn, Q and the diagonal of K, all dense."""
        kbb, kbn = kernel(self.base, self.base), kernel(self.base, self.x)
        return kbb, kbn, kbn.T @ np.linalg.solve(kbb, kbn), np.full(len(self.x), SIGNAL)

    def check_predictions(self, found, own):
        """Against the posterior with prior Q at f(x) and noise `own` of each row."""
        kbb, kbn, _, _ = self.parts()
        kbs = kernel(self.base, self.new)
        a = kbb + (kbn / own) @ kbn.T
        mean = kbs.T @ np.linalg.solve(a, kbn @ (self.y / own))
        variance = (SIGNAL - np.sum(kbs * np.linalg.solve(kbb, kbs), axis=0) +
                    np.sum(kbs * np.linalg.solve(a, kbs), axis=0))
        np.testing.assert_allclose(found["mean"], mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found["sd_latent"]**2, variance, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found["sd_obs"]**2, variance + NOISE, rtol=0, atol=1e-8)

    def test_fitc(self):
        evidence, found = self.sparse("fitc")
        _, _, q, prior = self.parts()
        own = prior - np.diag(q) + NOISE
        self.assertAlmostEqual(evidence["value"], log_normal_density(self.y, q + np.diag(own)), delta=1e-8)
        self.assertEqual(evidence["kind"], "approximate")
        self.check_predictions(found, own)

    def test_vfe(self):
        evidence, found = self.sparse("vfe")
        _, _, q, prior = self.parts()
        bound = (log_normal_density(self.y, q + NOISE * np.eye(len(self.y))) -
                 0.5 * (prior - np.diag(q)).sum() / NOISE)
        self.assertAlmostEqual(evidence["value"], bound, delta=1e-8)
        self.assertEqual(evidence["kind"], "bound")
        self.check_predictions(found, np.full(len(self.y), NOISE))
        exact = log_normal_density(self.y, kernel(self.x, self.x) + NOISE * np.eye(len(self.y)))
        self.assertLess(evidence["value"], exact)

    def test_subset_of_regressors_is_ridge_regression_on_nystroem_features(self):
        _, found = self.sparse("srm")
        peer = ConstantKernel(SIGNAL) * RBF(SCALE)
        # Its landmarks are a random order of the rows it is given: all of them here.
        features = Nystroem(kernel=lambda a, b: peer(np.atleast_2d(a), np.atleast_2d(b))[0, 0],
                            n_components=len(self.base), random_state=0).fit(self.base)
        ridge = Ridge(alpha=NOISE, fit_intercept=False, solver="cholesky")
        ridge.fit(features.transform(self.x), self.y)
        np.testing.assert_allclose(found["mean"], ridge.predict(features.transform(self.new)), rtol=0,
                                   atol=1e-8)


if __name__ == "__main__":
    main()
