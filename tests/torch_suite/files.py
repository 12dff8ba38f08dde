# files.py: PyTorch's own test files under test/distributed, on gloo or with Tutti in its place; compare.py sets them side by side.
# SPDX-License-Identifier: Apache-2.0
"""    python tests/torch_suite/files.py --source PYTORCH --backend tutti --json tutti.json tensor/test_optimizers.py …

PYTORCH is a checkout of PyTorch of about the version that is installed; files are named below its test/distributed.
With --backend tutti every process of a test gets Tutti where it asks for gloo (as_gloo/sitecustomize.py)."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]


def environment_for(backend: str) -> dict[str, str]:
    paths = [str(REPOSITORY / "python"), os.environ.get("PYTHONPATH", "")]
    if backend == "tutti":
        paths.insert(0, str(HERE / "as_gloo"))
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OMP_NUM_THREADS": "1",
        "PYTORCH_PRINT_REPRO_ON_FAILURE": "0",
        "MASTER_ADDR": "127.0.0.1",
    }


def outcome_of(case: xml.Element) -> dict:
    for kind, outcome in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        found = case.find(kind)
        if found is not None:
            return {"outcome": outcome, "text": (found.get("message") or "") + "\n" + (found.text or "")}
    return {"outcome": "passed", "text": ""}


def run_file(file: str, arguments) -> dict[str, dict]:
    """By test: its outcome. A file that does not end in time, or ends without a report, is one failed test."""
    with tempfile.TemporaryDirectory(prefix="torch-files-") as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        if arguments.only:
            command += ["-k", arguments.only]
        log = Path(folder, "log")
        with log.open("w") as output:
            try:
                subprocess.run(
                    [*command, str(arguments.source / "test" / "distributed" / file)],
                    env=environment_for(arguments.backend),
                    cwd=folder,
                    stdout=output,
                    stderr=output,
                    timeout=arguments.seconds,
                )
            except subprocess.TimeoutExpired:
                return {file: {"outcome": "failed", "text": f"not over in {arguments.seconds} s"}}
        if not report.exists():
            return {file: {"outcome": "failed", "text": log.read_text()[-4000:]}}
        cases = xml.parse(report).iter("testcase")
        return {f"{file}::{case.get('classname').rsplit('.', 1)[-1]}::{case.get('name')}": outcome_of(case) for case in cases}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--backend", default="tutti", choices=["tutti", "gloo"])
    parser.add_argument("--only", default="", help="an expression for pytest -k")
    parser.add_argument("--seconds", type=float, default=1800, help="for one file")
    parser.add_argument("--json", type=Path)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    results: dict[str, dict] = {}
    for file in arguments.files:
        found = run_file(file, arguments)
        results |= found
        print(f"{file}: {dict(Counter(result['outcome'] for result in found.values()))}", flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
