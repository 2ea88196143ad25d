"""Solvers on concrete at parameters from the priors: filippone_solvers.py MERCER DATA FOLDER RESULTS [smoke] [systems|solvers|ulisse|tables]...

A system is H = v exp(-|x - x'|^2 / (2 l^2)) + s2 I on the standardised rows, with v, l and s2 from gamma(2,2); the last ones have a
thousandth of that noise, where condition numbers are larger. Right-hand sides are y and four probes of +-1. What is compared with comes
from SciPy's dense algebra. The gradient of the log evidence by log v, log l and log s2 is
    1/2 a'dH a - 1/2 mean over probes of z'dH H^-1 z,   a = H^-1 y,
and its error is that of the solves alone: the difference from the same formula with dense solutions and the same probes.
"""

import csv
import os
import re
import subprocess
import sys

import numpy as np
from scipy import linalg

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import figure  # noqa: E402  (beside this folder)
from study import call, read_records, read_table, write_records, write_table  # noqa: E402

SHAPE, RATE, TOLERANCE, MOST_ITERATIONS = 2, 2, 1e-6, 20000
# `longer` is added to the lengthscales: a few rows are not correlated otherwise.
SIZES = {"prior": 50, "low noise": 20, "ulisse": 5, "replicates": 20, "rows": None, "probes": 4, "rules": None, "longer": 0}
SMOKE = {"prior": 1, "low noise": 1, "ulisse": 1, "replicates": 2, "rows": 60, "probes": 1, "rules": 4, "longer": 2}
GROUPS, LOW_NOISE = ("prior", "low noise"), 1e-3  # `ulisse`: so many systems of each group
PLAIN = ("--solver", "cg", "--preconditioner", "none")
# Column: words, and the operator that it needs.
SOLVERS = {"cg double": ((*PLAIN, "--precision", "double"), "tiled"),
           "cg float": ((*PLAIN, "--precision", "single"), "tiled"),
           "cg float, 1e-4": ((*PLAIN, "--precision", "single", "--tolerance", 1e-4), "tiled"),
           "cg kd-tree": ((*PLAIN, "--precision", "double", "--operator", "kd-tree"), "kd-tree"),
           "cg anchors": ((*PLAIN, "--precision", "double", "--operator", "anchors"), "anchors"),
           "fcg regularized": (("--solver", "fcg", "--preconditioner", "regularized", "--precision", "double"), "tiled"),
           "cg nystrom": (("--solver", "cg", "--preconditioner", "nystrom", "--precision", "double"), "tiled"),
           "cg auto": (("--solver", "cg", "--preconditioner", "auto"), "tiled")}
# conditional: the rule of the paper, a step j after the others with probability exp(-beta j); geometric: all j with exp(-beta j); residual: the
# default. Two betas and two thresholds. In float with the same random numbers: what rounding adds to the bias.
IN_DOUBLE, IN_FLOAT = "residual, from 0.01", "residual, from 0.01, float"
ULISSE = {IN_DOUBLE: ("--continuation", "residual", "--early-tolerance", 0.01, "--precision", "double"),
          IN_FLOAT: ("--continuation", "residual", "--early-tolerance", 0.01, "--precision", "single")}
for EARLY in (0.01, 0.1):
    ULISSE[f"residual, from {EARLY}"] = ("--continuation", "residual", "--early-tolerance", EARLY, "--precision", "double")
    for BETA in (0.1, 0.02):
        for RULE in ("conditional", "geometric"):
            ULISSE[f"{RULE} {BETA}, from {EARLY}"] = ("--continuation", RULE, "--beta", BETA, "--early-tolerance", EARLY, "--precision", "double")
FIELDS = {"systems": ["system", "group", "signal_variance", "lengthscale", "noise_variance", "condition", "gradient_norm", "probe_error"],
          "solvers": ["system", "solver", "iterations", "inner_iterations", "residual", "stop", "error", "gradient_error", "missing"],
          "ulisse": ["system", "rule", "replicates", "missing", "iterations", "extra_iterations", "expected_extra", "energy_variance", "heavy_tail",
                     "sd", "bias", "bias_errors", "rounding", "gradient_sd", "gradient_bias"]}


