"""Makes the networks of this folder: with values kept between runs, with loops and branches, and with sparse weights.

Needs flatc, NumPy and tensorflow-cpu 2.21 (PyPI). Run from anywhere: python make_models.py.
"""

import json
import pathlib
import subprocess
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = HERE / "../../../src/graph/import/schema.fbs"
RANDOM = np.random.RandomState(1)


def converted(module, shape, quantized):
    import tensorflow as tf

    function = module.__call__.get_concrete_function(tf.TensorSpec(shape, tf.float32))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], module)
    converter.experimental_enable_resource_variables = True
    if quantized:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([RANDOM.randn(*shape).astype(np.float32)] for _ in range(20))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return converter.convert()


def variables():
    import tensorflow as tf

    class Counter(tf.Module):
        """Adds to a variable that starts as 0, 1, ... 5."""

        def __init__(self):
            self.value = tf.Variable(np.arange(6, dtype=np.float32).reshape(1, 6))

        @tf.function
        def __call__(self, x):
            y = self.value * 0.5 + x
            self.value.assign(y)
            return tf.nn.relu(y)

    class Stream(tf.Module):
        """Processes an audio stream two frames at a time, and keeps the last eight."""

        def __init__(self):
            self.frames = tf.Variable(tf.zeros([1, 8, 16]))
            self.filter = tf.constant(RANDOM.randn(3, 16, 24).astype(np.float32) * 0.2)
            self.bias = tf.constant(RANDOM.randn(24).astype(np.float32))
            self.dense = tf.constant(RANDOM.randn(24, 5).astype(np.float32) * 0.3)

        @tf.function
        def __call__(self, x):
            frames = tf.concat([self.frames[:, 2:], x], 1)
            self.frames.assign(frames)
            y = tf.nn.relu(tf.nn.conv1d(frames, self.filter, 1, "VALID") + self.bias)
            return tf.nn.softmax(tf.reduce_mean(y, 1) @ self.dense)

    (HERE / "counter.tflite").write_bytes(converted(Counter(), [1, 6], False))
    (HERE / "stream_i8.tflite").write_bytes(converted(Stream(), [1, 2, 16], True))


def control_flow():
    import tensorflow as tf

    tf.keras.utils.set_random_seed(1)
    x = tf.keras.Input((5, 3), batch_size=1)
    y = tf.keras.layers.GRU(4, return_sequences=True)(x)
    y = tf.keras.layers.LSTM(3)(tf.keras.layers.Bidirectional(tf.keras.layers.SimpleRNN(2, return_sequences=True))(y))
    loops = tf.lite.TFLiteConverter.from_keras_model(tf.keras.Model(x, y))
    (HERE / "loops.tflite").write_bytes(loops.convert())

    class Branch(tf.Module):
        """Takes one of two ways, by the sum of its input; the second has a loop within a loop."""

        @tf.function
        def __call__(self, x):
            def deep():
                def outer(i, y):
                    return i + 1, tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, tf.tanh(z) + x), [0, y])[1]
                return tf.while_loop(lambda i, y: i < 3, outer, [0, x])[1]

            return tf.cond(tf.reduce_sum(x) > 3.0, lambda: x * 2.0 + 1.0, deep)

    (HERE / "branch.tflite").write_bytes(converted(Branch(), [1, 6], False))


def dense(size):
    return dict(format=0, dense_size=size)


def sparse(segments, indices):
    """Describes a sparse dimension with lists of bytes, which suffice if they are short."""
    return dict(format=1, array_segments_type="Uint8Vector", array_segments=dict(values=segments),
                array_indices_type="Uint8Vector", array_indices=dict(values=indices))


def rows_of(matrix):
    """Stores the nonzero elements of each row."""
    segments, indices, stored = [0], [], []
    for row in matrix:
        at = np.flatnonzero(row)
        indices += [int(i) for i in at]
        stored += [int(v) for v in row[at]]
        segments.append(len(indices))
    return dict(traversal_order=[0, 1], dim_metadata=[dense(len(matrix)), sparse(segments, indices)]), stored


