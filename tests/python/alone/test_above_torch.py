# test_above_torch.py: Lightning, accelerate and DeepSpeed on backend "tutti", beside the same program on gloo.
# SPDX-License-Identifier: Apache-2.0
"""They are installed into an environment of their own, which is thrown away; TUTTI_ABOVE_TORCH=FOLDER names one to make or
to use again, and to keep. The torch is the one that the other tests run with."""
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

torch = pytest.importorskip("torch")
PROGRAM = pathlib.Path(__file__).with_name("above_torch") / "train.py"
LIBRARIES = ["lightning", "accelerate", "deepspeed"]

pytestmark = [pytest.mark.soak, pytest.mark.deadline(3600)]


def install(python, *packages):
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off", *packages]
    subprocess.run(command, check=True, timeout=1500)


@pytest.fixture(scope="module")
def environment():
    """The folder of an environment with torch and the libraries above it."""
    with tempfile.TemporaryDirectory(prefix="above-torch-") as thrown_away:
        folder = pathlib.Path(os.environ.get("TUTTI_ABOVE_TORCH") or thrown_away)
        python = folder / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=300)
            version = torch.__version__.partition("+")[0]
            install(python, f"torch=={version}", f"numpy=={importlib.metadata.version('numpy')}")
            install(python, *LIBRARIES[:2], "setuptools", "wheel")
            install(python, "--no-build-isolation", LIBRARIES[2])  # its build asks the torch that is there
        yield folder


@pytest.fixture
def losses(environment, clean_environment, tmp_path):
    """losses(library, backend): what rank 0 printed, and the status of the program."""

    def run(library, backend):
        command = [environment / "bin" / "torchrun", "--standalone", "--nproc-per-node", "2", PROGRAM, library, backend]
        variables = clean_environment | {"CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run(
            list(map(str, command)), env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
        found = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("LOSSES")]
        assert len(found) == 1, done.stdout[-2000:] + done.stderr[-6000:]
        return found[0], done.returncode

    return run


@pytest.mark.parametrize("library", ["lightning", "accelerate", *(f"deepspeed-{stage}" for stage in range(4))])
def test_losses_are_those_of_gloo(losses, library):
    ours, status = losses(library, "tutti")
    gloos, _ = losses(library, "gloo")  # whose process may abort at its very end, after DeepSpeed's stage 3
    assert len(ours) >= 8 and ours == gloos and status == 0
