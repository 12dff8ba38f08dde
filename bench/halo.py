# halo.py: filling the margins of an array from four neighbours: mesh.exchange, the same by hand, and MPI's neighbour collectives.
# SPDX-License-Identifier: Apache-2.0
"""mpirun -n 4 python bench/halo.py [CELLS]

Float64, CELLS × CELLS (1024) with one cell of margin on each side, on a periodic grid of ranks, corners included: axis by axis. By
hand: isend and irecv of this library, rows where they lie, columns through a contiguous copy, as one writes it in NumPy. MPI: mpi4py's
Neighbor_alltoallw on the grid's one-dimensional communicators, with datatypes for the slabs, so that nothing is copied in Python; and,
as MPI would do without corners, one call for both axes. All in one process, in turns, results compared. Prints microseconds."""

import statistics
import sys
import time

import numpy as np
from mpi4py import MPI

import tutti

CELLS = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
CALLS, TURNS = 50, 15

everyone = MPI.COMM_WORLD
world = tutti.init(comm=everyone)
rows = 2 if world.size % 2 == 0 else 1
grid = tutti.Mesh(y=rows, x=-1, periodic=("y", "x"))
shape = (CELLS + 2, CELLS + 2)


def by_exchange(u):
    grid.exchange(u, halo=1, out=u)


def by_hand(u):
    up, down = grid.neighbour("y", -1), grid.neighbour("y", 1)
    works = [tutti.irecv(up, 1, out=u[0]), tutti.irecv(down, 2, out=u[-1]), tutti.isend(u[-2], down, 1), tutti.isend(u[1], up, 2)]
    for work in works:
        work.wait()
    left, right = grid.neighbour("x", -1), grid.neighbour("x", 1)
    from_left, from_right = np.empty(CELLS + 2), np.empty(CELLS + 2)
    works = [tutti.irecv(left, 3, out=from_left), tutti.irecv(right, 4, out=from_right),
             tutti.isend(np.ascontiguousarray(u[:, -2]), right, 3), tutti.isend(np.ascontiguousarray(u[:, 1]), left, 4)]
    for work in works:
        work.wait()
    u[:, 0], u[:, -1] = from_left, from_right


def slab(begin, height, wide):
    return MPI.DOUBLE.Create_subarray(shape, (height, wide), begin).Commit()


# The ranks of the mesh in its own order, so that both grids have the same neighbours.
cart = everyone.Split(0, grid.coordinates["y"] * grid.shape["x"] + grid.coordinates["x"]).Create_cart(
    (grid.shape["y"], grid.shape["x"]), (True, True))
columns, lines = cart.Sub((True, False)), cart.Sub((False, True))
n = CELLS
sent_y, filled_y = [slab((1, 0), 1, n + 2), slab((n, 0), 1, n + 2)], [slab((0, 0), 1, n + 2), slab((n + 1, 0), 1, n + 2)]
sent_x, filled_x = [slab((0, 1), n + 2, 1), slab((0, n), n + 2, 1)], [slab((0, 0), n + 2, 1), slab((0, n + 1), n + 2, 1)]


def alltoallw(comm, u, sent, filled):
    ones, zeros = [1] * len(sent), [0] * len(sent)
    comm.Neighbor_alltoallw([u, ones, zeros, sent], [u, ones, zeros, filled])


def by_mpi(u):
    alltoallw(columns, u, sent_y, filled_y)
    alltoallw(lines, u, sent_x, filled_x)


def by_mpi_without_corners(u):
    alltoallw(cart, u, sent_y + sent_x, filled_y + filled_x)


WAYS = {
    "mesh.exchange": by_exchange,
    "isend and irecv by hand": by_hand,
    "MPI_Neighbor_alltoallw, axis by axis": by_mpi,
    "MPI_Neighbor_alltoallw, no corners": by_mpi_without_corners,
}


def start():
    u = np.full(shape, -1.0)
    y, x = (np.arange(CELLS) + CELLS * grid.coordinates[axis] for axis in ("y", "x"))
    u[1:-1, 1:-1] = y[:, None] * (CELLS * grid.shape["x"]) + x
    return u


def check():
    """Every way fills what the others fill; a ring of two ranks has both neighbours in one."""
    filled = {}
    for name, way in WAYS.items():
        filled[name] = start()
        way(filled[name])
    expected = filled["mesh.exchange"]
    for name, u in filled.items():
        same = (u == expected) if "no corners" not in name else (u == expected)[1:-1, 1:-1]
        if not same.all():
            raise AssertionError(f"{name} gives something else on rank {world.rank}")
    if (expected < 0).any():
        raise AssertionError("a margin was not filled")


def main():
    check()
    u = start()
    times = {name: [] for name in WAYS}
    for turn in range(TURNS + 1):
        for name, way in WAYS.items():
            everyone.Barrier()
            begin = time.perf_counter()
            for _ in range(CALLS):
                way(u)
            micros = (time.perf_counter() - begin) / CALLS * 1e6
            if turn > 0:  # the first one warms up
                times[name].append(everyone.allreduce(micros, MPI.MAX))
    if world.rank == 0:
        print(f"{world.size} ranks, {grid!r}, {CELLS} × {CELLS} float64; {MPI.Get_library_version().splitlines()[0].strip()}")
        print("| way | median, µs | least, µs |\n|---|--:|--:|")
        for name, found in times.items():
            print(f"| {name} | {statistics.median(found):.1f} | {min(found):.1f} |")


if __name__ == "__main__":
    main()
