#!/usr/bin/env python3
# docs_figures.py: draws the figures of the pages from the code: algorithms from their plans, layers from the table in ARCHITECTURE.md.
# SPDX-License-Identifier: Apache-2.0
"""tools/docs_figures.py FOLDER --build build/release"""
import argparse
import pathlib
import re
import subprocess
from html import escape

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
# By the name of the figure: what `tutti explain` is asked.
PLANS = {
    "ring": ("all_reduce", "-n", "4", "--bytes", "64K", "--algorithm", "ring"),
    "recursive_doubling": ("all_reduce", "-n", "8", "--bytes", "1K", "--algorithm", "recursive_doubling"),
    "halving_doubling": ("all_reduce", "-n", "8", "--bytes", "1M", "--algorithm", "halving_doubling"),
    "hierarchical": ("all_reduce", "-n", "8", "--hosts", "2", "--bytes", "1M", "--algorithm", "hierarchical"),
    "binomial": ("broadcast", "-n", "8", "--bytes", "1K", "--algorithm", "binomial"),
}
WIDTH, ROW = 860, 26


def layers() -> list[tuple[str, str]]:
    """Folder and purpose, top to bottom, for the folders of cmake/layers.txt."""
    names = [line.split()[0] for line in (REPOSITORY / "cmake/layers.txt").read_text().splitlines() if line and line[0] != "#"]
    table = dict(re.findall(r"^\| `src/(\w+)/` \| (.*?) \|$", (REPOSITORY / "ARCHITECTURE.md").read_text(), flags=re.MULTILINE))
    plain = {name: re.sub(r"\[(.*?)\]\(.*?\)|`", r"\1", text) for name, text in table.items()}
    return [(name, re.split(r"[:;(]", plain.get(name, ""))[0].strip()) for name in names]


def layers_svg() -> str:
    """What stands below may include what stands above."""
    rows = [("include/tutti", "the public headers"), *((f"src/{name}", purpose) for name, purpose in layers()), ("python", "bindings and package")]
    height = ROW * len(rows) + 20
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="13" role="img" '
             f'aria-label="the layers"><rect width="100%" height="100%" fill="white"/>']
    for i, (name, purpose) in enumerate(rows):
        y = 10 + ROW * i
        parts.append(f'<rect x="10" y="{y}" width="{WIDTH - 20}" height="{ROW - 4}" rx="3" fill="hsl({200 + 6 * i}, 45%, 92%)" stroke="#999"/>'
                     f'<text x="20" y="{y + 16}" font-family="monospace">{escape(name)}</text><text x="200" y="{y + 16}">{escape(purpose)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def figures(build: pathlib.Path, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in PLANS.items():
        command = [str(build / "src/cli/tutti"), "explain", *words, "--svg", str(folder / f"{name}.svg")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=30)
    (folder / "layers.svg").write_text(layers_svg())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default=REPOSITORY / "docs/figures")
    parser.add_argument("--build", type=pathlib.Path, default=REPOSITORY / "build/release")
    o = parser.parse_args()
    figures(o.build, o.folder)
