"""mercer's classes beside scikit-learn's: peers.py MERCER DATA_FOLDER RESULTS_FOLDER [--rows N] [--kernel SPEC] [PART...].

A part is learned, speed or full, or one data set of it as learned:heart.
  learned  both learn the hyperparameters of the same kernel from the same rows; scores on the same other rows.
  speed    2,000 rows, one lengthscale: seconds to learn, and to predict 1,000 more.
  full     mercer alone on all rows: scores, seconds and peak memory, with --memory 2G.
Seconds of mercer are those of the whole program, reading the file and writing the model included; those of scikit-learn
are of fit() and of predict_proba() on arrays. Both may use all cores.
"""

import argparse
import math
import os
import random
import sys
import tempfile
import time
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from study import call, read_records, read_table, write_records, write_table  # noqa: E402

LEARNED = {"heart": (0.7, 3), "diabetes_pima": (0.7, 3), "german": (0.7, 3), "spambase": (1000, 1)}  # training rows, splits
SPEED = ["spambase", "magic"]
# Pixels share one unit: scaled one by one, those at the rim, which are hardly ever on, would count most.
FULL = {"magic": ["matern52:iso"], "eeg": ["matern52:iso"], "usps_train": ["rbf:iso", "--no-standardize"]}
# Kernel, lengthscale and signal variance tried on a fifth of usps's training rows.
HELD_OUT = [("rbf:iso", length, 100) for length in (5, 6.3, 8, 10, 12.6)]
FIELDS = {
    "learned": ["data", "kernel", "seed", "n_train", "n_test", "nll", "sklearn_nll", "error_rate", "sklearn_error_rate", "evidence",
                "sklearn_evidence", "fit_seconds", "sklearn_fit_seconds", "evaluations", "sklearn_evaluations"],
    "speed": ["data", "kernel", "n_train", "n_test", "fit_seconds", "sklearn_fit_seconds", "ratio", "evaluate_seconds",
              "sklearn_predict_seconds", "nll", "sklearn_nll", "evidence", "sklearn_evidence", "evaluations", "sklearn_evaluations", "blas"],
    "full": ["data", "kernel", "n_train", "n_test", "error_rate", "nll", "auc", "fit_seconds", "train_seconds", "evaluate_seconds",
             "peak_mib", "evaluate_peak_mib", "train_method", "steps", "newton_steps", "solver", "preconditioner", "bound", "variance"],
}


def read(folder, name, most=None):
    """Header and rows in a random order that depends on nothing but the file."""
    header, rows = read_table(folder, name)
    random.Random(0).shuffle(rows)
    return header, rows[:most]


def timed(*command):
    """The JSON of a run, and its seconds."""
    start = time.time()
    return call(*command), time.time() - start


def ours(mercer, header, train, test, *options):
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("train.csv", "test.csv", "model.mcr")]
        write_table(paths[0], header, train)
        write_table(paths[1], header, test)
        fit, fit_seconds = timed(mercer, "fit", paths[0], "--task", "classification", "-m", paths[2], "--keep-unconverged", *options)
        scores, evaluate_seconds = timed(mercer, "evaluate", paths[2], paths[1])
    return fit, fit_seconds, scores, evaluate_seconds


def theirs(kernel, train, test):
    """GaussianProcessClassifier as it comes, on inputs of standard deviation one."""
    import numpy as np
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    from sklearn.metrics import log_loss, zero_one_loss

    x, t = (np.array([[float(v) for v in row] for row in rows]) for rows in (train, test))
    y, truth = x[:, -1].astype(int), t[:, -1].astype(int)
    mean, scale = x[:, :-1].mean(0), x[:, :-1].std(0)
    scale[scale == 0] = 1
    x, t = (x[:, :-1] - mean) / scale, (t[:, :-1] - mean) / scale
    d = x.shape[1]
    lengths = math.sqrt(d) if kernel == "rbf:iso" else np.full(d, math.sqrt(d))
    model = GaussianProcessClassifier(ConstantKernel(1.0) * RBF(lengths), n_restarts_optimizer=0)
    # Its evaluations are counted where it has them.
    from sklearn.gaussian_process._gpc import _BinaryGaussianProcessClassifierLaplace as Laplace

    evaluations = [0]
    plain = Laplace.log_marginal_likelihood

    def counted(self, theta=None, eval_gradient=False, clone_kernel=True):
        evaluations[0] += theta is not None and eval_gradient
        return plain(self, theta, eval_gradient, clone_kernel)

    Laplace.log_marginal_likelihood = counted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a lengthscale at its bound is an irrelevant input
        start = time.time()
        model.fit(x, y)
        fit_seconds = time.time() - start
    Laplace.log_marginal_likelihood = plain
    start = time.time()
    p = model.predict_proba(t)
    predict_seconds = time.time() - start
    return {"sklearn_nll": log_loss(truth, p, labels=model.classes_), "sklearn_error_rate": zero_one_loss(truth, model.predict(t)),
            "sklearn_evidence": model.log_marginal_likelihood_value_, "sklearn_fit_seconds": fit_seconds,
            "sklearn_predict_seconds": predict_seconds, "sklearn_evaluations": evaluations[0]}


