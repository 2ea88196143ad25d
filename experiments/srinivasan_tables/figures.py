"""Figures 1-4 of Srinivasan et al. (2014) as a table of runs: figures.py MERCER RESULTS_FOLDER [smoke].

2,000 points (smoke: 100) uniform in the unit cube, Gaussian kernel of bandwidth sigma, regularisation gamma (the noise variance of
this program), preconditioner K + (gamma + delta) I solved by CG to an inner tolerance, outer solver flexible GMRES.
"""

import csv
import math
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from study import call  # noqa: E402

SIGMA, GAMMA = 0.3, 1e-3  # where the other quantities are held
SIGMAS = [0.01, 0.03, 0.1, 0.3, 1.0]
GAMMAS = [1e-4, 1e-3, 1e-2, 1e-1]
DELTAS = [1e-4, 1e-3, 1e-2, 1e-1]  # beside gamma 1e-3
INNER = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]


def write_cube(path, rows):
    draw = random.Random(0)
    with open(path, "w") as file:
        file.write("x,y,z,t\n")
        for _ in range(rows):
            p = [draw.random() for _ in range(3)]
            t = math.sin(6 * p[0]) + math.cos(5 * p[1]) * p[2] + 0.1 * draw.gauss(0, 1)
            file.write(",".join(f"{v:.12g}" for v in (*p, t)) + "\n")


def solve(mercer, path, sigma, gamma, *words):
    return call(mercer, "solve", path, "--no-standardize", "--kernel", "rbf:iso", "--lengthscale", f"{sigma:g}",
                "--signal-variance", "1", "--noise", f"{gamma:g}", "--operator", "stored", "--max-iterations", "20000", *words)


def main():
    mercer, results, *smoke = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(results, "figures.csv"), "w", newline="") as file:
        path = os.path.join(folder, "cube.csv")
        write_cube(path, 100 if smoke else 2000)
        out = csv.writer(file)
        out.writerow(["figure", "value", "solver", "stop", "iterations", "inner_iterations", "matvecs", "seconds"])

        def record(figure, value, name, sigma, gamma, *words):
            r = solve(mercer, path, sigma, gamma, *words)
            out.writerow([figure, f"{value:g}", name, r["stop"], r["iterations"], r["inner_iterations"], r["matvecs"],
                          f"{r['build_seconds'] + r['solve_seconds']:.4f}"])
            file.flush()

        plain = ("--solver", "cg", "--preconditioner", "none", "--precision", "double")
        for figure, values in (("1 sigma", SIGMAS), ("2 gamma", GAMMAS)):
            for value in values:
                sigma, gamma = (value, GAMMA) if figure == "1 sigma" else (SIGMA, value)
                record(figure, value, "cg", sigma, gamma, *plain)
                for solver in ("fcg", "fgmres"):
                    record(figure, value, solver, sigma, gamma, "--solver", solver, "--preconditioner", "regularized",
                           "--precision", "double")
        for solver in ("fcg", "fgmres"):
            inner = ("--solver", solver, "--preconditioner", "regularized", "--precision", "double")
            for value in DELTAS:
                record("3 delta", value, solver, SIGMA, GAMMA, *inner, "--delta", f"{value:g}")
            for value in INNER:
                record("4 inner tolerance", value, solver, SIGMA, GAMMA, *inner, "--inner-tolerance", f"{value:g}")


if __name__ == "__main__":
    main()
