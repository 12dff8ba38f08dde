# torch_all_to_all.py: PyTorch's manual, all_to_all_single with sizes that differ
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

rank = tutti.init().rank
input = torch.arange(3) + 10 * rank
print(rank, tutti.all_to_all(input, split_sizes=[1, 2] if rank == 0 else [2, 1]))

# prints:
#   0 tensor([ 0, 10, 11])
#   1 tensor([ 1,  2, 12])
