# torch_init_process_group.py: PyTorch's init_process_group
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.init_process_group("gloo")

# raises on every rank: AttributeError: tutti has no init_process_group; it is called tutti.init here
