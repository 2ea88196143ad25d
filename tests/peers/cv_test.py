#!/usr/bin/env python3
"""mercer cv against scikit-learn's cross_val_predict, through the command line.

The same folds, the same kernel values, the data's own units: both factor the same matrices in
double, so that means and standard deviations agree to 1e-8. Leave-one-out in closed form against
scikit-learn's LeaveOneOut, which refits for every row.

Usage: cv_test.py PATH_OF_MERCER [unittest arguments]
Data: the folder $MERCER_DATA, or ../shared/data beside the checkout; skipped when absent.
"""

# Before NumPy: it limits the threads, and skips where there is no scikit-learn.
from harness import FIXED, PeerCase, main, matern, rbf, read_columns, run_mercer, shuffled, write_csv

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.model_selection import LeaveOneOut, PredefinedSplit, cross_val_predict


class WithSpread(GaussianProcessRegressor):
    """Mean and standard deviation as the two columns of a prediction."""

    def predict(self, x):
        return np.column_stack(super().predict(x, return_std=True))


# name, mercer's kernel and options, the same kernel of scikit-learn
KERNELS = [
    ("rbf", ("--kernel", "1.7*rbf", "--lengthscale", "0.8,1.9,1.1"), rbf(1.7, 0.8, 1.9, 1.1)),
    ("an explicit 1", ("--kernel", "1*rbf:iso:lengthscale=1"), rbf(1.0, 1.0)),
    ("matern32", ("--kernel", "0.6*matern32:iso:lengthscale=1.4"), matern(1.5)(0.6, 1.4)),
]


class CrossValPredict(PeerCase):
    noise = 0.09

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(8)
        self.x = rng.normal(size=(90, 3))
        self.y = np.sin(2 * self.x[:, 0]) + 0.5 * self.x[:, 1] + 0.3 * rng.normal(size=90)

    def cv(self, x, y, *words, **columns):
        """The record, and the predictions in the order of the rows."""
        write_csv(self.path("d.csv"), x, **columns, y=y)
        record = run_mercer("cv", self.path("d.csv"), "--target", "y", *FIXED, "--noise",
                            self.noise, "-o", self.path("out.csv"), *words)
        return record, read_columns(self.path("out.csv"))

    def compare(self, ours, x, y, kernel, folds):
        peer = WithSpread(kernel, alpha=self.noise, optimizer=None)
        mean, sd = cross_val_predict(peer, x, y, cv=folds).T
        np.testing.assert_allclose(ours["mean"], mean, rtol=0, atol=1e-8 * np.abs(y).max())
        np.testing.assert_allclose(ours["sd_latent"], sd, rtol=1e-8)
        np.testing.assert_allclose(ours["sd_obs"]**2, sd**2 + self.noise, rtol=1e-8)
        return mean

    def test_folds(self):
        folds = np.random.default_rng(9).integers(0, 5, size=90)
        for name, words, kernel in KERNELS:
            with self.subTest(name):
                record, ours = self.cv(self.x, self.y, *words, "--fold-column", "fold", fold=folds)
                mean = self.compare(ours, self.x, self.y, kernel, PredefinedSplit(folds))
                np.testing.assert_array_equal(ours["fold"], folds)
                np.testing.assert_allclose(record["scores"]["rmse"],
                                           np.sqrt(np.mean((self.y - mean)**2)), rtol=1e-8)

    def test_leave_one_out(self):
        for name, words, kernel in KERNELS:
            with self.subTest(name):
                record, ours = self.cv(self.x, self.y, *words, "--folds", "loo")
                self.assertEqual(record["method"], "closed form")
                self.compare(ours, self.x, self.y, kernel, LeaveOneOut())

    def test_concrete(self):
        table = shuffled("concrete")[:300]
        x = (table[:, :-1] - table[:, :-1].mean(axis=0)) / table[:, :-1].std(axis=0)
        y = (table[:, -1] - table[:, -1].mean()) / table[:, -1].std()
        folds = np.arange(300) % 10
        record, ours = self.cv(x, y, "--kernel", "1*rbf:iso:lengthscale=3", "--fold-column", "fold",
                               fold=folds)
        mean = self.compare(ours, x, y, rbf(1.0, 3.0), PredefinedSplit(folds))
        print(f"concrete, 300 rows, 10 folds: rmse {record['scores']['rmse']:.6f}, "
              f"largest difference of a mean {np.abs(ours['mean'] - mean).max():.1e}")


if __name__ == "__main__":
    main()
