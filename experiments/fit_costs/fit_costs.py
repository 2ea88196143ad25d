"""Seconds of fit and evaluate, over those of one product with K in float32 on the same rows in the same run."""

import os
import random
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from study import call, read_records, read_table, write_records, write_table  # noqa: E402  (beside this folder)

MERCER, DATA, FOLDER, RESULTS = sys.argv[1:5]
WORDS = sys.argv[5:]
SMOKE = "smoke" in WORDS
BEFORE = os.environ.get("MERCER_BEFORE")
SETS = ["kin8nm"] if SMOKE else ["gp_10k", "gp_36k", "naval", "pumadyn32nm", "pol", "kin8nm", "protein"]
SIMULATED = {"gp_10k": 10000, "gp_36k": 36000}
LARGE = ["hflights"]  # split as in ../approximations, fitted under --memory 4G, and with --train vecchia beside
FIELDS = ["set", "program", "rows", "inputs", "product_seconds", "fit_seconds", "product_equivalents", "train_seconds", "solve_seconds",
          "solver", "gradients", "matvecs", "log_likelihood", "low", "high", "gain_left", "noise_variance", "bound", "estimate",
          "evaluate_seconds", "rmse", "nll", "peak_gigabytes"]


def rows_of(name):
    """Training and test files; nine tenths of the rows are learned from, all of a simulated set."""
    train, test = os.path.join(FOLDER, name + ".csv"), os.path.join(FOLDER, name + "_test.csv")
    if name in LARGE:
        call(MERCER, "split", os.path.join(DATA, name + ".csv.gz"), "--test-fraction", 0.1, "--seed", 0, "--train-out", train, "--test-out", test)
        return train, test
    if name in SIMULATED:
        n = SIMULATED[name]
        call(MERCER, "generate", "gp", "-n", n + n // 10, "-d", 8, "--kernel", "matern32", "--noise", "1e-6", "--seed", 1, "-o", train + ".all")
        with open(train + ".all") as file:
            lines = [line.rstrip("\n").split(",") for line in file if not line.startswith("#")]
        header, rows = lines[0], lines[1:]
        cut = n
    else:
        header, rows = read_table(DATA, name)
        random.Random(1).shuffle(rows)
        cut = len(rows) - len(rows) // 10
    write_table(train, header, rows[:cut])
    write_table(test, header, rows[cut:])
    return train, test


def product_seconds(train, counts):
    """One product with K in float32: an iteration of conjugate gradients without a preconditioner."""
    words = [MERCER, "solve", train, "--solver", "cg", "--preconditioner", "none", "--precision", "single", "--tolerance", "1e-12",
             "--kernel", "matern32"]
    few = call(*words, "--max-iterations", counts[0])
    more = call(*words, "--max-iterations", counts[1])
    return max(1e-9, (more["solve_seconds"] - few["solve_seconds"]) / max(1, more["iterations"] - few["iterations"]))


def measured(program, label, name, train, test, product, words):
    model = os.path.join(FOLDER, f"{name}-{label}.mcr")
    fit = call(program, "fit", train, "--kernel", "matern32", "-m", model, *words)
    begin = time.monotonic()
    scores = call(program, "evaluate", model, test)
    evaluate_seconds = time.monotonic() - begin
    likelihood, certificate = fit["log_marginal_likelihood"], fit["certificate"]
    steps = (fit.get("gradients") or {}).get("steps") or []
    seconds = fit["seconds"]
    return {"set": name, "program": label, "rows": fit["n"], "inputs": fit["d"], "product_seconds": product, "fit_seconds": seconds["total"],
            "product_equivalents": seconds["total"] / product, "train_seconds": seconds["train"], "solve_seconds": seconds["solve"],
            "solver": fit["solver"], "gradients": len(steps), "matvecs": fit["matvecs"], "log_likelihood": likelihood["value"],
            "low": likelihood["low"], "high": likelihood["high"], "gain_left": steps[-1].get("predicted_gain") if steps else "",
            "noise_variance": fit["hyperparameters"]["standardised"]["noise_variance"], "bound": certificate["mean_error_bound"],
            "estimate": certificate.get("mean_error_estimate", ""), "evaluate_seconds": evaluate_seconds,
            "rmse": scores["rmse"], "nll": scores["nll"], "peak_gigabytes": fit["peak_rss_bytes"] / 1e9}


def tables(records):
    lines = ["| set | program | rows | product | fit | equivalents | gradients | log likelihood (95 %) | gain left | bound | estimate | evaluate | RMSE | NLL | GB |",
             "|---|---|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|"]

    def number(value, spec):
        return format(float(value), spec) if value not in ("", None) else "-"

    for r in records:
        lines.append(f"| {r['set']} | {r['program']} | {r['rows']} | {number(r['product_seconds'], '.4f')} s | {number(r['fit_seconds'], '.1f')} s | "
                     f"{number(r['product_equivalents'], '.0f')} | {r['gradients']} | {number(r['log_likelihood'], '.1f')} "
                     f"({number(r['low'], '.1f')} to {number(r['high'], '.1f')}) | {number(r['gain_left'], '.2g')} | {number(r['bound'], '.1e')} | "
                     f"{number(r['estimate'], '.1e')} | {number(r['evaluate_seconds'], '.1f')} s | {number(r['rmse'], '.5g')} | {number(r['nll'], '.4f')} | "
                     f"{number(r['peak_gigabytes'], '.2f')} |")
    return "\n".join(lines) + "\n"


def main():
    names = [word for word in WORDS if word != "smoke"] or SETS
    path = os.path.join(RESULTS, "costs.csv")
    records = [record for record in read_records(path) if record["set"] not in names]
    for name in names:
        train, test = rows_of(name)
        product = product_seconds(train, (2, 6) if name in LARGE else (10, 40))
        memory = ["--memory", "4G"] if name in LARGE else []
        runs = [(BEFORE, "before", memory)] * bool(BEFORE) + [(MERCER, "now", memory)]
        runs += [(MERCER, "now, --train vecchia", [*memory, "--train", "vecchia"])] * (name in LARGE)
        for program, label, words in runs:
            record = measured(program, label, name, train, test, product, words)
            if name in LARGE and label == "now" and os.environ.get("MERCER_EXACT_MODEL"):
                shutil.copy(os.path.join(FOLDER, f"{name}-{label}.mcr"), os.environ["MERCER_EXACT_MODEL"])
            print(" ".join(f"{key}={value:.5g}" if isinstance(value, float) else f"{key}={value}" for key, value in record.items()), flush=True)
            records.append(record)
            write_records(path, FIELDS, records)
    text = tables(records)
    with open(os.path.join(RESULTS, "tables.md"), "w") as file:
        file.write(text)
    print(text)


main()
