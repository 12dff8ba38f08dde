# test_training_on_gpus.py: tests/gpu/training.py without a GPU: tensors of the CPU that pass for a GPU's, with a driver that does (fake_gpu.hpp).
# SPDX-License-Identifier: Apache-2.0
import pytest

pytest.importorskip("torch")

PRETENDING = """
import runpy, sys
import tutti.torch
from tutti.torch import gpu


def array_of(x, shape, strides):
    pointer = x.data_ptr()
    if pointer != 0:
        _native.note_stream(pointer, 0, 0)
    return _native.Array(pointer, memory.NAMES[x.dtype], shape, strides, False, x, 0)


gpu.array_of.__code__ = array_of.__code__  # for all who have imported it
gpu._DEVICE = "cpu"
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def test_training_has_the_losses_of_one_process(run_ranks, fake_gpu, repository):
    environment = {**fake_gpu, "TUTTI_NCCL_LIBRARY": "none", "TUTTI_LOG": "warn", "TUTTI_TEST_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
    done = run_ranks(2, PRETENDING, repository / "tests/gpu/training.py", timeout=240, env=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    assert done.stdout.count("largest difference") == 10, done.stdout
