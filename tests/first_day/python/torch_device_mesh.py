# torch_device_mesh.py: PyTorch's tutorial on DeviceMesh, in two dimensions
# SPDX-License-Identifier: Apache-2.0
# ranks: 4
import torch

import tutti

tutti.init()
mesh = tutti.Mesh(replicate=2, shard=2)
print(tutti.rank(), mesh["shard"].all_reduce(torch.tensor(tutti.rank())).item(), mesh.group.size)

# prints:
#   0 1 4
#   1 1 4
#   2 5 4
#   3 5 4
