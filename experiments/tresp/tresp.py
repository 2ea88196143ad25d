"""Errors of BCM, SRM and RRA against the width of the kernel, as in figure 1 of Tresp & Schwaighofer (2001).

The function is a normalised combination of five Gaussian bumps of five inputs, uniform on [-1, 1]^5. All errors are mean
squares of predicted mean minus the function without noise.

  base   base points are the points that are predicted (transduction): panels A (no noise) and B
  other  the same base points, other points are predicted: panel C
  rows   base points are rows of the training data (induction): panel D
"""

import csv
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import line_chart  # noqa: E402  (beside this folder)
from study import call, read_records, write_records, write_table  # noqa: E402

MERCER, FOLDER, RESULTS = sys.argv[1:4]
SMOKE = "smoke" in sys.argv[4:]
ROWS, POINTS, BLOCKS = (240, 30, 4) if SMOKE else (10000, 1000, 10)
WIDTHS = [0.5, 2.0] if SMOKE else [0.2, 0.3, 0.45, 0.65, 1.0, 1.6, 3.0, 6.0]
EXACT_WIDTHS = [2.0] if SMOKE else [0.3, 1.0, 3.0]
INPUTS, BUMPS, BUMP_WIDTH = 5, 5, 0.5
# A noise of 0 is none in the data; the model then has the least that a factorisation bears.
NOISES = {"0.001": 1e-3, "0": 1e-8}
# rra_srm: the largest difference of the means of RRA and SRM.
FIELDS = ["noise", "setting", "width", "method", "mse", "seconds", "jitter", "rra_srm"]
NAMES = {"bcm": "BCM", "srm": "SRM", "rra": "RRA", "exact": "exact GP"}
PANELS = [("A: base points, no noise", "0", "base"), ("B: base points, noise 0.001", "0.001", "base"),
          ("C: other points, noise 0.001", "0.001", "other"), ("D: induction, noise 0.001", "0.001", "rows")]


def function(x, rng):
    """Heights near 1, centres where the inputs are; the sum of the bumps' weights is 1 everywhere."""
    centres = rng.uniform(-1, 1, (BUMPS, INPUTS))
    heights = rng.normal(size=BUMPS)
    squares = ((x[:, None, :] - centres[None]) ** 2).sum(-1)
    weights = np.exp(-0.5 * squares / BUMP_WIDTH**2)
    return (weights @ heights) / weights.sum(1)


def path(name):
    return os.path.join(FOLDER, name)


def write_points(name, x, y=None):
    header = [f"x{c + 1}" for c in range(INPUTS)] + ([] if y is None else ["y"])
    table = x if y is None else np.column_stack([x, y])
    write_table(path(name), header, [[repr(float(v)) for v in row] for row in table])


def means(name):
    call(MERCER, "predict", path("m.mcr"), path(name), "--no-variance", "-o", path("out.csv"))
    with open(path("out.csv")) as file:
        return np.array([float(row["mean"]) for row in csv.DictReader(line for line in file if not line.startswith("#"))])


def fit(method, width, noise, base):
    words = [MERCER, "fit", path("train.csv"), "--target", "y", "--no-standardize", "--train", "none", "--kernel", "rbf:iso",
             "--lengthscale", width, "--signal-variance", 1, "--noise", NOISES[noise], "-m", path("m.mcr")]
    if method == "exact":
        return call(*words, "--solver", "cholesky", "--keep-unconverged")
    words += ["--method", method, "--base", path(base)]
    if method == "bcm":
        words += ["--blocks", BLOCKS, "--blocks-by", "random"]
    return call(*words)


