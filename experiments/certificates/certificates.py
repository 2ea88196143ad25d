"""True errors of predicted means against bound and estimate, and the iterations that the accuracy costs.

The exact means come from SciPy: a Cholesky factorisation in double, refined with residuals in extended precision; for classes
Newton's method for the mode of Laplace's approximation, to rounding.
"""

import csv
import os
import sys

import numpy as np
import scipy.linalg
from scipy.special import expit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from study import call, write_records, write_table  # noqa: E402  (beside this folder)

MERCER, FOLDER, RESULTS = sys.argv[1:4]
SMOKE = "smoke" in sys.argv[4:]
ROWS, NEW_ROWS, INPUTS = (150, 40, 3) if SMOKE else (2000, 400, 3)
LENGTHSCALE = 0.6
NOISES = ["1e-2", "1e-6"] if SMOKE else ["1e-1", "1e-2", "1e-3", "1e-4", "1e-5", "1e-6", "1e-7", "1e-8"]
KERNELS = ["matern32"] if SMOKE else ["rbf", "matern12", "matern32"]
SEEDS = [1] if SMOKE else [1, 2, 3, 4, 5]
CLASS_VARIANCES = ["4"] if SMOKE else ["1", "10", "100"]
FIELDS = ["model", "kernel", "mean", "noise", "seed", "solver", "sd", "true", "bound", "estimate", "iterations", "iterations_tolerance", "missed"]


def covariance(kernel, a, b):
    squares = ((a[:, None, :] - b[None, :, :]) / LENGTHSCALE) ** 2
    r = np.sqrt(squares.sum(-1))
    if kernel == "rbf":
        return np.exp(-0.5 * r * r)
    if kernel == "matern12":
        return np.exp(-r)
    return (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)


def refined_solve(h, b):
    """H^-1 b with residuals in extended precision."""
    factor = scipy.linalg.cho_factor(h, lower=True)
    x = scipy.linalg.cho_solve(factor, b).astype(np.longdouble)
    wide = h.astype(np.longdouble)
    for _ in range(4):
        r = (b.astype(np.longdouble) - wide @ x).astype(float)
        x = x + scipy.linalg.cho_solve(factor, r)
    return x


def basis_of(mean, x):
    return np.column_stack([np.ones(len(x)), x]) if mean == "linear" else np.zeros((len(x), 0))


def exact_means(kernel, mean, noise, x, y, new):
    h = covariance(kernel, x, x) + float(noise) * np.eye(len(x))
    a, at_new = basis_of(mean, x), basis_of(mean, new)
    solved = refined_solve(h, np.column_stack([y, a]))
    weights, beta = solved[:, 0], np.zeros(0)
    if a.shape[1] > 0:
        m = (a.T @ solved[:, 1:]).astype(float)
        beta = np.linalg.solve(0.5 * (m + m.T), (a.T @ solved[:, 0]).astype(float))
        weights = solved[:, 0] - solved[:, 1:] @ beta
    return (covariance(kernel, new, x).astype(np.longdouble) @ weights + at_new @ beta).astype(float)


def exact_mode_means(kernel, variance, x, labels, new):
    """Latent means at the mode of the logistic model (Rasmussen & Williams 2006, algorithm 3.1)."""
    k = float(variance) * covariance(kernel, x, x)
    f = np.zeros(len(x))
    for _ in range(100):
        p = expit(f)
        root = np.sqrt(p * (1 - p))
        b = np.eye(len(x)) + root[:, None] * k * root[None, :]
        rhs = p * (1 - p) * f + labels - p
        a = rhs - root * scipy.linalg.cho_solve(scipy.linalg.cho_factor(b, lower=True), root * (k @ rhs))
        step = k @ a - f
        f = f + step
        if np.abs(step).max() < 1e-13 * max(1.0, np.abs(f).max()):
            break
    # Not from labels - expit(f): K would magnify the rounding of f.
    return float(variance) * covariance(kernel, new, x) @ a


def simulate(*words):
    """Rows to learn from and new ones, and the path of the first."""
    path = os.path.join(FOLDER, "all.csv")
    call(MERCER, "generate", "gp", "-n", ROWS + NEW_ROWS, "-d", INPUTS, "--lengthscale", LENGTHSCALE, "-o", path, *words)
    with open(path) as file:
        rows = [row for row in csv.reader(line for line in file if not line.startswith("#"))]
    header, table = rows[0], np.array(rows[1:], dtype=float)
    write_table(os.path.join(FOLDER, "train.csv"), header, rows[1 : 1 + ROWS])
    write_table(os.path.join(FOLDER, "new.csv"), header, rows[1 + ROWS :])
    return table[:ROWS, :-1], table[:ROWS, -1], table[ROWS:, :-1]


def fit(*words):
    return call(MERCER, "fit", os.path.join(FOLDER, "train.csv"), "--target", "y", "--train", "none", "--no-standardize",
                "--lengthscale", LENGTHSCALE, "--model", os.path.join(FOLDER, "m.mcr"), *words)


