"""Tables and the picture of covtype from the CSVs of `run`: tables.py RESULTS_FOLDER."""

import math
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import line_chart  # noqa: E402
from study import read_records  # noqa: E402

PRODUCTS = 2  # of K in an iteration on coefficients; kernel_cg has one


def read(folder, name):
    return read_records(os.path.join(folder, name + ".csv"))


def median(values):
    """Of counts of which some are missing (never reached): those count as the largest."""
    known = sorted(math.inf if v == "" else float(v) for v in values)
    return statistics.median_low(known)


def comparison(title, rows):
    """Iterations of both, level by level; medians over the columns of a set."""
    levels = list(dict.fromkeys(r["level"] for r in rows))
    keys = list(dict.fromkeys((r["data"], r["rows"], r["inputs"], r["lambda"]) for r in rows))
    counts = {}  # {(key, level): (kernel_cg, coefficients)}
    print(f"## {title}: iterations of kernel_cg / on coefficients until (P - min P) / min P is\n")
    print("| data | rows | inputs | lambda |" + "".join(f" {level} |" for level in levels))
    print("|---|---:|---:|---:|" + "---:|" * len(levels))
    for key in keys:
        cells = []
        for level in levels:
            at = [r for r in rows if (r["data"], r["rows"], r["inputs"], r["lambda"], r["level"]) == (*key, level)]
            fast, slow = counts[key, level] = [median([r[m] for r in at]) for m in ("kernel_cg", "coefficient_cg")]
            ran = max(int(r["coefficient_cg_ran"]) for r in at)
            cells.append(("-" if fast == math.inf else f"{fast:.0f}") + " / "
                         + (f"> {ran}" if slow == math.inf else f"{slow:.0f}"))
        print("| " + " | ".join([*key, *cells]) + " |")
    print("\nOver the lines that both finished; the others are left out. p is log(iterations on coefficients) / log(iterations "
          "of kernel_cg), 2 if one is the square root of the other.\n")
    print("| level | both finished | times fewer products, geometric mean | p, median |\n|---:|---:|---:|---:|")
    for level in levels:
        pairs = [counts[key, level] for key in keys]
        ended = [(fast, slow) for fast, slow in pairs if 0 < fast < math.inf and slow < math.inf]
        exponents = [math.log(slow) / math.log(fast) for fast, slow in ended if fast > 1]
        gain = f"{statistics.geometric_mean(PRODUCTS * slow / fast for fast, slow in ended):.1f}" if ended else ""
        print(f"| {level} | {len(ended)} of {len(pairs)} | {gain} | "
              + (f"{statistics.median(exponents):.2f}" if exponents else "") + " |")
    print()


def theorem(rows):
    print("## Theorem 1: kappa(coefficients) <= kappa(K) kappa(functions)\n")
    print("| data | rows | loss | lambda | kappa(K) | functions | coefficients | coefficients / (K x functions) |")
    print("|---|---:|---|---:|---:|---:|---:|---:|")
    for r in rows:
        k, f, c = (float(r["kappa_" + name]) for name in ("kernel", "functions", "coefficients"))
        print(f"| {r['data']} | {r['rows']} | {r['loss']} | {r['lambda']} | {k:.3g} | {f:.3g} | {c:.3g} | {c / (k * f):.3f} |")
    print()


def equivalents(kernel, coefficient):
    """(iteration k of kernel_cg, first iteration on coefficients with no larger excess)."""
    out, m = [], 0
    for k, excess in enumerate(kernel):
        while m < len(coefficient) and coefficient[m] > excess:
            m += 1
        if m == len(coefficient):
            break
        if k > 0:
            out.append((k, m))
    return out


def curve(folder, rows):
    print("## Covtype, class 2 against the rest: iterations on coefficients per iteration of kernel_cg\n")
    print("| lambda | kernel_cg | the same loss on coefficients | per iteration |\n|---:|---:|---:|---:|")
    pairs, panels = {}, []
    for lam in dict.fromkeys(r["lambda"] for r in rows):
        runs = {m: [float(r["excess"]) for r in rows if (r["lambda"], r["method"]) == (lam, m)]
                for m in ("kernel_cg", "coefficient_cg")}
        pairs[lam] = equivalents(runs["kernel_cg"], runs["coefficient_cg"])
        for k, m in pairs[lam]:
            if k in (1, 2, 5, 10, 20, 50, 100, 200, 500) or (k, m) == pairs[lam][-1]:
                print(f"| {lam} | {k} | {m} | {m / k:.1f} |")
        lines = {name: [(products * i, math.log10(e)) for i, e in enumerate(runs[method]) if i > 0 and e > 1e-8]
                 for name, method, products in (("kernel_cg", "kernel_cg", 1), ("coefficients", "coefficient_cg", PRODUCTS))}
        panels.append((f"lambda {lam}", "products with K", "log10 of (P - min P) / min P", lines))
    print()
    lines = {f"lambda {lam}": [(k, math.log10(m)) for k, m in line] for lam, line in pairs.items()}
    longest = max((k for line in pairs.values() for k, _ in line), default=1)
    lines["k squared"] = [(k, 2 * math.log10(k)) for k in range(1, min(longest, 60) + 1)]
    panels.insert(0, ("equivalent iterations", "iterations of kernel_cg", "log10 of iterations on coefficients", lines))
    line_chart.write(os.path.join(folder, "covtype.svg"), "Covtype: the same loss, kernel_cg and coefficients", panels)


def main():
    folder = sys.argv[1]
    if rows := read(folder, "theorem"):
        theorem(rows)
    if rows := read(folder, "squares"):
        comparison("Least squares", rows)
    if rows := read(folder, "logistic") + read(folder, "covtype"):
        comparison("Logistic regression", rows)
    if rows := read(folder, "curve"):
        curve(folder, rows)


if __name__ == "__main__":
    main()
