# horovod_allgather.py: Horovod's allgather, where first dimensions may differ
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

tutti.init()
print(tutti.all_gather(np.full((tutti.rank() + 1, 2), tutti.rank()), uneven=True).tolist())

# prints:
#   [[0, 0], [1, 1], [1, 1]]
#   [[0, 0], [1, 1], [1, 1]]
