"""Tables and pictures from the traces of `run`: tables.py RESULTS_FOLDER."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from learning_traces import METHODS, draw, traces  # noqa: E402


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
    draw(folder, everything, "Error", {"rmse": "RMSE", "nll": "NLL"})


if __name__ == "__main__":
    main()
