# test_report.py: the report of a job, read in a real browser.
# SPDX-License-Identifier: Apache-2.0
"""TUTTI_SCREENSHOTS=docs/figures makes the pictures of docs/tools.md anew."""
import os
import pathlib
import re
import tempfile

import pytest
from chromium import until

# Each rank has a trouble of its own.
TROUBLED = """
import os, signal, time
import numpy as np
import tutti

world = tutti.init(timeout=60)
rank = world.rank
x = np.ones(1 << 14, np.float32)

def compute():
    time.sleep(0.03 if rank == 0 else 0)  # rank 0 is slow

for _ in range(30):
    compute()
    tutti.all_reduce(x)
    tutti.sendrecv(x[:500], dst=(rank + 1) % 4, src=(rank - 1) % 4)

def load():
    time.sleep(600)  # rank 1 hangs

pair = world.split(rank // 2)
try:
    if rank == 2:
        pair.barrier()  # while rank 3 adds
    elif rank == 3:
        pair.all_reduce(x)
except tutti.Mismatch:
    pass
if rank == 1:
    load()
if rank == 3:
    os.kill(os.getpid(), signal.SIGKILL)  # rank 3 is killed
try:
    if rank == 0:
        pair.all_reduce(x)
    else:
        world.recv(0)
except tutti.PeerLost:
    time.sleep(600)
"""

FINDINGS = {
    "slow": r"Rank 0 is slow: it came last into \d+ of \d+ calls",
    "missing": r"Rank 0 waits in all_reduce #1 \(float32 × 16384, sum\) of ranks 0-1 at \S*train.py:\d+, for .*"
               r"Rank 1 is missing: its program is at \S*train.py:\d+ in load",
    "mismatch": r"rank 2 made barrier #1 at \S*train.py:\d+, rank 3 made all_reduce #1 .* at \S*train.py:\d+ of ranks 2-3",
    "gone": r"Rank 3 \(process \d+ on \S+\) has ended without leaving the job: .*killed by signal 9, .*; its last call was all_reduce #1",
}


@pytest.fixture
def troubled(job, tutti_program):
    """A job in which one rank is slow, one hangs, two differ and one was killed; once all of it can be seen. Its folder has a short
    name, because that is seen in the pictures."""
    with tempfile.TemporaryDirectory(prefix="job-") as folder:
        yield start_troubled(job, tutti_program, pathlib.Path(folder))


def start_troubled(job, tutti_program, folder):
    process = job(TROUBLED, options=["--keep-going"], name="train.py", folder=folder)

    def everything_shows():
        text = tutti_program("where", process.pid, check=False).stdout
        return all(re.search(pattern, text) for pattern in FINDINGS.values())

    until(everything_shows)
    return process


def test_the_report_names_each_rank_that_is_in_trouble(troubled, tutti_program, tmp_path, browser):
    page = tmp_path / "report.html"
    text = tutti_program("report", troubled.pid, "-o", page).stdout
    for kind, pattern in FINDINGS.items():
        assert re.search(f"^{kind}: .*{pattern}", text, flags=re.MULTILINE), text
    assert not re.search(r"(src|href)=\"(?!#)", page.read_text())  # nothing comes from elsewhere
    browser.open(page)
    findings = browser.value("[...document.querySelectorAll('.findings li')].map(e => e.innerText)")
    for kind, pattern in FINDINGS.items():
        assert any(f.upper().startswith(kind.upper()) and re.search(pattern, f) for f in findings), findings
    assert "train.py" in browser.value("document.querySelector('details pre').textContent")  # the stack of rank 1
    folder = pathlib.Path(os.environ.get("TUTTI_SCREENSHOTS", tmp_path))
    colours = {browser.picture(folder / f"report_{scheme}.png", scheme) for scheme in ("light", "dark")}
    assert len(colours) == 2


def test_the_timeline_is_walked_by_keyboard(troubled, tutti_program, tmp_path, browser):
    page = tmp_path / "report.html"
    tutti_program("report", troubled.pid, "-o", page)
    browser.open(page)
    until(lambda: browser.value("document.querySelectorAll('#timeline rect.call').length") >= 4 * 30)
    browser.value("document.getElementById('timeline').focus()")

    def picked():
        return browser.value("document.getElementById('picked').innerText")

    assert picked().startswith("rank 0: ")
    for key in ("ArrowDown", "End"):
        browser.press(key)
    assert until(lambda: (p := picked()).startswith("rank 1: all_") and p)
    browser.press("ArrowDown")
    for _ in range(3):
        browser.press("ArrowLeft")
    assert re.search(r"rank 2: .* at \S*train.py:\d+, (ended|failed)", picked())


def test_what_colours_say_is_said_in_words_and_patterns_too(troubled, tutti_program, tmp_path, browser):
    page = tmp_path / "report.html"
    tutti_program("report", troubled.pid, "-o", page)
    browser.open(page)
    assert re.fullmatch(r"[\d.]+ (B|KiB|MiB)", browser.value("document.querySelector('.heat tbody td:nth-child(3)').innerText"))
    patterns = browser.value("""[...document.querySelectorAll('#timeline defs pattern')].map(
        p => p.getAttribute('patternTransform') + [...p.querySelectorAll('rect')].map(r => r.getAttribute('width') + 'x' + r.getAttribute('height')))""")
    assert len(patterns) == len(set(patterns)) >= 4
    words = browser.value("document.getElementById('key').innerText")
    assert all(verb in words for verb in ("all_reduce", "send", "recv", "barrier"))


def test_a_slow_rank_is_named_after_the_job_has_ended(job, tutti_program, tmp_path, browser):
    process = job(TROUBLED.partition("def load")[0], options=["--trace", "calls"], name="train.py")
    process.communicate(timeout=100)
    assert process.returncode == 0
    page = tmp_path / "report.html"
    assert "slow: Rank 0 is slow" in tutti_program("report", tmp_path / "calls", "-o", page).stdout
    browser.open(page)
    assert "Rank 0 is slow" in browser.value("document.querySelector('.findings').innerText")
