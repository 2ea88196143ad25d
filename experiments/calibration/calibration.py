"""Coverage over 20 seeds and certificates against Cholesky: calibration.py MERCER RESULTS_FOLDER [smoke]."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from study import call, read_records, write_records  # noqa: E402

SIZES = {"seeds": 20, "coverage_rows": 1500, "steps": 60, "certificate_rows": 4000, "test_rows": 500}
SMOKE = {"seeds": 1, "coverage_rows": 120, "steps": 3, "certificate_rows": 200, "test_rows": 50}


def coverage(mercer, folder, sizes):
    rows = []
    data, model = os.path.join(folder, "d.csv"), os.path.join(folder, "m.mcr")
    for seed in range(sizes["seeds"]):
        call(mercer, "generate", "gp", "-n", sizes["coverage_rows"], "-d", 2, "--seed", seed, "-o", data)
        for method, words in (("lbfgs, Cholesky", ("--restarts", 0)), ("vecchia", ("--train", "vecchia", "--restarts", 0)),
                              ("adam, solves", ("--train", "adam", "--steps", sizes["steps"]))):
            fit = call(mercer, "fit", data, "--test-fraction", 0.3, "--seed", seed, "--kernel", "matern52", "-m", model, *words)
            scores = fit["evaluation"]
            rows.append({"seed": seed, "method": method, "coverage90": scores["coverage90"], "coverage95": scores["coverage95"],
                         "nll": scores["nll"], "rmse": scores["rmse"]})
        print(rows[-3:])
    return rows


def certificates(mercer, folder, sizes):
    """The largest |mean - Cholesky mean| over its bound, per tolerance; above 1 would be a broken promise."""
    data, test = os.path.join(folder, "c.csv"), os.path.join(folder, "t.csv")
    call(mercer, "generate", "friedman", "-n", sizes["certificate_rows"], "-d", 6, "--seed", 3, "-o", data)
    call(mercer, "generate", "friedman", "-n", sizes["test_rows"], "-d", 6, "--seed", 4, "-o", test)
    fixed = ("--kernel", "matern32", "--train", "none", "--lengthscale", 2, "--noise", 0.02)

    def predict(*words):
        model, out = os.path.join(folder, "c.mcr"), os.path.join(folder, "p.csv")
        call(mercer, "fit", data, *fixed, *words, "--keep-unconverged", "-m", model)
        call(mercer, "predict", model, test, "--variance", "none", "-o", out)
        return [(float(r["mean"]), float(r["error_bound"])) for r in read_records(out)]

    exact = predict("--solver", "cholesky")
    rows = []
    for tolerance in ("1e-1", "1e-2", "1e-3", "1e-4", "1e-6", "1e-8"):
        for preconditioner in ("none", "auto", "nystrom", "hybrid"):
            loose = predict("--solver", "cg", "--preconditioner", preconditioner, "--tolerance", tolerance)
            worst = max(abs(a - c) / (b + d) for (a, b), (c, d) in zip(loose, exact))
            rows.append({"tolerance": tolerance, "preconditioner": preconditioner, "error_over_bound": worst})
    print(rows)
    return rows


def main():
    mercer, results, *smoke = sys.argv[1:]
    sizes = SMOKE if smoke else SIZES
    with tempfile.TemporaryDirectory() as folder:
        covered, promised = coverage(mercer, folder, sizes), certificates(mercer, folder, sizes)
    write_records(os.path.join(results, "coverage.csv"), covered[0], covered)
    write_records(os.path.join(results, "certificates.csv"), promised[0], promised)
    with open(os.path.join(results, "tables.md"), "w") as file:
        sys.stdout = file
        print("| method | mean coverage of 90 % | least | most | mean coverage of 95 % | mean NLL |\n|---|---:|---:|---:|---:|---:|")
        for method in dict.fromkeys(r["method"] for r in covered):
            here = [r for r in covered if r["method"] == method]
            c = [r["coverage90"] for r in here]
            print(f"| {method} | {sum(c) / len(c):.4f} | {min(c):.3f} | {max(c):.3f} | {sum(r['coverage95'] for r in here) / len(here):.4f} "
                  f"| {sum(r['nll'] for r in here) / len(here):.4f} |")
        print("\n| tolerance | preconditioner | largest error over its bound |\n|---:|---|---:|")
        for r in promised:
            print(f"| {r['tolerance']} | {r['preconditioner']} | {r['error_over_bound']:.3g} |")


if __name__ == "__main__":
    main()