class System:
    """One draw of the parameters, with the dense answers."""

    def __init__(self, x, sides, parameters):
        self.parameters = [float(p) for p in parameters]
        v, l, s2 = self.parameters
        squares = np.maximum(((x[:, None, :] - x[None]) ** 2).sum(-1), 0) / l**2
        k = v * np.exp(-0.5 * squares)
        self.derivatives = [k, k * squares, s2]  # by log v, log l and (times the identity) log s2
        h = k + s2 * np.eye(len(x))
        values = linalg.eigvalsh(h)
        self.condition = values[-1] / values[0]
        self.sides = sides
        self.factor = linalg.cho_factor(h, lower=True)
        self.solutions = linalg.cho_solve(self.factor, sides)
        self.gradient = self.gradient_by(self.solutions)

    def gradient_by(self, solutions, second=None):
        """`second`: an independent solution for y, where solutions are random."""
        a, b = solutions[:, 0], solutions[:, 0] if second is None else second
        out = []
        for d in self.derivatives:
            times = (lambda m, d=d: d * m) if np.isscalar(d) else (lambda m, d=d: d @ m)
            out.append(0.5 * a @ times(b) - 0.5 * np.mean(np.sum(self.sides[:, 1:] * times(solutions[:, 1:]), axis=0)))
        return np.array(out)

    def exact_gradient(self):
        inverse = linalg.cho_solve(self.factor, np.eye(len(self.sides)))
        a = self.solutions[:, 0]
        return np.array([0.5 * (d * a @ a - d * np.trace(inverse)) if np.isscalar(d) else 0.5 * (a @ d @ a - np.sum(inverse * d))
                         for d in self.derivatives])


