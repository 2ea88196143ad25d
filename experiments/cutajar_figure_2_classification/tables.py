"""Tables and pictures from the traces of `run`: tables.py RESULTS_FOLDER."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from learning_traces import METHODS, draw, equal_seconds, traces  # noqa: E402


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
        for method, folds in methods.items():
            last = [rows[-1] for rows in folds]
            mean = {k: sum(r.get(k, float("nan")) for r in last) / len(last) for k in ("step", "seconds", "error_rate", "nll", "auc")}
            reached = [seconds_to(rows, "nll", level + 0.01) for rows, level in zip(folds, best)]
            within = "-" if None in reached else f"{sum(reached) / len(reached):.1f}"
            print(f"| {data} | {kernel} | {METHODS[method]} | {len(folds)} | {mean['step']:.0f} | {mean['seconds']:.1f} "
                  f"| {mean['error_rate']:.4f} | {mean['nll']:.4f} | {mean['auc']:.4f} | {within} |")
    equal_seconds(everything, {"error_rate": ("error rate", lambda v, _: v), "nll": ("NLL", lambda v, _: v)})
    draw(folder, everything, "Errors", {"error_rate": "error rate", "nll": "NLL"})


if __name__ == "__main__":
    main()
