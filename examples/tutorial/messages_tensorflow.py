# messages_tensorflow.py: messages inside tf.function, and their gradient.
# SPDX-License-Identifier: Apache-2.0
import tensorflow as tf

import tutti

world = tutti.init()
rank, size = world.rank, world.size
left, right = (rank - 1) % size, (rank + 1) % size


@tf.function
def loss_and_gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tutti.sendrecv(x, dst=right, src=left)
        loss = (rank + 1.0) * tf.reduce_sum(y)
    return loss, tape.gradient(loss, x)


value, gradient = loss_and_gradient(tf.fill([2], float(rank)))
print(f"rank {rank} has the loss {float(value)}, and the gradient {gradient.numpy().tolist()} from rank {right}")
