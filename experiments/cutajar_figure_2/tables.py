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


def main():
    folder = sys.argv[1]
    everything = traces(folder)
    print("Seconds of learning to the end, and the scores there (means over folds; target units).\n")
    print("| data | kernel | method | folds | steps | seconds | RMSE | NLL |\n|---|---|---|---:|---:|---:|---:|---:|")
    for (data, kernel), methods in everything.items():
        for method, folds in methods.items():
            last = [rows[-1] for rows in folds]
            mean = {k: sum(r[k] for r in last) / len(last) for k in ("step", "seconds", "rmse", "nll")}
            print(f"| {data} | {kernel} | {METHODS[method]} | {len(folds)} | {mean['step']:.0f} | {mean['seconds']:.1f} "
                  f"| {mean['rmse']:.4g} | {mean['nll']:.4g} |")
    for data in dict.fromkeys(d for d, _ in everything):
        panels = []
        for kernel in ("rbf-iso", "rbf"):
            methods = everything.get((data, kernel), {})
            title = "isotropic" if kernel == "rbf-iso" else "ARD"
            for key, label in (("rmse", "RMSE"), ("nll", "NLL")):
                lines = {METHODS[m]: [(max(r["seconds"], 1e-2), r[key]) for r in folds[0]] for m, folds in methods.items()}
                panels.append((title, "seconds", label, lines))
        line_chart.write(os.path.join(folder, f"{data}.svg"), f"Error against seconds of learning: {data}, fold 0", panels)


if __name__ == "__main__":
    main()
