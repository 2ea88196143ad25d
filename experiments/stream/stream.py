"""VFE on a generated file that is larger than the memory allowed: stream.py MERCER FOLDER RESULTS [--OPTION VALUE]... ROWS..."""

import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from study import call, read_records, write_records  # noqa: E402

INPUTS = 9  # and the target: 10 columns
BYTES_A_ROW = 200  # of the CSV file, about
FIELDS = ["rows", "rank", "memory", "file_mib", "generate_seconds", "fit_seconds", "passes", "seconds_a_pass", "rows_per_second", "peak_mib",
          "bound", "kind", "test_rows", "rmse", "nll", "coverage90", "noise_sd"]


def generate(mercer, path, rows, seed):
    """The function of Friedman (1991) with noise of variance 1; seconds that it took."""
    start = time.monotonic()
    subprocess.run([mercer, "generate", "friedman", "-n", str(rows), "-d", str(INPUTS), "--seed", str(seed), "-o", path, "--quiet"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - start


def measure(mercer, folder, rows, options):
    free = shutil.disk_usage(folder).free
    if free < 1.2 * BYTES_A_ROW * rows:
        raise SystemExit(f"{rows} rows need about {BYTES_A_ROW * rows / 1e9:.1f} GB in {folder}, where {free / 1e9:.1f} GB are free; set TMPDIR")
    train, test, model = (os.path.join(folder, f) for f in ("train.csv", "test.csv", "model.mcr"))
    seconds = generate(mercer, train, rows, 1)
    generate(mercer, test, options["test_rows"], 2)
    fit = call(mercer, "fit", train, "--target", "y", "--method", "vfe", "--rank", options["rank"], "--memory", options["memory"], "-m", model)
    scores = call(mercer, "evaluate", model, test)
    likelihood = fit.get("log_marginal_likelihood") or {}
    took = fit.get("seconds")
    total = took.get("total") if isinstance(took, dict) else took
    # A fit that does not say how many passes it made was not streamed.
    passes = fit.get("passes")
    each = total / passes if passes and total else None
    record = {"rows": rows, "rank": options["rank"], "memory": options["memory"], "file_mib": os.path.getsize(train) / 2**20,
              "generate_seconds": seconds, "fit_seconds": total, "passes": passes, "seconds_a_pass": each,
              "rows_per_second": fit.get("rows_per_second") or (rows / each if each else None),
              "peak_mib": fit.get("peak_rss_bytes", 0) / 2**20, "bound": likelihood.get("value"), "kind": likelihood.get("kind"),
              "test_rows": scores["n"], "rmse": scores["rmse"], "nll": scores["nll"], "coverage90": scores["coverage90"], "noise_sd": 1.0}
    os.remove(train)
    return record


def number(value, text):
    return format(float(value), text) if value not in (None, "") else "-"


def write_tables(folder, records):
    with open(os.path.join(folder, "tables.md"), "w") as file:
        file.write("VFE on rows of a file, by `fit --memory` less than they need. Times of passes are those of the whole fit, shared.\n\n"
                   "| rows | base points | memory | file MiB | fit s | passes | s a pass | rows a second | peak MiB | bound | RMSE | NLL | coverage of 90 % |\n"
                   "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
        for r in records:
            file.write(f"| {int(r['rows']):,} | {r['rank']} | {r['memory']} | {number(r['file_mib'], '.0f')} | {number(r['fit_seconds'], '.1f')} "
                       f"| {number(r['passes'], '.0f')} | {number(r['seconds_a_pass'], '.1f')} | {number(r['rows_per_second'], '.3g')} "
                       f"| {number(r['peak_mib'], '.0f')} | {number(r['bound'], '.1f')} | {number(r['rmse'], '.4f')} | {number(r['nll'], '.4f')} "
                       f"| {number(r['coverage90'], '.3f')} |\n")
        file.write("\nThe noise has standard deviation 1: no RMSE is less.\n")


def main():
    mercer, folder, results, *words = sys.argv[1:]
    options, rows = {}, []
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            value = words.pop(0)
            options[word[2:].replace("-", "_")] = int(value) if value.isdigit() else value
        else:
            rows.append(int(word))
    path = os.path.join(results, "stream.csv")
    done = {int(r["rows"]): r for r in read_records(path)}
    for count in rows:
        done[count] = measure(mercer, folder, count, options)
        print({k: done[count][k] for k in ("rows", "fit_seconds", "passes", "rows_per_second", "peak_mib", "rmse")})
        write_records(path, FIELDS, [done[n] for n in sorted(done)])
    write_tables(results, [done[n] for n in sorted(done)])


if __name__ == "__main__":
    main()
