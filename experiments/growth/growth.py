"""Seconds and peak memory against rows: growth.py MERCER DATA_FOLDER RESULTS_FOLDER [smoke] [NAME...].

Random rows of house_16H and protein, the first rows of hflights. `fit` learns a Matern-3/2 kernel with one lengthscale
per input on all of them; `solve` is one system at the hyperparameters that the largest fit found, so that it is the same
problem at every size.
"""

import math
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from study import call, read_records, read_table, write_records, write_table  # noqa: E402

SIZES = {"house_16H": [5000, 10000, 20000], "protein": [5000, 10000, 20000, 40000], "hflights": [100000]}
SMOKE = {"house_16H": [60, 120], "hflights": [100]}
FIELDS = ["data", "n", "fit_seconds", "train_seconds", "fit_mib", "exact_gradients", "fit_products", "solve_seconds",
          "solve_iterations", "solve_mib"]


def study(mercer, data, name, sizes):
    header, rows = read_table(data, name)
    if name != "hflights":
        random.Random(0).shuffle(rows)
    out, paths = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            paths[n] = os.path.join(folder, f"{n}.csv")
            write_table(paths[n], header, rows[:n])
            fit = call(mercer, "fit", paths[n], "--kernel", "matern32", "-m", os.path.join(folder, "m.mcr"))
            out.append({"data": name, "n": n, "fit_seconds": fit["seconds"]["total"], "train_seconds": fit["seconds"]["train"],
                        "fit_mib": fit["peak_rss_bytes"] / 2**20,
                        "exact_gradients": len((fit["gradients"] or {}).get("steps", [])), "fit_products": fit["matvecs"]})
            print(out[-1])
            values = fit["hyperparameters"]["standardised"]
        lengths = ",".join(f"{v:.6g}" for v in values["lengthscales"])
        for row in out:
            s = call(mercer, "solve", paths[row["n"]], "--kernel", "matern32", "--lengthscale", lengths, "--signal-variance",
                     f"{values['signal_variance']:.6g}", "--noise", f"{values['noise_variance']:.6g}")
            row.update(solve_seconds=s["build_seconds"] + s["solve_seconds"], solve_iterations=s["iterations"],
                       solve_mib=s["peak_rss_bytes"] / 2**20)
            print(row)
    return out


def exponent(rows, key):
    """The slope of log(key) against log(n)."""
    points = [(math.log(float(r["n"])), math.log(float(r[key]))) for r in rows]
    mx, my = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    below = sum((x - mx) ** 2 for x, _ in points)
    return sum((x - mx) * (y - my) for x, y in points) / below if below else float("nan")


def table(rows):
    print("| data | rows | fit s | of it learning | exact gradients | products | fit MiB | solve s | iterations | solve MiB |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for r in rows:
        print(f"| {r['data']} | {int(r['n']):,} | {float(r['fit_seconds']):.1f} | {float(r['train_seconds']):.1f} | {r['exact_gradients']} "
              f"| {r['fit_products']} | {float(r['fit_mib']):.0f} | {float(r['solve_seconds']):.2f} | {r['solve_iterations']} | {float(r['solve_mib']):.0f} |")
    print()
    for name in dict.fromkeys(r["data"] for r in rows):
        here = [r for r in rows if r["data"] == name]
        if len(here) > 1:
            print(f"{name}: exponent of rows in fit seconds {exponent(here, 'fit_seconds'):.2f}, solve seconds {exponent(here, 'solve_seconds'):.2f}, "
                  f"fit memory {exponent(here, 'fit_mib'):.2f}, solve memory {exponent(here, 'solve_mib'):.2f}\n")


def main():
    mercer, data, results, *names = sys.argv[1:]
    everything = SIZES
    if names[:1] == ["smoke"]:
        everything, names = SMOKE, names[1:]
    path = os.path.join(results, "growth.csv")
    rows = read_records(path)
    for name in names or everything:
        rows = [r for r in rows if r["data"] != name] + study(mercer, data, name, everything[name])
        write_records(path, FIELDS, rows)
    with open(os.path.join(results, "tables.md"), "w") as file:
        sys.stdout = file
        table(rows)


if __name__ == "__main__":
    main()
