# train.py: a small character-level GPT over a mesh of data × tensor parallelism, its optimiser shared out (ZeRO).
# SPDX-License-Identifier: Apache-2.0
"""tuttirun -n 4 train.py --tensor 2            # 2 × 2: two copies of the model, each over two ranks
tuttirun -n 2 train.py --stage 3                # data parallel only, parameters shared out as well
python train.py --text book.txt --steps 500     # one process, a text of your own

Without --text it reads the licences and manuals that come with Python, which every machine has."""
import argparse
import math
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

import tutti
import tutti.torch
from tutti import model_parallel as mp


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Learns to write like a text, character by character.")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--tensor", type=int, default=1, help="ranks that share one copy of the model")
    parser.add_argument("--stage", type=int, default=2, choices=(1, 2, 3), help="what ZeRO shares out among the copies")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32, help="windows of text per step, over all ranks")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--write", type=int, default=120, help="characters to write in the end")
    return parser.parse_args()


def read_text(path: Path | None) -> str:
    if path is not None:
        return path.read_text(encoding="utf-8", errors="replace")
    library = Path(sysconfig.get_paths()["stdlib"])
    names = ("LICENSE.txt", "pydoc_data/topics.py", "this.py", "argparse.py", "ast.py")
    texts = [(library / name).read_text(encoding="utf-8", errors="replace") for name in names if (library / name).exists()]
    return "\n".join(texts)[:400_000]


class Attention(nn.Module):
    """Causal self-attention; with the heads split over ranks, each rank has some of them."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.head_width = width // heads
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [layer(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2) for layer in (self.query, self.key, self.value)]
        mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(-2))


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before_attention(x))
        return x + self.down(nn.functional.gelu(self.up(self.before_mlp(x))))


class Gpt(nn.Module):
    def __init__(self, characters: int, o: argparse.Namespace):
        super().__init__()
        self.tokens, self.places = nn.Embedding(characters, o.width), nn.Embedding(o.length, o.width)
        self.blocks = nn.ModuleList([Block(o.width, o.heads) for _ in range(o.layers)])
        self.last, self.head = nn.LayerNorm(o.width), nn.Linear(o.width, characters)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))


# How the model is split over the ranks of one copy: heads and hidden units by columns, and back by rows: two sums per block.
PLAN = {
    "tokens": "rows",
    **{f"blocks.*.attention.{name}": "columns, split" for name in ("query", "key", "value")},
    "blocks.*.attention.out": "rows, split",
    "blocks.*.up": "columns, split",
    "blocks.*.down": "rows, split",
    "head": "columns, split",
}


class Course:
    """The text as numbers, and which windows of it each step learns from: the same on any number of ranks."""

    def __init__(self, text: str, o: argparse.Namespace, data_group):
        self.characters = sorted(set(text))
        number = {character: i for i, character in enumerate(self.characters)}
        self.ids = torch.tensor([number[character] for character in text])
        self.o, self.group = o, data_group

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """This rank's windows: inputs, and the same one character further."""
        begins = np.random.default_rng(step).integers(0, len(self.ids) - self.o.length - 1, self.o.batch)
        own = np.array_split(begins, self.group.size)[self.group.rank]
        windows = torch.stack([self.ids[begin : begin + self.o.length + 1] for begin in own])
        return windows[:, :-1], windows[:, 1:]


def main() -> None:
    o = options()
    world = tutti.init()
    if o.batch % (world.size // o.tensor):
        sys.exit(f"--batch {o.batch} must divide by the {world.size // o.tensor} copies of the model")
    mp.init(group_size=o.tensor)
    course = Course(read_text(o.text), o, mp.data_group())
    torch.manual_seed(0)
    model = tutti.torch.parallelize(Gpt(len(course.characters), o), PLAN)
    optimizer = tutti.torch.ZeroOptimizer(
        model, torch.optim.AdamW, stage=o.stage, group=mp.data_group(), lr=3e-3, weight_decay=0.01
    )
    begin = time.perf_counter()
    for step in range(o.steps):
        x, y = course.batch(step)
        optimizer.zero_grad()
        logits = model(x)
        loss = tutti.torch.parallel_cross_entropy(logits, y, classes=len(course.characters))
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == o.steps - 1:
            whole = mp.gather(logits.detach(), -1, total=len(course.characters))
            right = (whole.argmax(-1) == y).float().mean()
            mean, accuracy = tutti.average([loss.detach(), right], group=mp.data_group())
            if world.rank == 0:
                report(step + 1, o.steps, float(mean), float(accuracy), time.perf_counter() - begin, optimizer.waited_in_all)
    memory = optimizer.memory()
    if world.rank == 0:
        print("rank 0 holds " + ", ".join(f"{count / 2**20:.2f} MiB of {name}" for name, count in memory.items()))
    write(model, course, o, world)
    tutti.finalize()


def report(step: int, steps: int, loss: float, accuracy: float, seconds: float, waited: float) -> None:
    """One line of progress. Time in communication is what ZeRO waits for; the sums of tensor parallelism are not in it."""
    done = "█" * round(20 * step / steps)
    print(f"step {step:4}/{steps} {done.ljust(20, '·')} loss {loss:.4f} ({math.exp(loss):.1f} characters to choose from)  "
          f"accuracy {100 * accuracy:5.2f} %  {seconds / step * 1e3:.0f} ms a step, {100 * waited / seconds:4.1f} % in communication",
          flush=True)


@torch.no_grad()
def write(model: nn.Module, course: Course, o: argparse.Namespace, world) -> None:
    """All ranks compute, rank 0 prints: every rank draws the same character from the same numbers."""
    random = torch.Generator().manual_seed(1)
    ids = course.ids[None, :8]
    for _ in range(o.write):
        logits = model(ids[:, -o.length :])[:, -1]
        logits = mp.gather(logits, -1, total=len(course.characters))
        ids = torch.cat([ids, torch.multinomial(logits.softmax(-1), 1, generator=random)], 1)
    if world.rank == 0 and o.write:
        print("".join(course.characters[i] for i in ids[0]))


if __name__ == "__main__":
    main()
