"""One line of scores per data set: scores.py MERCER DATA_FOLDER RESULTS_FOLDER [NAME...].

Fold 0 of the published split where there is a folds file, a seeded 90 % / 10 % split elsewhere. Scores are on the
standardised target (mean and standard deviation of the training part). scikit-learn gets 4,000 random training rows (5,000 of protein) and
the hyperparameters that maximise the exact likelihood of those rows (found by mercer, which has the same likelihood to
1e-8: tests/peers), because its own search takes an hour a set at this size.
"""

import math
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from study import call, read_records, read_table, write_records, write_table  # noqa: E402

PUBLISHED = {"pol": (0.080, -1.15), "protein": (0.51, 0.65), "keggdirected": (0.085, -0.9)}
PEER_ROWS = {"protein": 5000}  # for scikit-learn; 4,000 elsewhere
NAMES = ["pol", "protein", "keggdirected", "powerplant", "kin8nm", "house_8L", "naval", "cal_housing"]
FIELDS = ["data", "n_train", "n_test", "rmse", "nll", "coverage90", "fit_seconds", "train_seconds", "evaluate_seconds", "peak_mib", "exact_gradients",
          "iterations", "matvecs", "merged_rows", "train_method", "predicted_gain", "sd_error", "sklearn_rmse", "sklearn_nll",
          "sklearn_seconds"]


def split(folder, name):
    header, rows = read_table(folder, name)
    if os.path.exists(os.path.join(folder, name + ".folds.csv.gz")):
        test = [row[0] == "0" for row in read_table(folder, name + ".folds")[1]]
    else:
        order = list(range(len(rows)))
        random.Random(0).shuffle(order)
        chosen = set(order[: len(rows) // 10])
        test = [i in chosen for i in range(len(rows))]
    return header, [r for r, t in zip(rows, test) if not t], [r for r, t in zip(rows, test) if t]


def spread(rows):
    y = [float(r[-1]) for r in rows]
    mean = sum(y) / len(y)
    return math.sqrt(sum((v - mean) ** 2 for v in y) / len(y))


def sklearn_scores(mercer, folder, name, header, train, test, sd):
    """GaussianProcessRegressor on 4,000 rows at the maximum of their likelihood."""
    import time

    import numpy as np
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    rows = random.Random(1).sample(train, min(PEER_ROWS.get(name, 4000), len(train)))
    path = os.path.join(folder, "subset.csv")
    write_table(path, header, rows)
    fit = call(mercer, "fit", path, "--kernel", "matern32", "-m", os.path.join(folder, "subset.mcr"))
    values = fit["hyperparameters"]["standardised"]
    kept = [j for j, name in enumerate(header) if name not in fit["data"]["dropped_constant"]]
    x = np.array([[float(r[j]) for j in kept] for r in rows])
    t = np.array([[float(r[j]) for j in kept] for r in test])
    mean, scale = x.mean(0), x.std(0)
    scale[scale == 0] = 1
    x, t = (x - mean) / scale, (t - mean) / scale
    start = time.time()
    kernel = ConstantKernel(values["signal_variance"]) * Matern(values["lengthscales"], nu=1.5) + WhiteKernel(values["noise_variance"])
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(x[:, :-1], x[:, -1])
    predicted, deviation = model.predict(t[:, :-1], return_std=True)
    seconds = time.time() - start
    error = t[:, -1] - predicted
    nll = 0.5 * np.log(2 * np.pi * deviation**2) + 0.5 * (error / deviation) ** 2
    ratio = scale[-1] / sd  # from the subset's scale to that of all training rows
    return float(np.sqrt(np.mean(error**2)) * ratio), float(nll.mean() + math.log(ratio)), seconds


def study(mercer, data, name):
    header, train, test = split(data, name)
    sd = spread(train)
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f) for f in ("train.csv", "test.csv", "model.mcr")]
        write_table(paths[0], header, train)
        write_table(paths[1], header, test)
        fit = call(mercer, "fit", paths[0], "--kernel", "matern32", "-m", paths[2], "--keep-unconverged")
        scores = call(mercer, "evaluate", paths[2], paths[1])
        gradients = (fit.get("gradients") or {}).get("steps", [])
        row = {"data": name, "n_train": len(train), "n_test": len(test), "rmse": scores["rmse"] / sd,
               "nll": scores["nll"] - math.log(sd), "coverage90": scores["coverage90"],
               "fit_seconds": fit["seconds"]["total"], "train_seconds": fit["seconds"]["train"],
               "evaluate_seconds": scores.get("seconds"), "peak_mib": fit["peak_rss_bytes"] / 2**20,
               "exact_gradients": len(gradients), "iterations": "/".join(str(s["iterations"]) for s in gradients) + f"/{fit['iterations']}",
               "matvecs": fit["matvecs"], "merged_rows": fit.get("merged_rows"), "train_method": fit["train_method"],
               "predicted_gain": gradients[-1].get("predicted_gain") if gradients else None, "sd_error": scores.get("sd_error")}
        row["sklearn_rmse"], row["sklearn_nll"], row["sklearn_seconds"] = sklearn_scores(mercer, folder, name, header, train, test, sd)
    return row


def table(path):
    print("| data | training rows | RMSE | NLL | published RMSE / NLL | scikit-learn, 4,000 rows | coverage of 90 % | fit s | evaluate s | peak MiB | exact gradients | iterations |")
    print("|---|---:|---:|---:|---|---|---:|---:|---:|---:|---:|---|")
    for r in read_records(path):
        known = PUBLISHED.get(r["data"])
        print(f"| {r['data']} | {r['n_train']} | {float(r['rmse']):.4f} | {float(r['nll']):.4f} | {f'{known[0]} / {known[1]}' if known else ''} "
              f"| {float(r['sklearn_rmse']):.4f} / {float(r['sklearn_nll']):.4f} | {float(r['coverage90']):.3f} | {float(r['fit_seconds']):.0f} "
              f"| {float(r['evaluate_seconds'] or 'nan'):.0f} | {float(r['peak_mib']):.0f} | {r['exact_gradients']} | {r['iterations']} |")


def main():
    mercer, data, results, *names = sys.argv[1:]
    path = os.path.join(results, "scores.csv")
    done = {r["data"]: r for r in read_records(path)}
    for name in names or NAMES:
        done[name] = study(mercer, data, name)
        print({k: done[name][k] for k in ("data", "rmse", "nll", "sklearn_rmse", "sklearn_nll", "fit_seconds", "peak_mib")})
        write_records(path, FIELDS, done.values())
    sys.stdout.flush()
    with open(os.path.join(results, "tables.md"), "w") as file:
        sys.stdout = file
        table(path)


if __name__ == "__main__":
    main()
