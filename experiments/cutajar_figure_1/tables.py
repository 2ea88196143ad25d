"""Markdown tables from the CSVs that `run` left: tables.py RESULTS_FOLDER."""

import csv
import glob
import math
import os
import sys

# Published in Cutajar et al. (2016), concrete: iterations of plain CG, and log10(PCG/CG) at noise 1e-4.
PAPER_CG = {1e-2: [4, 13, 82, 246, 54, 12], 1e-4: [4, 18, 177, 2294, 291, 23],
            1e-6: [4, 20, 217, 15000, 2307, 112]}
PAPER_GAIN = {"nystrom": [0.00, 0.02, 0.58, -0.15, -0.78, -0.76],
              "fitc": [0.10, 0.00, 0.11, -0.03, -0.22, -0.76],
              "pitc": [-0.60, -0.48, -0.08, -0.09, 0.02, -0.76],
              "svd": [1.31, 0.52, 0.30, 0.11, -0.57, -1.40],
              "spectral": [1.08, 0.86, 0.73, 0.58, -0.31, -0.28],
              "block-jacobi": [-0.60, -0.48, -0.14, 0.03, 1.38, 1.49],
              "regularized": [0.60, 0.22, 0.33, 0.30, 0.62, 0.59]}


def read(folder, name):
    runs = {}
    for path in sorted(glob.glob(os.path.join(folder, f"{name}-*.csv"))):
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                label = row["solver"] if row["preconditioner"] == "none" else row["preconditioner"]
                runs[label, float(row["lengthscale"]), float(row["noise"])] = row
    return runs


def iterations(row):
    if row is None or row["stop"] == "skipped":
        return "-"
    total = int(row["iterations"]) + int(row["inner_iterations"])
    return {"converged": f"{total}", "stagnation": f"!{total}", "breakdown": f"!{total}"}.get(row["stop"], f">{total}")


def seconds(row):
    if row is None or row["stop"] == "skipped":
        return "-"
    mark = "" if row["stop"] == "converged" else ">"
    return f"{mark}{float(row['build_seconds']) + float(row['solve_seconds']):.2f}"


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" + "---:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def grids(name, runs):
    lengthscales = sorted({key[1] for key in runs})
    noises = sorted({key[2] for key in runs})
    labels = list(dict.fromkeys(key[0] for key in sorted(runs, key=lambda k: list(runs).index(k))))
    labels.sort(key=lambda label: label != "cg")
    for noise in noises:
        print(f"**{name}, noise variance {noise:g}**: iterations (inner ones included)\n")
        rows = [[label] + [iterations(runs.get((label, l, noise))) for l in lengthscales] for label in labels]
        if name == "concrete":
            rows.insert(1, ["*cg in the paper*"] + [f"{v}" for v in PAPER_CG[noise]])
        table(["lengthscale"] + [f"{l:g}" for l in lengthscales], rows)
        print(f"**{name}, noise variance {noise:g}**: seconds, building included\n")
        table(["lengthscale"] + [f"{l:g}" for l in lengthscales],
              [[label] + [seconds(runs.get((label, l, noise))) for l in lengthscales] for label in labels])


def beside_the_paper(runs):
    lengthscales = [1e-3, 1e-2, 0.1, 1, 10, 100]
    print("**concrete, noise variance 1e-4**: log10(PCG/CG), ours and the paper's\n")
    rows = []
    for label, published in PAPER_GAIN.items():
        ours = []
        for l in lengthscales:
            row, plain = runs.get((label, l, 1e-4)), runs.get(("cg", l, 1e-4))
            good = row and plain and row["stop"] == plain["stop"] == "converged"
            ours.append(f"{math.log10((int(row['iterations']) + int(row['inner_iterations'])) / int(plain['iterations'])):.2f}"
                        if good else "-")
        rows.append([label] + ours)
        rows.append(["*in the paper*"] + [f"{v:.2f}" for v in published])
    table(["lengthscale"] + [f"{l:g}" for l in lengthscales], rows)


def claims(name, runs):
    """The hybrid against plain CG, cell by cell."""
    worse, less_than_ten, cells = [], [], 0
    for (label, l, noise), plain in runs.items():
        hybrid = runs.get(("hybrid", l, noise))
        if label != "cg" or hybrid is None or hybrid["stop"] == "skipped":
            continue
        count, ours = int(plain["iterations"]), int(hybrid["iterations"])
        done = hybrid["stop"] == "converged"
        if count > 20:
            cells += 1
            if not done or ours >= count:
                worse.append((l, noise, count, ours))
        if count > 200 and (not done or 10 * ours > count):
            less_than_ten.append((l, noise, count, ours))
    print(f"{name}: {cells} cells where plain CG takes more than 20 iterations; the hybrid needs more or fails in "
          f"{len(worse)} {worse or ''}; where CG takes more than 200 it misses a tenth in {len(less_than_ten)} "
          f"{less_than_ten or ''}\n")


def main():
    folder = sys.argv[1]
    for name in ("concrete", "powerplant", "protein"):
        runs = read(folder, name)
        if not runs:
            continue
        if name == "concrete":
            beside_the_paper(runs)
        grids(name, runs)
        claims(name, runs)


if __name__ == "__main__":
    main()
