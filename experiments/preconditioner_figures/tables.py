"""Markdown tables from what `run` left: tables.py protein|build RESULTS_FOLDER."""

import glob
import json
import os
import sys


def load(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def protein(folder):
    print("| preconditioner | rank | iterations | products | build s | solve s | residual | peak MiB |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in ("none", "auto"):
        r = load(os.path.join(folder, f"protein-{name}.json"))
        if r:
            print(f"| {name} ({r['preconditioner']}) | {r['rank']} | {r['iterations']} | {r['matvecs']} | "
                  f"{r['build_seconds']:.1f} | {r['solve_seconds']:.1f} | {r['relative_residual']:.1e} | "
                  f"{r['peak_rss_bytes'] / 2**20:.0f} |")


def build(folder):
    print("| preconditioner | build s planned | build s | peak MiB planned | peak MiB |")
    print("|---|---:|---:|---:|---:|")
    for path in sorted(glob.glob(os.path.join(folder, "plan-*.json"))):
        name = os.path.basename(path)[5:-5]
        plan, done = load(path), load(os.path.join(folder, f"build-{name}.json"))
        if plan is None:
            with open(path[:-4] + "err") as file:
                print(f"| {name} | refused: {file.read().strip()} | | | |")
            continue
        row = next(row for row in plan["methods"] if row["chosen"])
        after = "| did not end |" if done is None else (
            f"| {done['build_seconds']:.2f} | {plan['peak_bytes'] / 2**20:.0f} | {done['peak_rss_bytes'] / 2**20:.0f} |")
        print(f"| {name} | {row['build_seconds']:.2f} {after}")


if __name__ == "__main__":
    {"protein": protein, "build": build}[sys.argv[1]](sys.argv[2])
