"""Scores against seconds of learning, from the traces that `run` of figure 2 leaves: DATA-KERNEL-FOLD-METHOD.csv."""

import glob
import os
import re

import line_chart
from study import read_records

METHODS = {"pcg": "AdaGrad, PCG (Nystrom)", "cg": "AdaGrad, CG", "cholesky": "L-BFGS, Cholesky", "mercer": "mercer"}


def traces(folder):
    """{(data, kernel): {method: [rows of every fold]}}"""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.csv"))):
        match = re.fullmatch(r"(\w+)-(rbf(?:-iso)?)-(\d+)-(\w+)\.csv", os.path.basename(path))
        if not match:
            continue
        rows = [{k: float(v) for k, v in row.items() if v} for row in read_records(path)]
        if rows:
            found.setdefault(match.group(1, 2), {}).setdefault(match.group(4), []).append(rows)
    return found


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
