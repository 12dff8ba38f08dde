# zero_tensorflow.py: ZeRO's first two stages in TensorFlow, with an optimiser of Keras.
# SPDX-License-Identifier: Apache-2.0
import keras
import numpy as np
import tensorflow as tf

import tutti
import tutti.tensorflow

world = tutti.init()
data = tf.random.stateless_normal((48, 64), seed=(1, 2))         # the same on every rank, which takes its part


def train(optimizer, x):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, "tanh")])
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - x) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return model.get_weights()


mine = tf.split(data, world.size)[world.rank]
shared = train(tutti.tensorflow.zero(keras.optimizers.AdamW(1e-2)), mine)
plain = train(keras.optimizers.AdamW(1e-2), data)                # one process, the whole batch
assert all(np.allclose(a, b, atol=1e-4) for a, b in zip(shared, plain))
if world.rank == 0:
    print("the weights are those of one process")
