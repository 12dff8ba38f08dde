# horovod_alltoall.py: Horovod's alltoall with splits
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

tutti.init()
rank = tutti.rank()
print(rank, tutti.all_to_all(np.full(3, rank), split_sizes=[2, 1]))

# prints:
#   0 [0 0 1 1]
#   1 [0 1]
