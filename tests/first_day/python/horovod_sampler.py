# horovod_sampler.py: a DistributedSampler's indices, as Horovod's examples use them
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.init()
print(tutti.rank(), tutti.shard_indices(6, shuffle=False).tolist())

# prints:
#   0 [0, 2, 4]
#   1 [1, 3, 5]
