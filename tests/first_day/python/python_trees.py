# python_trees.py: a named tuple, a dataclass and an OrderedDict of arrays come back as they went in
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import collections
import dataclasses
import typing

import numpy as np

import tutti


class Pair(typing.NamedTuple):
    w: float
    b: float


@dataclasses.dataclass
class Params:
    w: np.ndarray
    b: float


tutti.init()
print(tutti.all_reduce(Pair(1.0, 2.0)), tutti.all_reduce(Params(np.ones(2), 3.0)))
print(tutti.all_reduce(collections.OrderedDict(z=1, a=2)))

# prints:
#   Pair(w=2.0, b=4.0) Params(w=array([2., 2.]), b=6.0)
#   OrderedDict([('z', 2), ('a', 4)])
#   Pair(w=2.0, b=4.0) Params(w=array([2., 2.]), b=6.0)
#   OrderedDict([('z', 2), ('a', 4)])
