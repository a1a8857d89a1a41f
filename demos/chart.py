"""Curves for the blackboard, as SVG text written by hand: no package, the same bytes on every machine.

    chart = Chart("loss while learning", x="step", y="loss", log="y")
    chart.line(steps, losses, "with zero_grad")
    page(chart, another)                            # several beside each other, as one SVG
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b6472")   # told apart by all eyes
WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 460, 340, 66, 16, 40, 52
DASHES = ("", "7 4", "2 4", "9 3 2 3")


class Chart:
    """One set of axes; `log` says which of them are logarithmic: "", "x", "y" or "xy"."""

    def __init__(self, title: str = "", x: str = "", y: str = "", log: str = "", limits: tuple = (None,) * 4,
                 square: bool = False, corner: str = "top right") -> None:
        self.title, self.names, self.log, self.limits, self.square, self.corner = title, (x, y), log, limits, square, corner
        self.marks: list[tuple] = []
        self.legend: list[tuple[str, str, str]] = []

    def line(self, x: Sequence, y: Sequence, label: str = "", colour: str = "", dash: int = 0,
             width: float = 2.2) -> Chart:
        """A curve through the points; what is not finite leaves a gap."""
        return self._add("line", x, y, label, colour, DASHES[dash], width)

    def dots(self, x: Sequence, y: Sequence, label: str = "", colour: str = "", size: float = 3.5) -> Chart:
        """Points."""
        return self._add("dots", x, y, label, colour, "", size)

    def area(self, x: Sequence, y: Sequence, colour: str, opacity: float = 0.15) -> Chart:
        """A filled outline."""
        self.marks.append(("area", [*map(float, x)], [*map(float, y)], colour, "", opacity))
        return self

    def arrow(self, x: Sequence, y: Sequence, label: str = "", colour: str = "", width: float = 2.6) -> Chart:
        """A line with a head at its end."""
        return self._add("arrow", x, y, label, colour, "", width)

    def text(self, x: float, y: float, text: str, colour: str = "#1b2430", anchor: str = "start") -> Chart:
        """A note at a point."""
        self.marks.append(("text", [float(x)], [float(y)], colour, anchor, text))
        return self

    def cells(self, rows: Sequence[Sequence[float]], across: Sequence, down: Sequence, form: str = ".2f") -> Chart:
        """A matrix as shades, from white (0) to blue (the largest), each with its number."""
        self.marks.append(("cells", [0.0, float(len(across))], [0.0, float(len(down))], "", form, (rows, across, down)))
        return self

    def _add(self, kind: str, x: Sequence, y: Sequence, label: str, colour: str, dash: str, size: float) -> Chart:
        colour = colour or COLOURS[len(self.legend) % len(COLOURS)]
        if label:
            self.legend.append((label, colour, kind if kind != "line" else dash))
        self.marks.append((kind, [*map(float, x)], [*map(float, y)], colour, dash, size))
        return self

    # ------------------------------------------------------------------------------------ drawing
    def _range(self, axis: int) -> tuple[float, float]:
        logarithmic = "xy"[axis] in self.log
        numbers = [v for mark in self.marks for v in mark[1 + axis] if math.isfinite(v) and not (logarithmic and v <= 0)]
        low, high = min(numbers, default=0.0), max(numbers, default=1.0)
        given = self.limits[2 * axis:2 * axis + 2]
        pad = 0.0 if logarithmic or any(mark[0] == "cells" for mark in self.marks) else 0.04 * (high - low)
        low, high = (low - pad if given[0] is None else given[0]), (high + pad if given[1] is None else given[1])
        return (low, high) if high > low else (low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1))

    def inside(self) -> str:
        """What stands between <g> and </g> for this chart: WIDE x HIGH."""
        ranges = [self._range(0), self._range(1)]
        if self.square:                                 # one unit is as long on both axes
            sizes = WIDE - LEFT - RIGHT, HIGH - TOP - BOTTOM
            unit = max((high - low) / size for (low, high), size in zip(ranges, sizes))
            for i, size in enumerate(sizes):
                middle = (ranges[i][0] + ranges[i][1]) / 2
                ranges[i] = (middle - unit * size / 2, middle + unit * size / 2)
        scale = [math.log10 if name in self.log else float for name in "xy"]
        ends = [tuple(scale[i](v) for v in ranges[i]) for i in (0, 1)]

        def place(x: float, y: float) -> tuple[float, float]:
            across = (scale[0](x) - ends[0][0]) / (ends[0][1] - ends[0][0])
            up = (scale[1](y) - ends[1][0]) / (ends[1][1] - ends[1][0])
            across, up = max(-9.0, min(10.0, across)), max(-9.0, min(10.0, up))     # viewers dislike huge coordinates
            return LEFT + across * (WIDE - LEFT - RIGHT), HIGH - BOTTOM - up * (HIGH - TOP - BOTTOM)

        out = [f'<text x="{LEFT}" y="22" font-size="15" font-weight="bold">{escape(self.title)}</text>']
        matrix = any(mark[0] == "cells" for mark in self.marks)
        if not matrix:
            out += self._axes(ranges, place)
        out.append('<g clip-path="url(#plot)">')
        for mark in self.marks:
            out += _mark(mark, place, self.log)
        out.append("</g>")
        return "\n".join(out + self._legend())

    def _legend(self) -> list[str]:
        """The names of the curves, in the corner that was asked for."""
        right, out = "right" in self.corner, []
        first = TOP + 14 if "top" in self.corner else HIGH - BOTTOM + 8 - 18 * len(self.legend)
        for i, (label, colour, kind) in enumerate(self.legend):
            y, x = first + 18 * i, WIDE - RIGHT - 28 if right else LEFT + 10
            dash = "" if kind in ("arrow", "dots") else kind
            out.append(f'<circle cx="{x + 11}" cy="{y - 4}" r="4" fill="{colour}"/>' if kind == "dots" else
                       f'<line x1="{x}" x2="{x + 22}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="2.4" '
                       f'stroke-dasharray="{dash}"/>')
            out.append(f'<text x="{x - 6 if right else x + 28}" y="{y}" text-anchor="{"end" if right else "start"}" '
                       f'class="halo">{escape(label)}</text>')
        return out

    def _axes(self, ranges: list, place) -> list[str]:  # noqa: ANN001
        right, bottom = WIDE - RIGHT, HIGH - BOTTOM
        out = []
        for x in _ticks(*ranges[0], "x" in self.log):
            at = place(x, ranges[1][0])[0]
            out.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{bottom}"/>'
                       f'<text x="{at:.1f}" y="{bottom + 17}" text-anchor="middle">{_number(x)}</text>')
        for y in _ticks(*ranges[1], "y" in self.log):
            at = place(ranges[0][0], y)[1]
            out.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>'
                       f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_number(y)}</text>')
        out.append(f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#5b6472"/>'
                   f'<text x="{(LEFT + right) / 2}" y="{HIGH - 14}" text-anchor="middle">{escape(self.names[0])}</text>'
                   f'<text transform="translate(14 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
                   f'{escape(self.names[1])}</text>')
        return out

    def svg(self) -> str:
        """The chart alone, as SVG."""
        return page(self)


def _mark(mark: tuple, place, log: str) -> list[str]:  # noqa: ANN001
    kind, xs, ys, colour, dash, size = mark
    seen = [(x, y) for x, y in zip(xs, ys) if math.isfinite(x) and math.isfinite(y)
            and not ("x" in log and x <= 0) and not ("y" in log and y <= 0)]
    spots = [place(x, y) for x, y in seen]
    if kind == "dots":
        return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"/>' for x, y in spots]
    if kind == "text":
        return [f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{dash}" class="halo">{escape(size)}</text>'
                for x, y in spots]
    if kind == "cells":
        return _cells(*size, dash, place)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    if kind == "area":
        return [f'<polygon points="{points}" fill="{colour}" fill-opacity="{size}"/>']
    head = ' marker-end="url(#head)"' if kind == "arrow" else ""
    return [f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{size}" '
            f'stroke-linejoin="round" stroke-dasharray="{dash}"{head}/>']


def _cells(rows: Sequence, across: Sequence, down: Sequence, form: str, place) -> list[str]:  # noqa: ANN001
    most, out, n = max(abs(v) for row in rows for v in row) or 1.0, [], len(down)
    for i, row in enumerate(rows):
        for j, v in enumerate(row):
            (x0, y1), (x1, y0) = place(j, n - 1 - i), place(j + 1, n - i)
            share = abs(v) / most
            paint = "#0072b2" if v >= 0 else "#d55e00"
            out.append(f'<rect x="{x0:.1f}" y="{y0:.1f}" width="{x1 - x0:.1f}" height="{y1 - y0:.1f}" stroke="#fff" '
                       f'fill="{paint}" fill-opacity="{share:.2f}"/>')
            if form:
                out.append(f'<text x="{(x0 + x1) / 2:.1f}" y="{(y0 + y1) / 2 + 4:.1f}" text-anchor="middle" '
                           f'fill="{"#fff" if share > 0.55 else "#1b2430"}">{format(v, form)}</text>')
    out.append("</g><g>")                               # names stand outside of the clipped part
    for j, name in enumerate(across):
        x, y = place(j + 0.5, 0)
        out.append(f'<text x="{x:.1f}" y="{y + 17:.1f}" text-anchor="middle">{escape(str(name))}</text>')
    for i, name in enumerate(down):
        x, y = place(0, n - i - 0.5)
        out.append(f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(str(name))}</text>')
    return out


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """Round numbers within a range: four to eight of them."""
    if logarithmic:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        if last - first >= 1:
            return [10.0 ** k for k in range(first, last + 1, 1 + (last - first) // 6)]
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(k for k in (1, 2, 5, 10) if (high - low) / (k * step) <= 6)
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _number(x: float) -> str:
    if x and not 1e-3 <= abs(x) < 1e5:
        exponent = math.floor(math.log10(abs(x)) + 1e-9)
        digits = x / 10.0 ** exponent
        power = "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return power if abs(digits - 1) < 1e-9 else f"{digits:g}·{power}"
    return f"{x:.10g}".replace("-", "−")


def page(*charts: Chart | None, columns: int = 2) -> str:
    """Charts beside and below each other, as one SVG on white paper."""
    columns = min(columns, len(charts))
    wide, high = WIDE * columns, HIGH * -(-len(charts) // columns)
    parts = [f'<g transform="translate({WIDE * (i % columns)} {HIGH * (i // columns)})">\n{chart.inside()}\n</g>'
             for i, chart in enumerate(charts) if chart is not None]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
            'font-family="Helvetica, Arial, Liberation Sans, sans-serif" font-size="12" fill="#1b2430" role="img">\n'
            "<style>.grid{stroke:#e3e7ec} .halo{paint-order:stroke;stroke:#fff;stroke-width:3px}</style>\n"
            f'<clipPath id="plot"><rect x="{LEFT}" y="{TOP - 4}" width="{WIDE - LEFT - RIGHT}" '
            f'height="{HIGH - TOP - BOTTOM + 8}"/></clipPath>'
            '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto">'
            '<path d="M0 0 8 4 0 8z" fill="context-stroke"/></marker>\n'
            f'<rect width="{wide}" height="{high}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")
