# mistakes.py: what type checkers must find, on each line that says so, and nothing else. Checked, never run (test_types.py).
# SPDX-License-Identifier: Apache-2.0
import numpy as np

import tutti

x = np.ones(4)
tutti.nonexistent  # error
tutti.all_reduce(x, op="avg")  # error
tutti.all_reduce(x, axis=0)  # error
tutti.all_reduce(x, async_op=True) + 1  # error
tutti.all_reduce(x).wait()  # error
tutti.world().Get_rank()  # error
tutti.context().nonexistent  # error
tutti.init(world_size=2).nonexistent  # error
tutti.all_reduce(x, group=[0, 1])  # error
tutti.seed("x")  # error
tutti.broadcast(x, root="0")  # error
tutti.model_parallel.nonexistent  # error
