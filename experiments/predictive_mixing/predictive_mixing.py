"""Mixtures over draws beside point estimates: predictive_mixing.py MERCER DATA FOLDER RESULTS [smoke] [DATA SET]... [tables] [--splits A-B]

`point` are the hyperparameters of the largest evidence, by `mercer fit`; `mixed` the mixture over draws from their posterior, by
`mercer sample`. Both are the exact process with an rbf kernel and one lengthscale per input, and are scored by `mercer evaluate`.
"""

import os
import subprocess
import sys

import numpy as np
from scipy import stats

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import chains  # noqa: E402  (beside this folder)
from figure import Mark, Panel, write  # noqa: E402
from study import call, read_records, write_records  # noqa: E402

SETS = ["concrete", "boston", "yacht"]
METHODS = ["point", "mixed"]
KERNEL = ("--kernel", "rbf")
SAMPLING = ("--sampler", "hmc", "--chains", 4, "--iterations", 500, "--warmup", 250, "--draws", 16)
SMOKE_SAMPLING = ("--sampler", "hmc", "--chains", 1, "--iterations", 12, "--warmup", 6, "--draws", 3)
FIELDS = ["data", "split", "method", "rows", "test_rows", "nll", "crps", "rmse", "coverage90", "coverage95", "seconds", "worst_rhat", "least_ess",
          "divergent"]


class Scores:
    """scores.csv, rewritten after every measurement."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "scores.csv")
        self.records = {(r["data"], int(r["split"]), r["method"]): r for r in read_records(self.path)}

    def put(self, record):
        self.records[record["data"], record["split"], record["method"]] = {k: record.get(k, "") for k in FIELDS}
        order = sorted(self.records, key=lambda k: (SETS.index(k[0]), k[1], METHODS.index(k[2])))
        write_records(self.path, FIELDS, [self.records[k] for k in order])
        print({k: record.get(k) for k in ("data", "split", "method", "nll", "coverage90", "seconds")})

    def pairs(self, data, key):
        """Splits that both methods have, as two arrays."""
        splits = sorted({s for d, s, _ in self.records if d == data})
        both = [s for s in splits if all((data, s, m) in self.records for m in METHODS)]
        return [np.array([float(self.records[data, s, m][key]) for s in both]) for m in METHODS]


def measure(mercer, data, folder, scores, name, split, smoke):
    train, test, model = (os.path.join(folder, f) for f in ("train.csv", "test.csv", "model.mcr"))
    subprocess.run([mercer, "split", os.path.join(data, name + ".csv.gz"), "--test-fraction", "0.1", "--seed", str(split), "--train-out", train,
                    "--test-out", test, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    for method in METHODS:
        if (name, split, method) in scores.records:
            continue
        line = {"data": name, "split": split, "method": method}
        if method == "point":
            record = call(mercer, "fit", train, "--task", "regression", *KERNEL, "--seed", split, "-m", model, "--keep-unconverged")
        else:
            record, said = chains.sample(mercer, train, "--task", "regression", *KERNEL, *(SMOKE_SAMPLING if smoke else SAMPLING), "--seed", split,
                                         "-m", model, "-o", os.path.join(folder, "chains.csv"), "--keep-unconverged")
            if record is None:
                raise SystemExit(f"{name}, split {split}: no draw was kept: {said}")
            of_parameters = record["parameters"].values()
            line |= {"worst_rhat": max((p["rhat"] for p in of_parameters if p["rhat"] is not None), default=""),
                     "least_ess": min((p["ess"] for p in of_parameters if p["ess"] is not None), default=""), "divergent": record["divergent"]}
        found = call(mercer, "evaluate", model, test, "--variance", "exact")
        scores.put({**line, "rows": record["n"], "test_rows": found["n"], "seconds": record["seconds"]["total"],
                    **{k: found[k] for k in ("nll", "crps", "rmse", "coverage90", "coverage95")}})


def write_tables(scores, folder):
    with open(os.path.join(folder, "tables.md"), "w") as file:
        file.write("Means over splits. Difference: mixed minus point, below 0 where the mixture is better, with its standard error over splits (which share "
                   "rows, so that it is too small) and the p of Wilcoxon's signed ranks.\n\n"
                   "| data | splits | NLL point | NLL mixed | difference | p | mixed better in | CRPS point | CRPS mixed | RMSE point | RMSE mixed "
                   "| 90 % covers: point, mixed | 95 % covers: point, mixed | worst R-hat | least effective draws |\n"
                   "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
        for name in SETS:
            point, mixed = scores.pairs(name, "nll")
            count = len(point)
            if count == 0:
                continue
            difference = mixed - point
            error = difference.std(ddof=1) / np.sqrt(count) if count > 1 else float("nan")
            p = stats.wilcoxon(difference).pvalue if count > 1 and difference.any() else float("nan")
            cells = [f"{a.mean():.4g} | {b.mean():.4g}" for a, b in (scores.pairs(name, key) for key in ("crps", "rmse"))]
            covers = [f"{a.mean():.3f}, {b.mean():.3f}" for a, b in (scores.pairs(name, key) for key in ("coverage90", "coverage95"))]
            draws = [r for (d, _, m), r in scores.records.items() if d == name and m == "mixed"]
            rhat = max((float(r["worst_rhat"]) for r in draws if r["worst_rhat"] not in (None, "")), default=float("nan"))
            least = min((float(r["least_ess"]) for r in draws if r["least_ess"] not in (None, "")), default=float("nan"))
            file.write(f"| {name} | {count} | {point.mean():.4f} | {mixed.mean():.4f} | {difference.mean():.4f} ({error:.4f}) | {p:.2g} "
                       f"| {(difference < 0).sum()} of {count} | {' | '.join(cells)} | {' | '.join(covers)} | {rhat:.3f} | {least:.0f} |\n")


def draw(scores, folder):
    panels = []
    for name in SETS:
        for key, label in (("nll", "NLL"), ("coverage90", "covered by 90 % intervals")):
            lines = scores.pairs(name, key)
            if len(lines[0]):
                marks = [Mark("dots", list(enumerate(values.tolist())), method, width=3) for method, values in zip(METHODS, lines)]
                panels.append(Panel(name, "split", label, marks))
    if panels:
        write(os.path.join(folder, "scores.svg"), "Mixtures over draws beside point estimates", panels)


def main():
    mercer, data, folder, results, *words = sys.argv[1:]
    smoke = "smoke" in words
    first, last = (0, 1) if smoke else (0, 9)
    if "--splits" in words:
        at = words.index("--splits")
        first, last = (int(n) for n in words[at + 1].split("-"))
        del words[at : at + 2]
    words = [w for w in words if w != "smoke"]
    wrong = [w for w in words if w not in (*SETS, "tables")]
    if wrong:
        raise SystemExit(f"no data set '{wrong[0]}'; there are {', '.join(SETS)}")
    scores = Scores(results)
    for name in [s for s in SETS if s in words or not words]:
        if not os.path.exists(os.path.join(data, name + ".csv.gz")):
            print(f"skipped: the data folder has no {name}.csv.gz")
            continue
        for split in range(first, last + 1):
            measure(mercer, data, folder, scores, name, split, smoke)
            write_tables(scores, results)
    if scores.records:
        write_tables(scores, results)
        draw(scores, results)


if __name__ == "__main__":
    main()
