# test_demo.py: the demo shows what it says: one curve, a mismatch and a killed rank by name, a page with plots.
# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

import pytest


@pytest.mark.deadline(200)
def test_the_demo_names_what_goes_wrong_and_writes_its_page(repository, tuttirun, tmp_path):
    page = tmp_path / "demo.html"
    command = [sys.executable, repository / "examples/demo/demo.py", "--epochs", "2", "--page", page]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[0] Mismatch: " in done.stdout and "[1] Mismatch: " in done.stdout
    assert "rank 1 called all_reduce #1 (float32 × 999, sum)" in done.stdout
    assert "PeerLost: " in done.stdout and "rank 1 is lost" in done.stdout and "SIGKILL" in done.stdout
    assert "goes on with step 1000 on 1 rank" in done.stdout and "2000 steps done" in done.stdout
    shown = page.read_text()
    assert shown.count("<polyline") == 3 and "% communication" in shown and "PeerLost: " in shown
    assert page.as_uri() in done.stdout
    if "--trace" in done.stdout:  # this build has `tutti report`
        report = tmp_path / "demo-report.html"
        assert report.as_uri() in done.stdout and "killed" in report.read_text()
    assert "http" not in shown.replace("http://www.w3.org/2000/svg", "")  # one file, which needs nothing else
