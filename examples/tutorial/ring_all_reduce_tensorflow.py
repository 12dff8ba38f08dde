# ring_all_reduce_tensorflow.py: the ring in TensorFlow, in a tf.function, with its gradient.
# SPDX-License-Identifier: Apache-2.0
import tensorflow as tf

import tutti

world = tutti.init()
rank, size = world.rank, world.size
left, right = (rank - 1) % size, (rank + 1) % size


def ring_all_reduce(x):
    blocks = tf.split(x, size)
    for step in range(size - 1):
        give, take = (rank - step) % size, (rank - step - 1) % size
        blocks[take] += tutti.sendrecv(blocks[give], dst=right, src=left)
    for step in range(size - 1):
        give, take = (rank - step + 1) % size, (rank - step) % size
        blocks[take] = tutti.sendrecv(blocks[give], dst=right, src=left)
    return tf.concat(blocks, axis=0)


@tf.function
def sum_and_gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = ring_all_reduce(x)
        loss = tf.reduce_sum(y) * (rank + 1.0)
    return y, tape.gradient(loss, x)


x = tf.range(4.0 * size) + rank
y, gradient = sum_and_gradient(x)
assert (y.numpy() == tutti.all_reduce(x).numpy()).all()
assert (gradient.numpy() == size * (size + 1) / 2).all()
if rank == 0:
    print("gradient:", float(gradient[0]))
