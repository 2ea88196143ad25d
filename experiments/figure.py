"""Panels of lines, dots, bars and bands as SVG, on linear or logarithmic axes: write(path, title, panels).

For pictures that line_chart.py cannot draw. No package needed; any browser shows it.
"""

import dataclasses
import math

from line_chart import COLOURS, legend_places, text, ticks

WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, TOP, GAP = 380, 250, 62, 12, 44, 34, 24
GREY = "#bbbbbb"


@dataclasses.dataclass
class Mark:
    """kind: line, dots, bars (x is the middle of a bar of this width) or band (points are x, low, high). A name gets a line of the legend."""

    kind: str
    points: list
    name: str = ""
    colour: str = ""
    dashed: bool = False
    width: float = 2


@dataclasses.dataclass
class Panel:
    """Limits that are not given are those of the marks."""

    title: str
    x_label: str
    y_label: str
    marks: list
    log_x: bool = False
    log_y: bool = False
    y_limits: tuple = ()


class _Axis:
    """From values to pixels between `start` and `end`."""

    def __init__(self, values, log, start, end, limits=()):
        self.log, self.start, self.end = log, start, end
        if limits:
            values = limits
        scaled = [self._scaled(v) for v in values]
        low, high = min(scaled), max(scaled)
        pad = 0 if limits else 0.05 * (high - low)
        if high - low < 1e-12:
            pad = 0.5
        self.low, self.high = low - pad, high + pad

    def _scaled(self, value):
        return math.log10(value) if self.log else value

    def place(self, value):
        return self.start + (self._scaled(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def marks(self):
        """(pixel, label) of some round values."""
        if not self.log:
            return [(self.place(v), f"{v:g}") for v in ticks(self.low, self.high)]
        decades = range(math.ceil(self.low), math.floor(self.high) + 1)
        step = max(1, math.ceil(len(decades) / 6))
        if len(decades) >= 2:
            return [(self.place(10.0**e), f"1e{e}" if abs(e) > 3 else f"{10.0**e:g}") for e in decades[::step]]
        return [(self.start + (v - self.low) / (self.high - self.low) * (self.end - self.start), f"{10**v:.3g}")
                for v in ticks(self.low, self.high)]


def _usable(point, panel):
    return all(math.isfinite(v) for v in point) and (not panel.log_x or point[0] > 0) and (not panel.log_y or min(point[1:]) > 0)


def _drawn(mark, points, x_at, y_at, colour, floor):
    if mark.kind == "band":
        path = [(x_at(x), y_at(low)) for x, low, _ in points] + [(x_at(x), y_at(high)) for x, _, high in reversed(points)]
        return f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in path)}" fill="{colour}" fill-opacity="0.25"/>\n'
    if mark.kind == "bars":
        half = abs(x_at(points[0][0] + mark.width / 2) - x_at(points[0][0])) * 0.92
        return "".join(f'<rect x="{x_at(x) - half:.1f}" y="{y_at(y):.1f}" width="{2 * half:.1f}" height="{max(floor - y_at(y), 0):.1f}" '
                       f'fill="{colour}"/>\n' for x, y in points)
    if mark.kind == "dots":
        return "".join(f'<circle cx="{x_at(x):.1f}" cy="{y_at(y):.1f}" r="{mark.width + 0.4:.1f}" fill="{colour}" fill-opacity="0.75"/>\n'
                       for x, y in points)
    path = " ".join(f"{x_at(x):.1f},{y_at(y):.1f}" for x, y in points)
    dash = ' stroke-dasharray="5 4"' if mark.dashed else ""
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{mark.width}"{dash}/>\n'


def _panel(x0, y0, panel, colours):
    left, right, top, bottom = x0 + LEFT, x0 + WIDTH - RIGHT, y0 + TOP, y0 + HEIGHT - BOTTOM
    kept = [(mark, [p for p in mark.points if _usable(p, panel)]) for mark in panel.marks]
    kept = [(mark, points) for mark, points in kept if points]
    if not kept:
        return text(left, top, panel.title + ": nothing to show")
    xs = [p[0] + side * (mark.width / 2 if mark.kind == "bars" else 0) for mark, points in kept for p in points for side in (-1, 1)]
    ys = [y for _, points in kept for p in points for y in p[1:]]
    if any(mark.kind == "bars" for mark, _ in kept):
        ys.append(0)
    x_axis = _Axis(xs, panel.log_x, left, right)
    y_axis = _Axis(ys, panel.log_y, bottom, top, panel.y_limits)
    out = text(left, y0 + 20, panel.title, 'font-size="14" font-weight="bold"')
    out += f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" fill="none" stroke="#999"/>\n'
    for py, label in y_axis.marks():
        out += f'<line x1="{left}" x2="{right}" y1="{py:.1f}" y2="{py:.1f}" stroke="#eee"/>\n'
        out += text(left - 6, py + 4, label, 'text-anchor="end" font-size="11"')
    for px, label in x_axis.marks():
        out += f'<line x1="{px:.1f}" x2="{px:.1f}" y1="{top}" y2="{bottom}" stroke="#eee"/>\n'
        out += text(px, bottom + 16, label, 'text-anchor="middle" font-size="11"')
    out += text((left + right) / 2, y0 + HEIGHT - 8, panel.x_label, 'text-anchor="middle" fill="#444"')
    cx, cy = x0 + 14, (top + bottom) / 2
    out += text(cx, cy, panel.y_label, f'text-anchor="middle" fill="#444" transform="rotate(-90 {cx} {cy})"')
    clip = f"clip{x0:.0f}-{y0:.0f}"  # given limits may leave something outside
    out += f'<clipPath id="{clip}"><rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}"/></clipPath>\n'
    out += f'<g clip-path="url(#{clip})">\n'
    floor = y_axis.place(0) if not panel.log_y else bottom
    for mark, points in kept:
        out += _drawn(mark, points, x_axis.place, y_axis.place, mark.colour or colours.get(mark.name, "#000"), floor)
    return out + "</g>\n"


def write(path, title, panels, across=2):
    names = {mark.name: mark.colour for panel in panels for mark in panel.marks if mark.name}
    colours = {name: colour or COLOURS[i % len(COLOURS)] for i, (name, colour) in enumerate(names.items())}
    width = across * (WIDTH + GAP) + 20
    places = legend_places(colours, width)
    below = 20 * places[-1][1] if places else 0
    down = (len(panels) + across - 1) // across
    height = 70 + below + down * (HEIGHT + GAP) + 10
    out = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           'font-family="Helvetica, Arial, sans-serif" font-size="12">\n'
           f'<rect width="{width}" height="{height}" fill="#fff"/>\n')
    out += text(16, 28, title, 'font-size="18" font-weight="bold"')
    for (name, colour), (x, line) in zip(colours.items(), places):
        y = 46 + 20 * line
        out += f'<line x1="{x}" x2="{x + 22}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"/>\n'
        out += text(x + 28, y + 4, name)
    for i, panel in enumerate(panels):
        out += _panel(10 + (i % across) * (WIDTH + GAP), 62 + below + (i // across) * (HEIGHT + GAP), panel, colours)
    with open(path, "w") as file:
        file.write(out + "</svg>\n")
