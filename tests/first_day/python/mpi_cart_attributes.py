# mpi_cart_attributes.py: names of a Cartcomm on a mesh
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.init()
mesh = tutti.Mesh(y=1, x=-1)
for name in ("x", "coords", "Shift", "nonsense"):
    try:
        getattr(mesh, name)
    except AttributeError as error:
        if tutti.rank() == 0:
            print(error)

# prints:
#   a tutti.Mesh has no x; its group along that axis is mesh["x"]
#   a tutti.Mesh has no coords; it is coordinates here
#   a tutti.Mesh has no Shift; it is neighbour(axis, distance) here
#   a tutti.Mesh has no nonsense
