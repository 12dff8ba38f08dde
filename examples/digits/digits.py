# digits.py: what the programs of this folder have in common: the images, the first weights, the settings and the progress bar.
# SPDX-License-Identifier: Apache-2.0
"""1 797 images of handwritten digits (8 × 8 pixels, from scikit-learn) and a network with one hidden layer. All
programs start from the same weights and see the same batches, so that their loss curves agree, in every framework and
on any number of ranks.

    python digits.py digits.bin      # writes images and weights for the program in C++
"""
import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

PIXELS, HIDDEN, CLASSES = 64, 96, 10
BATCH, EPOCHS, RATE, MOMENTUM = 64, 15, 0.1, 0.9
SEED = 7


def images() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(x, y) to learn from, (x, y) to be judged by: every fifth."""
    from sklearn.datasets import load_digits

    data = load_digits()
    x, y = (data.data / 16).astype(np.float32), data.target.astype(np.int32)
    is_test = np.arange(len(x)) % 5 == 0
    return (x[~is_test], y[~is_test]), (x[is_test], y[is_test])


def weights() -> dict[str, np.ndarray]:
    """The first weights: the same for all."""
    random = np.random.default_rng(SEED)
    first = random.normal(size=(PIXELS, HIDDEN)) / np.sqrt(PIXELS)
    second = random.normal(size=(HIDDEN, CLASSES)) / np.sqrt(HIDDEN)
    return {"w1": first.astype(np.float32), "b1": np.zeros(HIDDEN, np.float32),
            "w2": second.astype(np.float32), "b2": np.zeros(CLASSES, np.float32)}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Learns digits. Start it with tuttirun -n 2.")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--curve", type=Path, help="writes every step's loss and the accuracy to this file, as JSON")
    return parser.parse_args()


class Progress:
    """One line on rank 0: how far, loss, accuracy, and how much of the time went into communication."""

    def __init__(self, rank: int, epochs: int, curve: Path | None):
        self.rank, self.epochs, self.curve = rank, epochs, curve
        self.losses: list[float] = []
        self.accuracy = 0.0
        self.communication = 0.0
        self.begin = time.perf_counter()

    def timed(self, call, *args, **kwargs):
        """Calls something and counts its time as communication."""
        begin = time.perf_counter()
        result = call(*args, **kwargs)
        self.communication += time.perf_counter() - begin
        return result

    def epoch(self, number: int, losses: list[float], accuracy: float) -> None:
        self.losses += [float(loss) for loss in losses]
        self.accuracy = float(accuracy)
        if self.rank != 0:
            return
        done = (number + 1) / self.epochs
        spent = time.perf_counter() - self.begin
        bar = ("█" * round(20 * done)).ljust(20, "·")
        share = 100 * self.communication / spent
        print(f"{'' if number == 0 or not sys.stdout.isatty() else chr(13)}epoch {number + 1:2}/{self.epochs} {bar} "
              f"loss {np.mean(losses):.4f}  accuracy {100 * self.accuracy:5.2f} %  {spent:5.1f} s, {share:4.1f} % in communication",
              end="" if sys.stdout.isatty() and done < 1 else "\n", flush=True)

    def finish(self) -> None:
        if self.rank == 0 and self.curve:
            self.curve.write_text(json.dumps({"losses": self.losses, "accuracy": self.accuracy}))


def write_for_cpp(path: Path) -> None:
    """Numbers of samples, then pixels and labels of both sets, then the weights: all float32 and int32, in this order."""
    (x, y), (test_x, test_y) = images()
    with path.open("wb") as file:
        for part in (np.array([len(x), len(test_x), PIXELS, HIDDEN, CLASSES], np.int32), x, y, test_x, test_y):
            file.write(part.tobytes())
        for part in weights().values():
            file.write(part.tobytes())


if __name__ == "__main__":
    write_for_cpp(Path(sys.argv[1]))
