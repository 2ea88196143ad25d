"""SGLD, Metropolis and HMC on concrete: filippone_concrete.py MERCER DATA RESULTS [smoke] [sgld|mh|hmc|tables]...

Every sampler is one run of `mercer sample` with a checkpoint. Its draws stay in results/chains; what tables and pictures need of them
goes into CSV files, where a sampler that is run again replaces its lines.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import chains  # noqa: E402  (beside this folder)
from figure import GREY, Mark, Panel, write  # noqa: E402
from study import read_records, write_records  # noqa: E402

# Iterations of a chain; draws are kept after the warm-up, or from the Langevin phase on: 400,000, 50,000 and 2,000 draws.
RUNS = {"sgld": {"chains": 10, "iterations": 40000, "words": ("--probes", 4)},
        "mh": {"chains": 4, "iterations": 14500, "words": ("--warmup", 2000)},
        "hmc": {"chains": 4, "iterations": 1000, "words": ("--warmup", 500)}}
SMOKE = {"sgld": {"chains": 3, "iterations": 240, "words": ("--probes", 4)},
         "mh": {"chains": 2, "iterations": 300, "words": ("--warmup", 100)},
         "hmc": {"chains": 2, "iterations": 80, "words": ("--warmup", 40)}}
NAMES = {"sgld": "SGLD", "mh": "Metropolis", "hmc": "HMC"}
# What the study asks of SGLD.
LEAST_ESS, MOST_ERRORS, MOST_SHIFT, SD_RATIO, MOST_PSRF = 1000, 3, 0.1, 0.1, 1.1
FIELDS = {"summary": ["sampler", "parameter", "chains", "draws", "kept_from", "mean", "sd", "mcse_mean", "mcse_sd", "ess", "psrf", "psrf_upper",
                      "rhat", "program_ess", "evaluations", "acceptance", "step", "seconds"],
          "psrf": ["sampler", "parameter", "iteration", "median", "upper"],
          "running": ["sampler", "parameter", "draw", "mean", "sd"],
          "trace": ["sampler", "parameter", "draw", "value"]}
TRACE_POINTS = 800


class Store:
    """The CSV files: all lines of a sampler are replaced at once."""

    def __init__(self, folder):
        self.folder = folder
        self.tables = {name: read_records(os.path.join(folder, name + ".csv")) for name in FIELDS}

    def put(self, sampler, new):
        for name, records in new.items():
            kept = [r for r in self.tables[name] if r["sampler"] != sampler]
            order = list(RUNS)
            self.tables[name] = sorted(kept + [{"sampler": sampler, **r} for r in records], key=lambda r: order.index(r["sampler"]))
            write_records(os.path.join(self.folder, name + ".csv"), FIELDS[name], self.tables[name])

    def lines(self, name, sampler, parameter):
        return [r for r in self.tables[name] if (r["sampler"], r["parameter"]) == (sampler, parameter)]

    def summary(self, sampler, parameter):
        return next(iter(self.lines("summary", sampler, parameter)), None)


def measure(mercer, data, work, sampler, run):
    """The lines of one sampler for every table."""
    checkpoint, output = os.path.join(work, sampler + ".ckp"), os.path.join(work, sampler + ".csv.gz")
    resumed = os.path.exists(checkpoint)
    record, said = chains.sample(mercer, os.path.join(data, "concrete.csv.gz"), "--kernel", "rbf:iso", "--sampler", sampler, "--chains",
                                 run["chains"], "--iterations", run["iterations"], *run["words"], "--draws", 1, "--checkpoint", checkpoint,
                                 "-o", output, "-m", os.path.join(work, sampler + ".mcr"))
    if record is None:
        raise SystemExit(f"{sampler} kept no draw: {said}")
    with open(os.path.join(work, sampler + ".json"), "w") as file:
        json.dump(record, file, indent=1)
    names, iterations, draws = chains.read(output)
    seconds = "" if resumed else record["seconds"]["sample"]  # a resumed run knows those of its last piece only
    common = {"chains": draws.shape[1], "draws": draws.shape[0] * draws.shape[1], "kept_from": int(iterations[0]),
              "evaluations": record["evaluations"], "acceptance": record["acceptance"], "step": record["step"], "seconds": seconds}
    new = {name: [] for name in FIELDS}
    for i, line in enumerate(chains.summary(draws, names)):
        name, own = names[i], record["parameters"][names[i]]
        new["summary"].append({**common, **line, "rhat": own["rhat"], "program_ess": own["ess"]})
        new["psrf"] += [{"parameter": name, "iteration": int(iterations[0]) + n - 1, "median": median, "upper": upper}
                        for n, median, upper in chains.psrf_curve(draws[:, :, i])]
        new["running"] += [{"parameter": name, "draw": n, "mean": mean, "sd": sd} for n, mean, sd in chains.running(draws[:, 0, i])]
        step = max(1, len(draws) // TRACE_POINTS)
        new["trace"] += [{"parameter": name, "draw": n + 1, "value": draws[n, 0, i]} for n in range(0, len(draws), step)]
    os.remove(checkpoint)
    return new


def compared(a, b):
    """How far two summaries of a parameter are apart: in Monte Carlo errors, in standard deviations of b, and the ratio of the sds."""
    a, b = ({k: float(r[k]) for k in ("mean", "sd", "mcse_mean")} for r in (a, b))
    difference = a["mean"] - b["mean"]
    return difference / (a["mcse_mean"] ** 2 + b["mcse_mean"] ** 2) ** 0.5, difference / b["sd"], a["sd"] / b["sd"]


def settled(store, sampler):
    """The first iteration from which on every upper limit is below MOST_PSRF; nothing where there is none."""
    lines = [r for r in store.tables["psrf"] if r["sampler"] == sampler]
    late = [int(r["iteration"]) for r in lines if not float(r["upper"]) < MOST_PSRF]
    after = [int(r["iteration"]) for r in lines if int(r["iteration"]) > max(late, default=0)]
    return min(after, default=None)


def write_tables(folder, store):
    measured = [s for s in RUNS if any(r["sampler"] == s for r in store.tables["summary"])]
    with open(os.path.join(folder, "tables.md"), "w") as file:
        file.write("Logarithms of the parameters (standardised data), with Monte Carlo errors in brackets.\n\n"
                   "| sampler | parameter | draws | mean | sd | effective draws | PSRF (97.5 %) | R-hat | evaluations | seconds |\n"
                   "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
        for sampler in measured:
            for parameter in chains.PARAMETERS:
                r = store.summary(sampler, parameter)
                seconds = f"{float(r['seconds']):.0f}" if r["seconds"] not in ("", None) else "-"
                file.write(f"| {NAMES[sampler]} | {parameter} | {r['draws']} | {float(r['mean']):.4f} ({float(r['mcse_mean']):.4f}) "
                           f"| {float(r['sd']):.4f} ({float(r['mcse_sd']):.4f}) | {float(r['ess']):.0f} "
                           f"| {float(r['psrf']):.3f} ({float(r['psrf_upper']):.3f}) | {float(r['rhat']):.3f} | {r['evaluations']} | {seconds} |\n")
        file.write(f"\nAsked: at least {LEAST_ESS} effective draws each, means within {MOST_ERRORS} Monte Carlo errors and {MOST_SHIFT} sd, sds within "
                   f"{100 * SD_RATIO:.0f} %.\n\n| pair | parameter | difference of means in Monte Carlo errors | in sd | ratio of sds | as asked |\n"
                   "|---|---|---:|---:|---:|---|\n")
        pairs = [(a, b) for i, b in enumerate(measured) for a in measured[:i]]
        for a, b in pairs:
            for parameter in chains.PARAMETERS:
                one, other = store.summary(a, parameter), store.summary(b, parameter)
                errors, shift, ratio = compared(one, other)
                good = (abs(errors) <= MOST_ERRORS and abs(shift) <= MOST_SHIFT and abs(ratio - 1) <= SD_RATIO
                        and min(float(one["ess"]), float(other["ess"])) >= LEAST_ESS)
                file.write(f"| {NAMES[a]}, {NAMES[b]} | {parameter} | {errors:.2f} | {shift:.3f} | {ratio:.3f} | {'yes' if good else 'no'} |\n")
        file.write("\n")
        for sampler in measured:
            first = settled(store, sampler)
            when = f"from iteration {first} on" if first else "at no length of the chains"
            file.write(f"{NAMES[sampler]}: the 97.5 % limits of the PSRF of all parameters are below {MOST_PSRF} {when}.\n\n")


def running_marks(store, sampler, parameter, colour):
    lines = [(int(r["draw"]), float(r["mean"]), float(r["sd"])) for r in store.lines("running", sampler, parameter)]
    mean = Mark("line", [(n, m) for n, m, _ in lines], NAMES[sampler], colour)
    return [mean, *(Mark("line", [(n, m + k * s) for n, m, s in lines], "", colour, dashed=True, width=1.5) for k in (-2, 2))]


def draw(folder, store):
    colours = {"sgld": "#d95f02", "mh": "#1f78b4", "hmc": "#1b9e77"}
    panels, factors = [], []
    for parameter in chains.PARAMETERS:
        trace = [(int(r["draw"]), float(r["value"])) for r in store.lines("trace", "sgld", parameter)]
        marks = [Mark("line", trace, "trace of SGLD" if trace else "", GREY, width=0.7)]
        for sampler in ("mh", "sgld"):
            marks += running_marks(store, sampler, parameter, colours[sampler])
        panels.append(Panel(f"log {parameter}", "draw of a chain", "mean, and 2 sd on either side", marks))
        marks = []
        for sampler in NAMES:
            lines = [(int(r["iteration"]), float(r["median"]), float(r["upper"])) for r in store.lines("psrf", sampler, parameter)]
            if lines:
                marks += [Mark("line", [(n, m) for n, m, _ in lines], NAMES[sampler], colours[sampler]),
                          Mark("line", [(n, u) for n, _, u in lines], "", colours[sampler], dashed=True, width=1.5)]
        factors.append(Panel(f"log {parameter}", "iteration", "PSRF, dashed: 97.5 %", marks, log_x=True, y_limits=(0.98, 1.5)))
    write(os.path.join(folder, "running.svg"), "Concrete: running mean and 2 sd of the log-parameters", panels, across=3)
    write(os.path.join(folder, "psrf.svg"), "Concrete: potential scale reduction against iterations", factors, across=3)


def main():
    mercer, data, results, *words = sys.argv[1:]
    runs = SMOKE if "smoke" in words else RUNS
    words = [w for w in words if w != "smoke"]
    wrong = [w for w in words if w not in (*RUNS, "tables")]
    if wrong:
        raise SystemExit(f"no sampler '{wrong[0]}'; there are {', '.join(RUNS)}, and tables")
    store = Store(results)
    done = {r["sampler"] for r in store.tables["summary"]}
    chosen = [s for s in runs if s in words or (not words and s not in done)]
    if chosen and not os.path.exists(os.path.join(data, "concrete.csv.gz")):
        print("skipped: the data folder has no concrete.csv.gz")
        return
    for sampler in chosen:
        store.put(sampler, measure(mercer, data, chains.chains_folder(results), sampler, runs[sampler]))
        write_tables(results, store)
        draw(results, store)
    write_tables(results, store)
    draw(results, store)


if __name__ == "__main__":
    main()
