# test_page_commands.py: the commands that pages show are ones that the programs understand.
# SPDX-License-Identifier: Apache-2.0
"""Of tuttirun what it would start (--dry-run); tutti's commands run, but for those that measure for minutes or need a running job, whose
words are looked up; of ./dev the verbs and stages. docs/launcher.md and docs/tools.md have tests of their own besides."""
import os
import pathlib
import re
import shlex
import subprocess

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
PAGES = [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md")] + sorted(p for p in (REPOSITORY / "docs").rglob("*.md") if p.parent.name != "reference")
RUN = ("explain", "sim", "doctor", "completion")  # the others only by their words


def commands():
    """(page, words) of every command line in a block without a language, or of a shell."""
    for page in PAGES:
        for language, body in re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL):
            if language not in ("", "bash", "sh", "shell", "console"):
                continue
            for line in body.splitlines():
                found = re.match(r"(?:\$ )?(?:srun .*?|mpirun .*?)?\b((?:tuttirun|tutti|\./dev) [^:=(].*)", line.strip())
                if found and not re.match(r"tutti(run)? [^|<>]*: ", found[1]):  # what they print
                    words = shlex.split(found[1], comments=True)
                    yield pytest.param(words, id=f"{page.stem}: {' '.join(words)[:60]}")


@pytest.fixture
def folder(tmp_path):
    """With the programs that the commands name."""
    for name in ("train.py", "program", "solver", "my_program", "first.py", "messages.py", "package/train.py", "hosts"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a slots=4\nb slots=4\n" if name == "hosts" else "")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "package/__init__.py").touch()
    return tmp_path


def options_of(words):
    return [word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]


@pytest.mark.parametrize("words", list(commands()))
def test_the_command_is_understood(words, tuttirun, tutti_program, folder):
    program, *rest = words
    if program == "./dev":
        text = subprocess.run([REPOSITORY / "dev", "help"], capture_output=True, text=True, timeout=60).stdout
        known = set(re.findall(r"\w[\w-]*", text)) | set((REPOSITORY / "cmake/layers.txt").read_text().split())
        assert all(word.strip(";") in known for word in rest if word not in ("./dev",)), words
        return
    if program == "tuttirun":
        command = [tuttirun, "--dry-run", *rest]
    elif rest[0] in RUN:
        command = [tutti_program.path, *rest[: rest.index(">") if ">" in rest else None]]
    else:
        text = tutti_program(rest[0], "--help").stdout
        assert all(re.search(rf"(^|[\s,]){re.escape(option)}\b", text) for option in options_of(rest[1:])), text
        return
    done = subprocess.run([str(word) for word in command], cwd=folder, env={**os.environ, "TUTTI_SECRET": "5a" * 32},
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == (2 if "--jsn" in words else 0), done.stderr