class Study:
    """Runs what errors.csv does not have yet, one kernel width and noise after another."""

    def __init__(self):
        rng = np.random.default_rng(1)
        self.x, base, other = (rng.uniform(-1, 1, (n, INPUTS)) for n in (ROWS, POINTS, POINTS))
        f = function(np.vstack([self.x, base, other]), rng)
        self.truth = {"base": f[ROWS : ROWS + POINTS], "other": f[ROWS + POINTS :]}
        self.y = {"0": f[:ROWS], "0.001": f[:ROWS] + np.sqrt(0.001) * rng.normal(size=ROWS)}
        write_points("base.csv", base)
        write_points("other.csv", other)
        write_points("rows.csv", self.x[rng.choice(ROWS, POINTS, replace=False)])
        self.path = os.path.join(RESULTS, "errors.csv")
        self.records = [r | {"width": float(r["width"]), "mse": float(r["mse"])} for r in read_records(self.path)]

    def run(self):
        for exact in (False, True):
            for noise in NOISES:
                write_points("train.csv", self.x, self.y[noise])
                # RRA divides by the noise variance.
                methods = ("exact",) if exact else ("bcm", "srm", "rra") if noise == "0.001" else ("bcm", "srm")
                for width in EXACT_WIDTHS if exact else WIDTHS:
                    done = [r["method"] for r in self.records if (r["width"], r["noise"]) == (width, noise)]
                    if all(method in done for method in methods):
                        continue
                    self.records = [r for r in self.records if (r["width"], r["noise"]) != (width, noise) or r["method"] not in methods]
                    self.srm = {}
                    for method in methods:
                        self.case(method, width, noise)
                    write_records(self.path, FIELDS, self.records)

    def case(self, method, width, noise):
        for base_file in ("base.csv",) if method == "exact" else ("base.csv", "rows.csv"):
            done = fit(method, width, noise, base_file)
            settings = {"base": "base", "other": "other"} if base_file == "base.csv" else {"rows": "base"}
            if method == "exact":
                settings["rows"] = "base"
            for setting, points in settings.items():
                predicted = means(points + ".csv")
                record = {"noise": noise, "setting": setting, "width": width, "method": method,
                          "mse": float(np.mean((predicted - self.truth[points]) ** 2)),
                          "seconds": done["seconds"]["solve"], "jitter": done["jitter"], "rra_srm": ""}
                if method == "srm":
                    self.srm[setting] = predicted
                elif method == "rra":
                    record["rra_srm"] = float(np.abs(predicted - self.srm[setting]).max())
                self.records.append(record)
                print(" ".join(f"{k}={v}" for k, v in record.items()), flush=True)


def picked(records, noise, setting, method):
    found = [r for r in records if (r["noise"], r["setting"], r["method"]) == (noise, setting, method) and r["width"] in WIDTHS]
    return sorted(found, key=lambda r: r["width"])


def lines_of(records, noise, setting):
    """Errors above 1, of RRA at small widths, are left out, so that the others can be told apart."""
    lines = {NAMES[m]: [(r["width"], float(np.log10(r["mse"]))) for r in picked(records, noise, setting, m) if r["mse"] <= 1]
             for m in NAMES}
    return {name: line for name, line in lines.items() if line}


def write_tables(records):
    with open(os.path.join(RESULTS, "tables.md"), "w") as file:
        for noise in NOISES:
            for setting, words in (("base", "base points = points predicted"), ("other", "other points"), ("rows", "induction")):
                methods = [m for m in NAMES if picked(records, noise, setting, m)]
                file.write(f"Noise variance {noise}, {words}: mean squared error against the function.\n\n")
                file.write("| width | " + " | ".join(NAMES[m] for m in methods) + " |\n|---:|" + "---:|" * len(methods) + "\n")
                for width in WIDTHS:
                    cells = ["".join(f"{r['mse']:.3g}" for r in picked(records, noise, setting, m) if r["width"] == width)
                             for m in methods]
                    file.write(f"| {width:g} | " + " | ".join(cells) + " |\n")
                file.write("\n")
        file.write("Largest difference between the means of RRA and SRM at the base points, noise 0.001: "
                   + ", ".join(f"{float(r['rra_srm']):.1e} (width {r['width']:g})"
                               for r in picked(records, "0.001", "base", "rra")) + ".\n")


def main():
    study = Study()
    study.run()
    write_tables(study.records)
    panels = [(title, "kernel width", "log10 of mean squared error", lines_of(study.records, noise, setting))
              for title, noise, setting in PANELS]
    line_chart.write(os.path.join(RESULTS, "figure.svg"), "Tresp & Schwaighofer (2001), figure 1 (errors above 1 not drawn)", panels)


main()
