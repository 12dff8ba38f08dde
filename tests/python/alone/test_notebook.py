# test_notebook.py: notebooks are executed: cells on ranks that live on, what they print and draw, errors, and that nothing is left.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import signal
import time

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

pytestmark = pytest.mark.deadline(110)
START = "%load_ext tutti\n"


@pytest.fixture
def kernel_environment(monkeypatch, repository, tmp_path):
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PYTHONPATH", str(repository / "python"))


@pytest.fixture
def execute(kernel_environment):
    """execute(*cells) runs them as one notebook and gives it back; errors become outputs, as in a browser."""

    def run(*cells):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        nbclient.NotebookClient(notebook, timeout=60, allow_errors=True).execute()
        return notebook.cells

    return run


def text_of(cell):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def error_of(cell):
    errors = [output for output in cell.outputs if output.output_type == "error"]
    assert len(errors) == 1, cell.outputs
    return errors[0]


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until_gone(pids):
    limit = time.monotonic() + 30
    while not all(map(is_gone, pids)):
        assert time.monotonic() < limit, f"left: {[pid for pid in pids if not is_gone(pid)]}"
        time.sleep(0.01)


def pids_of(text):
    return [int(number) for number in re.findall(r"process (\d+)", text)]


def test_ranks_live_on_between_cells_and_show_what_they_do(execute):
    _, first, second, drawn, table, status, _, after = execute(
        "%load_ext tutti",
        "%%tutti -n 3\nimport numpy as np\nx = np.full(2, world.rank)\nprint('hello from', world.rank)\ntutti.all_reduce(x)",
        "%%tutti\nimport sys, os\nx += 10\nos.write(2, b'a line of C++\\n')\nx[0]",
        "%%tutti\nimport matplotlib.pyplot as plt\nplt.plot(x);",
        "%%tutti\nclass Table:\n    def _repr_html_(self):\n        return '<b>bold</b>'\n\nTable()",
        "%tutti status",
        "%tutti stop",
        "%tutti",
    )
    lines = text_of(first).splitlines()
    assert sorted(lines[:3]) == [f"[{rank}] hello from {rank}" for rank in range(3)]
    assert lines[3:] == [f"[{rank}] array([3, 3])" for rank in range(3)]
    assert sorted(text_of(second).splitlines()) == sorted(
        [f"[{rank}] a line of C++" for rank in range(3)] + [f"[{rank}] np.int64({rank + 10})" for rank in range(3)]
    )
    assert [output.output_type for output in drawn.outputs] == ["display_data"]  # rank 0's plot, and only that
    assert drawn.outputs[0].data["image/png"].startswith("iVBOR")
    assert [output.data["text/html"] for output in table.outputs if "data" in output] == ["<b>bold</b>"]
    assert text_of(after) == "no ranks\n"
    wait_until_gone(pids_of(text_of(status)))


def test_errors_come_with_the_tracebacks_of_their_ranks(execute):
    _, failed, named, goes_on, again, wrong = execute(
        "%load_ext tutti",
        "%%tutti -n 2\ny = 5\nif world.rank == 1:\n    raise ValueError('bad luck')\ntutti.barrier()",
        "%%tutti\ntutti.nothing_of_that_name",
        "%tutti restart",
        "%%tutti\nimport numpy as np\ntry:\n    tutti.all_reduce(np.ones(3 + world.rank))\nexcept tutti.Mismatch as error:\n    print('seen')",
        "%%tutti -n 4\n1",
    )
    error = error_of(failed)
    assert error.ename == "RankError" and error.evalue.startswith("rank 1 of 2: ValueError: bad luck")
    assert "%tutti restart" in error.evalue  # rank 0 was interrupted in its barrier
    shown = "\n".join(error.traceback)
    assert "rank 1:" in shown and "raise ValueError('bad luck')" in shown and "verbs.py" not in shown
    everywhere = error_of(named)
    assert "AttributeError" in everywhere.evalue and "ranks 0, 1:" in "\n".join(everywhere.traceback)
    assert not [output for output in goes_on.outputs if output.output_type == "error"]
    assert sorted(text_of(again).splitlines()) == ["[0] seen", "[1] seen"]
    assert "there are 2 ranks" in error_of(wrong).evalue


def test_a_rank_that_dies_ends_the_others_and_is_named(execute):
    _, status, _, died, after = execute(
        START + "%tutti stop",
        "%%tutti -n 2\nimport os\nprint('process', os.getpid())",
        "%tutti",
        "%%tutti\nif world.rank == 1:\n    os.kill(os.getpid(), 9)\ntutti.barrier()",
        "%%tutti -n 2\nworld.size",
    )
    assert "rank 1 of 2 was killed by signal 9, SIGKILL" in error_of(died).evalue
    wait_until_gone(pids_of(text_of(status)))
    assert text_of(after).splitlines() == ["[0] 2", "[1] 2"]


@pytest.fixture
def kernel(kernel_environment):
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def printed(client, code):
    """What a cell prints."""
    said = []
    client.execute_interactive(code, timeout=60, output_hook=lambda message: said.append(message["content"].get("text", "")))
    return "".join(said)


CHILD = "%%tutti -n 2\nimport os, subprocess\nchild = subprocess.Popen(['sleep', '600'])\nprint('process', os.getpid(), 'process', child.pid)"


def test_ranks_and_their_children_end_when_the_kernel_is_killed(kernel):
    manager, client = kernel
    printed(client, "%load_ext tutti")
    pids = pids_of(printed(client, CHILD))
    assert len(pids) == 4 and not any(map(is_gone, pids))
    client.execute("%%tutti\nwhile True: pass")  # they do not look at their channels
    os.kill(manager.provisioner.process.pid, signal.SIGKILL)
    wait_until_gone(pids)


def test_ctrl_c_reaches_the_ranks_and_they_live_on(kernel):
    manager, client = kernel
    printed(client, "%load_ext tutti")
    printed(client, "%%tutti -n 2\nimport time\nx = 3")
    said, interrupted = [], []

    def interrupt(message):
        said.append(message["content"].get("text", ""))
        if "".join(said).count("sleeps") == 2 and not interrupted:
            interrupted.append(True)
            manager.interrupt_kernel()

    reply = client.execute_interactive("%%tutti\nprint('sleeps', flush=True)\ntime.sleep(600)", timeout=60, output_hook=interrupt)
    assert reply["content"]["ename"] == "RankError" and "KeyboardInterrupt" in reply["content"]["evalue"]
    assert sorted(printed(client, "%%tutti\nx").splitlines()) == ["[0] 3", "[1] 3"]


def test_the_notebook_of_the_examples_runs(kernel_environment, repository):
    notebook = nbformat.read(repository / "examples/notebooks/first_steps.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=60).execute()  # an error in a cell is an error here
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert "[1] array([3., 3., 3.])" in text_of(cells[1])
    first, second = (float(re.search(r"\] \D*([\d.e-]+)", line)[1]) for line in text_of(cells[2]).splitlines())
    assert first == second < 0.1
    assert "image/png" in cells[3].outputs[0].data
    assert "called all_reduce #1 (float64 × 4, sum)" in text_of(cells[4])
