# horovod_ranks.py: Horovod's first lines
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.init()
print(tutti.rank(), tutti.size(), tutti.local_rank(), tutti.context().local_size)

# prints:
#   0 2 0 2
#   1 2 1 2
