#!/usr/bin/env python3
"""Tests `skillet quantize` of float models with the published quantizers: the result runs in LiteRT and ONNX Runtime, and is close to the model.

usage: float_models_test.py SKILLET VENV

Exit code 77: the packages cannot be installed.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import environment

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src/tools/model"))

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests/models/float"
PACKAGES = ["ai-edge-quantizer==0.10.0", "onnxruntime==1.24.4", "onnx==1.23.2"]
INFERENCES = 16
LEAST_DB = 15


def smooth(shape, seed):
    """Returns values from -1 to 1 that change slowly."""
    draw = np.random.default_rng(seed)
    walk = np.cumsum(draw.normal(size=shape), axis=1 if shape[-1] < shape[1] else -1) + draw.normal(size=(shape[0], *[1] * (len(shape) - 1)))
    return np.sin(walk / 4).astype(np.float32)

def decibels(wanted, got):
    noise = float(np.sum((wanted - got) ** 2))
    return 10 * np.log10(float(np.sum(wanted**2)) / noise) if noise > 0 else 999


class FloatModels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="skillet_float_")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def quantize(self, model, inputs, out, *more):
        np.savez(self.folder / "data.npz", **inputs)
        line = [SKILLET, "quantize", model, "-o", self.folder / out, "--data", self.folder / "data.npz", "--json", *more]
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        done = subprocess.run(line, capture_output=True, text=True, check=False,
                              env={**os.environ, "SKILLET_PYTHON": sys.executable, "TMPDIR": str(temporary)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([one.name for one in temporary.glob("skillet-quantize-*")], [], "nothing is left behind")
        return json.loads(done.stdout)

    def ours(self, model, inputs, device):
        np.savez(self.folder / "in.npz", **{name: value[:1] for name, value in inputs.items()})
        subprocess.run([SKILLET, "run", model, "--device", device, "--partition", "all", "--input", self.folder / "in.npz", "--output", self.folder / "out.npz"],
                       check=True, capture_output=True)
        with np.load(self.folder / "out.npz") as arrays:
            return [arrays[name] for name in arrays.files]

    def litert(self, model, inputs):
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
        interpreter = Interpreter(model_path=str(model), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        interpreter.allocate_tensors()
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], inputs[detail["name"]][:1])
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]

    def try_tflite(self, model, name, size, device, least_share):
        inputs = {name: smooth((INFERENCES, size, size, 3), 1)}
        report = self.quantize(model, inputs, "out.tflite", "--device", device)
        self.assertEqual(report["quantizer"], "ai-edge-quantizer 0.10.0")
        self.assertTrue(report["outputs"]["held_back"])
        self.assertGreater(report["outputs"]["signal_to_error_db"], LEAST_DB)
        made = self.folder / "out.tflite"
        wanted, reference = self.litert(model, inputs), self.litert(made, inputs)
        for by_model, by_litert, by_us, by_npu in zip(wanted, reference, self.ours(made, inputs, "cpu"), self.ours(made, inputs, device), strict=True):
            self.assertEqual((by_us.dtype, by_us.shape), (by_model.dtype, by_model.shape))
            self.assertGreater(decibels(by_model, by_litert), LEAST_DB)
            self.assertGreater(decibels(by_litert, by_us), 30)
            self.assertGreater(decibels(by_litert, by_npu), 20)
        check = json.loads(subprocess.run([SKILLET, "check", made, "--device", device, "--partition", "all", "--json"], check=True, capture_output=True).stdout)
        self.assertEqual(check["percent_of_macs"], 100)
        self.assertGreaterEqual(check["model_npu_ops"] / check["model_ops"], least_share)
        return check

    def test_float16_weights(self):
        for device in ("sim:a311d", "sim:rk3588"):
            self.try_tflite(MODELS / "face_detection_short_range.tflite", "input", 128, device, 0.9)

    def test_prelu_is_not_left_in_float(self):
        check = self.try_tflite(MODELS / "hand_recrop.tflite", "input_1", 256, "sim:rk3588", 0.95)
        self.assertEqual([one["kind"] for one in check["ops"] if one["kind"] in ("QUANTIZE", "DEQUANTIZE")], ["QUANTIZE", "DEQUANTIZE"])

    def test_loops(self):
        """Recurrent layers of Keras: TensorFlow's converter crashes when it quantizes their loops."""
        model, device = ROOT / "tests/models/state/loops.tflite", "sim:rk3588"
        inputs = {"serving_default_keras_tensor:0": smooth((INFERENCES, 5, 3), 1)}
        report = self.quantize(model, inputs, "out.tflite", "--device", device)
        self.assertGreater(report["outputs"]["signal_to_error_db"], LEAST_DB)
        made = self.folder / "out.tflite"
        for by_model, by_litert, by_npu in zip(self.litert(model, inputs), self.litert(made, inputs), self.ours(made, inputs, device), strict=True):
            self.assertGreater(decibels(by_model, by_litert), LEAST_DB)
            self.assertGreater(decibels(by_litert, by_npu), 30)

    def test_signatures_of_other_graphs_stay(self):
        """Unused tensors of the first graph are removed; the tensors of other graphs keep their numbers."""
        import float_quantizers
        from ai_edge_litert import schema_py_generated as schema

        def graph(tensors, outputs):
            one = schema.SubGraphT()
            one.tensors, one.inputs, one.outputs, one.operators = [schema.TensorT() for _ in range(tensors)], [], outputs, []
            return one

        def signature(subgraph, tensor):
            one, row = schema.SignatureDefT(), schema.TensorMapT()
            row.tensorIndex, one.subgraphIndex, one.inputs, one.outputs = tensor, subgraph, [], [row]
            return one

        model = schema.ModelT()
        model.subgraphs, model.signatureDefs = [graph(4, [3]), graph(9, [8])], [signature(0, 3), signature(1, 8)]
        float_quantizers.drop_unused_tensors(model)
        self.assertEqual([one.outputs[0].tensorIndex for one in model.signatureDefs], [0, 8])
        self.assertEqual([len(one.tensors) for one in model.subgraphs], [1, 9])

    def test_channels_with_next_to_no_weights(self):
        """The biases of such channels would not fit into 32 bits."""
        from ai_edge_litert import schema_py_generated as schema
        import flatbuffers
        model = schema.ModelT.InitFromPackedBuf(bytearray((MODELS / "hand_recrop.tflite").read_bytes()), 0)
        graph = model.subgraphs[0]
        weights, bias = (model.buffers[graph.tensors[i].buffer] for i in graph.operators[0].inputs[1:3])
        filters = np.asarray(weights.data, np.uint8).view(np.float32).reshape(8, -1).copy()
        biases = np.asarray(bias.data, np.uint8).view(np.float32).copy()
        filters[2], biases[2] = 1e-12, 3
        weights.data, bias.data = filters.reshape(-1).view(np.uint8), biases.view(np.uint8)
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), b"TFL3")
        path = self.folder / "tiny.tflite"
        path.write_bytes(builder.Output())
        self.try_tflite(path, "input_1", 256, "sim:rk3588", 0.7)

    def test_an_output_that_a_layer_reads(self):
        """The quantizer 0.10 lets the layer read the float copy of the output."""
        from ai_edge_litert import schema_py_generated as schema
        import flatbuffers
        model = schema.ModelT.InitFromPackedBuf(bytearray((MODELS / "hand_recrop.tflite").read_bytes()), 0)
        graph = model.subgraphs[0]
        kinds = schema.BuiltinOperator
        kind = {int(op.outputs[0]): model.operatorCodes[op.opcodeIndex].deprecatedBuiltinCode for op in graph.operators}
        read = [int(op.inputs[0]) for op in graph.operators if kind[int(op.outputs[0])] in (kinds.CONV_2D, kinds.DEPTHWISE_CONV_2D, kinds.FULLY_CONNECTED)]
        between = next(tensor for tensor in reversed(read) if kind.get(tensor, kinds.PRELU) != kinds.PRELU)
        graph.outputs, model.signatureDefs = [*graph.outputs, between], None
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), b"TFL3")
        path = self.folder / "outputs.tflite"
        path.write_bytes(builder.Output())
        self.try_tflite(path, "input_1", 256, "sim:rk3588", 0.7)

    def test_dilation_is_not_left_in_float(self):
        """TensorFlow writes some convolutions with dilation as SPACE_TO_BATCH_ND, CONV_2D and BATCH_TO_SPACE_ND."""
        import float_quantizers
        from ai_edge_litert import schema_py_generated as schema
        kinds, types = schema.BuiltinOperator, schema.TensorType
        model, graph = schema.ModelT(), schema.SubGraphT()
        model.operatorCodes, model.subgraphs, graph.operators, graph.tensors = [], [graph], [], []
        for dtype in (types.INT8, types.FLOAT32, types.INT32, types.FLOAT32, types.INT8):
            tensor = schema.TensorT()
            tensor.type, tensor.name = dtype, b"t"
            graph.tensors.append(tensor)
        for kind, inputs, outputs in ((kinds.DEQUANTIZE, [0], [1]), (kinds.SPACE_TO_BATCH_ND, [1, 2, 2], [3]), (kinds.QUANTIZE, [3], [4])):
            code, op = schema.OperatorCodeT(), schema.OperatorT()
            code.builtinCode, op.opcodeIndex, op.inputs, op.outputs = kind, len(model.operatorCodes), inputs, outputs
            model.operatorCodes.append(code)
            graph.operators.append(op)
        graph.inputs, graph.outputs = [0], [4]
        float_quantizers.Leftovers(schema, model).run()
        used = [float_quantizers.kind_of(model, op) for op in graph.operators]
        self.assertEqual(used, [kinds.SPACE_TO_BATCH_ND, kinds.QUANTIZE])
        self.assertEqual(graph.tensors[graph.operators[0].inputs[0]].type, types.INT8)

    def test_ranges_do_not_depend_on_the_order(self):
        import float_quantizers
        class Quantizer:
            def calibrate(self, data):
                ((sample,),) = data.values()
                return {"t": {"min": np.float32([sample["x"] - 1]), "max": np.float32([sample["x"] + 1])}}
        for order in ([5, -3, 0, 9], [9, 0, -3, 5]):
            found = float_quantizers.ranges_of(Quantizer(), "run", [{"x": one} for one in order])
            self.assertEqual((found["t"]["min"][0], found["t"]["max"][0]), (-4, 10))

    def test_report_for_people(self):
        model = self.onnx_net()
        np.savez(self.folder / "data.npz", x=smooth((INFERENCES, 3, 32, 32), 2))

        def run(model, out):
            return subprocess.run([SKILLET, "quantize", model, "-o", self.folder / out, "--data", self.folder / "data.npz", "--device", "sim:rk3588",
                                   "--input-shape", "1x3x32x32"], capture_output=True, text=True, check=True, env={**os.environ, "SKILLET_PYTHON": sys.executable})
        done = run(model, "out.onnx")
        self.assertIn("net.onnx: input 'x' has free sizes; in the new file it is 1x3x32x32", done.stderr)
        copied = run(self.folder / "out.onnx", "copy.onnx").stdout
        self.assertIn("out.onnx: nothing to do: the device takes a scale per channel; the file is a copy", copied)
        self.assertNotIn("calibrated", copied)
        self.assertRegex(done.stdout, r"outputs: \d+\.\d dB of signal to error\n  'y': ")

    def onnx_net(self):
        import onnx
        from onnx import TensorProto, helper, numpy_helper
        draw = np.random.default_rng(5)

        def constant(name, *shape):
            values = draw.normal(size=shape) / np.sqrt(np.prod(shape[1:]) or 1)
            if name == "w1":  # like channels that training has switched off, after BatchNormalization
                values[0], values[1] = values[0] * 1e-20, 0
            return numpy_helper.from_array(values.astype(np.float32), name)

        nodes = [helper.make_node("Conv", ["x", "w0", "b0"], ["a"], strides=[2, 2], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["a"], ["b"]),
                 helper.make_node("Conv", ["b", "w1", "b1"], ["c"], pads=[1, 1, 1, 1], group=16), helper.make_node("Relu", ["c"], ["d"]),
                 helper.make_node("Conv", ["d", "w2", "b2"], ["e"]), helper.make_node("Add", ["e", "b"], ["f"]),
                 helper.make_node("GlobalAveragePool", ["f"], ["g"]), helper.make_node("Flatten", ["g"], ["h"]), helper.make_node("Gemm", ["h", "w3", "b3"], ["y"])]
        constants = [constant("w0", 16, 3, 3, 3), constant("b0", 16), constant("w1", 16, 1, 3, 3), constant("b1", 16), constant("w2", 16, 16, 1, 1),
                     constant("b2", 16), constant("w3", 16, 10), constant("b3", 10)]
        graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 32, 32])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])], constants)
        path = self.folder / "net.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
        return path

    @staticmethod
    def scales(path):
        """Returns the largest number of scales that a tensor of an ONNX file has."""
        import onnx
        graph = onnx.load(path).graph
        values = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
        return max(values[node.input[1]].size for node in graph.node if node.op_type == "DequantizeLinear")

    def test_onnx(self):
        import onnxruntime
        path, inputs = self.onnx_net(), {"x": smooth((INFERENCES, 3, 32, 32), 2)}
        wanted = onnxruntime.InferenceSession(path).run(None, {"x": inputs["x"][:1]})[0]
        for device in ("sim:a311d", "sim:rk3588"):
            report = self.quantize(path, inputs, "out.onnx", "--device", device, "--input-shape", "1x3x32x32")
            self.assertEqual(report["quantizer"], "onnxruntime 1.24.4")
            made = self.folder / "out.onnx"
            got = onnxruntime.InferenceSession(made).run(None, {"x": inputs["x"][:1]})[0]
            self.assertGreater(decibels(wanted, got), LEAST_DB)
            self.assertGreater(decibels(wanted, self.ours(made, inputs, device)[0]), LEAST_DB)
            self.assertGreater(report["outputs"]["signal_to_error_db"], LEAST_DB)
        # The last file has a scale per channel, and a chip's 32-bit sums can count the steps of its biases.
        self.assertGreater(self.scales(made), 1)
        import onnx
        for one in onnx.load(made).graph.initializer:
            values = onnx.numpy_helper.to_array(one)
            if values.dtype == np.int32:
                self.assertLess(np.abs(values.astype(np.int64)).max(), 2**29 + 2, one.name)
            elif values.dtype == np.float32 and values.size > 1:
                self.assertTrue(1e-12 < values.min() and values.max() < 0.5, (one.name, values))
        self.quantize(made, inputs, "again.onnx", "--device", "sim:a311d")
        self.assertEqual(self.scales(self.folder / "again.onnx"), 1)
        got = onnxruntime.InferenceSession(self.folder / "again.onnx").run(None, {"x": inputs["x"][:1]})[0]
        self.assertGreater(decibels(wanted, got), LEAST_DB)

    def test_onnx_quantizes_functions_that_onnxruntime_leaves_in_float(self):
        import onnx
        from onnx import TensorProto, helper, numpy_helper
        kinds = ("PRelu", "HardSwish", "HardSigmoid", "Elu", "Tanh")
        draw, nodes, constants, last = np.random.default_rng(3), [], [numpy_helper.from_array(np.linspace(-1, 1, 8, dtype=np.float32).reshape(8, 1, 1), "slopes")], "x"
        for i, kind in enumerate(kinds):
            constants.append(numpy_helper.from_array(draw.normal(size=(8, 8, 1, 1), scale=0.5).astype(np.float32), f"w{i}"))
            nodes += [helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"]), helper.make_node(kind, [f"c{i}", *(["slopes"] if kind == "PRelu" else [])], [f"f{i}"])]
            last = f"f{i}"
        image = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 16, 16]) for name in ("x", last)]
        path, inputs = self.folder / "functions.onnx", {"x": smooth((INFERENCES, 8, 16, 16), 2)}
        onnx.save(helper.make_model(helper.make_graph(nodes, "net", image[:1], image[1:], constants), opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
        self.quantize(path, inputs, "out.onnx", "--device", "sim:rk3588")
        graph = onnx.load(self.folder / "out.onnx").graph
        made_by = {node.output[0]: node.op_type for node in graph.node}
        left = [node for node in graph.node if node.op_type in kinds]  # onnxruntime writes HardSwish as HardSigmoid and Mul
        self.assertLessEqual({"PRelu", "HardSigmoid", "Elu", "Tanh"}, {node.op_type for node in left})
        self.assertEqual({made_by[name] for node in left for name in node.input}, {"DequantizeLinear"})
        done = subprocess.run([SKILLET, "check", self.folder / "out.onnx", "--device", "sim:rk3588", "--partition", "all", "--json"], capture_output=True, text=True, check=True)
        floats = [row["kind"] for row in json.loads(done.stdout)["ops"] if row["kind"] in kinds and "float32" in row["reason"]]
        self.assertEqual(floats, [])

    def old_net(self):
        """Writes a network of opset 11, as Paddle exports.

        It has weights in Constant nodes, BatchNormalization after Conv and ConvTranspose, and a free batch size."""
        import onnx
        from onnx import TensorProto, helper, numpy_helper
        draw = np.random.default_rng(6)
        weights = {"w": draw.normal(size=(16, 3, 3, 3)) / 5, **{name: draw.uniform(0.5, 1.5, 16) for name in ("scale", "bias", "mean", "var")}, "w1": draw.normal(size=(16, 8, 2, 2)) / 4,
                   **{f"{name}1": draw.uniform(0.5, 1.5, 8) for name in ("scale", "bias", "mean", "var")}}
        nodes = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value.astype(np.float32))) for name, value in weights.items()]
        nodes += [helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]), helper.make_node("BatchNormalization", ["a", "scale", "bias", "mean", "var"], ["b"]),
                  helper.make_node("Relu", ["b"], ["c"]), helper.make_node("ConvTranspose", ["c", "w1"], ["d"], strides=[2, 2]),
                  helper.make_node("BatchNormalization", ["d", "scale1", "bias1", "mean1", "var1"], ["y"], epsilon=0.25)]
        graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 32, 32])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8, 64, 64])])
        path = self.folder / "old.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6), path)
        return path

    def test_onnx_of_an_old_opset(self):
        import onnx
        import onnxruntime
        path, inputs = self.old_net(), {"x": smooth((INFERENCES, 3, 32, 32), 2)}
        wanted = onnxruntime.InferenceSession(path).run(None, {"x": inputs["x"][:1]})[0]
        for device, most in (("sim:rk3588", 16), ("sim:a311d", 1)):
            self.quantize(path, inputs, "out.onnx", "--device", device, "--input-shape", "1x3x32x32")
            made = self.folder / "out.onnx"
            graph = onnx.load(made).graph
            self.assertEqual({node.op_type for node in graph.node}, {"QuantizeLinear", "DequantizeLinear", "Conv", "ConvTranspose"})
            by = {node.output[0]: node.op_type for node in graph.node}
            self.assertEqual([by.get(node.input[1]) for node in graph.node if node.op_type.startswith("Conv")], ["DequantizeLinear"] * 2)
            self.assertEqual(self.scales(made), most)
            got = onnxruntime.InferenceSession(made).run(None, {"x": inputs["x"][:1]})[0]
            self.assertGreater(decibels(wanted, got), LEAST_DB)

    def test_a_bias_with_a_dimension_of_1(self):
        """As TensorFlow's dense layers have it: MatMul and Add, which ONNX Runtime merges."""
        import onnx
        import onnxruntime
        from onnx import TensorProto, helper, numpy_helper
        draw = np.random.default_rng(4)
        inputs = {"x": smooth((INFERENCES, 12), 2)}
        for shape in ((1, 5), (1, 1), (1,), (5,)):
            weights, bias = draw.normal(size=(12, 5)).astype(np.float32), draw.normal(size=shape).astype(np.float32)
            graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])], "dense",
                                      [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 12])],
                                      [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])],
                                      [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(bias, "b")])
            path, made = self.folder / "dense.onnx", self.folder / "out.onnx"
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
            self.quantize(path, inputs, "out.onnx", "--device", "sim:rk3588")
            self.assertEqual(self.scales(made), 5)
            got = onnxruntime.InferenceSession(made).run(None, {"x": inputs["x"][:1]})[0]
            self.assertGreater(decibels(inputs["x"][:1] @ weights + bias, got), LEAST_DB)

    def test_an_opset_that_onnx_does_not_convert(self):
        import float_quantizers
        from onnx import helper
        scatter = helper.make_node("Scatter", ["x"], ["y"])  # Scatter needs three inputs
        model = helper.make_model(helper.make_graph([scatter], "g", [], []), opset_imports=[helper.make_opsetid("", 9)])
        with self.assertRaisesRegex(SystemExit, "it has opset 9, and onnx does not write it with opset 13 .*: export it with opset 13 or newer"):
            float_quantizers.with_opset(model)

    def test_files_around_are_no_packages(self):
        (self.folder / "numpy.py").write_text("raise SystemExit(9)")
        before = Path.cwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        self.quantize(self.onnx_net(), {"x": smooth((INFERENCES, 3, 32, 32), 2)}, "out.onnx")


def main():
    global np, SKILLET
    SKILLET, venv = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    if Path(sys.prefix).resolve() != venv.resolve():
        python, found = environment.virtual_environment(venv, [PACKAGES])
        if not found:
            sys.exit(77)
        os.execv(python, [python, __file__, *sys.argv[1:]])
    import numpy as np
    unittest.main(argv=sys.argv[:1])


if __name__ == "__main__":
    main()