def blas():
    """What NumPy multiplies with: a plain BLAS would make a comparison of seconds worthless."""
    try:
        import numpy  # noqa: F401
        import scipy.linalg  # noqa: F401
        from threadpoolctl import threadpool_info

        return "; ".join(f"{i['internal_api']} {i['version']}, {i['num_threads']} threads" for i in threadpool_info()
                         if i["user_api"] == "blas") or "unknown"
    except ImportError:
        return "unknown"


def learned(mercer, data, name, options):
    header, rows = read(data, name, options.rows)
    share, splits = LEARNED[name]
    cut = int(share * len(rows)) if share < 1 else min(share, len(rows) * 7 // 10)
    for kernel in ("rbf:iso", "rbf"):
        if kernel == "rbf" and name == "spambase":
            continue  # 57 gradients: scikit-learn takes an hour
        for seed in range(splits):
            mixed = random.Random(seed).sample(rows, len(rows))
            train, test = mixed[:cut], mixed[cut:]
            fit, seconds, scores, _ = ours(mercer, header, train, test, "--kernel", kernel)
            yield {"data": name, "kernel": kernel, "seed": seed, "n_train": len(train), "n_test": len(test), "nll": scores["nll"],
                   "error_rate": scores["error_rate"], "evidence": fit["log_marginal_likelihood"]["value"], "fit_seconds": seconds,
                   "evaluations": fit["evaluations"], **theirs(kernel, train, test)}


def speed(mercer, data, name, options):
    header, rows = read(data, name, options.rows)
    cut = min(2000, len(rows) * 2 // 3)
    train, test = rows[:cut], rows[cut:cut + 1000]
    fit, seconds, scores, evaluate = ours(mercer, header, train, test, "--kernel", "rbf:iso")
    peer = theirs("rbf:iso", train, test)
    yield {"data": name, "kernel": "rbf:iso", "n_train": len(train), "n_test": len(test), "fit_seconds": seconds,
           "evaluate_seconds": evaluate, "nll": scores["nll"], "evidence": fit["log_marginal_likelihood"]["value"],
           "evaluations": fit["evaluations"], "ratio": peer["sklearn_fit_seconds"] / seconds, "blas": blas(), **peer}


def full_row(name, label, train, test, run):
    fit, seconds, scores, evaluate = run
    return {"data": name, "kernel": label, "n_train": len(train), "n_test": len(test), "error_rate": scores["error_rate"],
            "nll": scores["nll"], "auc": scores["auc"], "fit_seconds": seconds, "train_seconds": fit["seconds"]["train"],
            "evaluate_seconds": evaluate, "peak_mib": fit["peak_rss_bytes"] / 2**20,
            "evaluate_peak_mib": scores["peak_rss_bytes"] / 2**20, "train_method": fit["train_method"] or "none",
            "steps": fit["steps"], "newton_steps": fit["newton_steps"], "solver": fit["solver"],
            "preconditioner": fit["preconditioner"], "bound": fit["certificate"]["mean_error_bound"], "variance": scores["variance"]}


def full(mercer, data, name, options):
    header, rows = read(data, name, options.rows)
    if name == "usps_train":
        train, test = rows, read(data, "usps_test", options.rows)[1]
    else:
        test, train = rows[:len(rows) // 10], rows[len(rows) // 10:]
    kernel, *others = [options.kernel] if options.kernel else FULL[name]
    common = ["--kernel", kernel, *others, "--memory", "2G"]
    yield full_row(name, kernel, train, test, ours(mercer, header, train, test, *common))
    if name != "usps_train" or options.kernel:
        return
    # The evidence is not the error rate: the kernel that is best for that, found without the test rows.
    held, rest = train[:len(train) // 5], train[len(train) // 5:]
    best = min(HELD_OUT, key=lambda candidate: held_out_score(mercer, header, rest, held, candidate))
    label = "{}, length {:g} by held-out errors".format(*best)
    yield full_row(name, label, train, test, ours(mercer, header, train, test, *fixed(best)))


def fixed(candidate):
    kernel, length, variance = candidate
    return ["--kernel", kernel, "--no-standardize", "--memory", "2G", "--train", "none", "--lengthscale", str(length),
            "--signal-variance", str(variance)]


def held_out_score(mercer, header, train, test, candidate):
    found = ours(mercer, header, train, test, *fixed(candidate))[2]
    print("held out", *candidate, found["error_rate"], found["nll"])
    return found["error_rate"], found["nll"]


KEYS = {"learned": ("data", "kernel", "seed"), "speed": ("data", "kernel"), "full": ("data", "kernel")}


def load(results, part):
    return {tuple(row[k] for k in KEYS[part]): row for row in read_records(os.path.join(results, part + ".csv"))}


def save(results, part, rows):
    kept = [{field: row.get(field) for field in FIELDS[part]} for row in rows.values()]
    write_records(os.path.join(results, part + ".csv"), FIELDS[part], kept)


def line(*cells):
    return "| " + " | ".join(cells) + " |\n"


def heading(*names):
    return line(*names) + "|---|---|" + "---:|" * (len(names) - 2) + "\n"


def tables(results):
    text = ""
    rows = list(load(results, "learned").values())
    if rows:
        text += "Means over the splits. Evidence: the log marginal likelihood of the training rows.\n\n"
        text += heading("data", "kernel", "training rows", "splits", "NLL", "scikit-learn", "error rate", "scikit-learn", "evidence",
                        "scikit-learn", "fit s", "scikit-learn")
        for key in dict.fromkeys((r["data"], r["kernel"]) for r in rows):
            group = [r for r in rows if (r["data"], r["kernel"]) == key]

            def mean(field, group=group):
                return sum(float(r[field] or "nan") for r in group) / len(group)

            text += line(*key, group[0]["n_train"], str(len(group)), f"{mean('nll'):.4f}", f"{mean('sklearn_nll'):.4f}",
                         f"{mean('error_rate'):.4f}", f"{mean('sklearn_error_rate'):.4f}", f"{mean('evidence'):.2f}",
                         f"{mean('sklearn_evidence'):.2f}", f"{mean('fit_seconds'):.2f}", f"{mean('sklearn_fit_seconds'):.2f}")
    rows = list(load(results, "speed").values())
    if rows:
        text += f"\nNumPy's BLAS: {rows[0]['blas']}.\n\n"
        text += heading("data", "kernel", "rows", "fit s", "scikit-learn", "ratio", "evaluations", "scikit-learn", "evaluate s",
                        "scikit-learn", "NLL", "scikit-learn")
        for r in rows:
            text += line(r["data"], r["kernel"], r["n_train"], f"{float(r['fit_seconds']):.2f}", f"{float(r['sklearn_fit_seconds']):.1f}",
                         f"{float(r['ratio']):.1f}", r["evaluations"], r["sklearn_evaluations"], f"{float(r['evaluate_seconds']):.2f}",
                         f"{float(r['sklearn_predict_seconds']):.2f}", f"{float(r['nll']):.4f}", f"{float(r['sklearn_nll']):.4f}")
    rows = list(load(results, "full").values())
    if rows:
        text += "\n" + heading("data", "kernel", "training rows", "test rows", "error rate", "NLL", "AUC", "fit s", "evaluate s",
                               "peak MiB of fit", "of evaluate", "method", "steps", "latent mean within")
        for r in rows:
            text += line(r["data"], r["kernel"], r["n_train"], r["n_test"], f"{float(r['error_rate']):.4f}", f"{float(r['nll']):.4f}",
                         f"{float(r['auc'] or 'nan'):.4f}", f"{float(r['fit_seconds']):.1f}", f"{float(r['evaluate_seconds']):.1f}",
                         f"{float(r['peak_mib']):.0f}", f"{float(r['evaluate_peak_mib']):.0f}", r["train_method"], r["steps"],
                         f"{float(r['bound']):.1g}")
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mercer")
    parser.add_argument("data")
    parser.add_argument("results")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--kernel")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_intermixed_args()
    studies = {"learned": (learned, LEARNED), "speed": (speed, SPEED), "full": (full, FULL)}
    for part in options.parts or studies:
        part, _, only = part.partition(":")
        if part not in studies or (only and only not in studies[part][1]):
            sys.exit(f"no part '{part}{':' if only else ''}{only}'")
        study, names = studies[part]
        for name in [only] if only else names:
            for row in study(options.mercer, options.data, name, options):
                print(part, {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})
                rows = load(options.results, part)
                rows[tuple(str(row[k]) for k in KEYS[part])] = row
                save(options.results, part, rows)
    with open(os.path.join(options.results, "tables.md"), "w") as file:
        file.write(tables(options.results))


if __name__ == "__main__":
    main()
