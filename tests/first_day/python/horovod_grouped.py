# horovod_grouped.py: Horovod's grouped_allreduce
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

tutti.init()
a, b = tutti.all_reduce([np.ones(2), np.full(1, 3.0, "f4")])
print(a, b, b.dtype)

# prints:
#   [2. 2.] [6.] float32
#   [2. 2.] [6.] float32
