# outcomes.py: a plugin of pytest that writes each test's outcome as soon as it is known.
# SPDX-License-Identifier: Apache-2.0
"""So that a file that hangs, or is ended for taking too long, has the outcomes of the tests before."""

import json
import os


def pytest_runtest_logreport(report) -> None:
    if report.passed and report.when != "call":
        return
    file, _, test = report.nodeid.partition("::")
    outcome = {"test": test, "outcome": report.outcome, "text": str(report.longrepr or "")[-4000:]}
    with open(os.environ["TORCH_FILES_OUTCOMES"], "a", encoding="utf-8") as lines:
        lines.write(json.dumps(outcome) + "\n")
