"""Approximations beside the exact process: approximations.py MERCER DATA RESULTS [--rank M] [--check-rows R] [DATA SET | METHOD]...

All go through `mercer compare`; of large sets the exact model is fitted once and kept, and the methods go in groups that learn
together. A method that is measured replaces its line in approximations.csv; the others stay.
"""

import math
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import line_chart  # noqa: E402
from study import call, read_records, write_records  # noqa: E402

COMPARED = ["house_16H", "protein"]
LARGE = ["hflights"]
METHODS = ["exact", "subset", "srm", "dtc", "rra", "fitc", "pitc", "pic", "vfe", "bcm", "rbcm"]
SLOW = ("bcm", "rbcm", "pitc", "pic")  # those with blocks
KERNEL = ("--kernel", "matern32")
MEMORY = "4G"
# Exit codes of a comparison that is done, and of one that shows what it measured before SIGINT.
FINE = (0, 130)
FIELDS = ["data", "method", "rank", "n_train", "n_test", "fit_seconds", "predict_seconds", "peak_mib", "rmse", "srmse", "nll", "coverage90",
          "mean_rms", "mean_max", "checked_rows", "sd_rms", "kl", "evidence", "kind", "learned_with"]


class Store:
    """The CSV file: a line per data set and method, rewritten after every measurement."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "approximations.csv")
        self.records = {(r["data"], r["method"]): r for r in read_records(self.path)}

    def fit_seconds(self, data, method):
        """Of an earlier run; None where there was none."""
        return self.records.get((data, method), {}).get("fit_seconds") or None

    def put(self, record):
        self.records[record["data"], record["method"]] = {k: record.get(k) for k in FIELDS}
        order = {name: i for i, name in enumerate([*COMPARED, *LARGE, *METHODS])}
        records = sorted(self.records.values(), key=lambda r: (order[r["data"]], order[r["method"]]))
        write_records(self.path, FIELDS, records)
        print({k: record.get(k) for k in ("data", "method", "fit_seconds", "peak_mib", "rmse", "nll", "mean_rms")})


def run_of_compare(name, report, run):
    scores, distance = run["scores"], run["distance"] or {}
    return {"data": name, "method": run["method"], "rank": run["rank"], "n_train": report["n"], "n_test": report["test_rows"],
            "fit_seconds": run["fit_seconds"], "predict_seconds": run["predict_seconds"],
            "peak_mib": run["peak_rss_bytes"] / 2**20 if run["peak_rss_bytes"] else None,
            "rmse": scores["rmse"], "srmse": math.sqrt(scores["smse"]), "nll": scores["nll"], "coverage90": scores["coverage90"],
            "mean_rms": distance.get("mean_rms"), "mean_max": distance.get("mean_max"), "checked_rows": distance.get("checked_rows"),
            "sd_rms": distance.get("sd_rms"), "kl": distance.get("kl"), "evidence": run["log_marginal_likelihood"],
            "kind": run["evidence_kind"], "learned_with": run["learned_with"]}


def compare(mercer, data, name, methods, options, store):
    """The distance is from an exact fit, which is made anew each time: choose several methods at once."""
    wanted = ["exact", *(m for m in methods if m != "exact")]
    report = call(mercer, "compare", os.path.join(data, name + ".csv.gz"), *KERNEL, "--methods", ",".join(wanted), "--ranks", options["rank"],
                  "--test-fraction", 0.1, "--check-rows", options["check_rows"], fine=FINE)
    for run in report["runs"]:
        if run.get("scores"):
            store.put(run_of_compare(name, report, run))
        else:
            print(f"{name} {run['method']}: not measured: {run.get('skipped')}")


def exact_model(mercer, train, folder):
    """The exact model of a large set, fitted once: the file that MERCER_EXACT_MODEL names, or one of this run; and its seconds."""
    model = os.environ.get("MERCER_EXACT_MODEL") or os.path.join(folder, "exact.mcr")
    if os.path.exists(model):
        return model, None
    return model, call(mercer, "fit", train, *KERNEL, "--memory", MEMORY, "-m", model)["seconds"]["total"]


def compare_large(mercer, data, name, methods, options, store):
    """The same with the exact model of a file, under a limit of memory."""
    with tempfile.TemporaryDirectory() as folder:
        train, test = os.path.join(folder, "train.csv"), os.path.join(folder, "test.csv")
        call(mercer, "split", os.path.join(data, name + ".csv.gz"), "--test-fraction", 0.1, "--seed", 0, "--train-out", train, "--test-out", test)
        model, seconds = exact_model(mercer, train, folder)
        for group in groups_of(methods):
            report = call(mercer, "compare", train, *KERNEL, "--methods", ",".join(["exact", *group]), "--ranks", options["rank"],
                          "--test", test, "--check-rows", options["check_rows"], "--exact", model, "--memory", MEMORY, fine=FINE)
            for run in report["runs"]:
                if run["method"] == "exact":
                    run["fit_seconds"] = seconds or store.fit_seconds(name, "exact")
                if not run.get("scores"):
                    print(f"{name} {run['method']}: not measured: {run.get('skipped')}")
                elif run["method"] in (*group, "exact"):
                    store.put(run_of_compare(name, report, run))


def groups_of(methods):
    """Two processes: the exact predictions are made in each, and what one has measured is kept when the other fails."""
    quick = [m for m in methods if m not in ("exact", *SLOW)]
    slow = [m for m in methods if m in SLOW]
    return [g for g in (quick, slow) if g] or [[]]


def number(value, text):
    return format(float(value), text) if value not in (None, "") else "-"


def write_tables(folder, store):
    with open(os.path.join(folder, "tables.md"), "w") as file:
        for name in dict.fromkeys(d for d, _ in store.records):
            records = [r for (d, _), r in store.records.items() if d == name]
            file.write(f"**{name}**, {number(records[-1]['n_train'], '.0f')} training rows, {number(records[-1]['n_test'], '.0f')} test rows. "
                       "RMSE standardised by the test rows, NLL and distances in units of the target; distance of the means on all test "
                       f"rows, of standard deviations and KL on {records[-1]['checked_rows'] or '-'} of them.\n\n"
                       "| method | fit s | predict s | peak MiB | RMSE | NLL | coverage of 90 % | mean from exact | sd from exact | KL a row |\n"
                       "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
            for r in sorted(records, key=lambda r: METHODS.index(r["method"])):
                file.write(f"| {r['method']} | {number(r['fit_seconds'], '.1f')} | {number(r['predict_seconds'], '.2f')} "
                           f"| {number(r['peak_mib'], '.0f')} | {number(r['srmse'], '.4f')} | {number(r['nll'], '.4f')} "
                           f"| {number(r['coverage90'], '.3f')} | {number(r['mean_rms'], '.3g')} | {number(r['sd_rms'], '.3g')} "
                           f"| {number(r['kl'], '.3g')} |\n")
            file.write("\n")


def draw(folder, store):
    """Scores that are worse than a constant's are in the table only: they would hide how the others differ."""
    panels = []
    for name in dict.fromkeys(d for d, _ in store.records):
        records = [r for (d, _), r in store.records.items() if d == name and r["fit_seconds"] not in (None, "") and float(r["srmse"]) < 1]
        for key, label in (("srmse", "standardised RMSE"), ("nll", "NLL")):
            lines = {m: [(float(r["fit_seconds"]), float(r[key])) for r in records if r["method"] == m] for m in METHODS}
            panels.append((name, "seconds of fit", label, {m: line for m, line in lines.items() if line}))
    line_chart.write(os.path.join(folder, "approximations.svg"), "Scores of approximations against seconds of fit", panels)


def words_of(arguments):
    """Options, data sets and methods."""
    options, sets, methods, rest = {"rank": 1000, "check_rows": 64}, [], [], list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("--rank", "--check-rows"):
            options[word[2:].replace("-", "_")] = int(rest.pop(0))
        elif word in COMPARED + LARGE:
            sets.append(word)
        elif word in METHODS:
            methods.append(word)
        else:
            raise SystemExit(f"no data set and no method '{word}'; data sets: {', '.join(COMPARED + LARGE)}; methods: {', '.join(METHODS)}")
    return options, sets or COMPARED + LARGE, methods or METHODS


def main():
    mercer, data, results, *words = sys.argv[1:]
    options, sets, methods = words_of(words)
    store = Store(results)
    for name in sets:
        if name in COMPARED:
            compare(mercer, data, name, methods, options, store)
            continue
        compare_large(mercer, data, name, methods, options, store)
    write_tables(results, store)
    draw(results, store)


if __name__ == "__main__":
    main()
