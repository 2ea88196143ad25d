"""Simulation-based calibration (Talts et al. 2018): sbc.py MERCER FOLDER RESULTS [smoke] [SAMPLER]... [tables] [--simulations S]

Parameters come from the priors, data from the Gaussian process with these parameters (by NumPy, not by mercer), draws from `mercer
sample`. If these are draws from the posterior, the rank of the true value among KEPT of them is uniform on 0 .. KEPT.
"""

import os
import sys

import numpy as np
from scipy import stats

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import chains  # noqa: E402  (beside this folder)
from figure import Mark, Panel, write  # noqa: E402
from study import read_records, write_records, write_table  # noqa: E402

ROWS, INPUTS, SHAPE, RATE, KEPT, BINS, LEVEL = 60, 2, 2, 2, 99, 10, 1e-3
# Words of every sampler. KEPT evenly spaced draws should be nearly independent; how many are is in the table.
SAMPLERS = {"mh": ("--chains", 2, "--iterations", 8000, "--warmup", 2000), "hmc": ("--chains", 2, "--iterations", 600, "--warmup", 300),
            "sgld": ("--chains", 4, "--iterations", 5000), "da": ("--chains", 2, "--iterations", 500, "--warmup", 150)}
SMOKE = {"mh": ("--chains", 1, "--iterations", 300, "--warmup", 100), "hmc": ("--chains", 1, "--iterations", 200, "--warmup", 100),
         "sgld": ("--chains", 1, "--iterations", 220), "da": ("--chains", 1, "--iterations", 300, "--warmup", 100)}
FIELDS = ["sampler", "simulation", "parameter", "truth", "rank", "mean", "sd", "ess", "rhat"]
PRIOR = f"gamma({SHAPE},{RATE})"


def simulate(path, number):
    """Writes the data of a simulation; the logarithms of its parameters. The same data for every sampler."""
    rng = np.random.default_rng([number, 18])
    v, l, s2 = parameters = rng.gamma(SHAPE, 1 / RATE, 3)
    x = rng.normal(size=(ROWS, INPUTS))
    squares = ((x[:, None, :] - x[None]) ** 2).sum(-1)
    values, vectors = np.linalg.eigh(v * np.exp(-0.5 * squares / l**2))
    f = vectors @ (np.sqrt(np.maximum(values, 0)) * rng.normal(size=ROWS))
    y = f + np.sqrt(s2) * rng.normal(size=ROWS)
    write_table(path, ["x1", "x2", "y"], [[repr(float(value)) for value in row] for row in np.column_stack([x, y])])
    return np.log(parameters)


def simulated(mercer, folder, sampler, number, words):
    """The lines of one simulation; lines without a rank where no draw was kept."""
    data, output = os.path.join(folder, "data.csv"), os.path.join(folder, "chains.csv")
    truth = simulate(data, number)
    # The target is a number even where it looks like two classes; rows are as drawn.
    record, said = chains.sample(mercer, data, "--target", "y", "--task", "regression", "--no-standardize", "--kernel", "rbf:iso", "--sampler", sampler,
                                 *words, *(w for name in chains.PARAMETERS for w in ("--prior", f"{name}={PRIOR}")), "--draws", 1, "--seed", number,
                                 "-o", output, "-m", os.path.join(folder, "m.mcr"), "--keep-unconverged")
    if record is None:
        print(f"{sampler}, simulation {number}: no draw was kept: {said}")
        return [{"sampler": sampler, "simulation": number, "parameter": name, "truth": t} for name, t in zip(chains.PARAMETERS, truth)]
    names, _, draws = chains.read(output)
    pooled = draws.transpose(1, 0, 2).reshape(-1, draws.shape[2])
    some = pooled[np.linspace(0, len(pooled) - 1, KEPT).round().astype(int)]
    out = []
    for name, t in zip(chains.PARAMETERS, truth):
        i = names.index(name)
        own = record["parameters"][name]
        out.append({"sampler": sampler, "simulation": number, "parameter": name, "truth": t, "rank": int((some[:, i] < t).sum()),
                    "mean": pooled[:, i].mean(), "sd": pooled[:, i].std(ddof=1), "ess": own["ess"], "rhat": own["rhat"]})
    return out


