# mpi_cart.py: mpi4py, a Cartesian grid and its neighbours
# SPDX-License-Identifier: Apache-2.0
# ranks: 4
import tutti

tutti.init()
grid = tutti.Mesh(y=2, x=2, periodic=("y",))
print(tutti.rank(), grid.coordinates, grid["x"].members, grid.neighbour("y", 1))

# prints:
#   0 {'y': 0, 'x': 0} [0, 1] 2
#   1 {'y': 0, 'x': 1} [0, 1] 3
#   2 {'y': 1, 'x': 0} [2, 3] 0
#   3 {'y': 1, 'x': 1} [2, 3] 1
