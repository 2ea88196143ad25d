"""What the comparisons with scikit-learn share: the program, tables, data, and kernels of both.

Import it before NumPy, whose threads it limits. It ends the script with 77, which ctest takes as
skipped, where scikit-learn is missing. sys.argv[1] is the path of mercer.
"""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

# Small matrices: threads of NumPy's BLAS would only get into each other's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import numpy as np
    from sklearn.gaussian_process.kernels import (RBF, ConstantKernel, DotProduct, Matern,
                                                  RationalQuadratic)
except ImportError as error:
    print(f"skipped: {error}; install python3-sklearn to compare with scikit-learn")
    sys.exit(77)

MERCER = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else None
CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("MERCER_DATA", CHECKOUT.parent / "shared" / "data"))
FIXED = ("--train", "none", "--no-standardize")  # a fit that learns no hyperparameters


def run_mercer(*arguments, as_json=True):
    """Runs the program; returns its JSON."""
    ours = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    words = [MERCER, *map(str, arguments), "--quiet", *(["--json"] if as_json else [])]
    result = subprocess.run(words, capture_output=True, text=True, check=False, env=ours)
    if result.returncode != 0:
        raise AssertionError(f"mercer {' '.join(map(str, arguments))}: exit {result.returncode}\n"
                             f"{result.stderr}")
    return json.loads(result.stdout) if as_json else None


def write_csv(path, x, **columns):
    """Inputs x0, x1, ..., then the named columns. Every digit; integers stay integers."""
    with open(path, "w", newline="") as out:
        table = csv.writer(out)
        table.writerow([*(f"x{c}" for c in range(x.shape[1])), *columns])
        table.writerows(zip(*x.T.tolist(), *(values.tolist() for values in columns.values())))


def read_columns(path):
    with open(path, newline="") as source:
        rows = list(csv.DictReader(source))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def shuffled(name):
    """The table of a data set, target last, its rows in a random order."""
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        raise unittest.SkipTest(f"no {name}.csv.gz in $MERCER_DATA or ../shared/data")
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    return table[np.random.default_rng(0).permutation(len(table))]


# Each takes mercer's parameters in mercer's order (noise left out) and gives the same kernel.
def rbf(v, *l):
    return ConstantKernel(v) * RBF(l if len(l) > 1 else l[0])


def matern(nu):
    return lambda v, *l: ConstantKernel(v) * Matern(l if len(l) > 1 else l[0], nu=nu)


def rational(v, l, alpha):
    return ConstantKernel(v) * RationalQuadratic(l, alpha)


def linear(v):
    return ConstantKernel(v) * DotProduct(0.0, sigma_0_bounds="fixed")


class PeerCase(unittest.TestCase):
    """One model of mercer's, in a folder that each test has to itself."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def fit(self, x, y, kernel, *arguments, **columns):
        """The record of a fit; columns are those that the arguments name, beside inputs and y."""
        write_csv(self.path("train.csv"), x, **columns, y=y)
        return run_mercer("fit", self.path("train.csv"), "--target", "y", "--kernel", kernel,
                          "-m", self.path("model.mcr"), *arguments)

    def predict(self, x):
        """Columns of the predictions, by name."""
        write_csv(self.path("new.csv"), x, y=np.zeros(len(x), int))
        run_mercer("predict", self.path("model.mcr"), self.path("new.csv"),
                   "-o", self.path("out.csv"), as_json=False)
        return read_columns(self.path("out.csv"))

    def evaluate(self, x, y):
        """The scores."""
        write_csv(self.path("test.csv"), x, y=y)
        return run_mercer("evaluate", self.path("model.mcr"), self.path("test.csv"))


def main():
    """Runs the cases of the script that was started."""
    if MERCER is None:
        sys.exit(f"usage: {os.path.basename(sys.argv[0])} PATH_OF_MERCER [unittest arguments]")
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
