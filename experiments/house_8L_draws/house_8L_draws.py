"""SGLD on house_8L: house_8L_draws.py MERCER DATA RESULTS [smoke] [chains] [products] [tables] [--iterations T]

The run is one of 20,000 iterations a chain, the default, so that the step is that of the default. It is ended by SIGINT when every chain
has T iterations, as a user would do by Ctrl-C; the checkpoint keeps it, so that the next piece goes on to more. Seconds are those between
two lines of progress of one piece.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import chains  # noqa: E402  (beside this folder)
from figure import Mark, Panel, write  # noqa: E402
from study import call, hear_interrupts, read_records, write_records  # noqa: E402

SIZES = {"chains": 5, "iterations": 20000, "until": 700, "probes": 4, "product_iterations": 30}
SMOKE = {"chains": 2, "iterations": 260, "until": 260, "probes": 4, "product_iterations": 5}
FIELDS = {"pieces": ["from", "to", "chains", "seconds", "seconds_per_draw", "draws_per_day"],
          "summary": ["parameter", "chains", "draws", "kept_from", "mean", "sd", "mcse_mean", "mcse_sd", "ess", "psrf", "psrf_upper", "rhat", "step",
                      "phase_ratio"],
          "psrf": ["parameter", "iteration", "median", "upper"],
          "products": ["precision", "rows", "products", "seconds_per_product", "pairs_per_second"]}
PAPER_PER_DAY, ASKED_PER_DAY, AIM_PER_DAY, LEAST_ITERATIONS, LEAST_STEPS = 10000, 40000, 100000, 200, 500
DAY, HOUR = 86400, 3600
# Exit codes of a run that is done, and of one that kept its draws after Ctrl-C.
FINE = (0, 130)


class Store:
    def __init__(self, folder):
        self.folder = folder
        self.tables = {name: read_records(os.path.join(folder, name + ".csv")) for name in FIELDS}

    def put(self, name, records):
        self.tables[name] = records
        write_records(os.path.join(self.folder, name + ".csv"), FIELDS[name], records)


class Clock:
    """When which iteration was done, by the lines of progress that have the Langevin phase behind them."""

    def __init__(self, until, process):
        self.until, self.process, self.seen, self.told = until, process, [], False

    def read(self, line):
        found = re.search(r"iteration (\d+) of (\d+)", line)
        if not found or "warm-up" in line:
            return
        iteration, last = int(found.group(1)), int(found.group(2))
        if not self.seen or iteration > self.seen[-1][0]:
            self.seen.append((iteration, time.monotonic()))
        if self.until <= iteration < last and not self.told:
            self.told = True
            self.process.send_signal(signal.SIGINT)

    def piece(self, count):
        """None where two lines are not enough to tell."""
        if len(self.seen) < 2:
            return None
        (first, start), (last, end) = self.seen[0], self.seen[-1]
        per_draw = (end - start) / ((last - first) * count)
        return {"from": first, "to": last, "chains": count, "seconds": end - start, "seconds_per_draw": per_draw, "draws_per_day": DAY / per_draw}


def sampled(mercer, data, work, sizes):
    """Record, chains file and clock of one piece."""
    output, err = os.path.join(work, "chains.csv.gz"), []
    command = [mercer, "sample", os.path.join(data, "house_8L.csv.gz"), "--kernel", "rbf:iso", "--sampler", "sgld", "--probes", sizes["probes"],
               "--chains", sizes["chains"], "--iterations", sizes["iterations"], "--draws", 1, "--checkpoint", os.path.join(work, "sgld.ckp"),
               "-o", output, "-m", os.path.join(work, "sgld.mcr"), "--keep-unconverged", "--json"]
    with open(os.path.join(work, "record.json"), "w+") as out:
        process = subprocess.Popen([str(w) for w in command], stdout=out, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=hear_interrupts)
        clock = Clock(sizes["until"], process)
        for line in process.stderr:
            err.append(line)
            clock.read(line)
        code = process.wait()
        if code not in FINE:
            raise SystemExit(" ".join(map(str, command)) + "\n" + "".join(err[-20:]))
        out.seek(0)
        return json.load(out), output, clock


def measure_chains(mercer, data, store, work, sizes):
    record, output, clock = sampled(mercer, data, work, sizes)
    piece = clock.piece(sizes["chains"])
    if piece:
        store.put("pieces", [*store.tables["pieces"], piece])
    else:
        print("no seconds: fewer than two lines of progress, which come every five seconds")
    names, iterations, draws = chains.read(output)
    ratios = [r[-1] for r in record["phase"]["ratio"] if r]
    common = {"chains": draws.shape[1], "draws": draws.shape[0] * draws.shape[1], "kept_from": int(iterations[0]), "step": record["step"],
              "phase_ratio": max(ratios, default="")}
    store.put("summary", [{**common, **line, "rhat": record["parameters"][line["parameter"]]["rhat"]} for line in chains.summary(draws, names)])
    store.put("psrf", [{"parameter": name, "iteration": int(iterations[0]) + n - 1, "median": median, "upper": upper}
                       for i, name in enumerate(names) for n, median, upper in chains.psrf_curve(draws[:, :, i])])


def measure_products(mercer, data, store, sizes):
    """Products with one column: of plain CG that is stopped after some iterations."""
    lines = []
    for precision in ("mixed", "double"):
        record = call(mercer, "solve", os.path.join(data, "house_8L.csv.gz"), "--kernel", "rbf:iso", "--solver", "cg", "--preconditioner", "none",
                      "--operator", "tiled", "--precision", precision, "--tolerance", 1e-12, "--accuracy", 0, "--max-iterations",
                      sizes["product_iterations"])
        seconds = record["solve_seconds"] / record["matvecs"]
        lines.append({"precision": precision, "rows": record["n"], "products": record["matvecs"], "seconds_per_product": seconds,
                      "pairs_per_second": record["n"] ** 2 / seconds})
        store.put("products", lines)


def rate(store):
    """Seconds a draw over all pieces, and the iterations that they are from."""
    pieces = store.tables["pieces"]
    iterations = sum(int(p["to"]) - int(p["from"]) for p in pieces)
    draws = sum((int(p["to"]) - int(p["from"])) * int(p["chains"]) for p in pieces)
    return (sum(float(p["seconds"]) for p in pieces) / draws if draws else None), iterations


def write_tables(store):
    with open(os.path.join(store.folder, "tables.md"), "w") as file:
        per_draw, iterations = rate(store)
        if per_draw:
            file.write(f"{DAY / per_draw:.0f} draws a day, {per_draw:.3g} s a draw, measured over {iterations} iterations of every chain (asked: at least "
                       f"{LEAST_ITERATIONS}; {ASKED_PER_DAY} draws a day, aim {AIM_PER_DAY}; the paper: {PAPER_PER_DAY} on two GPUs).\n\n")
        for p in store.tables["products"]:
            columns = f", {per_draw / float(p['seconds_per_product']):.1f} of them take as long as a draw" if per_draw else ""
            file.write(f"A kernel product with one column, {p['precision']}: {float(p['seconds_per_product']):.3g} s, {float(p['pairs_per_second']):.3g} pairs a "
                       f"second{columns}.\n\n")
        summary = store.tables["summary"]
        if not summary:
            return
        kept = int(summary[0]["draws"]) // int(summary[0]["chains"])
        file.write(f"{summary[0]['chains']} chains, {kept} draws of each (asked: {LEAST_STEPS}), kept from iteration {summary[0]['kept_from']} on; step "
                   f"{float(summary[0]['step']):.3g}.\n\n"
                   "| log of | mean | sd | effective draws | effective draws an hour | PSRF (97.5 %) | R-hat |\n|---|---:|---:|---:|---:|---:|---:|\n")
        for r in summary:
            hourly = f"{float(r['ess']) / (per_draw * int(r['draws'])) * HOUR:.1f}" if per_draw else "-"
            file.write(f"| {r['parameter']} | {float(r['mean']):.4f} ({float(r['mcse_mean']):.4f}) | {float(r['sd']):.4f} | {float(r['ess']):.1f} | {hourly} "
                       f"| {float(r['psrf']):.3f} ({float(r['psrf_upper']):.3f}) | {float(r['rhat']):.3f} |\n")


def draw(store):
    panels = []
    for name in dict.fromkeys(r["parameter"] for r in store.tables["psrf"]):
        lines = [(int(r["iteration"]), float(r["median"]), float(r["upper"])) for r in store.tables["psrf"] if r["parameter"] == name]
        panels.append(Panel(f"log {name}", "iteration", "PSRF, dashed: 97.5 %",
                            [Mark("line", [(n, m) for n, m, _ in lines], colour="#d95f02"),
                             Mark("line", [(n, u) for n, _, u in lines], colour="#d95f02", dashed=True, width=1.5)], y_limits=(0.98, 2)))
    if panels:
        write(os.path.join(store.folder, "psrf.svg"), "house_8L: potential scale reduction of SGLD against iterations", panels, across=3)


def main():
    mercer, data, results, *words = sys.argv[1:]
    sizes = dict(SMOKE if "smoke" in words else SIZES)
    if "--iterations" in words:
        at = words.index("--iterations")
        sizes["until"] = int(words[at + 1])
        del words[at : at + 2]
    words = [w for w in words if w != "smoke"]
    wrong = [w for w in words if w not in ("chains", "products", "tables")]
    if wrong:
        raise SystemExit(f"no part '{wrong[0]}'; there are chains, products and tables")
    if not os.path.exists(os.path.join(data, "house_8L.csv.gz")):
        print("skipped: the data folder has no house_8L.csv.gz")
        return
    store = Store(results)
    if not words or "products" in words:
        measure_products(mercer, data, store, sizes)
    if not words or "chains" in words:
        measure_chains(mercer, data, store, chains.chains_folder(results), sizes)
    write_tables(store)
    draw(store)


if __name__ == "__main__":
    main()