def predicted(column):
    path = os.path.join(FOLDER, "predicted.csv")
    call(MERCER, "predict", os.path.join(FOLDER, "m.mcr"), os.path.join(FOLDER, "new.csv"), "--no-variance", "-o", path)
    with open(path) as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return {name: np.array([float(row[name]) for row in rows]) for name in (column, "error_bound", "error_estimate")}


def case(record, column, exact, words):
    words = [*words, "--solver", record["solver"]]
    if record["solver"] == "cg":
        words += ["--max-iterations", 20000]
    loose = fit(*words, "--accuracy", 0) if record["model"] == "gaussian" else None
    found = fit(*words)
    loose = loose or found
    new = predicted(column)
    certificate = found["certificate"]
    error = np.abs(new[column] - exact)
    record |= {"true": error.max(), "bound": certificate["mean_error_bound"], "estimate": certificate["mean_error_estimate"],
               "iterations": found["iterations"], "iterations_tolerance": loose["iterations"],
               "missed": certificate.get("accuracy_missed", "")}
    if (error > new["error_bound"]).any():
        record["missed"] += " VIOLATED"
    print(" ".join(f"{key}={value:.3g}" if isinstance(value, float) else f"{key}={value}" for key, value in record.items()), flush=True)
    return record


def gaussian_cases():
    for seed in SEEDS:
        for kernel in KERNELS:
            for noise in NOISES:
                x, y, new = simulate("--kernel", kernel, "--noise", noise, "--seed", seed)
                for mean in ("zero", "linear"):
                    exact = exact_means(kernel, mean, noise, x, y, new)
                    for solver in ("cg", "cholesky"):
                        if solver == "cholesky" and seed != SEEDS[0]:
                            continue
                        words = ["--kernel", kernel, "--noise", noise, "--signal-variance", 1, "--mean", mean]
                        yield case({"model": "gaussian", "kernel": kernel, "mean": mean, "noise": noise, "seed": seed, "solver": solver,
                                    "sd": float(y.std())}, "mean", exact, words)


def class_cases():
    for seed in SEEDS:
        for variance in CLASS_VARIANCES:
            x, labels, new = simulate("--kernel", "matern32", "--likelihood", "bernoulli-logit", "--signal-variance", variance, "--seed", seed)
            exact = exact_mode_means("matern32", variance, x, labels, new)
            for solver in ("cg", "cholesky"):
                words = ["--kernel", "matern32", "--likelihood", "bernoulli-logit", "--signal-variance", variance]
                yield case({"model": "bernoulli-logit", "kernel": "matern32", "mean": "zero", "noise": f"variance {variance}", "seed": seed,
                            "solver": solver, "sd": float(exact.std())}, "latent_mean", exact, words)


def tables(records):
    lines = ["| model | kernel | mean | noise | solver | true error | bound / sd | bound / error | estimate / error | iterations | of those to the tolerance |",
             "|---|---|---|---:|---|---:|---:|---:|---:|---:|---:|"]
    groups = {}
    for r in records:
        groups.setdefault((r["model"], r["kernel"], r["mean"], r["noise"], r["solver"]), []).append(r)
    for key, group in groups.items():
        true = [r["true"] for r in group]
        quotient = [r["estimate"] / r["true"] for r in group]
        share = [r["iterations"] / max(1, r["iterations_tolerance"]) for r in group]
        lines.append(f"| {' | '.join(key)} | {max(true):.1e} | {max(r['bound'] / r['sd'] for r in group):.1e} | "
                     f"{np.median([r['bound'] / r['true'] for r in group]):.0f} | {min(quotient):.2f} to {max(quotient):.2f} | "
                     f"{np.median([r['iterations'] for r in group]):.0f} | {max(share):.2f} |")
    iterative = [r for r in records if r["solver"] == "cg"]
    good = np.mean([1 / 3 <= r["estimate"] / r["true"] <= 30 for r in iterative])
    lines += ["", f"{len(records)} cases; bound violated in {sum('VIOLATED' in r['missed'] for r in records)}; bound above 1 % of the sd in "
              f"{sum(r['bound'] > 0.01 * r['sd'] for r in records)}; estimate between a third and 30 times the true error in {100 * good:.1f} % of "
              f"the {len(iterative)} iterative ones; most iterations over those to the tolerance "
              f"{max(r['iterations'] / max(1, r['iterations_tolerance']) for r in iterative):.2f}."]
    return "\n".join(lines) + "\n"


def main():
    records = []
    for record in (*class_cases(), *gaussian_cases()) if SMOKE else (r for part in (class_cases, gaussian_cases) for r in part()):
        records.append(record)
        write_records(os.path.join(RESULTS, "cases.csv"), FIELDS, records)
    text = tables(records)
    with open(os.path.join(RESULTS, "tables.md"), "w") as file:
        file.write(text)
    print(text)


main()
