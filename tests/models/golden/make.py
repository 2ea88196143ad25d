"""Fits small models of every kind and keeps their predictions: make.py PROGRAM FOLDER.

The files beside this script were made by the last program that wrote the format versions 1 to 3, and those called
format-4-* by the last one that wrote version 4. Do not make them again:
they are what tests/cli/golden_cases.py holds every later program to.
"""

import csv
import json
import math
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path

program, out = sys.argv[1], Path(sys.argv[2])
out.mkdir(exist_ok=True)
rng = random.Random(20)


def run(*words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, cwd=out)
    if done.returncode:
        sys.exit(f"{words}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def poisson(rate):
    n, gap = -1, 0.0
    while gap < rate:
        gap += rng.expovariate(1)
        n += 1
    return n

rows = []
for i in range(36):
    a, b = round(rng.uniform(-2, 2), 3), round(rng.uniform(0, 10), 3)
    f = math.sin(2 * a) + 0.3 * b
    rows.append(dict(a=a, b=b, kind="uvw"[i % 3], variance=round(rng.uniform(0.001, 0.05), 4), count=1 + i % 4,
      number=round(f + 0.1 * rng.gauss(0, 1), 4), outlier=round(f + 0.1 * rng.gauss(0, 1) + (8 if i % 12 == 5 else 0), 4),
      two="yes" if f + 0.5 * rng.gauss(0, 1) > 1.5 else "no",
      three=["low", "middle", "high"][(f + 0.3 * rng.gauss(0, 1) > 1) + (f > 2)],
      events=poisson(math.exp(0.4 * f)), many=poisson(math.exp(0.8 * f) * rng.gammavariate(2, 0.5))))


def write(name, names, these):
    with open(out / name, "w", newline="") as file:
        w = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
        w.writeheader()
        w.writerows(these)

new = [dict(a=round(rng.uniform(-2.5, 2.5), 3), b=round(rng.uniform(-1, 11), 3), kind="uvw"[i % 3],
            variance=round(rng.uniform(0.001, 0.05), 4), count=1 + i % 5) for i in range(12)]
new[3] = dict(new[3], a=40, b=-300)  # far from all data
new[5] = dict(new[5], a=rows[0]["a"], b=rows[0]["b"])
write("new.csv", ["a", "b", "kind", "variance", "count"], new)

cases = {}


def case(name, target, *words, inputs="a,b", extra=(), data=rows, predict=((),)):
    names = inputs.split(",") + list(extra) + [target]
    write("train.tmp.csv", names, data)
    run("fit", "train.tmp.csv", "--target", target, "--inputs", inputs, "-m", f"{name}.mcr", *(() if "none" in words else ("--restarts", 0)), "--quiet", *words)
    predictions(name, predict)


def predictions(name, predict=((),)):
    cases[name] = []
    for number, words in enumerate(predict):
        text = run("predict", f"{name}.mcr", "new.csv", "--quiet", *words)
        file = f"{name}.csv" if number == 0 else f"{name}-{number}.csv"
        (out / file).write_text(text)
        cases[name].append({"words": list(map(str, words)), "predictions": file})

iso = ("--kernel", "matern52:iso")
reg = ("--task", "regression")
vecchia = ("--variance", "vecchia", "--neighbours", 8, "--check-rows", 0)
case("zero-mean", "number", *reg, *iso, predict=((), vecchia, ("--variance", "none"), ("--variance", "samples"), ("--samples", 2)))
case("constant-mean", "number", *reg, "--mean", "constant", "--kernel", "rbf + linear")
case("linear-mean", "number", *reg, "--categorical", "kind", "--mean", "linear", *iso, inputs="a,b,kind", predict=((), ("--samples", 2)))
case("conjugate-gradients", "number", *reg, *iso, "--solver", "cg", "--preconditioner", "rpcholesky", "--rank", 20, "--tolerance", "1e-10", predict=((), ("--solver", "cg", "--tolerance", "1e-10")))
case("raw-scale", "number", *reg, *iso, "--no-standardize", "--mean", "constant")
case("known-noise", "number", *reg, *iso, "--noise-column", "variance", "--count-column", "count", extra=("variance", "count"))
merged = rows + [dict(r, number=round(r["number"] + 0.2, 4)) for r in rows[:9]]
case("merged-rows", "number", *reg, *iso, data=merged)
case("ridge", "number", *reg, *iso, "--method", "krr")
case("ridge-kcg", "number", *reg, *iso, "--method", "krr", "--solver", "kcg", "--tolerance", "1e-10")
case("two-classes-logit", "two", *iso, predict=((), vecchia, ("--variance", "none")))
case("two-classes-probit", "two", *iso, "--likelihood", "bernoulli-probit")
case("three-classes", "three", *iso, predict=((), vecchia))
case("three-classes-cg", "three", *iso, "--solver", "cg", "--train", "none", "--tolerance", "1e-9", predict=((), ("--solver", "cg", "--tolerance", "1e-10")))
case("kernel-logistic", "two", *iso, "--method", "klr")
case("kernel-logistic-kcg", "three", *iso, "--method", "klr", "--solver", "kcg", "--train", "none", "--tolerance", "1e-9")
case("counts", "events", *iso, "--likelihood", "poisson", predict=((), vecchia))
case("spread-counts", "many", *iso, "--likelihood", "negative-binomial")
case("outliers", "outlier", *iso, "--likelihood", "student-t:df=5", "--train", "lbfgs")

# As the first version of the program wrote it: without the fields that came later.
raw = (out / "zero-mean.mcr").read_bytes()
size = struct.unpack("<Q", raw[24:32])[0]
header, arrays = json.loads(raw[32:32 + size]), raw[32 + size:]
for key in ("trend_left_out", "trend_residual", "weighted_residual"):
    del header[key]
for key in ("preconditioning", "landmarks"):
    del header["method"][key]
text = json.dumps(header, separators=(",", ":")).encode()
tail = struct.pack("<QQ", 32 + len(text) + len(arrays), len(text)) + text
(out / "first-version.mcr").write_bytes(raw[:8] + struct.pack("<II", 1, zlib.crc32(tail)) + tail + arrays)
predictions("first-version")
(out / "train.tmp.csv").unlink()
(out / "golden.json").write_text(json.dumps(cases, indent=1) + "\n")
