# horovod_keywords.py: hvd.allreduce(x, average=True, name="x")
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

tutti.init()
for keywords in ({"average": True}, {"name": "x"}, {"prescale_factor": 0.5}, {"compression": None}, {"async": 1}):
    try:
        tutti.all_reduce(np.ones(2), **keywords)
    except tutti.InvalidArgument as error:
        if tutti.rank() == 0:
            print(error)

# prints:
#   all_reduce: there is no average=; here it is op="mean"
#   all_reduce: there is no name=; here it is nothing: leave it out
#   all_reduce: there is no prescale_factor=; here it is op=tutti.premul(factor)
#   all_reduce: there is no compression=; here it is tutti.torch.DataParallel(model, hook="bf16")
#   all_reduce: there is no async=; did you mean async_op=?
