# python_init_twice.py: a second init that asks for something else
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.init()
tutti.init()
tutti.init(size=2)
tutti.init(size=3)

# raises on every rank: tutti.InvalidArgument: init: this process has joined its job already, with size=2, and size=3 would change that; call tutti.init() without it, or tutti.finalize() first
