# page.py: what the demo found, as one HTML file that needs nothing else.
# SPDX-License-Identifier: Apache-2.0
import re
import sys
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "digits"))
import draw  # noqa: E402

STYLE = """:root { color-scheme: light dark }
body { font: 16px/1.5 sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
pre { background: color-mix(in srgb, currentColor 8%, transparent); padding: 1rem; overflow: auto; white-space: pre-wrap }
svg { max-width: 100%; height: auto }"""
WIDTH, ROW, LEFT, RIGHT = 760, 46, 140, 250
COLOURS = {"computing": "#4477aa", "communication": "#ee6677", "waiting": "#ccbb44"}


def bars(runs: dict[str, dict]) -> str:
    """A bar per run, as long as it took, divided by what the time went into."""
    longest = max(run["seconds"] for run in runs.values())
    height = ROW * len(runs) + 40
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="13" '
             f'role="img" aria-label="seconds per run"><rect width="100%" height="100%" fill="white"/>']
    for i, (name, run) in enumerate(runs.items()):
        x, y, percent = LEFT, 12 + ROW * i, {**run, "computing": 100 - run["communication"] - run["waiting"]}
        parts.append(f'<text x="{LEFT - 10}" y="{y + 19}" text-anchor="end">{escape(name)}</text>')
        for part, colour in COLOURS.items():
            length = (WIDTH - LEFT - RIGHT) * run["seconds"] / longest * percent[part] / 100
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="28" fill="{colour}"/>')
            x += length
        parts.append(f'<text x="{x + 8:.1f}" y="{y + 19}">{run["seconds"]:.1f} s, {run["communication"]:.1f} % communication, '
                     f'{run["waiting"]:.1f} % waiting</text>')
    for i, (part, colour) in enumerate(COLOURS.items()):
        x, y = LEFT + 130 * i, height - 18
        parts.append(f'<rect x="{x}" y="{y - 11}" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="{y}">{part}</text>')
    return "\n".join([*parts, "</svg>"])


def linked(text: str) -> str:
    """Files beside the page can be clicked."""
    return re.sub(r"file://\S+/([^/\s]+)", r'<a href="\1">\1</a>', escape(text))


def page(runs: dict[str, dict], scenes: list[dict], furthest: float) -> str:
    curves = draw.picture({name: draw.smoothed(run["losses"]) for name, run in runs.items()})
    shown = "\n".join(
        f"<h2>{escape(each['name'])}</h2>\n<p>{linked(each['what'])}</p>\n"
        f"<pre>$ {escape(each['command'])}\n{escape(each['output'])}</pre>" for each in scenes)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Tutti: the demo</title>
<style>{STYLE}</style></head><body>
<h1>Tutti: the demo</h1>
<h2>One training job, on one process and on several ranks</h2>
<p>A network with 76 000 weights learns 12 933 images of handwritten digits. Every rank has one core, computes the gradients
of its part of each batch, and <code>tutti.average</code> gives all of them the mean. The first five steps are not counted.</p>
{bars(runs)}
<h2>The loss, step by step</h2>
<p>The curves lie on each other: they differ by {100 * furthest:.4f} % of the first loss at most.</p>
{curves}
{shown}
</body></html>
"""
