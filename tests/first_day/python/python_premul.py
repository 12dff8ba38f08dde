# python_premul.py: a reduction with a factor, pickled and back
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import pickle

import numpy as np

import tutti

tutti.init()
op = pickle.loads(pickle.dumps(tutti.premul(0.1)))
print(op == tutti.premul(0.1), tutti.all_reduce(np.full(1, 10.0), op=op))

# prints:
#   True [2.]
#   True [2.]
