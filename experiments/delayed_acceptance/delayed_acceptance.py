"""Delayed acceptance against HMC: delayed_acceptance.py MERCER DATA FOLDER RESULTS [smoke] [hmc|da|error|tables]... [--rows N]"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import chains  # noqa: E402  (beside this folder)
from study import call, read_records, read_table, write_records, write_table  # noqa: E402

NAME, KERNEL, ROWS = "house_8L", ("--kernel", "rbf:iso"), 2500
SAMPLERS = {"hmc": ("--chains", 4, "--iterations", 400, "--warmup", 200), "da": ("--chains", 4, "--iterations", 500, "--warmup", 125)}
SMOKE = {"hmc": ("--chains", 2, "--iterations", 40, "--warmup", 20), "da": ("--chains", 2, "--iterations", 40, "--warmup", 20)}
FLAGS = ("--signal-variance", "--lengthscale", "--noise")  # of chains.PARAMETERS
PLACES = 40  # draws at which evidences are compared
DRAWS = ["sampler", "parameter", "mean", "sd", "ess", "mcse_mean", "mcse_sd", "psrf", "psrf_upper", "seconds", "acceptance", "walk_acceptance",
         "evidence_error", "evaluations"]
ERROR = ["place", *chains.PARAMETERS, "exact", "estimate", "stated_error"]


def rows_of(data, folder, count):
    header, rows = read_table(data, NAME)
    chosen = np.random.default_rng(1).permutation(len(rows))[:count]
    path = os.path.join(folder, "rows.csv")
    write_table(path, header, [rows[i] for i in chosen])
    return path


def draw(mercer, table, results, sampler, words):
    """One run, and the summary of its draws in place of that of an earlier one."""
    kept = chains.chains_folder(results)
    path = os.path.join(kept, sampler + ".csv")
    record, said = chains.sample(mercer, table, *KERNEL, "--sampler", sampler, *words, "-o", path, "--checkpoint",
                                 os.path.join(kept, sampler + ".ckp"))
    if record is None:
        raise SystemExit(f"{sampler}: no draw was kept: {said}")
    names, _, logs = chains.read(path)
    new = [{"sampler": sampler, "seconds": record["seconds"]["sample"], "acceptance": record["acceptance"], "evaluations": record["evaluations"],
            "walk_acceptance": record.get("walk_acceptance", ""), "evidence_error": record.get("evidence_error", ""), **line}
           for line in chains.summary(logs, names)]
    file = os.path.join(results, "draws.csv")
    write_records(file, DRAWS, [*(r for r in read_records(file) if r["sampler"] != sampler), *new])


def evidence(mercer, table, folder, place, *words):
    values = [word for flag, value in zip(FLAGS, place) for word in (flag, repr(float(value)))]
    return call(mercer, "fit", table, *KERNEL, "--train", "none", *values, *words, "-m", os.path.join(folder, "m.mcr"))["log_marginal_likelihood"]


def measure_error(mercer, table, folder, results, places):
    """At draws of the posterior: the evidence by Cholesky, and by solves with the same probes every time, as `da` has it."""
    names, _, logs = chains.read(os.path.join(chains.chains_folder(results), "da.csv"))
    if names != chains.PARAMETERS:
        raise SystemExit(f"parameters are {names}")
    flat = np.exp(logs.transpose(1, 0, 2).reshape(-1, len(names)))
    records = []
    for i, k in enumerate(np.linspace(0, len(flat) - 1, places).astype(int)):
        exact = evidence(mercer, table, folder, flat[k], "--solver", "cholesky")
        estimate = evidence(mercer, table, folder, flat[k], "--solver", "cg", "--tolerance", 1e-4)
        records.append({"place": i, **dict(zip(names, flat[k])), "exact": exact["value"], "estimate": estimate["value"],
                        "stated_error": float(np.hypot(estimate["probe_error"], estimate["solver_error"]))})
    write_records(os.path.join(results, "error.csv"), ERROR, records)


def write_tables(results):
    draws = read_records(os.path.join(results, "draws.csv"))
    errors = read_records(os.path.join(results, "error.csv"))
    hmc = {r["parameter"]: r for r in draws if r["sampler"] == "hmc"}
    with open(os.path.join(results, "tables.md"), "w") as file:
        file.write("Logarithms of parameters. `from hmc`: difference of the means in standard deviations of hmc, with its Monte Carlo error.\n\n"
                   "| sampler | parameter | mean | sd | effective draws | an hour | PSRF | from hmc | sd over that of hmc | acceptance |\n"
                   "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
        for r in draws:
            base, away, ratio = hmc.get(r["parameter"]), "-", "-"
            if base and r["sampler"] != "hmc":
                error = np.hypot(float(r["mcse_mean"]), float(base["mcse_mean"])) / float(base["sd"])
                away = f"{(float(r['mean']) - float(base['mean'])) / float(base['sd']):.3f} +- {error:.3f}"
                ratio = f"{float(r['sd']) / float(base['sd']):.3f}"
            file.write(f"| {r['sampler']} | {r['parameter']} | {float(r['mean']):.4f} | {float(r['sd']):.4f} | {float(r['ess']):.0f} "
                       f"| {3600 * float(r['ess']) / float(r['seconds']):.0f} | {float(r['psrf']):.3f} | {away} | {ratio} | {float(r['acceptance']):.3f} |\n")
        if errors:
            difference = np.array([float(r["estimate"]) - float(r["exact"]) for r in errors])
            stated = np.array([float(r["stated_error"]) for r in errors])
            exact = np.array([float(r["exact"]) for r in errors])
            file.write(f"\nLog evidence at {len(errors)} draws: its standard deviation over them is {exact.std(ddof=1):.3f}. The estimate by solves is off by "
                       f"{difference.mean():.3f} on average, which does not matter, and by {difference.std(ddof=1):.3f} more or less, which does; the error "
                       f"that it states is {stated.mean():.3f}.\n")


def main():
    mercer, data, folder, results, *words = sys.argv[1:]
    smoke = bool(words) and words[0] == "smoke"
    words = words[smoke:]
    count = 100 if smoke else ROWS
    if "--rows" in words:
        i = words.index("--rows")
        count = int(words[i + 1])
        del words[i : i + 2]
    unknown = [w for w in words if w not in (*SAMPLERS, "error", "tables")]
    if unknown:
        raise SystemExit(f"no part '{unknown[0]}'; there are: {', '.join(SAMPLERS)}, error, tables")
    parts = words or [*SAMPLERS, "error", "tables"]
    table = rows_of(data, folder, count)
    for sampler, how in (SMOKE if smoke else SAMPLERS).items():
        if sampler in parts:
            draw(mercer, table, results, sampler, how)
    if "error" in parts:
        measure_error(mercer, table, folder, results, 3 if smoke else PLACES)
    write_tables(results)


if __name__ == "__main__":
    main()
