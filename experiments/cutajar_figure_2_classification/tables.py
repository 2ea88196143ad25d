"""Tables and pictures from the traces of `run`: tables.py RESULTS_FOLDER."""

import csv
import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import line_chart  # noqa: E402

METHODS = {"pcg": "AdaGrad, PCG (Nystrom)", "cg": "AdaGrad, CG", "cholesky": "L-BFGS, Cholesky", "mercer": "mercer"}


def traces(folder):
    """{(data, kernel): {method: [rows of every fold]}}"""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.csv"))):
        match = re.fullmatch(r"(\w+)-(rbf(?:-iso)?)-(\d+)-(\w+)\.csv", os.path.basename(path))
        if not match:
            continue
        with open(path) as file:
            rows = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
        if rows:
            found.setdefault(match.group(1, 2), {}).setdefault(match.group(4), []).append(rows)
    return found


def seconds_to(rows, key, level):
    """Of the first step from which on the score stays at or below the level."""
    first = None
    for row in reversed(rows):
        if row[key] > level:
            break
        first = row["seconds"]
    return first


def main():
    folder = sys.argv[1]
    everything = traces(folder)
    print("Seconds of learning to the last step that was finished, and the scores there (means over folds). `NLL within`:\n"
          "seconds until the NLL stays within 0.01 of the best last one of all methods on the fold; - where it never does.\n")
    print("| data | kernel | method | folds | steps | seconds | error rate | NLL | AUC | NLL within |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for (data, kernel), methods in everything.items():
        count = max(len(folds) for folds in methods.values())
        best = [min(folds[i][-1]["nll"] for folds in methods.values() if i < len(folds)) for i in range(count)]
        for method in (m for m in METHODS if m in methods):
            folds = methods[method]
            last = [rows[-1] for rows in folds]
            mean = {k: sum(r.get(k, float("nan")) for r in last) / len(last) for k in ("step", "seconds", "error_rate", "nll", "auc")}
            reached = [seconds_to(rows, "nll", level + 0.01) for rows, level in zip(folds, best)]
            within = "-" if None in reached else f"{sum(reached) / len(reached):.1f}"
            print(f"| {data} | {kernel} | {METHODS[method]} | {len(folds)} | {mean['step']:.0f} | {mean['seconds']:.1f} "
                  f"| {mean['error_rate']:.4f} | {mean['nll']:.4f} | {mean['auc']:.4f} | {within} |")
    for data in dict.fromkeys(d for d, _ in everything):
        panels = []
        for kernel in ("rbf-iso", "rbf"):
            methods = everything.get((data, kernel), {})
            title = "isotropic" if kernel == "rbf-iso" else "ARD"
            for key, label in (("error_rate", "error rate"), ("nll", "NLL")):
                lines = {METHODS[m]: [(max(r["seconds"], 1e-2), r[key]) for r in methods[m][0]] for m in METHODS if m in methods}
                panels.append((title, "seconds", label, lines))
        line_chart.write(os.path.join(folder, f"{data}.svg"), f"Errors against seconds of learning: {data}, fold 0", panels)


if __name__ == "__main__":
    main()
