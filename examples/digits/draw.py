# draw.py: loss curves as a picture: python draw.py curves.svg one.json two.json
# SPDX-License-Identifier: Apache-2.0
import json
import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, HEIGHT, MARGIN = 760, 400, 56
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#aa3377")


def smoothed(losses: list[float], width: int = 9) -> list[float]:
    """Each step's loss as the mean over its neighbourhood, so that curves can be told apart."""
    half = width // 2
    return [sum(part) / len(part) for i in range(len(losses)) if (part := losses[max(0, i - half) : i + half + 1])]


def picture(curves: dict[str, list[float]]) -> str:
    values = [value for losses in curves.values() for value in losses]
    low, high = math.log10(min(values)), math.log10(max(values))
    steps = max(map(len, curves.values()))
    x = lambda step: MARGIN + step / max(steps - 1, 1) * (WIDTH - 2 * MARGIN)  # noqa: E731
    y = lambda loss: MARGIN + (high - math.log10(loss)) / (high - low or 1) * (HEIGHT - 2 * MARGIN)  # noqa: E731
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
             f'font-size="13"><rect width="100%" height="100%" fill="white"/>']
    for exponent in range(math.ceil(low), math.floor(high) + 1):
        at = y(10**exponent)
        parts.append(f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>'
                     f'<text x="{MARGIN - 8}" y="{at + 4:.1f}" text-anchor="end">{10**exponent:g}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 16}" text-anchor="middle">step (of {steps})</text>'
                 f'<text x="{MARGIN}" y="28">loss</text>')
    for i, (name, losses) in enumerate(curves.items()):
        colour, width = COLOURS[i % len(COLOURS)], 5 - 3 * min(i, 1)  # the first one wide, so that it shows under the others
        points = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in enumerate(losses))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}" opacity="0.8"/>'
                     f'<text x="{WIDTH - MARGIN - 150}" y="{MARGIN + 18 * i}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    target, *files = map(Path, sys.argv[1:])
    target.write_text(picture({file.stem: smoothed(json.loads(file.read_text())["losses"]) for file in files}))
