#!/usr/bin/env python3
# run_launcher_page.py: every command that docs/launcher.md shows is run, and what it shows of an ending is what is printed.
# SPDX-License-Identifier: Apache-2.0
#
# The page's ./program, train.py and package.train say who they are and with what words they were started. The lines of a
# block are run one after the other; those of a block with several nodes at once, with this machine for all nodes. An `ssh`
# that stays on this machine stands for the hosts of the page.
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import tempfile

PYTHON = """import os, sys
print("train", os.environ["RANK"], os.environ["WORLD_SIZE"], *sys.argv[1:])
"""
PROGRAM = """#!/bin/sh
echo program $RANK $WORLD_SIZE "$@"
"""
SSH = """#!/bin/sh
for command; do :; done
exec sh -c "$command"
"""
FAILING = """#!/bin/sh
if [ $RANK = 3 ]; then echo about to divide by zero; kill -FPE $$; fi
sleep 60
"""


def commands_in(text):
    """The blocks that have commands of tuttirun, each a list of lines without their comments."""
    for block in re.findall(r"^```\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        lines = [line.split("#")[0].strip() for line in block.splitlines()]
        if any(line.startswith("tuttirun -") for line in lines):
            yield lines


def failure_in(text):
    """The ending that the page shows, as a pattern: numbers of processes and seconds are others each time."""
    shown = re.search(r"^```\n(tuttirun: the last lines of rank.*?)^```", text, flags=re.MULTILINE | re.DOTALL).group(1)
    pattern = re.escape(shown).replace("4711", r"\d+")
    return re.sub(r"after\\ [\d\\.]+\\ s", r"after [\\d.]+ m?s", pattern)


class Page:
    def __init__(self, tuttirun, folder):
        self.tuttirun, self.folder, self.wrong = tuttirun, folder, 0
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")}
        self.environment |= {"NO_COLOR": "1", "TUTTI_SECRET": "ab" * 32, "PATH": f"{folder}:{os.environ['PATH']}"}
        self.write("program", PROGRAM)
        self.write("train.py", PYTHON)
        self.write("package/train.py", PYTHON)
        self.write("ssh", SSH)
        (folder / "hosts").write_text("a slots=2 # two\nb slots=1\n")
        (folder / "tuttirun").symlink_to(tuttirun)

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def start(self, line):
        return subprocess.Popen(shlex.split(line), cwd=self.folder, env=self.environment, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, executable=self.tuttirun)

    def expect(self, right, line, done, output):
        print(f"{'as shown' if right else 'WRONG':8}  {line}")
        if not right:
            self.wrong += 1
            print(f"status {done.returncode}, output:\n{output[0]}{output[1]}")


def logged(page, line, output):
    """What the ranks printed, also where it went into files."""
    folder = re.search(r"--log-dir (\S+)", line)
    files = sorted((page.folder / folder.group(1)).glob("rank-*.log")) if folder else []
    return [re.sub(r"^\[(\w+:)?\d+\] ", "", each) for text in [output, *(file.read_text() for file in files)] for each in text.splitlines()]


def ranks_of(line):
    if "--hostfile" in line:
        return 3
    if hosts := re.search(r"-H (\S+)", line):
        return sum(int(host.split(":")[1]) for host in hosts.group(1).split(","))
    return int(re.search(r"(?:-n|--nproc-per-node|--elastic \d+:)\s?(\d+)", line).group(1))


def run_alone(page, line):
    process = page.start(line)
    output = process.communicate(timeout=60)
    count = ranks_of(line)
    name, words = re.search(r"(program|train)(?:\.py)?(.*)", line).groups()
    said = sorted(logged(page, line, output[0]))
    if "--dry-run" in line:
        right = output[0].count("./program") >= 1 and not any(each.startswith("program ") for each in said)
    else:
        right = said == sorted(" ".join([name, str(rank), str(count), *words.split()]) for rank in range(count))
    page.expect(right and process.returncode == 0, line, process, output)


def run_together(page, lines):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    here = [line.replace("node-a", "127.0.0.1").replace("29500", str(port)) for line in lines]
    processes = [page.start(line) for line in here]
    outputs = [process.communicate(timeout=60) for process in processes]
    ranks = [int(re.search(r"-n (\d+)", line).group(1)) for line in here]
    for node, (line, process, output) in enumerate(zip(lines, processes, outputs)):
        first = sum(ranks[:node])
        wanted = [f"program {rank} {sum(ranks)}" for rank in range(first, first + ranks[node])]
        page.expect(process.returncode == 0 and sorted(logged(page, line, output[0])) == wanted, line, process, output)


def run_failure(page, text):
    page.write("program", FAILING)
    line = "tuttirun -n 8 ./program"
    process = page.start(line)
    output = process.communicate(timeout=60)
    right = re.search(failure_in(text) + r"\Z", output[1]) and process.returncode == 128 + 8
    page.expect(bool(right), f"{line}   (rank 3 divides by zero)", process, output)


def main(tuttirun, name):
    text = pathlib.Path(name).read_text(encoding="utf-8")
    blocks = list(commands_in(text))
    with tempfile.TemporaryDirectory() as folder:
        page = Page(tuttirun, pathlib.Path(folder))
        for lines in blocks:
            shown = [line for line in lines if line.startswith("tuttirun -")]
            if "--nnodes" in shown[0]:
                run_together(page, shown)
            else:
                for line in shown:
                    run_alone(page, line)
        run_failure(page, text)
    return 1 if page.wrong or len(blocks) < 2 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
