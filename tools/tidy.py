# tidy.py: prints the sizes of the layers and checks the rules of the house that a compiler does not.
# SPDX-License-Identifier: Apache-2.0
"""Fails on

* an include that points down the list of layers (cmake/layers.txt), or into src/ from a public header or an example; tests may
  include the layers marked "checks";
* a source file that no target builds, and a header that nothing includes;
* a marker for work left undone;
* a file without its first line `name: purpose` or without its SPDX line;
* a file of more than 400 lines;
* a class with more than 30 methods, or with methods in more than one .cpp (tidy_classes.py);
* a pipe into a reader that stops early (grep -q), in a script with pipefail: under load the writer dies of it.
"""
import argparse
import json
import pathlib
import re
import sys

import tidy_classes
import tidy_sizes

LINES_MAX = 400
SPDX = "SPDX-License-Identifier: Apache-2.0"
MARKERS = re.compile(r"\b(TO" r"DO|FIX" r"ME)\b")  # in two halves, so that this file does not find itself
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)
EARLY_READER = re.compile(r"(?<!\|)\|&?\s*grep\s+(-\S+\s+)*(-\w*q|--quiet)")
SOURCES = {".cpp", ".cu"}
HEADERS = {".hpp", ".cuh", ".h"}
SCRIPTS = {".py", ".sh", ".cmake"}
FOLDERS = ("include", "src", "tests", "bench", "examples", "tools", "cmake", "python", ".ci")
FILES = ("dev",)
APART = ("tests/install/",  # a project of its own, built against the installed copy
         "tests/first_day/cpp/",  # built as one program by tests/first_day
         "tests/contract/refused/",  # must not compile
         "src/cuda/kernels.cu", "src/cuda/no_kernels.cpp")  # nvcc compiles the one; where it is missing, the other is built


class Tree:
    """The files to check: by path relative to the root, with their text."""

    def __init__(self, layers, texts, kinds=None):
        self.layers = layers
        self.texts = texts
        self.kinds = kinds or {}  # of the layers that are not part of libtutti: "program" or "checks"

    @classmethod
    def of_checkout(cls, root):
        """By folder, not by asking git: it may be missing, and a file is no better for not being added yet."""
        files = [root / name for name in FILES if (root / name).is_file()]
        files += sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.is_file())
        ours = [path for path in files if is_ours(path)]
        kinds = read_layers(root)
        texts = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in ours}
        return cls(list(kinds), texts, {layer: kind for layer, kind in kinds.items() if kind})

    def code(self):
        return {path: text for path, text in self.texts.items() if pathlib.PurePath(path).suffix in SOURCES | HEADERS}


def is_ours(path):
    if path.suffix in SOURCES | HEADERS | SCRIPTS:
        return True
    return path.suffix == "" and path.read_bytes().startswith(b"#!")


def read_layers(root):
    lines = (root / "cmake/layers.txt").read_text().split("\n")
    return {line.split()[0]: "".join(line.split()[1:]) for line in lines if line and not line.startswith("#")}


def layer_of(path):
    parts = path.split("/")
    if parts[0] == "include":
        return "include"
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def included(text):
    """Pairs of line number and what is included there."""
    for found in INCLUDE.finditer(text):
        yield text.count("\n", 0, found.start(1)) + 1, found.group(1)


def check_includes(tree):
    rank = {layer: index for index, layer in enumerate(tree.layers)}
    for path, text in tree.code().items():
        layer = layer_of(path)
        public_only = layer == "include" or path.startswith("examples/")
        for line, target in included(text):
            folder = target.split("/")[0]
            if ".." in target.split("/"):
                yield f"{path}:{line}: includes {target}: name it from src/ on, without .."
            elif folder not in rank or "/" not in target:
                continue
            elif public_only:
                yield f"{path}:{line}: includes {target}: only <tutti/…> and the standard library belong here"
            elif tree.kinds.get(folder) == "checks" and tidy_sizes.is_test(path):
                continue
            elif layer in rank and rank[folder] > rank[layer]:
                yield f"{path}:{line}: includes {target}, but {folder} is below {layer} in cmake/layers.txt"


def check_built(tree, built):
    """`built`: the paths in compile_commands.json, or None if there are none to compare with."""
    sources = [path for path in tree.texts if pathlib.PurePath(path).suffix in SOURCES and not path.startswith(APART)]
    if built is not None:
        yield from (f"{path}: no target builds it" for path in sources if path not in built)
    names = {target for text in tree.code().values() for _, target in included(text)}
    for path in tree.texts:
        if pathlib.PurePath(path).suffix not in HEADERS or path.startswith(("include/", *APART)):
            continue
        if not any(path == name or path.endswith("/" + name) for name in names):
            yield f"{path}: nothing includes it"


def check_markers(tree):
    for path, text in tree.texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            found = MARKERS.search(line)
            if found:
                yield f"{path}:{number}: {found.group(1)}: do it, or open an issue"


def check_openings(tree):
    for path, text in tree.texts.items():
        lines = text.split("\n")
        if lines[0].startswith("#!"):
            lines = lines[1:]
        comment = "//" if pathlib.PurePath(path).suffix in SOURCES | HEADERS else "#"
        opening = f"{comment} {pathlib.PurePath(path).name}: "
        if not (lines[0].startswith(opening) and len(lines[0]) > len(opening)):
            yield f"{path}:1: the first line should be `{opening}what it is for`"
        # The purpose may need more than a line; the licence follows it.
        if not any(line == f"{comment} {SPDX}" for line in lines[1:4]):
            yield f"{path}:2: a line `{comment} {SPDX}` should follow the purpose"


def check_lengths(tree):
    for path, text in tree.texts.items():
        lines = text.count("\n")
        if lines > LINES_MAX:
            yield f"{path}: {lines} lines, more than {LINES_MAX}: split it by what it does"


def check_pipes(tree):
    """Sourced files have the pipefail of the script that sources them, so all files are checked."""
    for path, text in tree.texts.items():
        if pathlib.PurePath(path).suffix not in (".sh", ""):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if EARLY_READER.search(line):
                yield f"{path}:{number}: a pipe into grep -q fails when grep stops before the writer does; use <<< or >/dev/null"


def complaints_about(tree, built):
    yield from check_includes(tree)
    yield from check_built(tree, built)
    yield from check_markers(tree)
    yield from check_openings(tree)
    yield from check_lengths(tree)
    yield from check_pipes(tree)
    yield from tidy_classes.complaints(tree)


def read_built(root, build):
    commands = build / "compile_commands.json"
    if not commands.exists():
        return None
    built = set()
    for entry in json.loads(commands.read_text()):
        compiled = pathlib.Path(entry["directory"], entry["file"]).resolve()
        for path in [compiled, *files_of_unity(root, compiled)]:
            if path.is_relative_to(root):
                built.add(str(path.relative_to(root)))
    return built


def files_of_unity(root, path):
    """The files that are compiled as one: by CMake, named as they are or from the root of the sources, or by join_tests.py."""
    if path.parent.name == "Unity" and path.exists():
        yield from (root / name for name in re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE))
    listed = path.with_suffix(".txt")
    if listed.exists():
        yield from (pathlib.Path(line).resolve() for line in listed.read_text().split())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    tree = Tree.of_checkout(root)
    built = read_built(root, options.build)
    print(tidy_sizes.table(tree))
    if built is None:
        print(f"{options.build} is not configured: whether all files are built was not checked")
    complaints = list(complaints_about(tree, built))
    for complaint in complaints:
        print(complaint)
    print(f"{len(complaints)} complaints about {len(tree.texts)} files")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
