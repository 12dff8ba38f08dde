# torch_mesh_as_group.py: a mesh where a group belongs
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
mesh = tutti.Mesh(data=2)
tutti.all_reduce(torch.ones(1), group=mesh)

# raises on every rank: tutti.InvalidArgument: group=tutti.Mesh(data=2) is a mesh: say along which axis, mesh["data"], or mesh.group for all its ranks
