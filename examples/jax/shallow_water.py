# shallow_water.py: waves in a shallow basin, on a grid of ranks that exchange the edges of their parts.
# SPDX-License-Identifier: Apache-2.0
"""tuttirun -n 4 examples/jax/shallow_water.py --steps 500

The state is water height and momentum in two directions, on a periodic grid. Each rank holds a rectangle of it with a
halo of one cell; a step fills the halo from the four neighbours (tutti.Mesh.exchange) and moves the waves on by the scheme of
Lax and Friedrichs. All steps are one compiled program. Water is neither made nor lost: the program checks that, and
with --check also that the parts together are what one process computes alone."""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np

import tutti

GRAVITY = 9.81
CELL = 1.0  # metres
TIME_STEP = 0.02  # seconds


def rank_grid(size):
    """Ranks in rows and columns, as square as their number allows; neighbours wrap around."""
    rows = max(n for n in range(1, int(size**0.5) + 1) if size % n == 0)
    return tutti.Mesh(y=rows, x=size // rows, periodic=("y", "x"))


def part_of(whole, grid):
    """This rank's rectangle of an array whose last two axes are the grid."""
    height, width = whole.shape[-2] // grid.shape["y"], whole.shape[-1] // grid.shape["x"]
    top, left = grid.coordinates["y"] * height, grid.coordinates["x"] * width
    return whole[..., top : top + height, left : left + width]


def flux(height, along, across):
    """What crosses a cell's border in the direction of `along`: mass, momentum along, momentum across."""
    speed = along / height
    return height * speed, along * speed + 0.5 * GRAVITY * height**2, across * speed


def step(state, exchange):
    state = exchange(state)
    height, east, south = state
    to_east = jnp.stack([(f := flux(height, east, south))[0], f[1], f[2]])
    to_south = jnp.stack([(f := flux(height, south, east))[0], f[2], f[1]])
    around = state[:, 1:-1, 2:] + state[:, 1:-1, :-2] + state[:, 2:, 1:-1] + state[:, :-2, 1:-1]
    change = (to_east[:, 1:-1, 2:] - to_east[:, 1:-1, :-2]) + (to_south[:, 2:, 1:-1] - to_south[:, :-2, 1:-1])
    return state.at[:, 1:-1, 1:-1].set(0.25 * around - TIME_STEP / (2 * CELL) * change)


@functools.partial(jax.jit, static_argnums=(1, 2))
def simulate(state, steps, exchange):
    return jax.lax.fori_loop(0, steps, lambda _, state: step(state, exchange), state)


def drop(height, width):
    """Still water with a round hill of it, off the centre."""
    y, x = np.mgrid[0:height, 0:width]
    hill = np.exp(-((x - width / 3) ** 2 + (y - height / 2) ** 2) / (0.02 * width * height))
    return np.stack([1.0 + 0.3 * hill, np.zeros_like(hill), np.zeros_like(hill)]).astype(np.float32)


def with_halo(part):
    return jnp.pad(jnp.asarray(part), ((0, 0), (1, 1), (1, 1)), mode="wrap")


def alone(whole, steps):
    """The same simulation by one process: its neighbours are itself."""
    return simulate(with_halo(whole), steps, lambda state: with_halo(state[:, 1:-1, 1:-1]))[:, 1:-1, 1:-1]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--steps", type=int, default=200)
    arguments.add_argument("--cells", type=int, default=240, help="along each side of the whole grid")
    arguments.add_argument("--check", action="store_true", help="compare with one process")
    options = arguments.parse_args()

    world = tutti.init()
    grid = rank_grid(world.size)
    cells = options.cells // world.size * world.size
    whole = drop(cells, cells)
    state = with_halo(part_of(whole, grid))
    exchange = functools.partial(grid.exchange, halo=1, axes=(-2, -1))
    part = simulate(state, options.steps, exchange)[:, 1:-1, 1:-1]

    water = float(tutti.all_reduce(part[0].astype(jnp.float32).sum()))
    highest = float(tutti.all_reduce(part[0].max(), op="max"))
    if abs(water / whole[0].sum() - 1) > 1e-3:
        raise SystemExit(f"water was made or lost: {whole[0].sum()} before, {water} after")
    if options.check:
        np.testing.assert_allclose(part, part_of(np.asarray(alone(whole, options.steps)), grid), rtol=1e-4, atol=1e-5)
    if world.rank == 0:
        print(
            f"{options.steps} steps on {cells} x {cells} cells, {grid.shape['y']} x {grid.shape['x']} ranks: "
            f"highest wave {highest:.4f} m"
        )


if __name__ == "__main__":
    main()
