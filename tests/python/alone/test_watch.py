# test_watch.py: jobs in trouble, looked at from outside: tutti where, top, trace and report, and metrics.
# SPDX-License-Identifier: Apache-2.0
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import urllib.request

import pytest
from chromium import until

START = """
import os, signal, sys, time
import numpy as np
import tutti
world = tutti.init(timeout=60)
rank = tutti.rank()
x = np.ones(64)
for _ in range(5):
    tutti.all_reduce(x)
"""

SLOW = START + """
for _ in range(30):
    if rank == 2:
        time.sleep(0.03)
    tutti.all_reduce(x)
"""

HANGS = START + """
def stuck():
    time.sleep(600)

if rank == 1:
    stuck()
tutti.all_reduce(x)  # never ends
"""

MISMATCH = START + """
try:
    if rank == 1:
        tutti.barrier()
    else:
        tutti.all_reduce(x)
except tutti.Mismatch:
    os._exit(3)
"""

KILLED = START + """
if rank == 3:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    tutti.all_reduce(x)
except tutti.PeerLost:
    time.sleep(600)
"""

BUSY = START + """
while True:
    more = tutti.all_reduce(np.ones(256))
    tutti.sendrecv(x, dst=(rank + 1) % tutti.size(), src=(rank - 1) % tutti.size())
    go_on = tutti.broadcast(np.array([os.path.exists(sys.argv[1])]), root=0)
    if go_on[0]:
        break
"""


def finding(tutti_program, process, kind):
    """The first finding of that kind, of a running job."""

    def look():
        done = tutti_program("where", process.pid, "--json", check=False)
        if done.returncode != 0:
            return None
        return next((f for f in json.loads(done.stdout)["findings"] if f["kind"] == kind), None)

    return until(look)


def test_where_names_the_rank_that_hangs_in_the_program_and_its_line(job, tutti_program):
    process = job(HANGS)
    found = until(lambda: (f := finding(tutti_program, process, "missing")) and len(f["ranks"]) == 1 and f)
    assert found["ranks"] == [1]
    assert re.search(r"Rank 1 is missing: its program is at \S*program.py:\d+ in stuck", found["text"])
    text = tutti_program("where", process.pid).stdout
    assert re.search(r"rank 0\s+in all_reduce #\d+ \(float64 × 64, sum\) at \S*program.py:\d+ for", text)
    assert re.search(r"rank 1\s+not in Tutti: at \S*program.py:\d+ in stuck", text)
    assert "in <module>" in text  # the rest of its stack
    assert str(process.pid) in tutti_program("where").stdout


def test_where_names_the_rank_that_was_killed_and_its_last_call(job, tutti_program):
    process = job(KILLED, options=["--keep-going"])
    found = finding(tutti_program, process, "gone")
    assert found["ranks"] == [3]
    assert re.search(r"Rank 3 \(process \d+ on \S+\) has ended without leaving the job: its process \d+ was killed by signal 9, .*; its last call was all_reduce #5", found["text"])


def test_tuttirun_says_what_a_killed_rank_did_last_and_dumps_all_calls(job, tmp_path):
    process = job(KILLED, options=["--dump", tmp_path / "dumps"])
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 128 + signal.SIGKILL
    assert re.search(r"rank 3: its last call was all_reduce #5 \(float64 × 64, sum\) at \S*program.py:\d+, which had ended", errors)
    killed = json.loads((tmp_path / "dumps/rank-3.json").read_text())
    assert killed["calls"][-1]["verb"] == "all_reduce" and killed["calls"][-1]["sequence"] == 5
    assert (tmp_path / "dumps/rank-0.json").exists()


def test_the_report_of_a_mismatch_names_both_calls(job, tutti_program, tmp_path):
    process = job(MISMATCH, options=["--trace", tmp_path / "calls"])
    process.communicate(timeout=100)
    page = tmp_path / "report.html"
    text = tutti_program("report", tmp_path / "calls", "-o", page).stdout
    assert re.search(r"mismatch: .*rank 0 made all_reduce #6 .*program.py:\d+, rank 1 made barrier #6 at \S*program.py:\d+", text)
    assert "mismatch" in page.read_text()


