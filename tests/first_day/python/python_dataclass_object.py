# python_dataclass_object.py: a dataclass as an object says how to send it
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import dataclasses

import tutti


@dataclasses.dataclass
class Config:
    lr: float


tutti.init()
tutti.broadcast_object(Config(0.1) if tutti.rank() == 0 else None)

# raises on every rank: tutti.InvalidArgument: rank 0 of 2: broadcast_object: the object is of type …Config, a dataclass, which has no encoding here; send dataclasses.asdict(value), or pass allow_pickle=True on every rank
