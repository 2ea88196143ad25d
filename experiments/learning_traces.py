"""Scores against seconds of learning, from the traces that `run` of figure 2 leaves: DATA-KERNEL-FOLD-METHOD.csv."""

import glob
import os
import re

import line_chart
from study import read_records

METHODS = {"pcg": "AdaGrad, PCG (Nystrom)", "cg": "AdaGrad, CG", "cholesky": "L-BFGS, Cholesky", "mercer": "mercer", "fitc": "FITC",
           "pitc": "PITC", "vfe": "VFE"}
APPROXIMATIONS = ("fitc", "pitc", "vfe")
BUDGETS = (0.1, 0.3, 1, 3, 10, 30, 100, 300)  # seconds of learning


def traces(folder):
    """{(data, kernel): {method: [rows of every fold]}}, methods in the order of METHODS."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.csv"))):
        match = re.fullmatch(r"(\w+)-(rbf(?:-iso)?)-(\d+)-(\w+)\.csv", os.path.basename(path))
        if not match:
            continue
        rows = [{k: float(v) for k, v in row.items() if v} for row in read_records(path)]
        if rows:
            found.setdefault(match.group(1, 2), {}).setdefault(match.group(4), []).append(rows)
    return {key: {m: methods[m] for m in METHODS if m in methods} for key, methods in found.items()}


def draw(folder, everything, title, scores):
    """DATA.svg of fold 0, a panel per kernel and score; scores is {column: label}."""
    for data in dict.fromkeys(d for d, _ in everything):
        panels = []
        for kernel, name in (("rbf-iso", "isotropic"), ("rbf", "ARD")):
            methods = everything.get((data, kernel), {})
            for key, label in scores.items():
                lines = {METHODS[m]: [(max(r["seconds"], 1e-2), r[key]) for r in folds[0]] for m, folds in methods.items()}
                panels.append((name, "seconds", label, lines))
        line_chart.write(os.path.join(folder, f"{data}.svg"), f"{title} against seconds of learning: {data}, fold 0", panels)


def at_budget(folds, key, seconds):
    """Mean over folds of the score of the last step within so many seconds; None where a fold has no step yet. The start values
    (step 0) are no step."""
    found = []
    for rows in folds:
        within = [r[key] for r in rows if r["seconds"] <= seconds and r["step"] > 0]
        if not within:
            return None
        found.append(within[-1])
    return sum(found) / len(found)


def budgets_of(methods):
    """Budgets at which something still changes: up to the first that is beyond the last step of all."""
    last = max((r["seconds"] for folds in methods.values() for rows in folds for r in rows), default=0)
    beyond = [b for b in BUDGETS if b >= last]
    return [b for b in BUDGETS if b < last] + beyond[:1]


def equal_seconds(everything, scores):
    """A table per score of {column: (label, change)}: every method after equal seconds of learning. change(value, data) scales."""
    print("\nAt equal seconds of learning: the scores of the last step within them (means over folds; - where there is no step yet). A run\n"
          "that has ended, or was stopped at its limit, counts with its last step. `PCG ahead`: AdaGrad on PCG has a lower score than\n"
          "each of FITC, PITC and VFE that has one.\n")
    for key, (label, change) in scores.items():
        print(f"| data | kernel | seconds | {' | '.join(METHODS.values())} | PCG ahead ({label}) |")
        print("|---|---|---:|" + "---:|" * len(METHODS) + "---|")
        for (data, kernel), methods in everything.items():
            for budget in budgets_of(methods):
                values = {m: at_budget(folds, key, budget) for m, folds in methods.items()}
                values = {m: change(v, data) for m, v in values.items() if v is not None}
                if not values:
                    continue
                print(f"| {data} | {kernel} | {budget:g} | " + " | ".join(f"{values[m]:.4f}" if m in values else "-" for m in METHODS)
                      + f" | {verdict(values)} |")
        print()


def verdict(values):
    """By how much PCG is below the best approximation, or above it."""
    others = [values[m] for m in APPROXIMATIONS if m in values]
    if "pcg" not in values or not others:
        return "-" if "pcg" not in values and not others else "only PCG has a step" if "pcg" in values else "PCG has no step yet"
    difference = min(others) - values["pcg"]
    if abs(difference) < 5e-5:
        return "level"
    return f"{'yes' if difference > 0 else 'no'}, by {abs(difference):.4f}"
