# breakpoint_under_srun.py: tutti.breakpoint in a step of Slurm: typed at srun, in srun --pty, and attached to from outside.
# SPDX-License-Identifier: Apache-2.0
"""Run by slurm.sh, inside its cluster, with the folder for the program that is debugged."""
import os
import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests/python"))
from terminal import DEBUGGED, Terminal  # noqa: E402

SRUN = ["srun", "--mpi=none", "-n", "2", "--overcommit"]


def debug_at_a_terminal(rank, environment, command):
    terminal = Terminal([*command, str(rank)], environment)
    terminal.debug(rank)
    status = terminal.close()
    assert status == 0 and f"rank {rank}: total 2001" in terminal.transcript, (status, terminal.transcript)


def attach_from_outside(rank, environment, command):
    """Without anything to type at, the rank says what to call; what it says is called as it is."""
    job = subprocess.Popen([*command, str(rank)], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    try:
        said = ""
        while not (found := re.search(rf"rank {rank} of 2 on .* type there: (srun .* -m tutti.attach \S+)", said)):
            line = job.stderr.readline()
            assert line, f"the rank does not say how to attach: {said}"
            said += line
        visitor = Terminal(found.group(1).split(), environment)
        visitor.expect(r"\(Pdb\) ")
        visitor.type("p secret * 2")
        visitor.expect(str(2 * (1000 + rank)))
        visitor.type("c")
        assert visitor.close() == 0, visitor.transcript
        out, errors = job.communicate(timeout=60)
        assert job.returncode == 0 and out.count("total 2001") == 2, (out, errors)
    finally:
        job.kill()
        job.communicate()


def main():
    program = pathlib.Path(sys.argv[1]) / "debugged.py"
    program.write_text(DEBUGGED.replace("timeout=20", "timeout=60"))
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "python"), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, str(program)]
    debug_at_a_terminal(0, environment, [*SRUN, "-N", "1", *words])
    debug_at_a_terminal(1, environment, [*SRUN, "-N", "2", *words])
    debug_at_a_terminal(0, environment, [*SRUN, "-N", "1", "--pty", *words])
    attach_from_outside(1, environment, [*SRUN, "-N", "1", "--input=none", *words])
    print("breakpoint: typed at srun, in srun --pty, and attached to")


main()
