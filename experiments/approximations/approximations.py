"""Approximations beside the exact process: approximations.py MERCER DATA RESULTS [--rank M] [--check-rows R] [DATA SET | METHOD]...

Small sets go through `mercer compare`, large ones through one process per fit, evaluation and prediction. A method that is
measured replaces its line in approximations.csv; the others stay.
"""

import csv
import math
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import line_chart  # noqa: E402
from study import call, read_records, write_records  # noqa: E402

COMPARED = ["house_16H", "protein"]
LARGE = ["hflights"]
METHODS = ["exact", "subset", "srm", "dtc", "rra", "fitc", "pitc", "pic", "vfe", "bcm", "rbcm"]
WITHOUT_BASE = {"rbcm"}  # takes no --rank
KERNEL = ("--kernel", "matern32")
MEMORY = "4G"
FIELDS = ["data", "method", "rank", "n_train", "n_test", "fit_seconds", "predict_seconds", "peak_mib", "rmse", "srmse", "nll", "coverage90",
          "mean_rms", "mean_max", "checked_rows", "sd_rms", "kl", "evidence", "kind", "evaluations"]


class Store:
    """The CSV file: a line per data set and method, rewritten after every measurement."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "approximations.csv")
        self.records = {(r["data"], r["method"]): r for r in read_records(self.path)}

    def put(self, record):
        self.records[record["data"], record["method"]] = {k: record.get(k) for k in FIELDS}
        order = {name: i for i, name in enumerate([*COMPARED, *LARGE, *METHODS])}
        records = sorted(self.records.values(), key=lambda r: (order[r["data"]], order[r["method"]]))
        write_records(self.path, FIELDS, records)
        print({k: record.get(k) for k in ("data", "method", "fit_seconds", "peak_mib", "rmse", "nll", "mean_rms")})


def run_of_compare(name, report, run):
    scores, distance = run["scores"], run["distance"] or {}
    return {"data": name, "method": run["method"], "rank": run["rank"], "n_train": report["n"], "n_test": report["test_rows"],
            "fit_seconds": run["fit_seconds"], "predict_seconds": run["predict_seconds"], "peak_mib": run["peak_rss_bytes"] / 2**20,
            "rmse": scores["rmse"], "srmse": math.sqrt(scores["smse"]), "nll": scores["nll"], "coverage90": scores["coverage90"],
            "mean_rms": distance.get("mean_rms"), "mean_max": distance.get("mean_max"), "checked_rows": distance.get("checked_rows"),
            "sd_rms": distance.get("sd_rms"), "kl": distance.get("kl"), "evidence": run["log_marginal_likelihood"],
            "kind": run["evidence_kind"], "evaluations": run.get("approximate_evaluations")}


def compare(mercer, data, name, methods, options, store):
    """The distance is from an exact fit, which is made anew each time: choose several methods at once."""
    wanted = ["exact", *(m for m in methods if m != "exact")]
    report = call(mercer, "compare", os.path.join(data, name + ".csv.gz"), *KERNEL, "--methods", ",".join(wanted), "--ranks", options["rank"],
                  "--test-fraction", 0.1, "--check-rows", options["check_rows"])
    for run in report["runs"]:
        if run.get("scores"):
            store.put(run_of_compare(name, report, run))
        else:
            print(f"{name} {run['method']}: not measured: {run.get('skipped')}")


def column(path, name):
    with open(path, newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file)]


class Large:
    """A data set that is too large for a comparison in one process: a tenth is held out, models are files."""

    def __init__(self, mercer, data, name, options, folder):
        self.mercer, self.name, self.options, self.folder = mercer, name, options, folder
        self.train, self.test, self.some = (os.path.join(folder, f) for f in ("train.csv", "test.csv", "some.csv"))
        subprocess.run([mercer, "split", os.path.join(data, name + ".csv.gz"), "--test-fraction", "0.1", "--seed", "0", "--quiet",
                        "--train-out", self.train, "--test-out", self.test], check=True, stdout=subprocess.DEVNULL)
        with open(self.test) as file:
            lines = file.readlines()
        # Rows of a split are in their old order: evenly spaced ones are of all parts of the file.
        count = min(options["check_rows"], len(lines) - 1)
        step = (len(lines) - 1) / max(count, 1)
        with open(self.some, "w") as file:
            file.writelines([lines[0], *(lines[1 + int(i * step)] for i in range(count))])
        self.n_test, self.exact_model, self.exact = len(lines) - 1, None, None

    def fit(self, method, model):
        words = [] if method == "exact" else ["--method", method]
        if method not in ("exact", *WITHOUT_BASE):
            words += ["--rank", self.options["rank"]]
        return call(self.mercer, "fit", self.train, *KERNEL, *words, "--memory", MEMORY, "-m", model, "--keep-unconverged")

    def predict(self, model, rows, *words):
        """Means, and standard deviations of f and of y."""
        out = os.path.join(self.folder, "predicted.csv")
        call(self.mercer, "predict", model, rows, "-o", out, "--memory", MEMORY, *words)
        names = ["mean"] if "none" in words else ["mean", "sd_latent", "sd_obs"]
        return [column(out, name) for name in names]

    def need_exact(self):
        """The exact model: the file that MERCER_EXACT_MODEL names, or one that is fitted now, and kept there if it names one."""
        if self.exact is not None:
            return None
        self.exact_model = os.environ.get("MERCER_EXACT_MODEL") or os.path.join(self.folder, "exact.mcr")
        fitted = None
        if not os.path.exists(self.exact_model):
            fitted = self.fit("exact", self.exact_model)
        means = self.predict(self.exact_model, self.test, "--variance", "none")
        self.exact = [*means, *self.predict(self.exact_model, self.some, "--variance", "exact")]
        return fitted

    def distance(self, model):
        """As `mercer compare` has it: means on all test rows; standard deviations of f, and KL(exact, approximate) of y, on some."""
        means, some, latent, observed = self.exact
        mine = self.predict(model, self.test)[0]
        at_some, own_latent, own_observed = self.predict(model, self.some)
        apart = [abs(a - b) for a, b in zip(mine, means)]
        spread = [(a - b) ** 2 for a, b in zip(own_latent, latent)]
        kl = [math.log(s / e) + (e * e + (m - t) ** 2) / (2 * s * s) - 0.5 for t, e, m, s in zip(some, observed, at_some, own_observed)]
        return {"mean_rms": math.sqrt(sum(a * a for a in apart) / len(apart)), "mean_max": max(apart), "checked_rows": len(some),
                "sd_rms": math.sqrt(sum(spread) / len(spread)), "kl": sum(kl) / len(kl)}

    def measure(self, method):
        fitted = self.need_exact()
        model = self.exact_model if method == "exact" else os.path.join(self.folder, method + ".mcr")
        if method != "exact":
            fitted = self.fit(method, model)
        fitted = fitted or {}
        scores = call(self.mercer, "evaluate", model, self.test, "--memory", MEMORY)
        likelihood = fitted.get("log_marginal_likelihood") or {}
        peak = max(fitted.get("peak_rss_bytes", 0), scores["peak_rss_bytes"]) / 2**20
        record = {"data": self.name, "method": method, "rank": None if method in ("exact", *WITHOUT_BASE) else self.options["rank"],
                  "n_train": fitted.get("n"), "n_test": self.n_test, "fit_seconds": (fitted.get("seconds") or {}).get("total"),
                  "predict_seconds": scores["seconds"], "peak_mib": peak, "rmse": scores["rmse"], "srmse": math.sqrt(scores["smse"]),
                  "nll": scores["nll"], "coverage90": scores["coverage90"], "evidence": likelihood.get("value"),
                  "kind": likelihood.get("kind"), "evaluations": fitted.get("approximate_evaluations")}
        if method != "exact":
            record.update(self.distance(model))
            os.remove(model)
        return record


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
    panels = []
    for name in dict.fromkeys(d for d, _ in store.records):
        records = [r for (d, _), r in store.records.items() if d == name and r["fit_seconds"] not in (None, "")]
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
        with tempfile.TemporaryDirectory() as folder:
            large = Large(mercer, data, name, options, folder)
            for method in methods:
                store.put(large.measure(method))
    write_tables(results, store)
    draw(results, store)


if __name__ == "__main__":
    main()
