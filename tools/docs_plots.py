#!/usr/bin/env python3
# docs_plots.py: draws the plots of docs/performance.md from the tables of docs/performance_tables.md, so that they show the same figures.
# SPDX-License-Identifier: Apache-2.0
"""tools/docs_plots.py [FOLDER]: writes the plots into docs/figures, or into FOLDER."""
import argparse
import dataclasses
import math
import pathlib
import re
from html import escape

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
TABLES = REPOSITORY / "docs/performance_tables.md"
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 380, 70, 150, 40, 50
COLOURS = ("#0b63ce", "#b3541e", "#2a7f3f", "#7a3fb0")


@dataclasses.dataclass(frozen=True)
class Line:
    """Where a line's values stand: in the n-th table after a heading, in a column (by its number)."""

    name: str
    heading: str
    table: int
    column: int


@dataclasses.dataclass(frozen=True)
class Plot:
    file: str
    title: str
    axis: str  # what goes up
    lines: tuple[Line, ...]
    level: float | None = None  # a line to compare with


NEWEST, TWO, SIXTEEN, TCP = "Against the newest MPIs, on fresh data", "2 cores, 2 ranks", "16 cores, 2 to 16 ranks", "TCP: 2 cores, 2 ranks"
PLOTS = (
    Plot("speed_all_reduce.svg", "all_reduce in place, 2 ranks on 2 cores", "µs per call",
         (Line("Tutti", TWO, 0, 1), Line("best MPI", TWO, 0, 2))),
    Plot("speed_ranks.svg", "all_reduce in place on 16 cores: the best MPI's time over ours", "times as fast",
         (Line("2 ranks", SIXTEEN, 0, 3), Line("4 ranks", SIXTEEN, 1, 3), Line("8 ranks", SIXTEEN, 1, 6), Line("16 ranks", SIXTEEN, 1, 9)), 1),
    Plot("speed_messages.svg", "messages, 2 ranks: the newest MPIs' time over ours", "times as fast",
         (Line("ping_pong", NEWEST, 0, 2), Line("sendrecv", NEWEST, 0, 6), Line("window of 64", NEWEST, 0, 10)), 1),
    Plot("speed_tcp.svg", "all_reduce over TCP, 2 ranks on 2 cores", "µs per call", (Line("Tutti", TCP, 0, 1), Line("gloo", TCP, 0, 2))),
)


def tables_after(text: str, heading: str) -> list[list[list[str]]]:
    """The tables of a section, without those of sections below: rows of cells, the first of them the header."""
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"{TABLES}: there is no section {heading!r}")
    blocks = re.findall(r"(?:^\|.*\n)+", found[1], flags=re.MULTILINE)
    return [[[cell.strip() for cell in row.strip("|").split("|")] for row in block.splitlines()] for block in blocks]


def bytes_of(cell: str) -> float | None:
    found = re.match(r"(\d+) (B|KiB|MiB)", cell)
    return None if found is None else int(found[1]) * UNITS[found[2]]


def number(cell: str) -> float:
    """The figure of a cell: "1 136", "0.590 openmpi", "1.50×"."""
    found = re.match(r"(\d[\d ]*(?:\.\d+)?)", cell)
    return float(found[1].replace(" ", ""))


def points(text: str, line: Line) -> list[tuple[float, float]]:
    _, _, *rows = tables_after(text, line.heading)[line.table]
    return [(size, number(row[line.column])) for row in rows if (size := bytes_of(row[0])) is not None]


def say_bytes(size: float) -> str:
    return next(f"{size / unit:g} {name}" for name, unit in reversed(UNITS.items()) if size >= unit)


def say_number(value: float) -> str:
    return f"{value:,g}".replace(",", " ")


def mark(shape: int, x: float, y: float, colour: str) -> str:
    """Each line has a mark of its own, so that it is told from the others without colour."""
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    if shape == 1:
        return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour}"/>'
    corners = ((0, -5), (5, 4), (-5, 4)) if shape == 2 else ((0, -5), (5, 0), (0, 5), (-5, 0))
    return f'<polygon points="{" ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in corners)}" fill="{colour}"/>'


class Scale:
    """From values to places, by their logarithms."""

    def __init__(self, values: list[float], begin: float, end: float, base: float) -> None:
        self.base = base
        self.low = math.floor(math.log(min(values), base) + 1e-9)
        self.high = max(math.ceil(math.log(max(values), base) - 1e-9), self.low + 1)
        self.begin, self.end = begin, end

    def at(self, value: float) -> float:
        return self.begin + (math.log(value, self.base) - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        return [float(self.base) ** power for power in range(self.low, self.high + 1)]


def draw(plot: Plot, text: str) -> str:
    lines = [(line.name, points(text, line)) for line in plot.lines]
    sizes = [size for _, line in lines for size, _ in line]
    values = [value for _, line in lines for _, value in line] + ([plot.level] if plot.level else [])
    x = Scale(sizes, LEFT, WIDTH - RIGHT, 8)
    y = Scale(values, HEIGHT - BOTTOM, TOP, 2 if plot.level else 10)
    says = "; ".join(f"{name}: {', '.join(f'{say_bytes(size)} {value:g}' for size, value in line)}" for name, line in lines)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
             f'font-size="13" role="img"><title>{escape(plot.title)}</title><desc>{escape(plot.axis)}: {escape(says)}</desc>'
             f'<rect width="100%" height="100%" fill="white"/><text x="{LEFT}" y="22" font-weight="bold">{escape(plot.title)}</text>'
             f'<text x="16" y="{HEIGHT / 2}" transform="rotate(-90 16 {HEIGHT / 2})" text-anchor="middle">{escape(plot.axis)}</text>']
    for tick in x.ticks():
        parts.append(f'<line x1="{x.at(tick):.1f}" x2="{x.at(tick):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#e4e7ea"/>'
                     f'<text x="{x.at(tick):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{say_bytes(tick)}</text>')
    for tick in y.ticks():
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y.at(tick):.1f}" y2="{y.at(tick):.1f}" stroke="#e4e7ea"/>'
                     f'<text x="{LEFT - 8}" y="{y.at(tick) + 4:.1f}" text-anchor="end">{say_number(tick)}</text>')
    if plot.level:
        level = y.at(plot.level)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{level:.1f}" y2="{level:.1f}" stroke="#333" stroke-dasharray="5 4"/>')
    ends = sorted(((y.at(line[-1][1]), i) for i, (_, line) in enumerate(lines)))
    label_at, last = {}, -math.inf
    for place, i in ends:  # names beside the ends of their lines, and not on each other
        last = label_at[i] = max(place, last + 16)
    for i, (name, line) in enumerate(lines):
        colour = COLOURS[i]
        path = " ".join(f"{x.at(size):.1f},{y.at(value):.1f}" for size, value in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [mark(i, x.at(size), y.at(value), colour) for size, value in line]
        parts.append(mark(i, WIDTH - RIGHT + 18, label_at[i], colour) + f'<text x="{WIDTH - RIGHT + 30}" y="{label_at[i] + 4:.1f}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def plots(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tables = TABLES.read_text()
    for plot in PLOTS:
        (folder / plot.file).write_text(draw(plot, tables))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default=REPOSITORY / "docs/figures")
    plots(parser.parse_args().folder)
