# test_logging.py: what the library says of itself, on stderr or through Python's logging.
# SPDX-License-Identifier: Apache-2.0
PROGRAM = """
import logging, sys
if sys.argv[1:]:
    logging.basicConfig(level=sys.argv[1], stream=sys.stdout, format="%(levelname)s %(name)s %(message)s")
import tutti
tutti.init()
tutti.barrier()
"""


def test_nothing_is_said_unless_asked_for(run_ranks):
    done = run_ranks(2, PROGRAM)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_environment_asks_for_more(run_ranks):
    done = run_ranks(2, PROGRAM, env={"TUTTI_LOG": "debug"}, options=["--no-prefix"])
    assert done.returncode == 0
    assert "tutti[1] info: started by tuttirun as rank 1 of 2 on host" in done.stderr
    assert "tutti[0] debug: reached the rendezvous at the launcher's store" in done.stderr
    assert "tutti[0] info: all 2 ranks met at the launcher's store" in done.stderr


def test_a_program_that_uses_logging_gets_the_lines_there(run_ranks):
    done = run_ranks(2, PROGRAM, "INFO", options=["--no-prefix"])
    assert done.returncode == 0 and done.stderr == ""
    assert "INFO tutti tutti[1]: started by tuttirun as rank 1 of 2 on host" in done.stdout
    assert "DEBUG" not in done.stdout


def test_the_environment_sets_the_level_of_the_logger(run_ranks):
    done = run_ranks(2, PROGRAM, "WARNING", env={"TUTTI_LOG": "info"}, options=["--no-prefix"])
    assert done.returncode == 0 and done.stderr == ""
    assert "INFO tutti tutti[0]: all 2 ranks met at" in done.stdout
