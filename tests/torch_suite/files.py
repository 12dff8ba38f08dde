# files.py: PyTorch's own test files under test/distributed, on gloo or with Tutti in its place; compare.py sets them side by side.
# SPDX-License-Identifier: Apache-2.0
"""    python tests/torch_suite/files.py --source PYTORCH --backend tutti --json tutti.json tensor/test_optimizers.py …

PYTORCH is a checkout of PyTorch of about the version that is installed; files are named below its test/distributed.
With --backend tutti every process of a test gets Tutti where it asks for gloo (every_process/as_gloo.py). What did not pass
there is run on gloo by

    python tests/torch_suite/files.py --source PYTORCH --backend gloo --json gloo.json --failed-in tutti.json"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]


def environment_for(backend: str, outcomes: Path) -> dict[str, str]:
    paths = [str(HERE / "every_process"), str(REPOSITORY / "python"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "TORCH_FILES_BACKEND": backend,
        "TORCH_FILES_OUTCOMES": str(outcomes),
        "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": "150",
        "OMP_NUM_THREADS": "1",
        "PYTORCH_PRINT_REPRO_ON_FAILURE": "0",
        "MASTER_ADDR": "127.0.0.1",
    }


def end_in_time(command: list[str], folder: str, log: Path, environment: dict[str, str], seconds: float) -> bool:
    """False: it did not, and has been ended with all its children."""
    with log.open("w") as output:
        running = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=output, stderr=output, start_new_session=True
        )
        try:
            running.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            return False
    return True


def run_file(file: str, tests: list[str], arguments) -> dict[str, dict]:
    """By test: its outcome; of the tests given, or all. A file that does not end in time is a failed test besides."""
    with tempfile.TemporaryDirectory(prefix="torch-files-") as folder:
        outcomes, log = Path(folder, "outcomes"), Path(folder, "log")
        outcomes.touch()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "outcomes"]
        if arguments.only:
            command += ["-k", arguments.only]
        path = arguments.source / "test" / "distributed" / file
        command += [f"{path}::{test}" for test in tests] or [str(path)]
        environment = environment_for(arguments.backend, outcomes)
        ended = end_in_time(command, folder, log, environment, arguments.seconds)
        lines = [json.loads(line) for line in outcomes.read_text().splitlines()]
        found = {f"{file}::{line.pop('test')}": line for line in lines}
        if not ended:
            found[file] = {"outcome": "failed", "text": f"not over in {arguments.seconds} s"}
        elif not found:
            found[file] = {"outcome": "failed", "text": log.read_text()[-4000:]}
        return found


def failed_in(run: Path) -> dict[str, list[str]]:
    """By file: its tests that did not pass; none for a file that could not be run at all."""
    tests: dict[str, list[str]] = {}
    for name, result in json.loads(run.read_text()).items():
        file, _, test = name.partition("::")
        if result["outcome"] == "failed":
            tests.setdefault(file, []).extend([test] if test else [])
    return tests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--backend", default="tutti", choices=["tutti", "gloo"])
    parser.add_argument("--only", default="", help="an expression for pytest -k")
    parser.add_argument("--seconds", type=float, default=1800, help="for one file")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--failed-in", type=Path, help="run what failed in this run instead of files")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    chosen = failed_in(arguments.failed_in) if arguments.failed_in else {file: [] for file in arguments.files}
    results: dict[str, dict] = {}
    for file, tests in chosen.items():
        found = run_file(file, tests, arguments)
        results |= found
        print(f"{file}: {dict(Counter(result['outcome'] for result in found.values()))}", flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
