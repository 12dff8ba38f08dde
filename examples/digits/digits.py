# digits.py: what the programs of this folder have in common: the images, the first weights, the settings and the progress bar.
# SPDX-License-Identifier: Apache-2.0
"""1 797 images of handwritten digits (8 × 8 pixels, from scikit-learn), the ones to learn from also shifted by a pixel in
each direction, and a network with one hidden layer. All programs start from the same weights and see the same batches, so
that their loss curves agree, in every framework and on any number of ranks.

    python digits.py digits.bin      # writes images and weights for the program in C++
"""
import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import tutti

PIXELS, HIDDEN, CLASSES = 64, 1024, 10
BATCH, EPOCHS, RATE, MOMENTUM = 512, 12, 0.06, 0.9
SEED = 7
WARM_UP = 5  # steps that the figures leave out: compiling, first touch of memory, connections


def images() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(x, y) to learn from, (x, y) to be judged by: every fifth."""
    from sklearn.datasets import load_digits

    data = load_digits()
    x, y = (data.data / 16).astype(np.float32), data.target.astype(np.int32)
    is_test = np.arange(len(x)) % 5 == 0
    shifts = [(down, right) for down in (0, -1, 1) for right in (0, -1, 1)]
    more = np.concatenate([shifted(x[~is_test], *each) for each in shifts])
    return (more, np.tile(y[~is_test], len(shifts))), (x[is_test], y[is_test])


def shifted(x: np.ndarray, down: int, right: int) -> np.ndarray:
    """The images moved by up to one pixel; what comes in from outside is empty."""
    padded = np.pad(x.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    return padded[:, 1 - down : 9 - down, 1 - right : 9 - right].reshape(-1, PIXELS)


def weights() -> dict[str, np.ndarray]:
    """The first weights: the same for all."""
    random = np.random.default_rng(SEED)
    first = 5 * random.normal(size=(PIXELS, HIDDEN)) / np.sqrt(PIXELS)  # wide: small ones leave the network nearly linear
    second = random.normal(size=(HIDDEN, CLASSES)) / np.sqrt(HIDDEN)
    return {"w1": first.astype(np.float32), "b1": np.zeros(HIDDEN, np.float32),
            "w2": second.astype(np.float32), "b2": np.zeros(CLASSES, np.float32)}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Learns digits. Start it with tuttirun -n 2.")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--curve", type=Path, help="writes every step's loss and the accuracy to this file, as JSON")
    return parser.parse_args()


class Progress:
    """One line per epoch on rank 0: how far, loss, accuracy, and how much of the time went into communication, and into waiting
    for ranks that were not there yet. The first WARM_UP steps are not counted."""

    def __init__(self, rank: int, options: argparse.Namespace):
        self.rank, self.options = rank, options
        self.losses: list[float] = []
        self.steps, self.accuracy = 0, 0.0
        self.begin, self.communication, self.waiting = time.perf_counter(), 0.0, 0.0  # seconds

    def timed(self, call, *args, **kwargs):
        """Calls something and counts its time as communication. The barrier before it is there to tell waiting from communication."""
        came = time.perf_counter()
        tutti.barrier()
        begin = time.perf_counter()
        result = call(*args, **kwargs)
        self.waiting += begin - came
        self.communication += time.perf_counter() - begin
        return result

    def step(self) -> None:
        """Ends a step."""
        self.steps += 1
        if self.steps == WARM_UP:
            self.begin, self.communication, self.waiting = time.perf_counter(), 0.0, 0.0

    def epoch(self, number: int, losses: list[float], accuracy: float) -> None:
        self.losses += [float(loss) for loss in losses]
        self.accuracy = float(accuracy)
        found = self.found()
        if self.rank != 0:
            return
        done = (number + 1) / self.options.epochs
        bar = ("█" * round(20 * done)).ljust(20, "·")
        print(f"{'' if number == 0 or not sys.stdout.isatty() else chr(13)}epoch {number + 1:2}/{self.options.epochs} {bar} "
              f"loss {np.mean(losses):.4f}  accuracy {100 * self.accuracy:5.2f} %  {found['seconds']:5.1f} s, "
              f"{found['communication']:4.1f} % in communication, {found['waiting']:4.1f} % waiting",
              end="" if sys.stdout.isatty() and done < 1 else "\n", flush=True)

    def found(self) -> dict:
        """What there is to tell; communication and waiting in percent."""
        seconds = time.perf_counter() - self.begin
        return {"losses": self.losses, "accuracy": self.accuracy, "seconds": seconds,
                "communication": 100 * self.communication / seconds, "waiting": 100 * self.waiting / seconds}

    def finish(self) -> None:
        if self.rank == 0 and self.options.curve:
            self.options.curve.write_text(json.dumps(self.found()))


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
