# compare.py: two runs of run.py --json side by side: what only one of them passes.
# SPDX-License-Identifier: Apache-2.0
"""    python tests/torch_suite/compare.py gloo.json tutti.json"""

import json
import sys
from collections import Counter
from pathlib import Path


def output_tail(result: dict) -> str:
    """The line of the text that says most."""
    lines = [line for line in result["text"].strip().split("\n") if line.strip()]
    errors = [line for line in lines if not line.startswith((" ", "Traceback", "rank ")) and ":" in line]
    return (errors or lines or ["?"])[0]


def main(first: str, second: str) -> None:
    runs = [json.loads(Path(name).read_text()) for name in (first, second)]
    for name, run in zip((first, second), runs):
        print(f"{name}: {dict(Counter(result['outcome'] for result in run.values()))}")
    for name, one, other in ((first, *runs), (second, *reversed(runs))):
        passed = [test for test, result in one.items() if result["outcome"] == "passed"]
        only = [test for test in passed if other[test]["outcome"] != "passed"]
        print(f"\npassed by {name} only: {len(only)}")
        for test in only:
            print(f"  {test}: {other[test]['outcome']}: {output_tail(other[test])}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
