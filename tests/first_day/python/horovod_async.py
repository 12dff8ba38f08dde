# horovod_async.py: Horovod's allreduce_async, poll and synchronize
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

tutti.init()
handle = tutti.all_reduce(np.ones(2), async_op=True)
while not handle.test():
    pass
print(handle.wait(), handle)

# prints:
#   [2. 2.] <tutti.Work all_reduce #1 (float64 × 2, sum), ended>
#   [2. 2.] <tutti.Work all_reduce #1 (float64 × 2, sum), ended>
