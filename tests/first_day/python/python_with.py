# python_with.py: a with block that waits at its end
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

tutti.init()
y = np.empty(2)
with tutti.all_reduce(np.ones(2), out=y, async_op=True):
    busy = sum(range(1000))
print(y, busy)

# prints:
#   [2. 2.] 499500
#   [2. 2.] 499500