class Ranks:
    """ranks.csv, rewritten after every simulation."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "ranks.csv")
        self.records = read_records(self.path)
        self.done = {(r["sampler"], int(r["simulation"])) for r in self.records}

    def put(self, lines):
        self.records += lines
        self.done.add((lines[0]["sampler"], lines[0]["simulation"]))
        write_records(self.path, FIELDS, self.records)

    def of(self, sampler, parameter):
        return [r for r in self.records if (r["sampler"], r["parameter"]) == (sampler, parameter) and r["rank"] not in (None, "")]

    def samplers(self):
        return [s for s in SAMPLERS if any(r["sampler"] == s for r in self.records)]


def histogram(records):
    return np.bincount([int(r["rank"]) * BINS // (KEPT + 1) for r in records], minlength=BINS)


def deviation(records, reference):
    """Shift of the means in standard deviations, and the ratio of standard deviations, against another sampler on the same data."""
    other = {str(r["simulation"]): r for r in reference}  # numbers of this run, text of earlier ones
    pairs = [(r, other[str(r["simulation"])]) for r in records if str(r["simulation"]) in other]
    if not pairs:
        return None
    shifts = [(float(a["mean"]) - float(b["mean"])) / float(b["sd"]) for a, b in pairs]
    ratios = [float(a["sd"]) / float(b["sd"]) for a, b in pairs]
    return np.mean(shifts), np.std(shifts) / np.sqrt(len(pairs)), np.median(ratios)


def write_tables(ranks, folder):
    tests = len(ranks.samplers()) * len(chains.PARAMETERS)
    with open(os.path.join(folder, "tables.md"), "w") as file:
        file.write(f"Ranks in {BINS} bins, chi-square with {BINS - 1} degrees of freedom. A sampler passes where no p is below {LEVEL:g}; a right "
                   f"one fails with probability {100 * LEVEL:.1g} % a parameter, {100 * (1 - (1 - LEVEL) ** max(tests, 1)):.2g} % in all {tests}. "
                   "Shift: mean rank from the middle, in its "
                   "standard errors. Width: variance of the ranks over that of uniform ones, above 1 where draws are too narrow, below 1 where they "
                   f"are too wide.\n\n| sampler | log of | simulations | p | shift | width | fewer than {KEPT} effective draws | mean from hmc, in sd "
                   "| sd over that of hmc | passes |\n"
                   "|---|---|---:|---:|---:|---:|---:|---:|---:|---|\n")
        for sampler in ranks.samplers():
            for parameter in chains.PARAMETERS:
                records = ranks.of(sampler, parameter)
                if not records:
                    continue
                p = stats.chisquare(histogram(records)).pvalue
                u = (np.array([int(r["rank"]) for r in records]) + 0.5) / (KEPT + 1)
                away = None if sampler == "hmc" else deviation(records, ranks.of("hmc", parameter))
                cells = f"{away[0]:.3f} ({away[1]:.3f}) | {away[2]:.3f}" if away else "- | -"
                few = sum(r["ess"] in (None, "") or float(r["ess"]) < KEPT for r in records)
                file.write(f"| {sampler} | {parameter} | {len(records)} | {p:.3g} | {(u.mean() - 0.5) * np.sqrt(12 * len(u)):.2f} | {12 * u.var():.3f} | {few} "
                           f"| {cells} | {'yes' if p >= LEVEL else 'no'} |\n")
        nothing = {s: len({r["simulation"] for r in ranks.records if r["sampler"] == s and r["rank"] in (None, "")}) for s in ranks.samplers()}
        for sampler, count in nothing.items():
            if count:
                file.write(f"\n{sampler} kept no draw in {count} simulations, which are left out.\n")


def draw(ranks, folder):
    panels = []
    for sampler in ranks.samplers():
        for parameter in chains.PARAMETERS:
            records = ranks.of(sampler, parameter)
            count = len(records)
            if not count:
                continue
            low, high = stats.binom.ppf([0.005, 0.995], count, 1 / BINS)
            width = (KEPT + 1) / BINS
            bars = [((b + 0.5) * width, int(h)) for b, h in enumerate(histogram(records))]
            marks = [Mark("bars", bars, colour="#9ecae1", width=width), Mark("line", [(0, count / BINS), (KEPT + 1, count / BINS)], colour="#444444", width=1)]
            marks += [Mark("line", [(0, y), (KEPT + 1, y)], colour="#444444", dashed=True, width=1) for y in (low, high)]
            panels.append(Panel(f"{sampler}: log {parameter}", "rank of the truth", "simulations", marks))
    if panels:
        write(os.path.join(folder, "histograms.svg"), "Ranks of the truth (dashed: 99 % of right bars are between)", panels, across=3)


def main():
    mercer, folder, results, *words = sys.argv[1:]
    smoke, count = "smoke" in words, 300
    if smoke:
        count = 2
    if "--simulations" in words:
        at = words.index("--simulations")
        count = int(words[at + 1])
        del words[at : at + 2]
    words = [w for w in words if w != "smoke"]
    wrong = [w for w in words if w not in (*SAMPLERS, "tables")]
    if wrong:
        raise SystemExit(f"no sampler '{wrong[0]}'; there are {', '.join(SAMPLERS)}, and tables")
    known = chains.samplers(mercer)
    chosen = [s for s in SAMPLERS if s in words or not words]
    for sampler in chosen:
        if sampler not in known:
            print(f"not run: {sampler}, which this program does not have")
    ranks = Ranks(results)
    for number in range(count):
        for sampler in chosen:
            if sampler in known and (sampler, number) not in ranks.done:
                ranks.put(simulated(mercer, folder, sampler, number, (SMOKE if smoke else SAMPLERS)[sampler]))
        if number % 10 == 9:
            print(f"simulation {number + 1} of {count}")
            write_tables(ranks, results)
    write_tables(ranks, results)
    draw(ranks, results)


if __name__ == "__main__":
    main()
