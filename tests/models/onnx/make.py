#!/usr/bin/env python3
"""Makes the ONNX files of this folder, with inputs and the results of ONNX Runtime's CPU provider.

usage: make.py [FOLDER]     needs onnxruntime 1.24.4, onnx 1.23.2, numpy 2.4.6 (pip install in a virtual environment)
"""
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "integration"))
import onnx_nets as nets  # noqa: E402

QUANTIZED = {"mobilenet": (lambda: nets.mobilenet((1, 3, 16, 16)), "u8i8", nets.QDQ), "yolo": (nets.yolo, "i8_per_channel", nets.QDQ),
             "lenet": (nets.lenet, "u8i8", nets.QOPERATOR), "transformer": (nets.transformer, "u8i8", nets.QDQ),
             "text_reader": (nets.text_reader, "u8", nets.QDQ)}


def shapes():
    """Makes a float model with free sizes and weights in a file beside it. It computes sizes as exporters do, with constants in all forms."""
    random = np.random.default_rng(3)
    weights = random.normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "weights", "bias"], ["c"], name="conv", pads=[1, 1, 1, 1]),
             helper.make_node("Identity", ["c"], ["i"], name="identity"),
             helper.make_node("Shape", ["i"], ["shape"], name="shape"),
             helper.make_node("Constant", [], ["zero"], name="zero", value_int=0),
             helper.make_node("Gather", ["shape", "zero"], ["batch"], name="gather"),
             helper.make_node("Unsqueeze", ["batch", "axes"], ["batch1"], name="unsqueeze"),
             helper.make_node("Constant", [], ["rest"], name="rest", value_ints=[4, -1]),
             helper.make_node("Concat", ["batch1", "rest"], ["to"], name="concat", axis=0),
             helper.make_node("Reshape", ["i", "to"], ["r"], name="reshape"),
             helper.make_node("ReduceMean", ["r"], ["m"], name="mean", axes=[2], keepdims=1),
             helper.make_node("Sub", ["r", "m"], ["s"], name="sub"),
             helper.make_node("Pow", ["s", "two"], ["y"], name="pow")]
    graph = helper.make_graph(
        nodes, "shapes", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "weights"), helper.make_tensor("bias", TensorProto.FLOAT, [4], [0.1, -0.2, 0.3, 0]),
         helper.make_tensor("axes", TensorProto.INT64, [1], [0]), helper.make_tensor("two", TensorProto.FLOAT, [], [2.0])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.external_data_helper.convert_model_to_external_data(model, location="shapes.bin", size_threshold=64)
    return model, {"x": random.normal(0, 1, (1, 3, 5, 6)).astype(np.float32)}


def lstm():
    """Makes a model with an unsupported operation."""
    random = np.random.default_rng(4)
    constants = [numpy_helper.from_array(random.normal(0, 0.3, shape).astype(np.float32), name)
                 for name, shape in (("w", (1, 16, 3)), ("r", (1, 16, 4)))]
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="first"),
             helper.make_node("LSTM", ["a", "w", "r"], ["y"], name="reader", hidden_size=4)]
    graph = helper.make_graph(nodes, "lstm", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 1, 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 1, 1, 4])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def hard_sigmoid():
    constants = [numpy_helper.from_array(np.float32(0.01), "s"), numpy_helper.from_array(np.uint8(128), "z")]
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d"]), helper.make_node("HardSigmoid", ["d"], ["h"]),
             helper.make_node("QuantizeLinear", ["h", "s", "z"], ["y"])]
    ends = [[helper.make_tensor_value_info(name, TensorProto.UINT8, [1, 8, 8, 8])] for name in "xy"]
    return helper.make_model(helper.make_graph(nodes, "hs", *ends, constants), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def sixteen_bits(dtype):
    """Makes a model as quantize_static writes it with QInt16 or QUInt16."""
    weights = np.random.default_rng(3).integers(-9, 9, (4, 3, 1, 1)).astype(np.int8)
    arrays = {"s": np.float32(0.01), "z": np.array(0, dtype), "w": weights, "ws": np.float32(0.1), "wz": np.int8(0)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="Q"),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], name="D"),
             helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], name="DW"), helper.make_node("Conv", ["d", "wd"], ["c"], name="C"),
             helper.make_node("QuantizeLinear", ["c", "s", "z"], ["cq"], name="Q2"),
             helper.make_node("DequantizeLinear", ["cq", "s", "z"], ["y"], name="D2")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 8, 8])],
                              [numpy_helper.from_array(array, name) for name, array in arrays.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def write_results(folder, name, feed):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(folder / f"{name}.onnx"), options, providers=["CPUExecutionProvider"])
    np.savez_compressed(folder / f"{name}_in.npz", **feed)
    np.savez_compressed(folder / f"{name}_out.npz", **dict(zip([one.name for one in session.get_outputs()], session.run(None, feed))))


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, (build, types, form) in QUANTIZED.items():
        path = nets.quantized(build(), folder / f"{name}.onnx", types, form)
        shape = [one.dim_value for one in onnx.load(str(path)).graph.input[0].type.tensor_type.shape.dim]
        write_results(folder, name, {"x": np.random.default_rng(5).normal(0, 1, shape).astype(np.float32)})
        print(f"{name}: a step is {nets.output_scale(path):.6g}")
    model, feed = shapes()
    onnx.save(model, folder / "shapes.onnx")
    write_results(folder, "shapes", feed)
    onnx.save(lstm(), folder / "lstm.onnx")
    onnx.save(hard_sigmoid(), folder / "hard_sigmoid.onnx")
    for dtype in (np.int16, np.uint16):
        onnx.save(sixteen_bits(dtype), folder / f"{dtype.__name__}.onnx")


if __name__ == "__main__":
    main()
