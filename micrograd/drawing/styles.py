"""Colours say what a node is and how strong its gradient is; they are chosen so that colour-blind eyes tell them apart.

A theme gives each role three colours: fill, line, text. Roles are also the classes of the SVG (`.variable`, `.g3`,
`.dead`, ...), so that a page can restyle a picture. Later roles win over earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

LEVELS = 7                              # of gradient magnitude, g0 (smallest) to g6

_LIGHT = """
paper #ffffff #ffffff #1c2330     cluster #f7f8fa #c9ced6 #5b6472   edge #5b6472 #5b6472 #3c4450
inner #ffffff #5b6472 #1c2330     variable #e6f0fb #2f6fb0 #12304f  parameter #e0f3eb #16785a #0c3b2d
constant #f1f1f1 #a8a8a8 #555555  module #efeafa #7a5ea8 #35215c    op #fff4d6 #b08400 #4a3800
g0 #ffffe0 #9a8f5a #3b2a00        g1 #fee8a4 #a88a2c #3b2a00        g2 #fecb5f #a8791a #3b2a00
g3 #fea13a #a85f10 #331a00        g4 #ec7014 #9c4708 #1f0d00        g5 #c54a03 #7f2f02 #ffffff
g6 #85290a #541703 #ffffff        zero #e4e7ec #7d8592 #3c4450      saturated #ffe2bf #c25e00 #5c2c00
dead #d9dce1 #a3122a #7d0a1f      bad #ffd6ea #b0006d #6d0043       lit #fff0f6 #c2185b #7a0f3a
back #c2185b #c2185b #a3124a      dim #ffffff #dfe2e6 #b3b8bf"""
_DARK = """
paper #0f141b #0f141b #e6edf3     cluster #161c25 #38424f #9aa7b5   edge #8a97a6 #8a97a6 #c3ccd6
inner #1b222c #7d8a99 #e6edf3     variable #14283f #5aa2e8 #d6e9ff  parameter #10302a #3fbf93 #cff5e7
constant #23282f #5d6671 #aab3bd  module #251d38 #a98be0 #e6dcff    op #332a0f #d8ab2b #ffebb3
g0 #241d14 #6b5a3a #d9cdb4        g1 #45320f #86682a #f0dfb8        g2 #6a480c #a87a24 #ffedc9
g3 #95610b #d09a3a #fff4de        g4 #c68418 #efb75a #1c1200        g5 #efad3c #ffd68a #1c1200
g6 #ffe59a #fff4d0 #1c1200        zero #2b323c #6d7886 #aab3bd      saturated #46290a #f09a3c #ffdcb3
dead #2d3138 #ff6b81 #ffb3bf      bad #4a0f33 #ff6fbd #ffd0e9       lit #3a1426 #ff7eb0 #ffd3e4
back #ff7eb0 #ff7eb0 #ff9cc3      dim #12171e #2a323c #4b5561"""
_PRINT = """
paper #ffffff #ffffff #000000     cluster #ffffff #999999 #333333   edge #000000 #000000 #000000
inner #ffffff #000000 #000000     variable #ffffff #000000 #000000  parameter #ffffff #000000 #000000
constant #ffffff #888888 #333333  module #eeeeee #000000 #000000    op #ffffff #000000 #000000
g0 #ffffff #000000 #000000        g1 #f0f0f0 #000000 #000000        g2 #dedede #000000 #000000
g3 #c6c6c6 #000000 #000000        g4 #a6a6a6 #000000 #000000        g5 #6e6e6e #000000 #ffffff
g6 #3a3a3a #000000 #ffffff        zero #ffffff #888888 #333333      saturated #ffffff #000000 #000000
dead #ffffff #000000 #000000      bad #ffffff #000000 #000000       lit #ffffff #000000 #000000
back #000000 #000000 #000000      dim #ffffff #cccccc #aaaaaa"""


def _theme(text: str) -> dict[str, tuple[str, str, str]]:
    words = text.split()
    return {words[i]: (words[i + 1], words[i + 2], words[i + 3]) for i in range(0, len(words), 4)}


THEMES = {"light": _theme(_LIGHT), "dark": _theme(_DARK), "print": _theme(_PRINT)}
THEMES["auto"] = THEMES["light"]        # with the colours of "dark" where the reader's screen is dark


def stylesheet(theme: str) -> str:
    """CSS that turns an "auto" picture dark for readers who prefer it; the other themes need none."""
    if theme != "auto":
        return ""
    rules = []
    for role, (fill, line, text) in THEMES["dark"].items():
        if role == "paper":
            rules.append(f".mg-auto>g>polygon{{fill:{fill};stroke:{line}}}.mg-auto text{{fill:{text}}}")
            continue
        for kind, inside in (("node", fill), ("cluster", fill), ("edge", "none")):
            at = f".mg-auto .{kind}.{role}" if kind != role else f".mg-auto .{role}"
            if kind == role or role not in ("edge", "cluster"):
                rules.append(f"{at} :is(path,polygon,ellipse,polyline){{fill:{inside};stroke:{line}}}"
                             f"{at} text{{fill:{text}}}")
                if kind == "edge":
                    rules.append(f"{at} polygon{{fill:{line}}}")
    rules += [f".mg-auto .legend polygon:nth-of-type({level + 1}){{fill:{THEMES['dark'][f'g{level}'][0]}}}"
              for level in range(LEVELS)]
    return f"<style>@media(prefers-color-scheme:dark){{{''.join(rules)}}}</style>"


class Scale:
    """A log scale from gradient magnitudes to levels; at least one decade wide, so that equals look equal."""

    def __init__(self, magnitudes: Iterable[float | None]) -> None:
        known = [m for m in magnitudes if m and math.isfinite(m)]
        self.high = max(known, default=1.0)
        self.low = min(max(min(known, default=1.0), self.high * 1e-12), self.high / 10)

    def role(self, magnitude: float | None) -> str:
        """The role for a magnitude; "" for a gradient that is not there.

        >>> [Scale([1e-6, 1.0]).role(m) for m in (1.0, 1e-3, 1e-6, 0.0, None)]
        ['g6', 'g3', 'g0', 'zero', '']
        """
        if magnitude is None:
            return ""
        if not math.isfinite(magnitude):
            return "bad"
        if magnitude <= 0:
            return "zero"
        place = math.log(magnitude / self.low) / math.log(self.high / self.low)
        return f"g{round(min(max(place, 0.0), 1.0) * (LEVELS - 1))}"
