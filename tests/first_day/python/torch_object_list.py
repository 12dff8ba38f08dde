# torch_object_list.py: PyTorch's manual, broadcast_object_list and all_gather_object
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.init()
objects = ["foo", 12, {1: 2}] if tutti.rank() == 0 else None
print(tutti.broadcast_object(objects), tutti.all_gather_object(tutti.rank() * "x"))

# prints:
#   ['foo', 12, {1: 2}] ['', 'x']
#   ['foo', 12, {1: 2}] ['', 'x']