class Study:
    def __init__(self, mercer, data, folder, results, sizes):
        self.mercer, self.folder, self.results, self.sizes = mercer, folder, results, sizes
        self.records = {name: read_records(os.path.join(results, name + ".csv")) for name in FIELDS}
        _, rows = read_table(data, "concrete")
        table = np.array(rows, dtype=float)[: sizes["rows"]]
        table = (table - table.mean(0)) / table.std(0)
        rng = np.random.default_rng(1)
        self.x = table[:, :-1]
        self.sides = np.column_stack([table[:, -1], rng.choice([-1.0, 1.0], (len(table), sizes["probes"]))])
        self.count = sizes["prior"] + sizes["low noise"]
        self.drawn = rng.gamma(SHAPE, 1 / RATE, (self.count, 3))
        self.drawn[sizes["prior"] :, 2] *= LOW_NOISE
        self.drawn[:, 1] += sizes["longer"]
        self.num_sides = sizes["probes"] + 1
        for i in range(self.num_sides):
            write_table(self.path(f"side{i}.csv"), [f"x{c}" for c in range(self.x.shape[1])] + ["b"],
                        [[repr(float(v)) for v in (*row, b)] for row, b in zip(self.x, self.sides[:, i])])
        page = subprocess.run([mercer, "solve", "--help"], capture_output=True, text=True, check=True).stdout
        self.operators = re.split(r"\s*\|\s*", page.split("--operator NAME", 1)[1].split(":", 1)[0].strip())

    def path(self, name):
        return os.path.join(self.folder, name)

    def group(self, number):
        return GROUPS[int(number) >= self.sizes["prior"]]

    def system(self, number):
        return System(self.x, self.sides, self.drawn[number])

    def put(self, name, record):
        self.records[name].append(record)
        write_records(os.path.join(self.results, name + ".csv"), FIELDS[name], self.records[name])
        print(name, record)

    def has(self, name, **keys):
        return any(all(str(r[k]) == str(v) for k, v in keys.items()) for r in self.records[name])

    def solve(self, system, side, words):
        """The record and the solution; none where the tolerance was not reached, because mercer does not write it then."""
        out = self.path("solution.csv")
        if os.path.exists(out):
            os.remove(out)
        v, l, s2 = system.parameters
        if "--tolerance" not in words:
            words = ("--tolerance", TOLERANCE, *words)
        record = call(self.mercer, "solve", self.path(f"side{side}.csv"), "--target", "b", "--no-standardize", "--kernel", "rbf:iso",
                      "--lengthscale", repr(l), "--signal-variance", repr(v), "--noise", repr(s2), "--accuracy", 0,
                      "--max-iterations", MOST_ITERATIONS, "-o", out, *words)
        if not os.path.exists(out):
            return record, None
        with open(out) as file:
            return record, np.array([float(r["a"]) for r in csv.DictReader(line for line in file if not line.startswith("#"))])

    def measure_systems(self):
        for number in range(self.count):
            if self.has("systems", system=number):
                continue
            system = self.system(number)
            exact = system.exact_gradient()
            drawn = dict(zip(FIELDS["systems"][2:5], system.parameters))
            self.put("systems", {"system": number, "group": self.group(number), **drawn, "condition": system.condition,
                                 "gradient_norm": np.linalg.norm(exact),
                                 "probe_error": np.linalg.norm(system.gradient - exact) / np.linalg.norm(exact)})

    def measure_solvers(self):
        for number in range(self.count):
            todo = [n for n, (_, operator) in SOLVERS.items() if operator in self.operators and not self.has("solvers", system=number, solver=n)]
            system = self.system(number) if todo else None
            for name in todo:
                runs = [self.solve(system, side, SOLVERS[name][0]) for side in range(self.num_sides)]
                record, a = runs[0]
                line = {"system": number, "solver": name, "iterations": record["iterations"], "inner_iterations": record["inner_iterations"],
                        "residual": record["relative_residual"], "stop": record["stop"], "missing": sum(s is None for _, s in runs)}
                if a is not None:
                    exact = system.solutions[:, 0]
                    line["error"] = np.linalg.norm(a - exact) / np.linalg.norm(exact)
                if line["missing"] == 0:
                    found = system.gradient_by(np.column_stack([s for _, s in runs]))
                    line["gradient_error"] = np.linalg.norm(found - system.gradient) / np.linalg.norm(system.gradient)
                self.put("solvers", line)

    def replicate(self, system, words, seed):
        """Records and one random solution for every side, and a second one for y; no solutions where one was not written."""
        runs = [self.solve(system, side, ("--solver", "ulisse", "--preconditioner", "none", *words, "--seed", 10 * seed + k))
                for k, side in enumerate([*range(self.num_sides), 0])]
        missing = any(s is None for _, s in runs)
        return [r for r, _ in runs], None if missing else np.column_stack([s for _, s in runs])

    def measure_ulisse(self):
        count = self.sizes["replicates"]
        first = self.sizes["prior"]
        for number in (*range(self.sizes["ulisse"]), *range(first, first + self.sizes["ulisse"])):
            todo = [rule for rule in list(ULISSE)[: self.sizes["rules"]] if not self.has("ulisse", system=number, rule=rule)]
            system, means = self.system(number) if todo else None, {}
            for rule in todo:
                records, solutions, gradients = [], [], []
                for seed in range(count):
                    of_sides, x = self.replicate(system, ULISSE[rule], seed)
                    if x is None:
                        continue
                    records += [of_sides[0], of_sides[-1]]
                    solutions += [x[:, 0], x[:, -1]]
                    gradients.append(system.gradient_by(x[:, :-1], x[:, -1]))
                line = {"system": number, "rule": rule, "replicates": len(solutions), "missing": count - len(gradients)}
                if len(gradients) < 2:
                    self.put("ulisse", line)
                    continue
                line |= ulisse_line(system, records, solutions, gradients)
                if line["missing"] == 0:  # else the two are not of the same random numbers
                    means[rule] = np.mean(solutions, axis=0)
                if rule == IN_FLOAT and {IN_FLOAT, IN_DOUBLE} <= means.keys():
                    line["rounding"] = np.linalg.norm(means[rule] - means[IN_DOUBLE]) / np.linalg.norm(system.solutions[:, 0])
                self.put("ulisse", line)


