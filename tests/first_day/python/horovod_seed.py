# horovod_seed.py: seeds: the same model on every rank, other batches on each
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import numpy as np

import tutti

tutti.init()
tutti.seed(1234)
same = tutti.all_gather(np.random.random(), axis=None)
tutti.seed(1234, per_rank=True)
different = tutti.all_gather(np.random.random(), axis=None)
print(len(np.unique(same)), len(np.unique(different)))

# prints:
#   1 3
#   1 3
#   1 3
