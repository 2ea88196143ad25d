#!/usr/bin/env python3
"""mercer against scikit-learn's GaussianProcessRegressor, through the command line.

Fixed hyperparameters: the log marginal likelihood, its gradient, predictive means and variances of
every kernel that both have agree to 1e-8 (both factor the same well-conditioned matrix in double,
so 1e-12 is typical). The certificate: with a loose tolerance the distance of mercer's means from
scikit-learn's stays below the bound that mercer prints. Learned: on real data mercer's held-out
scores are not worse.

Usage: sklearn_test.py PATH_OF_MERCER [unittest arguments]
Data: the folder $MERCER_DATA, or ../shared/data beside the checkout; skipped when absent.
"""

import math
import warnings

# Before NumPy: it limits the threads, and skips where there is no scikit-learn.
from harness import FIXED, PeerCase, linear, main, matern, rational, rbf, shuffled

import numpy as np
from scipy import optimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (RBF, ConstantKernel, DotProduct, ExpSineSquared,
                                              WhiteKernel)


# Further kernels, as those of the harness: mercer's parameters in mercer's order.
def periodic(v, l, period):
    return ConstantKernel(v) * ExpSineSquared(l, period)


def poly(degree):
    # v (x'y/l^2 + o)^p = v l^-2p (x'y + o l^2)^p
    return lambda v, l, o: (ConstantKernel(v * l**(-2 * degree)) *
                            DotProduct(math.sqrt(o) * l)**degree)


def constant(v):
    return ConstantKernel(v)


# name, mercer's kernel, the peer, number of inputs, further arguments of mercer
CASES = [
    ("rbf iso", "rbf:iso", rbf, 3, ["--lengthscale", 0.8]),
    ("rbf ard", "rbf", rbf, 3, ["--lengthscale", "0.5,1.5,2.5"]),
    ("matern12 iso", "matern12:iso", matern(0.5), 2, []),
    ("matern12 ard", "matern12", matern(0.5), 3, ["--lengthscale", "0.5,1.5,2.5"]),
    ("matern32 iso", "matern32:iso", matern(1.5), 2, []),
    ("matern32 ard", "matern32", matern(1.5), 3, ["--lengthscale", "0.5,1.5,2.5"]),
    ("matern52 iso", "matern52:iso", matern(2.5), 2, []),
    ("matern52 ard", "matern52", matern(2.5), 3, ["--lengthscale", "0.5,1.5,2.5"]),
    ("rational quadratic", "rq:iso:0.7", rational, 2, ["--lengthscale", 0.6]),
    ("periodic", "periodic:1.3", periodic, 1, ["--lengthscale", 0.9]),
    ("linear", "linear:iso", linear, 3, []),
    ("poly 2", "poly:2:iso:offset=1.5", poly(2), 2, ["--lengthscale", 1.7]),
    ("poly 3", "poly:3:iso", poly(3), 2, ["--lengthscale", 2.0]),
    ("sum with a constant", "rbf:iso + constant",
     lambda v, l, c: rbf(v, l) + constant(c), 2, []),
    ("sum", "0.5 * matern52 + 2 * linear:iso",
     lambda v, l1, l2, w: matern(2.5)(v, l1, l2) + linear(w), 2, []),
    ("product", "rbf:iso * periodic:0.9",
     lambda v, l, lp, p: ConstantKernel(v) * RBF(l) * ExpSineSquared(lp, p), 1, []),
    ("sum of product", "matern32:iso * linear:iso + 0.3 * rbf:iso",
     lambda v, l, w, m: matern(1.5)(v, l) * DotProduct(0.0, sigma_0_bounds="fixed") + rbf(w, m),
     2, []),
]


