# train_tensorflow.py: data-parallel training with TensorFlow, in a tf.function: tuttirun -n 2 train_tensorflow.py
# SPDX-License-Identifier: Apache-2.0
import tensorflow as tf

import problem
import tutti

world = tutti.init()
x, y = map(tf.constant, problem.samples(world.rank, world.size))
first, second = map(tf.Variable, problem.weights())


@tf.function
def train():
    with tf.GradientTape() as tape:
        predicted = tf.linalg.matvec(tf.tanh(x @ first), second)
        loss = tf.reduce_mean((predicted - y) ** 2)
    gradients = tape.gradient(loss, [first, second])

    loss, gradients = tutti.average((loss, gradients), weight=len(y))  # of all samples of all ranks
    first.assign_sub(problem.RATE * gradients[0])
    second.assign_sub(problem.RATE * gradients[1])
    return loss


for step in range(problem.STEPS):
    loss = train()
    if world.rank == 0:
        print(f"step {step:2} loss {loss:.6f}")

tutti.finalize()
