"""Lines against a logarithmic axis as SVG, for the studies: write(path, title, panels).

A panel is (title, x label, y label, {name: [(x, y), ...]}). No package needed; any browser shows it.
"""

import html
import math

COLOURS = ["#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#a6761d", "#666666", "#1f78b4", "#e6ab02", "#b2182b", "#6a3d9a",
           "#000000"]
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, GAP = 360, 240, 58, 44, 34, 24


def text(x, y, words, style=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{html.escape(str(words))}</text>\n'


def ticks(low, high, count=5):
    step = 10 ** math.floor(math.log10((high - low) / count))
    step *= min((m for m in (1, 2, 5, 10)), key=lambda m: abs((high - low) / (m * step) - count))
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _panel(x0, y0, title, x_label, y_label, lines, colours):
    points = [p for line in lines.values() for p in line]
    if not points:
        return text(x0 + LEFT, y0 + TOP, title + ": nothing to show")
    lows = [math.floor(min(math.log10(p[0]) for p in points) * 4) / 4, min(p[1] for p in points)]
    highs = [math.ceil(max(math.log10(p[0]) for p in points) * 4) / 4, max(p[1] for p in points)]
    pad = 0.06 * max(highs[1] - lows[1], 1e-9)
    lows[1], highs[1] = lows[1] - pad, highs[1] + pad
    inner_w, inner_h = WIDTH - LEFT - 10, HEIGHT - TOP - BOTTOM

    def at(x, y):
        return (x0 + LEFT + (math.log10(x) - lows[0]) / max(highs[0] - lows[0], 1e-9) * inner_w,
                y0 + TOP + (highs[1] - y) / (highs[1] - lows[1]) * inner_h)

    out = text(x0 + LEFT, y0 + 20, title, 'font-size="14" font-weight="bold"')
    out += (f'<rect x="{x0 + LEFT}" y="{y0 + TOP}" width="{inner_w}" height="{inner_h}" fill="none" '
            'stroke="#999"/>\n')
    for y in ticks(lows[1], highs[1]):
        _, py = at(10 ** lows[0], y)
        out += f'<line x1="{x0 + LEFT}" x2="{x0 + LEFT + inner_w}" y1="{py:.1f}" y2="{py:.1f}" stroke="#eee"/>\n'
        out += text(x0 + LEFT - 6, py + 4, f"{y:g}", 'text-anchor="end" font-size="11"')
    for e in range(math.ceil(lows[0]), math.floor(highs[0]) + 1):
        px, _ = at(10.0 ** e, lows[1])
        out += f'<line x1="{px:.1f}" x2="{px:.1f}" y1="{y0 + TOP}" y2="{y0 + TOP + inner_h}" stroke="#eee"/>\n'
        out += text(px, y0 + TOP + inner_h + 16, f"{10.0 ** e:g}", 'text-anchor="middle" font-size="11"')
    out += text(x0 + LEFT + inner_w / 2, y0 + HEIGHT - 8, x_label, 'text-anchor="middle" fill="#444"')
    cx, cy = x0 + 14, y0 + TOP + inner_h / 2
    out += text(cx, cy, y_label, f'text-anchor="middle" fill="#444" transform="rotate(-90 {cx} {cy})"')
    for name, line in lines.items():
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in (at(*p) for p in line))
        out += f'<polyline points="{path}" fill="none" stroke="{colours[name]}" stroke-width="2"/>\n'
        for p in line:
            px, py = at(*p)
            out += f'<circle cx="{px:.1f}" cy="{py:.1f}" r="2.4" fill="{colours[name]}"/>\n'
    return out


def legend_places(names, width):
    """(x, line) of every name: as many beside each other as there is room for."""
    places, x, line = [], 16, 0
    for name in names:
        if x > 16 and x + 28 + 7 * len(name) > width:
            x, line = 16, line + 1
        places.append((x, line))
        x += 44 + 7 * len(name)
    return places


def write(path, title, panels, across=2):
    names = list(dict.fromkeys(name for panel in panels for name in panel[3]))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    down = (len(panels) + across - 1) // across
    width = across * (WIDTH + GAP) + 20
    legend = legend_places(names, width)
    below = 20 * legend[-1][1] if legend else 0
    height = 70 + below + down * (HEIGHT + GAP) + 10
    out = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           'font-family="Helvetica, Arial, sans-serif" font-size="12">\n'
           f'<rect width="{width}" height="{height}" fill="#fff"/>\n')
    out += text(16, 28, title, 'font-size="18" font-weight="bold"')
    for name, (x, line) in zip(names, legend):
        y = 46 + 20 * line
        out += f'<line x1="{x}" x2="{x + 22}" y1="{y}" y2="{y}" stroke="{colours[name]}" stroke-width="3"/>\n'
        out += text(x + 28, y + 4, name)
    for i, panel in enumerate(panels):
        out += _panel(10 + (i % across) * (WIDTH + GAP), 62 + below + (i // across) * (HEIGHT + GAP), *panel, colours)
    with open(path, "w") as file:
        file.write(out + "</svg>\n")
