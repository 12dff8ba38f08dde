# test_guide.py: the programs of docs/python.md print what the page says.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/python.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n```\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


def test_the_page_has_programs_and_each_shows_what_it_prints():
    assert len(PROGRAMS) == PAGE.read_text().count("```python\n") >= 8


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_print_what_the_page_shows(run_ranks, number):
    program, expected = PROGRAMS[number]
    done = run_ranks(1 if "tutti.spawn" in program else 2, program, options=["--no-prefix"])
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(expected.splitlines()), done.stderr
