#!/usr/bin/env python3
"""Diagnostics of chains against R: the classic ones against coda, those of ranks against posterior.

Both read the same files, written with every digit, so that they agree but for rounding: 1e-6, relative.

Usage: diagnostics_test.py PATH_OF_chain_diagnostics [unittest arguments]
Skipped (77) where R, coda, posterior or NumPy is missing: r-base-core, r-cran-coda, r-cran-posterior.
"""

import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}; install python3-numpy")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
TOOL = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else None


def require_r():
    if shutil.which("Rscript") is None:
        print("skipped: there is no Rscript; install r-base-core, r-cran-coda and r-cran-posterior")
        sys.exit(77)
    found = subprocess.run(["Rscript", "-e", "library(coda); library(posterior)"], capture_output=True, text=True,
                           check=False)
    if found.returncode != 0:
        print(f"skipped: {found.stderr.strip().splitlines()[-1]}; install r-cran-coda and r-cran-posterior")
        sys.exit(77)


def autoregressive(rng, iterations, chains, rho, shift=0.0):
    """AR(1) chains of variance 1, each chain's mean `shift` further on."""
    x = np.empty((iterations, chains))
    x[0] = rng.normal(size=chains)
    for i in range(1, iterations):
        x[i] = rho * x[i - 1] + math.sqrt(1 - rho * rho) * rng.normal(size=chains)
    return x + shift * np.arange(chains)


def read(text):
    """{(file, quantity): value}; None where there is none, and nan."""
    out = {}
    for line in text.splitlines():
        file, name, value = line.split()
        out[int(file), name] = None if value == "none" else float("nan" if value == "NA" else value)
    return out


class Diagnostics(unittest.TestCase):
    def both(self, *tables):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for k, table in enumerate(tables):
                paths.append(os.path.join(folder, f"{k}.csv"))
                with open(paths[-1], "w") as out:
                    out.writelines(",".join(repr(float(v)) for v in row) + "\n" for row in table)
            ours = subprocess.run([TOOL, *paths], capture_output=True, text=True, check=True)
            theirs = subprocess.run(["Rscript", str(HERE / "diagnostics.R"), *paths], capture_output=True, text=True,
                                    check=False)
            self.assertEqual(theirs.returncode, 0, theirs.stderr)
            return read(ours.stdout), read(theirs.stdout)

    def compare(self, named, without=(), absolute=1e-12):
        """Every quantity of every table but `without`; absolute: for those that are zero but for rounding."""
        names = list(named)
        ours, theirs = self.both(*named.values())
        self.assertEqual(ours.keys(), theirs.keys())
        self.assertGreaterEqual(len(ours), 20 * len(named))
        for (file, quantity), value in theirs.items():
            if quantity in without:
                continue
            with self.subTest(chains=names[file], quantity=quantity):
                mine = ours[file, quantity]
                if value is None or math.isnan(value):
                    self.assertTrue(mine is None if value is None else mine is not None and math.isnan(mine), mine)
                else:
                    self.assertIsNotNone(mine)
                    if mine == value:  # infinite ones too
                        continue
                    self.assertLessEqual(abs(mine - value), 1e-6 * abs(value) + absolute, f"{mine} and {value}")
        return ours

    def test_autoregressive_chains(self):
        rng = np.random.default_rng(1)
        self.compare({f"rho {rho}": autoregressive(rng, 400, 4, rho) for rho in (-0.6, -0.2, 0.0, 0.3, 0.7, 0.95)})

    def test_chains_that_differ(self):
        rng = np.random.default_rng(2)
        ours = self.compare({f"shift {shift}": autoregressive(rng, 250, 3, 0.5, shift) for shift in (0.1, 0.5, 3.0)})
        self.assertGreater(ours[2, "rhat"], 1.5)
        self.assertGreater(ours[2, "psrf"], 1.5)

    def test_scales_that_differ(self):
        rng = np.random.default_rng(3)
        ours = self.compare({"scales": autoregressive(rng, 300, 4, 0.4) * [1, 1, 1, 5]})
        self.assertGreater(ours[0, "rhat"], 1.05)  # folding sees it

    def test_odd_lengths_and_numbers_of_chains(self):
        rng = np.random.default_rng(4)
        self.compare({f"{n} x {m}": autoregressive(rng, n, m, 0.4) for n in (51, 101, 333) for m in (2, 5)})

    def test_one_chain(self):
        ours = self.compare({"one chain": autoregressive(np.random.default_rng(5), 500, 1, 0.6)})
        self.assertIsNone(ours[0, "psrf"])
        self.assertFalse(math.isnan(ours[0, "rhat"]))

    def test_short_chains(self):
        rng = np.random.default_rng(6)
        self.compare({f"{n} draws": rng.normal(size=(n, m)) for n, m in
                      ((4, 4), (5, 2), (6, 3), (7, 2), (8, 1), (10, 3), (13, 2))})

    def test_halves_of_one_draw_say_nothing(self):
        # posterior takes such halves for one chain across chains, because R drops a dimension; we say nothing.
        rng = np.random.default_rng(13)
        split = ("rhat", "ess_bulk", "ess_tail", "ess_mean", "ess_median", "mcse_mean", "mcse_sd", "mcse_q05", "mcse_q95")
        ours = self.compare({f"{n} draws": rng.normal(size=(n, n)) for n in (2, 3)}, without=split)
        for file in (0, 1):
            for quantity in split:
                self.assertTrue(math.isnan(ours[file, quantity]), quantity)

    def test_long_memory(self):
        self.compare({"rho 0.999": autoregressive(np.random.default_rng(7), 2001, 4, 0.999)})

    def test_heavy_tails(self):
        rng = np.random.default_rng(8)
        self.compare({"Cauchy": rng.standard_cauchy(size=(300, 4)), "lognormal": np.exp(2 * rng.normal(size=(300, 4)))})

    def test_what_the_transform_changes(self):
        rng = np.random.default_rng(9)
        unit = 1 / (1 + np.exp(-autoregressive(rng, 200, 3, 0.3, 0.5)))
        ours = self.compare({"positive": np.exp(autoregressive(rng, 200, 3, 0.3, 0.5)), "between 0 and 1": unit})
        for file in (0, 1):
            self.assertNotAlmostEqual(ours[file, "psrf"], ours[file, "psrf_transformed"], 4)

    def test_ties(self):
        rng = np.random.default_rng(10)
        self.compare({"counts": rng.poisson(2.0, size=(200, 4)), "two values": rng.integers(0, 2, size=(101, 2))})

    def test_constant_chains(self):
        rng = np.random.default_rng(11)
        one = autoregressive(rng, 60, 3, 0.2)
        one[:, 1] = 0.5
        self.compare({"one of three": one, "all": np.full((40, 3), 1.5), "apart": np.tile([1.0, 2.0], (40, 1))})

    def test_the_joint_factor_of_several_parameters(self):
        rng = np.random.default_rng(12)
        a, b, c = (autoregressive(rng, 150, 4, rho, shift) for rho, shift in ((0.2, 0.1), (0.5, 0.0), (0.8, 0.3)))
        ours = self.compare({"a": a, "a + b": a + b, "c": c})
        self.assertIn((0, "multivariate"), ours)


if __name__ == "__main__":
    if TOOL is None:
        sys.exit("usage: diagnostics_test.py PATH_OF_chain_diagnostics [unittest arguments]")
    require_r()
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
