"""Markdown tables from what `run` left: tables.py RESULTS_FOLDER."""

import csv
import os
import sys

# Outer iterations to 1e-6 in the paper, CG -> FGMRES, and the size of its data set.
PAPER = {"puma8NH": ("pumadyn, 4,499 x 9", 32, 3), "kin8nm": ("robot arm, 8,192 x 9", 75, 4),
         "house_8L": ("census, 22,784 x 9", 42, 4), "2dplanes": ("2-D planes, 40,768 x 11", 31, 6),
         "chlorophyll_viirs": ("chlorophyll, 179,065 x 3", 46, 3)}


def tables(folder):
    print("| data | method | outer iterations | inner iterations | products | build s | solve s | in the paper |")
    print("|---|---|---:|---:|---:|---:|---:|---|")
    for name, (paper_name, paper_cg, paper_fgmres) in PAPER.items():
        path = os.path.join(folder, f"table-{name}.csv")
        if not os.path.exists(path):
            continue
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                label = row["solver"] if row["preconditioner"] == "none" else f"{row['solver']} + {row['preconditioner']}"
                paper = {"cg": f"{paper_name}: {paper_cg}", "fgmres + regularized": f"{paper_name}: {paper_fgmres}"}
                if row["stop"] == "skipped":
                    print(f"| {name} | {label} | not run: {row['notes']} | | | | | |")
                    continue
                mark = "" if row["stop"] == "converged" else f" ({row['stop']})"
                print(f"| {name} | {label} | {row['iterations']}{mark} | {row['inner_iterations']} | {row['matvecs']} | "
                      f"{float(row['build_seconds']):.2f} | {float(row['solve_seconds']):.2f} | {paper.get(label, '')} |")
    print()


def figures(folder):
    path = os.path.join(folder, "figures.csv")
    if not os.path.exists(path):
        return
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    for figure in dict.fromkeys(row["figure"] for row in rows):
        print(f"**Figure {figure}**\n")
        print(f"| {figure.split(' ', 1)[1]} | solver | outer | inner | products | seconds |")
        print("|---:|---|---:|---:|---:|---:|")
        for row in rows:
            if row["figure"] == figure:
                mark = "" if row["stop"] == "converged" else f" ({row['stop']})"
                print(f"| {row['value']} | {row['solver']} | {row['iterations']}{mark} | {row['inner_iterations']} | "
                      f"{row['matvecs']} | {row['seconds']} |")
        print()


if __name__ == "__main__":
    tables(sys.argv[1])
    figures(sys.argv[1])