def test_a_trace_is_a_timeline_for_perfetto(job, tutti_program, tmp_path):
    stop = tmp_path / "stop"
    process = job(BUSY, stop, options=["--trace", tmp_path / "calls"], ranks=2)
    until(lambda: tutti_program("where", process.pid, check=False).returncode == 0)
    stop.touch()
    process.communicate(timeout=100)
    tutti_program("trace", tmp_path / "calls", "-o", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert {e["pid"] for e in slices} == {0, 1}
    assert {"all_reduce", "broadcast"} <= {e["name"] for e in slices}
    assert all(e["dur"] > 0 for e in slices)
    assert any("program.py:" in e["args"].get("line", "") for e in slices)
    for rank in (0, 1):  # nobody leaves an all_reduce before all have entered it
        mine, others = ([e for e in slices if e["name"] == "all_reduce" and e["pid"] == r] for r in (rank, 1 - rank))
        by_call = {e["args"]["call"]: e for e in others}
        assert all(e["ts"] + e["dur"] >= by_call[e["args"]["call"]]["ts"] - 50 for e in mine if e["args"]["call"] in by_call)


STEPS = START + """
for count in (10, 5000, 300_000):
    tutti.all_reduce(np.ones(count, np.float32))
"""


@pytest.mark.parametrize("backend, kinds", [("native", {"send", "recv", "reduce"}), ("shm", {"round", "addresses"})])
def test_a_trace_has_the_steps_of_calls_and_their_messages(run_ranks, tutti_program, tmp_path, backend, kinds):
    done = run_ranks(3, STEPS, options=["--trace", tmp_path / "calls"], env={"TUTTI_BACKEND": backend})
    assert done.returncode == 0, done.stderr
    tutti_program("trace", tmp_path / "calls", "-o", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    steps = [e for e in slices if e["cat"] == "step"]
    assert kinds <= {e["name"].split()[0] for e in steps}
    calls = {(e["pid"], int(e["args"]["call"].split("#")[1].split()[0])): e for e in slices if e["cat"] == "world" and "#" in e["args"]["call"]}
    for step in steps:  # within its call, by the precision of microseconds
        call = calls[step["pid"], step["args"]["call"]]
        assert call["ts"] - 1 <= step["ts"] and step["ts"] + step["dur"] <= call["ts"] + call["dur"] + 1
    by_line = {}
    for e in slices:
        by_line.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
    for line in by_line.values():  # slices of one line do not overlap
        line.sort()
        assert all(b[0] >= a[1] - 0.002 for a, b in zip(line, line[1:]))
    sent, received = ({e["id"]: e for e in events if e["ph"] == phase} for phase in "sf")
    assert sent.keys() == received.keys()
    assert all(sent[i]["ts"] <= received[i]["ts"] and sent[i]["pid"] != received[i]["pid"] for i in sent)
    if backend == "native":
        assert len(sent) == len([e for e in steps if e["name"].startswith("send")])


def test_metrics_are_served_on_this_machine_only(job, tutti_program, tmp_path):
    stop = tmp_path / "stop"
    process = job(BUSY, stop, options=["--metrics", "0"], ranks=2)
    line = process.stderr.readline()
    port = int(re.search(r"http://127.0.0.1:(\d+)/metrics", line).group(1))

    def calls():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        return re.search(r'tutti_calls_total{job="\w+",rank="1",host="[^"]+",group="world",verb="all_reduce"} (\d+)', text)

    assert int(until(calls).group(1)) > 0
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/etc/passwd", timeout=30)
    stop.touch()
    process.communicate(timeout=100)
    assert process.returncode == 0


def test_top_is_a_program_of_a_terminal(job, tutti_program, tmp_path):
    stop = tmp_path / "stop"
    process = job(BUSY, stop, ranks=2)
    until(lambda: tutti_program("where", process.pid, check=False).returncode == 0)
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execv(tutti_program.path, ["tutti", "top", str(process.pid), "--every", "0.2"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    text, end, asked = "", time.monotonic() + 60, False
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            text += os.read(terminal, 65536).decode(errors="replace")
        except OSError:
            break  # it has left
        if not asked and re.search(r"\n\s+1\s+[1-9][\d.]*( k| M)?\s+[\d.]+ [KMG]?i?B", text):
            os.write(terminal, b"q")
            asked = True
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert asked and status == 0, text[-2000:]
    assert "\x1b[?1049h" in text and text.rstrip().endswith("\x1b[?25h\x1b[?1049l")  # the terminal as it was
    assert "calls/s" in text and "cpu" in text
    pages = tutti_program("top", process.pid, "--every", "0.2", "--times", "2").stdout
    assert pages.count("calls/s") == 2 and "\x1b" not in pages
    stop.touch()
    process.communicate(timeout=100)


EVERY_ENDING = START + """
def late(seconds):  # without a pause: the others look for a while before they sleep
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass

y = np.zeros(7)
for seconds in (0, 0.0005, 0.1):
    for count in (3, 5):  # two shapes, each of which is new once
        if rank == 1:
            late(seconds)
        tutti.all_reduce(np.ones(count + int(1e4 * seconds)))
        tutti.all_gather(np.ones(rank + 1), uneven=True)
        works = [tutti.all_reduce(np.ones(9 + count), async_op=True) for _ in range(3)]
        tutti.wait_all(works)
        tutti.sendrecv(x, dst=1 - rank, src=1 - rank)
        if rank == 0:
            tutti.send(x, 1)
            tutti.isend(x, 1).wait()
        else:
            late(seconds)
            tutti.recv(None)
            tutti.irecv(0, out=np.empty(64)).wait()
        tutti.barrier()
tutti.dump_calls(sys.argv[1] + f"/rank-{rank}.json")
"""


@pytest.mark.parametrize("backend", ["shm", "native"])
def test_every_call_that_has_ended_tells_its_algorithm(run_ranks, tmp_path, backend):
    done = run_ranks(2, EVERY_ENDING, tmp_path, env={"TUTTI_BACKEND": backend})
    assert done.returncode == 0, done.stderr
    states = set()
    for rank in (0, 1):
        dumped = json.loads((tmp_path / f"rank-{rank}.json").read_text())
        ended = [c for c in dumped["calls"] if c["state"] != "under way"]
        assert len(ended) > 40
        assert not [c for c in ended if not c["algorithm"] or "size exchange" in c["algorithm"]]
        assert {c["algorithm"] for c in ended if c["verb"] in ("send", "recv")} == {"shm" if backend == "shm" else "tcp"}
        states |= {c["state"] for c in ended}
    assert states == {"ended at once", "ended"}


def test_calls_are_dumped_on_demand_and_counted(run_ranks, tmp_path):
    done = run_ranks(2, START + f"""
counts = tutti.stats()["world"]["all_reduce"]
assert counts["calls"] == 5 and counts["bytes"] == 5 * 512 and counts["failed"] == 0, counts
assert counts["waited"] >= 0
tutti.dump_calls({str(tmp_path)!r} + f"/rank-{{rank}}.json")
""")
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        dumped = json.loads((tmp_path / f"rank-{rank}.json").read_text())
        calls = [c for c in dumped["calls"] if c["verb"] == "all_reduce" and "program.py" in c["site"]]
        assert len(calls) == 5 and dumped["rank"] == rank
        assert all(c["bytes"] == 512 and c["op"] == "sum" and c["algorithm"] for c in calls)


def test_a_forked_child_leaves_the_parents_records_alone(run_ranks):
    done = run_ranks(2, START + """
before = tutti.stats()
pid = os.fork()
if pid == 0:
    try:
        tutti.all_reduce(x)
    except tutti.InvalidArgument:
        os._exit(0)
    os._exit(1)
_, status = os.waitpid(pid, 0)
assert status == 0
assert tutti.stats()["world"]["all_reduce"]["calls"] == before["world"]["all_reduce"]["calls"]
tutti.all_reduce(x)
""")
    assert done.returncode == 0, done.stderr


def test_a_job_leaves_nothing_behind(run_ranks, tutti_program):
    before = set(os.listdir("/dev/shm"))
    done = run_ranks(2, START)
    assert done.returncode == 0, done.stderr
    assert set(os.listdir("/dev/shm")) == before


NVTX = """
import os, sys, types
seen = []
sys.modules["nvtx"] = types.SimpleNamespace(push_range=seen.append, pop_range=lambda: seen.append("end"))
import numpy as np
import tutti
world = tutti.init()
tutti.all_reduce(np.ones(3))
if world.rank == 0:
    tutti.send(np.ones(3), 1)
else:
    tutti.recv(0)
assert seen == (["tutti.all_reduce", "end", "tutti.send" if world.rank == 0 else "tutti.recv", "end"] if len(sys.argv) > 1 else []), seen
"""


@pytest.mark.parametrize("asked", [True, False])
def test_calls_are_nvtx_ranges_where_that_is_asked_for(run_ranks, asked):
    done = run_ranks(2, NVTX, *["asked"] * asked, env={"TUTTI_NVTX": "1" if asked else ""})
    assert done.returncode == 0, done.stderr
