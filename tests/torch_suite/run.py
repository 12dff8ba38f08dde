# run.py: PyTorch's own tests of torch.distributed on backend "tutti"; fails if they end otherwise than docs/torch.md says.
# SPDX-License-Identifier: Apache-2.0
"""    python tests/torch_suite/run.py [--backend tutti|gloo] [--ranks 4] [--only REGEX] [--junitxml FILE] [--json FILE]

With --backend gloo the same driver shows what PyTorch's own CPU backend passes: the bar. --json keeps the outcomes, and
compare.py sets two of them side by side.
"""

import argparse
import json
import re
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path

from rank_pool import RankPool

REPOSITORY = Path(__file__).resolve().parents[2]
TEST_SECONDS = 120


def documented_failures() -> dict[str, str]:
    """Tests that docs/torch.md says fail on tutti, and why: rows `| test_x | why |` of its table."""
    page = REPOSITORY / "docs" / "torch.md"
    rows = re.findall(r"^\| `(test_\w+)` \| (.*) \|$", page.read_text(), re.MULTILINE) if page.exists() else []
    return dict(rows)


def summary(outcomes: list[dict]) -> dict:
    """One outcome for all ranks: failed if any failed; skipped if rank 0 skipped it."""
    failed = [(rank, outcome) for rank, outcome in enumerate(outcomes) if outcome["outcome"] == "failed"]
    if failed:
        text = "\n".join(f"rank {rank}: {outcome.get('text', '')}" for rank, outcome in failed)
        return {"outcome": "failed", "text": text}
    return {"outcome": outcomes[0]["outcome"], "text": outcomes[0].get("text", "")}


class Runner:
    """Runs tests with a pool, and with a new one where a test has spoiled it."""

    def __init__(self, arguments) -> None:
        self._start = lambda: RankPool(arguments.backend, arguments.ranks, arguments.log)
        self._pool = self._start()
        self.tests = [test for test in self._pool.tests if re.search(arguments.only, test)]

    def renew(self) -> None:
        self._pool.end()
        self._pool = self._start()

    def run(self, test: str) -> dict:
        if not self._pool.is_usable:
            self.renew()
        begin = time.monotonic()
        result = summary(self._pool.run(test, TEST_SECONDS)) | {"seconds": time.monotonic() - begin}
        if result["outcome"] != "skipped":
            print(f"{result['outcome']:7} {result['seconds']:5.1f} s  {test}", flush=True)
        return result

    def end(self) -> None:
        self._pool.end()


def run_all(arguments, known: dict[str, str]) -> dict[str, dict]:
    """What fails unexpectedly is run once more, in new processes: machines that others share stall now and then."""
    runner = Runner(arguments)
    try:
        results = {test: runner.run(test) for test in runner.tests}
        for test in [test for test, result in results.items() if result["outcome"] == "failed" and test not in known]:
            runner.renew()
            results[test] = runner.run(test) | {"again": True}
    finally:
        runner.end()
    return results


def judge(results: dict[str, dict], known: dict[str, str]) -> list[str]:
    """What is not as it should be."""
    wrong = []
    for test, result in results.items():
        if result["outcome"] == "failed" and test not in known:
            wrong.append(f"{test} failed:\n{result['text']}")
        if result["outcome"] == "passed" and test in known:
            wrong.append(f"{test} passed, though docs/torch.md says that it fails")
    return wrong


def write_junit(path: str, results: dict[str, dict], known: dict[str, str]) -> None:
    """Those that PyTorch leaves out here (they need GPUs, mostly), and those that docs/torch.md says cannot pass, are left
    out: they are no tests of ours."""
    ran = {test: result for test, result in results.items() if result["outcome"] != "skipped" and test not in known}
    suite = xml.Element("testsuite", name="torch-suite", tests=str(len(ran)))
    for test, result in ran.items():
        case = xml.SubElement(suite, "testcase", classname="torch_suite", name=test, time=f"{result['seconds']:.3f}")
        if result["outcome"] == "failed":
            xml.SubElement(case, "failure", message=result["text"].strip().split("\n")[-1]).text = result["text"]
    xml.ElementTree(suite).write(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--backend", default="tutti", choices=["tutti", "gloo"])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--only", default="", help="a regular expression")
    parser.add_argument("--junitxml")
    parser.add_argument("--json")
    parser.add_argument("--log", type=Path, default=Path("/dev/null"), help="what the ranks print")
    arguments = parser.parse_args()
    known = documented_failures() if arguments.backend == "tutti" else {}
    results = run_all(arguments, known)
    if arguments.junitxml:
        write_junit(arguments.junitxml, results, known)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1))
    outcomes = [result["outcome"] for result in results.values()]
    for test in [test for test, result in results.items() if result.get("again") and result["outcome"] == "passed"]:
        print(f"passed only when run again: {test}")
    print(", ".join(f"{outcomes.count(kind)} {kind}" for kind in ("passed", "failed", "skipped")))
    wrong = judge(results, known) if arguments.backend == "tutti" else []
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