def blocks_of(matrix, height):
    """Stores the nonzero blocks of `height` rows and one column."""
    segments, indices, stored = [0], [], []
    for top in range(0, len(matrix), height):
        for column in range(matrix.shape[1]):
            block = matrix[top:top + height, column]
            if block.any():
                indices.append(column)
                stored += [int(v) for v in block]
        segments.append(len(indices))
    how = dict(traversal_order=[0, 1, 2], block_map=[0],
               dim_metadata=[dense(len(matrix) // height), sparse(segments, indices), dense(height)])
    return how, stored


def fully_connected(name, how, stored, matrix):
    """Makes a model of DENSIFY and FULLY_CONNECTED."""
    outputs, inputs = matrix.shape

    def quantized(scale, zero=0):
        return dict(scale=[scale], zero_point=[zero])

    bias = np.arange(outputs, dtype=np.int32) * 50
    tensors = [
        dict(shape=[1, inputs], type=9, name="input", buffer=0, quantization=quantized(0.05, 3)),
        dict(shape=[outputs, inputs], type=9, name="sparse", buffer=1, quantization=quantized(0.01), sparsity=how),
        dict(shape=[outputs, inputs], type=9, name="dense", buffer=0, quantization=quantized(0.01)),
        dict(shape=[outputs], type=2, name="bias", buffer=2, quantization=quantized(0.0005)),
        dict(shape=[1, outputs], type=9, name="output", buffer=0, quantization=quantized(0.1, -5))]
    ops = [dict(opcode_index=0, inputs=[1], outputs=[2]),
           dict(opcode_index=1, inputs=[0, 2, 3], outputs=[4], builtin_options_type="FullyConnectedOptions", builtin_options={})]
    codes = [dict(deprecated_builtin_code=124, builtin_code=124, version=1),
             dict(deprecated_builtin_code=9, builtin_code=9, version=4)]
    buffers = [{}, dict(data=[v & 255 for v in stored]), dict(data=list(bias.tobytes()))]
    graph = dict(name="main", tensors=tensors, inputs=[0], outputs=[4], operators=ops)
    write(name, dict(version=3, operator_codes=codes, subgraphs=[graph], buffers=buffers))


def write(name, model):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / f"{name}.json"
        source.write_text(json.dumps(model))
        subprocess.run(["flatc", "-b", "-o", folder, SCHEMA, source], check=True)
        (HERE / f"{name}.tflite").write_bytes((pathlib.Path(folder) / f"{name}.tflite").read_bytes())


def svdf(name, inputs=6, units=3, rank=2, memory=4):
    random, filters = np.random.RandomState(3), units * rank
    contents = [random.randint(-127, 128, (filters, inputs)).astype(np.int8),
                random.randint(-32767, 32768, (filters, memory)).astype(np.int16), np.arange(units, dtype=np.int32) * 9000]
    rows = [("input", [1, inputs], 9, 0.02, 3), ("features", [filters, inputs], 9, 0.005, 0), ("time", [filters, memory], 7, 2e-5, 0),
            ("bias", [units], 2, 1e-8, 0), ("state", [1, filters * memory], 7, 5e-4, 0), ("output", [1, units], 9, 0.05, -20)]
    tensors = [dict(name=one, shape=shape, type=kind, buffer=i if 1 <= i <= 3 else 0, is_variable=one == "state",
                    quantization=dict(scale=[scale], zero_point=[zero]))
               for i, (one, shape, kind, scale, zero) in enumerate(rows)]
    op = dict(opcode_index=0, inputs=[0, 1, 2, 3, 4], outputs=[5], builtin_options_type="SVDFOptions",
              builtin_options=dict(rank=rank, fused_activation_function=1))
    graph = dict(name="main", tensors=tensors, inputs=[0], outputs=[5], operators=[op])
    write(name, dict(version=3, operator_codes=[dict(deprecated_builtin_code=27, builtin_code=27, version=4)], subgraphs=[graph],
                     buffers=[{}] + [dict(data=list(one.tobytes())) for one in contents]))


def weights():
    random = np.random.RandomState(2)
    matrix = random.randint(-99, 100, (8, 24)) * (random.rand(8, 24) < 0.3)
    fully_connected("sparse_rows_i8", *rows_of(matrix), matrix)
    matrix = np.repeat(random.rand(2, 24) < 0.3, 4, axis=0) * random.randint(-99, 100, (8, 24))
    fully_connected("sparse_blocks_i8", *blocks_of(matrix, 4), matrix)


if __name__ == "__main__":
    weights()
    svdf("svdf_i8")
    variables()
    control_flow()
