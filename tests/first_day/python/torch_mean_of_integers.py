# torch_mean_of_integers.py: the mean of integers, which torch's AVG refuses, too
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
tutti.all_reduce(torch.arange(2), op="mean")

# raises on every rank: tutti.InvalidArgument: …mean…
