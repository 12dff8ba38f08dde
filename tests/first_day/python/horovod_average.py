# horovod_average.py: Horovod's allreduce, which averages
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import numpy as np

import tutti

tutti.init()
print(tutti.all_reduce(np.array([1.0, 2.0]) * tutti.rank(), op="mean"))

# prints:
#   [1. 2.]
#   [1. 2.]
#   [1. 2.]
