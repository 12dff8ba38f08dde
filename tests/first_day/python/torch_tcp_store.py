# torch_tcp_store.py: a key-value store that outlives the rank which set the keys
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import time

import tutti

world = tutti.init()
store = tutti.store()
if world.rank == 0:
    store.set("address", "10.0.0.1:29500")
else:
    time.sleep(0.3 * world.rank)
    store.add("readers")
    print(store.get("address").decode(), store.compare_set("first", None, str(world.rank)).decode())

# prints:
#   10.0.0.1:29500 1
#   10.0.0.1:29500 1