def ulisse_line(system, records, solutions, gradients):
    """Relative spread of solutions about their mean and distance of that from the dense one; the same of gradients."""
    x, g = np.array(solutions), np.array(gradients)
    exact, size = system.solutions[:, 0], np.linalg.norm(system.solutions[:, 0])
    sd = np.sqrt(np.sum(x.var(0, ddof=1))) / size
    bias = np.linalg.norm(x.mean(0) - exact) / size
    stops = [r["random_stop"] for r in records if r.get("random_stop")]

    def mean(key):
        values = [s[key] for s in stops if s.get(key) is not None]
        return np.mean(values) if values else ""

    scale = np.linalg.norm(system.gradient)
    return {"iterations": np.mean([r["iterations"] for r in records]), "extra_iterations": mean("extra_iterations"),
            "expected_extra": mean("expected_extra_iterations"), "energy_variance": mean("energy_variance"), "heavy_tail": mean("heavy_tail"), "sd": sd,
            "bias": bias, "bias_errors": bias / (sd / np.sqrt(len(x))) if sd > 0 else "",
            "gradient_sd": np.sqrt(np.sum(g.var(0, ddof=1))) / scale, "gradient_bias": np.linalg.norm(g.mean(0) - system.gradient) / scale}


def numbers(records, key):
    return [float(r[key]) for r in records if r.get(key) not in (None, "")]


def middle(values, form):
    """Median and range."""
    return f"{np.median(values):{form}} ({min(values):{form}} .. {max(values):{form}})" if values else "-"


def write_tables(study):
    with open(os.path.join(study.results, "tables.md"), "w") as file:
        file.write("Medians, and least and largest values in brackets. Errors are relative, against dense solutions. Not reached: solves whose "
                   "tolerance was not reached, which have no error because the program writes no solution then.\n\n")
        for group in GROUPS:
            write_solvers(file, study, group)
        file.write("ULISSE without a preconditioner: sd and bias of the solution and of the gradient. Where there is no bias, that of the mean of the "
                   "replicates is about 1 of its own errors; more where long runs are so rare that the replicates have none. Rounding: the mean in float "
                   "minus that in double with the same random numbers, whose noise it has where rounding changes the number of steps.\n\n")
        for group in GROUPS:
            write_ulisse(file, study, group)


def write_solvers(file, study, group):
    systems = [r for r in study.records["systems"] if r["group"] == group]
    condition, left = (numbers(systems, key) for key in ("condition", "probe_error"))
    file.write(f"## Solves, {group}\n\nCondition number of {len(systems)} systems: {middle(condition, '.3g')}; error of the "
               f"gradient that {study.num_sides - 1} probes leave: {middle(left, '.2g')}. Solves to a relative residual of {TOLERANCE:g} "
               "where no other is named.\n\n"
               "| solver | systems | iterations | inner iterations | residual | error of the solution | error of the gradient | not reached |\n"
               "|---|---:|---:|---:|---:|---:|---:|---:|\n")
    for name, (_, operator) in SOLVERS.items():
        if operator not in study.operators:
            file.write(f"| {name} | - | - | - | - | - | - | - |\n")
            continue
        some = [r for r in study.records["solvers"] if r["solver"] == name and study.group(r["system"]) == group]
        forms = {"iterations": ".0f", "inner_iterations": ".0f", "residual": ".1e", "error": ".1e", "gradient_error": ".1e"}
        cells = [middle(numbers(some, key), form) for key, form in forms.items()]
        file.write(f"| {name} | {len(some)} | {' | '.join(cells)} | {sum(int(r['missing']) for r in some)} |\n")
    without = [name for name, (_, operator) in SOLVERS.items() if operator not in study.operators]
    if without:
        file.write(f"\nNot measured, because this program has no such products: {', '.join(without)}.\n")
    file.write("\n")


