# test_five_ranks.py: gradients on a number of ranks that neither two nor four says anything about.
# SPDX-License-Identifier: Apache-2.0
import pytest

PROGRAM = """
import sys
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", sys.argv[1]]))
"""


@pytest.mark.soak
def test_gradients_agree_on_five_ranks(run_ranks, repository):
    done = run_ranks(
        5, PROGRAM, repository / "tests/python/test_gradients_agree.py", timeout=400, env={"OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
