#!/usr/bin/env python3
"""The picture of the README, from the README's own first example: docs/pictures/readme.py [build/mercer].

Runs the commands of that example in a temporary folder and draws every predicted row against what
was observed, with its 90 % interval. Writes docs/pictures/predicted.svg. Standard library only.
"""

import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMANDS = [
    "generate gp -n 1000 -d 3 --lengthscale 0.3,0.5,2 --signal-variance 4 --noise 0.09 --seed 1 -o field.csv",
    "split field.csv --test-fraction 0.2 --train-out train.csv --test-out new.csv",
    "fit train.csv --target y -m field.mcr",
    "predict field.mcr new.csv -o predictions.csv",
]
SIZE, LEFT, BOTTOM, TOP, RIGHT = 420, 52, 46, 58, 14
INSIDE, OUTSIDE = "#2a6f97", "#d1495b"


def column(path, name):
    with open(path, newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file)]


def text(x, y, words, style=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{words}</text>\n'


def draw(observed, mean, low, high):
    ends = min(observed + low), max(observed + high)
    pad = 0.03 * (ends[1] - ends[0])
    first, last = ends[0] - pad, ends[1] + pad
    width, height = SIZE - LEFT - RIGHT, SIZE - TOP - BOTTOM

    def x(v):
        return LEFT + (v - first) / (last - first) * width

    def y(v):
        return TOP + (last - v) / (last - first) * height

    inside = sum(a <= v <= b for v, a, b in zip(observed, low, high))
    out = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIZE}" height="{SIZE}" viewBox="0 0 {SIZE} {SIZE}" '
           'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n')
    out += text(LEFT, 22, "Predicted against observed", 'font-size="15" font-weight="bold"')
    out += text(LEFT, 42, f"{len(observed)} rows set apart; 90 % intervals cover {inside}", 'fill="#444"')
    for tick in range(int(first) - 1, int(last) + 2):
        if first <= tick <= last:
            out += (f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{TOP + height}" stroke="#eee"/>\n'
                    f'<line x1="{LEFT}" x2="{LEFT + width}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#eee"/>\n')
            out += text(x(tick), TOP + height + 16, f"{tick}", 'text-anchor="middle" fill="#444"')
            out += text(LEFT - 7, y(tick) + 4, f"{tick}", 'text-anchor="end" fill="#444"')
    out += (f'<line x1="{x(first):.1f}" y1="{y(first):.1f}" x2="{x(last):.1f}" y2="{y(last):.1f}" '
            'stroke="#999" stroke-dasharray="4 3"/>\n')
    for v, m, a, b in zip(observed, mean, low, high):
        colour = INSIDE if a <= v <= b else OUTSIDE
        out += (f'<line x1="{x(v):.1f}" x2="{x(v):.1f}" y1="{y(a):.1f}" y2="{y(b):.1f}" stroke="{colour}" '
                'stroke-opacity="0.35" stroke-width="1.5"/>\n'
                f'<circle cx="{x(v):.1f}" cy="{y(m):.1f}" r="2.2" fill="{colour}"/>\n')
    out += f'<rect x="{LEFT}" y="{TOP}" width="{width}" height="{height}" fill="none" stroke="#999"/>\n'
    out += text(LEFT + width / 2, SIZE - 10, "observed", 'text-anchor="middle"')
    out += text(14, TOP + height / 2, "predicted",
                f'text-anchor="middle" transform="rotate(-90 14 {TOP + height / 2:.0f})"')
    return out + "</svg>\n"


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else HERE.parent.parent / "build" / "mercer")
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            subprocess.run([program, *command.split(), "--quiet"], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL)
        observed = column(Path(folder) / "new.csv", "y")
        predicted = {name: column(Path(folder) / "predictions.csv", name) for name in ("mean", "q05", "q95")}
    (HERE / "predicted.svg").write_text(draw(observed, predicted["mean"], predicted["q05"], predicted["q95"]))


if __name__ == "__main__":
    main()
