# test_tutorial.py: pages show the programs of examples/ as they are; those of the tutorial run, and print what the pages say.
# SPDX-License-Identifier: Apache-2.0
import importlib.util
import os
import pathlib
import re
import socket
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
FOLDER = REPOSITORY / "examples/tutorial"
FRAMEWORKS = ("torch", "jax", "tensorflow")


def load(name, path):
    location = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(location)
    location.loader.exec_module(module)
    return module


PAGES = load("docs_pages", REPOSITORY / "tools/docs_pages.py")
PRINTED = dict(shown for page in PAGES.pages() for shown in PAGES.programs(page.read_text()))


def programs_of(framework):
    """The programs that need this framework, and those that need none."""
    all_names = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "run_together.py")
    return [name for name in all_names if next((each for each in FRAMEWORKS if name.endswith(f"_{each}.py")), "numpy") == framework]


def test_pages_show_the_programs_as_they_are():
    behind = [page.name for page in PAGES.pages() if PAGES.filled(page.read_text()) != page.read_text()]
    assert not behind, "tools/docs_pages.py --write"
    assert all((REPOSITORY / program).exists() for program in PRINTED)


def test_every_program_of_the_tutorial_is_on_a_page():
    shown = {pathlib.Path(program).name for program in PRINTED}
    assert {name for framework in ("numpy", *FRAMEWORKS) for name in programs_of(framework)} <= shown


@pytest.mark.deadline(200)
@pytest.mark.parametrize("framework", ("numpy", "torch", "jax", pytest.param("tensorflow", marks=pytest.mark.soak)))
def test_programs_run_and_print_what_their_pages_show(framework, run_ranks):
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    names = programs_of(framework)
    assert names
    done = run_ranks(2, FOLDER / "run_together.py", *names, timeout=160, options=["--no-prefix"],
                     env={"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert done.returncode == 0, done.stdout + done.stderr
    said = {name: [] for name in names}
    for block in done.stdout.split("== ")[1:]:
        name, _, text = block.partition("\n")
        said[name] += [line for line in text.splitlines() if line]
    for name in names:
        expected = PRINTED[f"examples/tutorial/{name}"]
        assert sorted(said[name]) == sorted(expected.splitlines()), name


@pytest.mark.soak
@pytest.mark.parametrize("ranks", (1, 3, 4))
def test_numpy_programs_run_on_other_numbers_of_ranks(ranks, run_ranks):
    needs_two = ("messages.py", "collectives.py")
    names = [name for name in programs_of("numpy") if ranks > 1 or name not in needs_two]
    done = run_ranks(ranks, FOLDER / "run_together.py", *names, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr


def test_figures_can_be_drawn_again(tmp_path, tuttirun):
    """All but the report's pictures, which test_report.py takes in a browser; the plots show what the tables say."""
    figures, plots = (load(name, REPOSITORY / f"tools/{name}.py") for name in ("docs_figures", "docs_plots"))
    figures.figures(tuttirun.parents[2], tmp_path)
    plots.plots(tmp_path)
    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    there = {path.name: path.read_text() for path in (REPOSITORY / "docs/figures").glob("*.svg")}
    assert set(drawn) == set(there) and all(text.startswith("<svg") for text in drawn.values())
    assert all(drawn[plot.file] == there[plot.file] for plot in plots.PLOTS), "tools/docs_plots.py"
    assert all(f"src/{name}" in drawn["layers.svg"] for name, _ in figures.layers())


def test_the_last_chapter_tries_two_hosts_on_one_machine(tmp_path):
    """Its commands, with a port of the test's own."""
    page = (REPOSITORY / "docs/tutorial/8_many_hosts.md").read_text()
    lines = re.findall(r"^TUTTI_HOST_ID=.*?python hosts.py", page, flags=re.MULTILINE)
    assert len(lines) == 2
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    started = []
    for line in lines:
        own = dict(word.split("=") for word in line.split()[:-2])
        environment = {**os.environ, **own, "MASTER_PORT": port, "PYTHONPATH": str(REPOSITORY / "python"), "XDG_CONFIG_HOME": str(tmp_path)}
        started.append(subprocess.Popen([sys.executable, FOLDER / "hosts.py"], env=environment, stdout=subprocess.PIPE, text=True))
    try:
        said = [process.communicate(timeout=60)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0]
    assert said == [f"rank {rank} of 2 is rank 0 of 1 on host {rank} of 2\n" for rank in range(2)]


def test_the_reference_has_every_public_name():
    reference = load("docs_reference", REPOSITORY / "tools/docs_reference.py")
    page = reference.python_page()
    names = set(reference.public_names(reference.parsed(reference.file_of("")))) - {"nobody"}  # a value
    assert [name for name in sorted(names) if f"### tutti.{name}\n" not in page] == []
    assert all(f"### tutti.{module}" in page for module in reference.MODULES if module)
    headers = reference.cpp_page()
    assert all(f"## tutti/{name}.hpp" in headers for name in reference.HEADERS) and "void all_reduce(View data" in headers
