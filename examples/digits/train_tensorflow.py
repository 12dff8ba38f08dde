# train_tensorflow.py: digits in TensorFlow: tuttirun -n 2 train_tensorflow.py
# SPDX-License-Identifier: Apache-2.0
import digits
import tensorflow as tf

import tutti

world = tutti.init()
options = digits.options()
(x, y), (test_x, test_y) = digits.images()
weights = {name: tf.Variable(value) for name, value in digits.weights().items()}
velocity = {name: tf.Variable(tf.zeros_like(value)) for name, value in weights.items()}
progress = digits.Progress(world.rank, options)


def logits_of(x):
    return tf.tanh(x @ weights["w1"] + weights["b1"]) @ weights["w2"] + weights["b2"]


@tf.function(input_signature=[tf.TensorSpec([None, digits.PIXELS], tf.float32), tf.TensorSpec([None], tf.int32)])
def loss_and_gradients(x, y):
    """Means over the samples of this rank, which may be none."""
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits_of(x))
        loss = tf.reduce_sum(losses) / tf.maximum(tf.cast(tf.size(y), tf.float32), 1)
    return loss, tape.gradient(loss, weights)


# One function would do (examples/data_parallel); as functions of their own, the time of the average can be told.
@tf.function
def average(loss, gradients, samples):
    return tutti.average((loss, gradients), weight=samples)


@tf.function
def apply(gradients):
    for name, gradient in gradients.items():
        velocity[name].assign(digits.MOMENTUM * velocity[name] + gradient)
        weights[name].assign_sub(digits.RATE * velocity[name])


for epoch in range(options.epochs):
    losses = []
    for batch_x, batch_y in tutti.batches((x, y), digits.BATCH, epoch=epoch, seed=digits.SEED):
        samples = tf.constant(len(batch_y), tf.float32)
        loss, gradients = progress.timed(average, *loss_and_gradients(batch_x, batch_y), samples)
        apply(gradients)
        losses.append(loss)
        progress.step()
    progress.epoch(epoch, [float(loss) for loss in losses], (logits_of(test_x).numpy().argmax(-1) == test_y).mean())

progress.finish()
tutti.finalize()