class FixedHyperparameters(PeerCase):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(20)
        self.x = rng.normal(size=(80, 3))
        self.y = np.sin(2 * self.x[:, 0]) + 0.5 * self.x[:, 1] + 0.2 * rng.normal(size=80)
        self.new_x = rng.normal(size=(25, 3))

    def fixed(self, kernel, d, *arguments, **columns):
        """The fit to the first d inputs."""
        return self.fit(self.x[:, :d], self.y, kernel, *FIXED, "--gradient", "--noise", 0.15, *arguments,
                        **columns)

    def peer(self, build, record):
        """scikit-learn's regressor with mercer's parameters, and theta as a function of them."""
        parameters = record["hyperparameters"]["standardised"]["parameters"]
        names = list(parameters)
        self.assertEqual(names[-1], "noise_variance")
        logs = np.log(list(parameters.values()))

        def kernel(log_values):
            values = np.exp(log_values)
            return build(*values[:-1]) + WhiteKernel(values[-1])

        d = len(record["data"]["inputs"])
        regressor = GaussianProcessRegressor(kernel(logs), alpha=0.0, optimizer=None)
        regressor.fit(self.x[:, :d], self.y)
        # theta is linear in mercer's log parameters: differences are its exact Jacobian.
        theta = kernel(logs).theta
        jacobian = np.column_stack([kernel(logs + step).theta - theta
                                    for step in np.eye(len(logs))])
        return regressor, names, jacobian

    def test_likelihood_gradient_mean_and_variance(self):
        for name, kernel, build, d, arguments in CASES:
            with self.subTest(name):
                record = self.fixed(kernel, d, *arguments)
                regressor, names, jacobian = self.peer(build, record)
                value, gradient = regressor.log_marginal_likelihood(regressor.kernel_.theta,
                                                                    eval_gradient=True)
                likelihood = record["log_marginal_likelihood"]
                np.testing.assert_allclose(likelihood["value"], value, rtol=1e-8)
                ours = [likelihood["gradient"][name] for name in names]
                gradient = jacobian.T @ gradient
                np.testing.assert_allclose(ours, gradient, rtol=0,
                                           atol=1e-8 * np.abs(gradient).max())

                mean, sd = regressor.predict(self.new_x[:, :d], return_std=True)
                columns = self.predict(self.new_x[:, :d])
                np.testing.assert_allclose(columns["mean"], mean, rtol=0,
                                           atol=1e-8 * np.abs(mean).max())
                # WhiteKernel puts the noise into every variance: that of y, not of f.
                np.testing.assert_allclose(columns["sd_obs"]**2, sd**2, rtol=1e-8)
                noise = math.exp(regressor.kernel_.theta[-1])
                np.testing.assert_allclose(columns["sd_latent"]**2, sd**2 - noise, rtol=0,
                                           atol=1e-8 * np.max(sd**2))

    def test_noise_of_each_row(self):
        rng = np.random.default_rng(21)
        known, counts = rng.uniform(0.0, 0.5, size=80), rng.integers(1, 6, size=80)
        record = self.fixed("rbf", 3, "--lengthscale", "0.5,1.5,2.5", "--noise-column", "e",
                            "--count-column", "n", e=known, n=counts)
        # alpha is the variance on the diagonal of each row.
        regressor = GaussianProcessRegressor(rbf(
            record["hyperparameters"]["standardised"]["signal_variance"], 0.5, 1.5, 2.5),
            alpha=0.15 / counts + known, optimizer=None).fit(self.x, self.y)
        np.testing.assert_allclose(record["log_marginal_likelihood"]["value"],
                                   regressor.log_marginal_likelihood_value_, rtol=1e-8)
        mean, sd = regressor.predict(self.new_x, return_std=True)
        columns = self.predict(self.new_x)
        np.testing.assert_allclose(columns["mean"], mean, rtol=0, atol=1e-8 * np.abs(mean).max())
        np.testing.assert_allclose(columns["sd_latent"], sd, rtol=1e-8)
        np.testing.assert_allclose(columns["sd_obs"]**2, sd**2 + 0.15, rtol=1e-8)

    def test_the_error_bound_holds(self):
        for tolerance in (1e-1, 1e-2, 1e-4):
            with self.subTest(tolerance):
                record = self.fixed("rbf", 3, "--lengthscale", "0.7", "--solver", "cg",
                                    "--preconditioner", "none", "--tolerance", tolerance)
                regressor, _, _ = self.peer(rbf, record)
                columns = self.predict(self.new_x)
                error = np.abs(columns["mean"] - regressor.predict(self.new_x))
                self.assertTrue(np.all(error <= columns["error_bound"] + 1e-12))
                # A bound that is always huge would pass too: it must shrink with the tolerance.
                self.assertLess(columns["error_bound"].max(),
                                30 * tolerance * np.linalg.norm(self.y))


def climb(function, start, bounds):
    """The peer's own optimiser, stopped when the rest would gain less than 0.1 in all."""
    best = optimize.minimize(function, start, method="L-BFGS-B", jac=True, bounds=bounds,
                             options={"maxfun": 70})
    return best.x, best.fun


class Learned(PeerCase):
    def compare(self, name):
        table = shuffled(name)
        cut = len(table) * 4 // 5
        train, test = table[:cut], table[cut:]
        self.fit(train[:, :-1], train[:, -1], "rbf")
        ours = self.evaluate(test[:, :-1], test[:, -1])

        center, scale = train.mean(axis=0), train.std(axis=0)
        z, z_test = (train - center) / scale, (test - center) / scale
        d = table.shape[1] - 1
        start = ConstantKernel(1.0, (1e-5, 1e5)) * RBF(np.full(d, math.sqrt(d)), (1e-5, 1e5))
        regressor = GaussianProcessRegressor(start + WhiteKernel(0.1, (1e-8, 1e1)), alpha=0.0,
                                             optimizer=climb)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a lengthscale at its bound is an irrelevant input
            regressor.fit(z[:, :-1], z[:, -1])
        mean, sd = regressor.predict(z_test[:, :-1], return_std=True)
        mean, sd = mean * scale[-1] + center[-1], sd * scale[-1]
        error = test[:, -1] - mean
        rmse = math.sqrt(np.mean(error**2))
        nll = np.mean(0.5 * np.log(2 * math.pi * sd**2) + 0.5 * (error / sd)**2)
        print(f"{name}: rmse mercer {ours['rmse']:.4f}, scikit-learn {rmse:.4f}; "
              f"nll {ours['nll']:.4f}, {nll:.4f}")
        self.assertLessEqual(ours["rmse"], 1.01 * rmse)
        self.assertLessEqual(ours["nll"], nll + 0.02)

    def test_concrete(self):
        self.compare("concrete")

    def test_energy(self):
        self.compare("energy")


if __name__ == "__main__":
    main()