def write_ulisse(file, study, group):
    file.write(f"## ULISSE, {group}\n\n| rule | systems | iterations | extra | sd | bias | bias in its errors | rounding | sd of the gradient | its bias "
               "| heavy tails | not reached |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
    for rule in ULISSE:
        some = [r for r in study.records["ulisse"] if r["rule"] == rule and study.group(r["system"]) == group]
        forms = {"iterations": ".0f", "extra_iterations": ".1f", "sd": ".2g", "bias": ".2g", "bias_errors": ".2f", "rounding": ".1g", "gradient_sd": ".2g",
                 "gradient_bias": ".2g"}
        cells = [middle(numbers(some, key), form) for key, form in forms.items()]
        heavy = numbers(some, "heavy_tail")
        file.write(f"| {rule} | {len(some)} | {' | '.join(cells)} | {f'{100 * np.mean(heavy):.0f} %' if heavy else '-'} "
                   f"| {sum(numbers(some, 'missing')):.0f} |\n")
    file.write("\n")


def draw(study):
    condition = {str(r["system"]): float(r["condition"]) for r in study.records["systems"]}

    def dots(table, column, names, key):
        marks = []
        for name in names:
            some = [r for r in study.records[table] if r[column] == name and str(r["system"]) in condition and r.get(key) not in (None, "")]
            marks.append(figure.Mark("dots", [(condition[str(r["system"])], float(r[key])) for r in some], name))
        return [m for m in marks if m.points]

    def panel(title, label, table, column, names, key):
        return figure.Panel(title, "condition number", label, dots(table, column, names, key), log_x=True, log_y=True)

    heights, edges = np.histogram(np.log10(list(condition.values())) if condition else [], bins=8)
    bars = [(float((a + b) / 2), int(h)) for a, b, h in zip(edges, edges[1:], heights)] if condition else []
    figure.write(os.path.join(study.results, "solvers.svg"), "Concrete: solvers against the condition number", [
        figure.Panel("systems", "log10 of the condition number", "systems",
                     [figure.Mark("bars", bars, colour="#666666", width=float(edges[1] - edges[0]))]),
        panel("iterations", "iterations", "solvers", "solver", SOLVERS, "iterations"),
        panel("error of the solution", "relative error", "solvers", "solver", SOLVERS, "error"),
        panel("error of the gradient by solves", "relative error", "solvers", "solver", SOLVERS, "gradient_error")])
    figure.write(os.path.join(study.results, "ulisse.svg"), "Concrete: ULISSE against the condition number", [
        panel("iterations", "iterations", "ulisse", "rule", ULISSE, "iterations"),
        panel("sd of the solution", "relative sd", "ulisse", "rule", ULISSE, "sd"),
        panel("bias of the mean of the replicates", "relative bias", "ulisse", "rule", ULISSE, "bias"),
        panel("sd of the gradient by solves", "relative sd", "ulisse", "rule", ULISSE, "gradient_sd")])


def main():
    mercer, data, folder, results, *words = sys.argv[1:]
    sizes = SMOKE if "smoke" in words else SIZES
    words = [w for w in words if w != "smoke"]
    parts = {"systems": Study.measure_systems, "solvers": Study.measure_solvers, "ulisse": Study.measure_ulisse}
    wrong = [w for w in words if w not in (*parts, "tables")]
    if wrong:
        raise SystemExit(f"no part '{wrong[0]}'; there are {', '.join(parts)}, and tables")
    if not os.path.exists(os.path.join(data, "concrete.csv.gz")):
        print("skipped: the data folder has no concrete.csv.gz")
        return
    study = Study(mercer, data, folder, results, sizes)
    for name, measure in parts.items():
        if not words or name in words:
            measure(study)
    write_tables(study)
    draw(study)


if __name__ == "__main__":
    main()
