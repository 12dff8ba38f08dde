# conjugate_gradient.py: Poisson's equation by conjugate gradients, the whole solver as one compiled program.
# SPDX-License-Identifier: Apache-2.0
"""tuttirun -n 4 examples/jax/conjugate_gradient.py

Each rank holds some rows of a square grid with zeros around it. Applying the operator takes the neighbours' nearest
rows (two sendrecv; from nobody, zeros arrive, which is what lies around the grid), and each inner product an
all_reduce. The loop ends on all ranks in the same round, since a reduction gives the same bits everywhere."""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np

import tutti


def laplace(u, rank, size, sendrecv):
    """The five-point operator on this rank's rows. `sendrecv(array, dst, src)`, which knows tutti.nobody."""
    below = rank + 1 if rank + 1 < size else tutti.nobody
    above = rank - 1 if rank > 0 else tutti.nobody
    upper, lower = sendrecv(u[-1], below, above), sendrecv(u[0], above, below)
    rows = jnp.concatenate([upper[None], u, lower[None]])
    padded = jnp.pad(rows, ((0, 0), (1, 1)))
    return 4 * u - padded[:-2, 1:-1] - padded[2:, 1:-1] - padded[1:-1, :-2] - padded[1:-1, 2:]


def solve(operator, b, tolerance, rounds_max, total):
    """x with operator(x) = b, and the rounds it took. `total` adds a number over all ranks."""
    limit = tolerance**2 * total(jnp.vdot(b, b))

    def goes_on(state):
        _, _, _, error, rounds = state
        return (error > limit) & (rounds < rounds_max)

    def improve(state):
        x, residual, direction, error, rounds = state
        image = operator(direction)
        length = error / total(jnp.vdot(direction, image))
        residual = residual - length * image
        new_error = total(jnp.vdot(residual, residual))
        return x + length * direction, residual, residual + new_error / error * direction, new_error, rounds + 1

    start = (jnp.zeros_like(b), b, b, total(jnp.vdot(b, b)), 0)
    x, _, _, _, rounds = jax.lax.while_loop(goes_on, improve, start)
    return x, rounds


def solver(rank, size, tolerance, rounds_max, sendrecv, total):
    operator = functools.partial(laplace, rank=rank, size=size, sendrecv=sendrecv)
    return jax.jit(lambda b: solve(operator, b, tolerance, rounds_max, total))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--cells", type=int, default=128, help="along each side of the grid")
    arguments.add_argument("--tolerance", type=float, default=1e-5)
    options = arguments.parse_args()

    world = tutti.init()
    rank, size, cells = world.rank, world.size, options.cells
    mine = np.array_split(np.arange(cells), size)[rank]
    y, x = np.meshgrid((mine + 1) / (cells + 1), (np.arange(cells) + 1) / (cells + 1), indexing="ij")
    # u = sin(pi x) sin(2 pi y) is an eigenvector of the operator, but the hill makes the solver work.
    hill = np.exp(-((x - 0.3) ** 2 + (y - 0.6) ** 2) / 0.01)
    b = jnp.asarray(np.sin(np.pi * x) * np.sin(2 * np.pi * y) + hill, jnp.float32)

    u, rounds = solver(rank, size, options.tolerance, 10 * cells, tutti.sendrecv, tutti.all_reduce)(b)
    residual = jax.jit(lambda u, b: laplace(u, rank, size, tutti.sendrecv) - b)(u, b)
    error = float(jnp.sqrt(tutti.all_reduce(jnp.vdot(residual, residual)) / tutti.all_reduce(jnp.vdot(b, b))))
    if not error < 100 * options.tolerance:
        raise SystemExit(f"not solved: the residual is {error:.2e} of the right-hand side")
    if rank == 0:
        print(f"{cells} x {cells} cells on {size} ranks: {int(rounds)} rounds, residual {error:.1e}")


if __name__ == "__main__":
    main()
