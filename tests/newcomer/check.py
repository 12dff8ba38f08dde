#!/usr/bin/env python3
# check.py: the table of changes in CONTRIBUTING.md is true, and the changes shown here as patches apply and compile.
# SPDX-License-Identifier: Apache-2.0
"""check.py SOURCES COMPILER          the table, the patches, and the syntax of what they touch
check.py SOURCES COMPILER --build  also builds a patched copy and runs the tests of the layers concerned (minutes)

A patch is what somebody would do who has read one row of the table: it touches the files that the row names, and no others."""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FILES_MAX = 5
# Row of the table, patch, and the targets that show the change to work.
SHOWN = {
    "a launcher that ranks find each other under": ("launcher.patch", ["check_rendezvous"], ["rendezvous"]),
    "a fault in the simulator": ("fault.patch", ["check_messages", "sim_seeds"], ["messages"]),
    "a page": ("page.patch", [], []),
}
HERE = pathlib.Path(__file__).resolve().parent


def rows(text):
    """{change: files} of the table; NAME in a path stands for what is new."""
    section = text.split("\n## Where a change goes\n")[1].split("\n## ")[0]
    found = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", section, re.MULTILINE)[1:]  # without its head
    return {change.strip(): re.findall(r"`([^`]+)`", files) for change, files in found}


def complaints_about(table, sources):
    for change, files in table.items():
        if not 1 <= len(files) <= FILES_MAX:
            yield f"{change}: {len(files)} files"
        yield from (f"{change}: there is no {path}" for path in files if "NAME" not in path and not (sources / path).exists())
    for change, (patch, _, _) in SHOWN.items():
        touched = set(touched_by((HERE / patch).read_text()))
        named = [re.escape(path).replace("NAME", r"\w+") for path in table.get(change, [])]
        yield from (f"{patch} touches {path}, which the row \"{change}\" does not name" for path in touched
                    if not any(re.fullmatch(name, path) for name in named))


def touched_by(patch):
    return re.findall(r"^\+\+\+ b/(\S+)", patch, re.MULTILINE)


def apply(patch, root):
    """By content: a hunk goes where its lines stand, wherever that is by now."""
    for part in re.split(r"^diff --git .*\n", patch, flags=re.MULTILINE)[1:]:
        path = root / touched_by(part)[0]
        text = path.read_text() if path.exists() else ""
        for hunk in re.split(r"^@@.*\n", part, flags=re.MULTILINE)[1:]:
            lines = [line for line in hunk.splitlines(keepends=True) if line[0] in " +-"]
            before = "".join(line[1:] for line in lines if line[0] != "+")
            after = "".join(line[1:] for line in lines if line[0] != "-")
            if before and before not in text:
                sys.exit(f"{path.relative_to(root)} has no longer what the patch expects:\n{before}")
            text = text.replace(before, after, 1) if before else after
        path.write_text(text)


def programs_on(page):
    blocks = re.findall(r"^```cpp\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if "int main(" in block]


def check_syntax(compiler, root, touched):
    folders = [f"-I{root / part}" for part in ("", "include", "src", "tests/support")]
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Werror=switch", *folders]
    for path in touched:
        if path.endswith(".cpp"):
            subprocess.run([*command, root / path], check=True)
        if path.endswith(".md"):
            for program in programs_on(root / path):
                subprocess.run([*command, "-x", "c++", "-"], input=program, text=True, check=True)


def build(root, targets, layers):
    folder = root / "build/release"
    subprocess.run(["cmake", "--preset", "release"], cwd=root, check=True)
    subprocess.run(["cmake", "--build", folder, "--target", *targets], check=True)
    for layer in layers:
        subprocess.run(["ctest", "--test-dir", folder, "-R", f"^{layer}: ", "--output-on-failure", "--no-tests=error"], check=True)
    if "sim_seeds" in targets:
        subprocess.run([folder / "tests/sim/sim_seeds", "--seeds", "50", "--first", "1"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("compiler")
    parser.add_argument("--build", action="store_true")
    options = parser.parse_args()
    complaints = list(complaints_about(rows((options.sources / "CONTRIBUTING.md").read_text()), options.sources))
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="tutti-newcomer-") as folder:
        root = pathlib.Path(folder) / "tutti"
        shutil.copytree(options.sources, root, ignore=shutil.ignore_patterns("build", ".git", ".venv", "__pycache__"))
        for patch, targets, layers in SHOWN.values():
            text = (HERE / patch).read_text()
            apply(text, root)
            check_syntax(options.compiler, root, touched_by(text))
        if options.build:
            targets = [target for _, some, _ in SHOWN.values() for target in some]
            build(root, targets, [layer for _, _, some in SHOWN.values() for layer in some])
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
