# problem.py: what the data-parallel programs of this folder learn: the same samples and the same start for all of them.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

SAMPLES, INPUTS, HIDDEN = 100, 4, 8
STEPS, RATE = 30, 0.5


def samples(rank: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """This rank's part: every size-th sample. The parts need not be equally large."""
    number = np.arange(rank, SAMPLES, size)[:, None] + 1.0
    x = np.sin(0.1 * number * np.arange(1, INPUTS + 1))
    y = np.sin(2 * x[:, 0] - x[:, 3])
    return x.astype(np.float32), y.astype(np.float32)


def weights() -> tuple[np.ndarray, np.ndarray]:
    first = 0.5 * np.cos(np.arange(INPUTS * HIDDEN)).reshape(INPUTS, HIDDEN)
    second = 0.5 * np.sin(np.arange(HIDDEN) + 1.0)
    return first.astype(np.float32), second.astype(np.float32)
