# tensor_parallel_tensorflow.py: the two split layers in TensorFlow, with gradients, in a tf.function.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import tensorflow as tf

import tutti

world = tutti.init()
mp = tutti.model_parallel
mp.init()
random = np.random.default_rng(0)                               # the same on every rank
x, up, down = (tf.constant(random.normal(size=shape), tf.float32) for shape in ((5, 6), (6, 8), (8, 6)))


def split(x, up, down):
    return mp.reduce(tf.tanh(mp.copy(x) @ up) @ down)


def dense(x, up, down):
    return tf.tanh(x @ up) @ down


@tf.function
def loss_and_gradients(layers, weights):
    with tf.GradientTape() as tape:
        tape.watch(weights)
        loss = tf.reduce_sum(layers(x, *weights) ** 2)
    return loss, tape.gradient(loss, weights)


def mine(whole, axis):
    return tf.constant(np.array_split(whole.numpy(), world.size, axis=axis)[world.rank])


loss, (d_up, d_down) = loss_and_gradients(split, (mine(up, 1), mine(down, 0)))
whole, (whole_up, whole_down) = loss_and_gradients(dense, (up, down))
assert np.allclose(loss, whole, rtol=1e-4)
assert np.allclose(d_up, mine(whole_up, 1), rtol=1e-3, atol=1e-3)
assert np.allclose(d_down, mine(whole_down, 0), rtol=1e-3, atol=1e-3)
mp.destroy()
