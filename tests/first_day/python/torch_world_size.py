# torch_world_size.py: PyTorch's world_size= in init
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.init(rank=0, world_size=2)

# raises on every rank: tutti.InvalidArgument: init has no argument world_size=; it is size= here
