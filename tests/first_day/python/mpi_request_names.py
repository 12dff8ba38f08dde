# mpi_request_names.py: names of mpi4py's Request and torch's Work
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

tutti.init()
work = tutti.all_reduce(np.ones(2), async_op=True)
for name in ("Wait", "is_completed", "result", "get_future", "tset"):
    try:
        getattr(work, name)
    except AttributeError as error:
        if tutti.rank() == 0:
            print(error)
work.wait()

# prints:
#   a tutti.Work has no Wait; it is wait() here
#   a tutti.Work has no is_completed; it is test() here
#   a tutti.Work has no result; it is wait(), which gives the result here
#   a tutti.Work has no get_future; it is add_done_callback(function), or await work here
#   a tutti.Work has no tset; did you mean test?
