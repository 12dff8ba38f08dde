# python_await.py: asyncio: a call and a computation side by side
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import asyncio

import numpy as np

import tutti

tutti.init()


async def main():
    work = tutti.all_reduce(np.full(2, tutti.rank() + 1.0), async_op=True)
    await asyncio.sleep(0)
    return await work


print(asyncio.run(main()))

# prints:
#   [3. 3.]
#   [3. 3.]
