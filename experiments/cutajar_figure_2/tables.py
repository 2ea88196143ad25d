"""Tables and pictures from the traces of `run`: tables.py RESULTS_FOLDER."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from learning_traces import METHODS, draw, equal_seconds, traces  # noqa: E402
from study import read_records  # noqa: E402


def scales(folder):
    """Standard deviation of the target in the training rows, the mean of the folds; 1 where no run has told it."""
    found = {}
    for record in read_records(os.path.join(folder, "scales.csv")):
        found.setdefault(record["data"], []).append(float(record["sd"]))
    return {data: sum(values) / len(values) for data, values in found.items()}


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
    sd = scales(folder)
    unknown = sorted({data for data, _ in everything} - set(sd))
    if unknown:
        print(f"\nThe scale of {', '.join(unknown)} is not known before a run of it: the scores below are in target units there.")
    equal_seconds(everything, {"rmse": ("standardised RMSE", lambda v, data: v / sd.get(data, 1)),
                               "nll": ("standardised NLL", lambda v, data: v - math.log(sd.get(data, 1)))})
    draw(folder, everything, "Error", {"rmse": "RMSE", "nll": "NLL"})


if __name__ == "__main__":
    main()
