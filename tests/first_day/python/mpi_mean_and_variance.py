# mpi_mean_and_variance.py: the parallel mean: counts differ by rank
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import numpy as np

import tutti

comm = tutti.init()
mine = np.arange(2 + comm.rank, dtype=float) + comm.rank
count, total, squares = comm.all_reduce((len(mine), mine.sum(), (mine**2).sum()))
print(count, total, round(squares / count - (total / count) ** 2, 3))

# prints:
#   9 21.0 2.222
#   9 21.0 2.222
#   9 21.0 2.222
