# test_docs.py: the Python programs shown in README.md and docs/ run on 2 ranks; the table of adjoints is that of C++.
# SPDX-License-Identifier: Apache-2.0
import importlib.util
import pathlib

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]


OWN_TEST = {"python.md"}  # test_guide.py also compares what they print


def programs():
    """The programs of all pages, by name."""
    location = importlib.util.spec_from_file_location("extract", REPOSITORY / "tests/docs/extract.py")
    extract = importlib.util.module_from_spec(location)
    location.loader.exec_module(extract)
    docs = REPOSITORY / "docs"
    for page in [REPOSITORY / "README.md", *sorted((*docs.glob("*.md"), *docs.glob("tutorial/*.md"), *docs.glob("guides/*.md")))]:
        if page.name in OWN_TEST:
            continue
        for number, program in enumerate(extract.programs_in(page.read_text(), "python"), start=1):
            yield pytest.param(program, id=f"{extract.name_of(page)}_{number}")


@pytest.mark.parametrize("program", list(programs()))
def test_the_program_runs_on_two_ranks(program, run_ranks, tmp_path):
    done = run_ranks(
        2, program, timeout=120, options=["--wdir", tmp_path], env={"OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}
    )
    assert done.returncode == 0, done.stdout + done.stderr


# The table of adjoints: one row per call, asked of C++ for the root and for another rank.

SIZE, ROOT, FACTOR = 4, 1, 0.5
ROWS = [
    "all_reduce", "all_reduce op=mean", "all_reduce op=premul", "reduce", "reduce op=mean", "broadcast", "all_gather",
    "all_gather axis=None", "gather", "reduce_scatter", "reduce_scatter op=mean", "scatter", "all_to_all concat_axis=1",
    "permute", "sendrecv", "scan", "exscan",
]  # fmt: skip


def call_of(row):
    from tutti import _native

    verb, *words = row.split()
    fields = dict(word.split("=") for word in words)
    if "axis" in fields:
        fields["axis"] = None
    if "concat_axis" in fields:
        fields["concat_axis"] = int(fields["concat_axis"])
    if fields.get("op") == "premul":
        fields["op"] = _native.premul(FACTOR)
    if verb in ("reduce", "broadcast", "gather", "scatter"):
        fields["root"] = ROOT
    if verb == "permute":
        fields["pairs"] = [(0, 1), (2, 3)]
    if verb == "sendrecv":
        fields["dst"], fields["src"] = 2, 3
    return _native.Call(verb, **fields)


def words_for(call):
    """What goes back, in words: the call, its factor, what it reverses."""
    adjoint = call.adjoint(None, ROOT, SIZE)
    text = [f"`{adjoint.call.verb}`"]
    if adjoint.call.op != call_of("all_reduce").op:
        text.append(f"with {'mean' if adjoint.call.op.name == 'mean' else 'premul(f)'}")
    if adjoint.call.axis is None:
        text.append("with axis=None")
    if call.verb == "all_to_all":
        assert (adjoint.call.axis, adjoint.call.concat_axis) == (call.concat_axis, call.axis)
        text.append("with its axes swapped")
    if call.verb == "permute":
        assert list(adjoint.call.pairs) == [(b, a) for a, b in call.pairs]
        text.append("with each pair reversed")
    if call.verb == "sendrecv":
        assert (adjoint.call.dst, adjoint.call.src) == (call.src, call.dst)
        text.append("with dst and src swapped")
    if adjoint.call.reverse:
        text.append("from the last rank down")
    if adjoint.scale != 1.0:
        text.append({1 / SIZE: "divided by n", FACTOR: "times f"}[adjoint.scale])
    return " ".join(text)


def off_root(call):
    adjoint = call.adjoint(None, ROOT + 1, SIZE)
    return "adds its own gradient" if adjoint.adds_own else "zero" if adjoint.zero else ""


def table():
    lines = ["| forward | what flows back | off the root |", "|---|---|---|"]
    for row in ROWS:
        call = call_of(row)
        lines.append(f"| `{row.replace('premul', 'premul(f)')}` | {words_for(call)} | {off_root(call)} |")
    return "\n".join(lines)


def test_the_table_of_adjoints_is_that_of_the_library():
    page = (REPOSITORY / "docs/gradients.md").read_text()
    shown = page.split("<!-- adjoints: begin -->\n")[1].split("\n<!-- adjoints: end -->")[0]
    assert shown == table(), f"the page should have:\n{table()}"
