"""Panels of lines over logarithmic axes as one SVG file, in the colours of the project's other pictures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

# Okabe and Ito.
COLOURS = ["#d55e00", "#0072b2", "#009e73", "#cc79a7"]
WIDTH, HEIGHT = 300, 320
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 92


@dataclass
class Line:
    name: str
    x: list[float]
    y: list[float]


@dataclass
class Panel:
    title: str
    across: str
    lines: list[Line]


def seconds(value: float) -> str:
    """A power of ten of seconds in its natural unit."""
    for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= 0.999 * size:
            return f"{round(value / size):,} {unit}"
    return f"{value:g} s"


def svg(panels: list[Panel]) -> str:
    """All panels beside each other, over the same range of seconds."""
    values = [value for panel in panels for line in panel.lines for value in line.y]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    total = WIDTH * len(panels)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {HEIGHT}" width="{total}" height="{HEIGHT}" role="img" '
        f'aria-label="Seconds over size, logarithmic" font-family="system-ui, sans-serif" font-size="12" fill="#1f2328">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        out += draw(panel, WIDTH * number, low, high)
    return "\n".join([*out, "</svg>"]) + "\n"


def draw(panel: Panel, offset: float, low: int, high: int) -> list[str]:
    places = sorted({place for line in panel.lines for place in line.x})
    first, last = math.log10(places[0]), math.log10(max(places[-1], 1.001 * places[0]))
    left, right, bottom = offset + LEFT, offset + WIDTH - RIGHT, HEIGHT - BOTTOM

    def px(value: float) -> float:
        return left + 10 + (right - left - 20) * (math.log10(value) - first) / (last - first)

    def py(value: float) -> float:
        return bottom - (bottom - TOP) * (math.log10(value) - low) / (high - low)

    out = [f'<text x="{left}" y="20" font-weight="600" font-size="13">{escape(panel.title)}</text>']
    for power in range(low, high + 1):
        y = py(10.0**power)
        out.append(f'<path d="M{left} {y:.1f}H{right}" stroke="#d8dee4"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{seconds(10.0**power)}</text>')
    out.append(f'<path d="M{left} {bottom}H{right}" stroke="#57606a"/>')
    # From the largest on, as far as numbers have room beside each other.
    free = math.inf
    for place in reversed(places):
        out.append(f'<path d="M{px(place):.1f} {bottom}v4" stroke="#57606a"/>')
        width = 6.2 * len(f"{place:,.0f}")
        if px(place) + width / 2 <= free:
            out.append(f'<text x="{px(place):.1f}" y="{bottom + 17}" text-anchor="middle" font-size="11">{place:,.0f}</text>')
            free = px(place) - width / 2 - 4
    out.append(f'<text x="{(left + right) / 2:.1f}" y="{bottom + 34}" text-anchor="middle" fill="#57606a">{escape(panel.across)}</text>')
    for number, line in enumerate(panel.lines):
        colour = COLOURS[number % len(COLOURS)]
        points = [(px(x), py(y)) for x, y in zip(line.x, line.y, strict=True)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        y = bottom + 52 + 16 * number
        out.append(f'<path d="M{left} {y - 4}h22" stroke="{colour}" stroke-width="1.8"/>')
        out.append(f'<text x="{left + 28}" y="{y}">{escape(line.name)}</text>')
    return out
