"""Quantizes a float model, or requantizes an 8-bit ONNX model, to 8-bit weights and activations with a published quantizer.
`skillet quantize` runs this text with python3 -c.

usage: MODEL DATA OUT channel|tensor
  MODEL  .tflite (ai-edge-quantizer) or .onnx (onnxruntime and onnx)
  DATA   a folder: K_I.npy is input I, in the order of the file, of inference K
Writes OUT, and OUT.by: the quantizer's name and version, then a line for each note to the user. Inputs and outputs keep their types.
"""
import sys

if "" in sys.path:  # files in the current folder must not be imported
    sys.path.remove("")

from importlib.metadata import version
from pathlib import Path


def inferences(folder, names):
    """Yields a dictionary {input name: array} for each inference."""
    import numpy

    for k in range(len(list(Path(folder).glob("*_0.npy")))):
        yield {name: numpy.load(Path(folder, f"{k}_{i}.npy")) for i, name in enumerate(names)}


# ---- TensorFlow Lite files ----


def kind_of(model, op):
    return model.operatorCodes[op.opcodeIndex].builtinCode


def read(schema, contents):
    """Returns the model as objects.
    Moves contents behind the tables into buffers, and the kind of each operation to one field, whatever the file's age."""
    model = schema.ModelT.InitFromPackedBuf(bytearray(contents), 0)
    for buffer in model.buffers:
        if buffer.offset > 1:
            buffer.data = list(contents[buffer.offset : buffer.offset + buffer.size])
            buffer.offset = buffer.size = 0
    for code in model.operatorCodes:
        code.builtinCode = max(code.builtinCode, code.deprecatedBuiltinCode)
    return model


def ready_to_quantize(schema, contents):
    """Returns the model as the quantizer needs it.

    It gets a signature, and constants instead of operations that make them from sparse or float16 weights."""
    model = read(schema, contents)
    graph = model.subgraphs[0]
    known = {i for i, tensor in enumerate(graph.tensors) if model.buffers[tensor.buffer].data is not None}
    made = [op for op in graph.operators if is_made_of(op, known)]
    computed = all_tensors(contents) if made else None
    for op in made:
        set_contents(schema, model, graph.tensors[op.outputs[0]], computed(int(op.outputs[0])))
        graph.operators.remove(op)
    drop_unused_tensors(model)
    if not model.signatureDefs:
        model.signatureDefs = [signature_of(schema, graph)]
    return model


def drop_unused_tensors(model):
    """Removes tensors that no operation has: the quantizer asks for the values of all."""
    graph = model.subgraphs[0]
    lists = [graph.inputs, graph.outputs, *(ids for op in graph.operators for ids in (op.inputs, op.outputs) if ids is not None)]
    used = sorted({int(i) for ids in lists for i in ids if i >= 0})
    place = {old: new for new, old in enumerate(used)}
    graph.tensors = [graph.tensors[i] for i in used]
    for ids in lists:
        ids[:] = [place.get(int(i), -1) for i in ids]
    for signature in model.signatureDefs or []:
        if signature.subgraphIndex == 0:
            for one in [*(signature.inputs or []), *(signature.outputs or [])]:
                one.tensorIndex = place[one.tensorIndex]


def is_made_of(op, known):
    """Returns whether the operation only reads constants. Adds its output to `known`, so that functions of it count too."""
    if op.inputs is None or len(op.inputs) == 0 or len(op.outputs) != 1 or not all(i in known or i < 0 for i in op.inputs):
        return False
    known.add(op.outputs[0])
    return True


def all_tensors(contents):
    """Runs the model. Returns a function that returns any of its tensors."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=contents, experimental_preserve_all_tensors=True, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    interpreter.allocate_tensors()
    interpreter.invoke()
    return interpreter.get_tensor


def set_contents(schema, model, tensor, array):
    import numpy

    buffer = schema.BufferT()
    buffer.data = array.reshape(-1).view(numpy.uint8)
    tensor.buffer = len(model.buffers)
    model.buffers.append(buffer)


def signature_of(schema, graph):
    def named(prefix, tensors):
        for i, tensor in enumerate(tensors):
            one = schema.TensorMapT()
            one.name, one.tensorIndex = f"{prefix}{i}".encode(), int(tensor)
            yield one

    made = schema.SignatureDefT()
    made.signatureKey, made.subgraphIndex = b"serving_default", 0
    made.inputs, made.outputs = list(named("in", graph.inputs)), list(named("out", graph.outputs))
    return made


def packed(model):
    import flatbuffers

    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def contents_of(model, tensor, dtype):
    """Returns the values of a constant, or None for other tensors."""
    import numpy

    data = model.buffers[tensor.buffer].data
    return None if data is None or len(data) == 0 else numpy.asarray(data, numpy.uint8).view(dtype).reshape(tensor.shape)


def let_biases_fit(schema, model, ranges):
    """Increases weights of channels whose bias would not fit.

    A bias is stored in steps of input times weight. If a channel's weights are nearly zero, one of them is increased until the bias has 30 bits. The
    output changes by at most 2^-14 of the bias."""
    import numpy

    weighted = {
        schema.BuiltinOperator.CONV_2D: 0,
        schema.BuiltinOperator.FULLY_CONNECTED: 0,
        schema.BuiltinOperator.DEPTHWISE_CONV_2D: 3,
    }
    graph = model.subgraphs[0]
    for op in graph.operators:
        axis = weighted.get(kind_of(model, op))
        if axis is None or len(op.inputs) < 3 or op.inputs[2] < 0:
            continue
        source, filters, bias = (graph.tensors[i] for i in op.inputs[:3])
        seen = ranges.get(source.name.decode())
        weights, biases = contents_of(model, filters, numpy.float32), contents_of(model, bias, numpy.float32)
        if seen is None or weights is None or biases is None:
            continue
        largest = max(abs(float(numpy.min(seen["min"]))), abs(float(numpy.max(seen["max"]))), 1e-30)
        rows = numpy.moveaxis(weights, axis, 0).reshape(len(biases), -1).copy()
        least = numpy.abs(biases) / (largest * 2.0**15)
        low = numpy.abs(rows).max(axis=1) < least
        if not low.any():
            continue
        rows[low, 0] = least[low]
        back = numpy.moveaxis(weights, axis, 0).shape
        grown = numpy.ascontiguousarray(numpy.moveaxis(rows.reshape(back), 0, axis), numpy.float32)
        set_contents(schema, model, filters, grown)


class Leftovers:
    """Gives 8-bit operands to operations that the quantizer left in float between DEQUANTIZE and QUANTIZE, if TensorFlow Lite has such a kernel."""

    def __init__(self, schema, model):
        self.schema, self.model, self.graph = schema, model, model.subgraphs[0]
        kinds = schema.BuiltinOperator
        self.functions = {kinds.PRELU, kinds.LEAKY_RELU, kinds.RELU6, kinds.RELU, kinds.RELU_N1_TO_1, kinds.RELU_0_TO_1}
        self.moves = {kinds.DEPTH_TO_SPACE, kinds.SPACE_TO_DEPTH, kinds.SQUEEZE, kinds.EXPAND_DIMS, kinds.TILE, kinds.REVERSE_V2}
        self.moves |= {kinds.SPACE_TO_BATCH_ND, kinds.BATCH_TO_SPACE_ND}  # convolutions with dilation

    def run(self):
        self.connect()
        while any(self.take(op) for op in list(self.graph.operators)):
            pass
        self.drop_unread()

    def connect(self):
        """Lets 8-bit operations read 8-bit tensors: where an output of the model is read by another operation, the quantizer gives that the float copy."""
        kinds = self.schema.BuiltinOperator
        for op in self.graph.operators:
            if self.kind(op) == kinds.QUANTIZE or self.graph.tensors[op.outputs[0]].type != self.schema.TensorType.INT8:
                continue
            for place, tensor in enumerate(op.inputs if op.inputs is not None else []):
                before = self.producer(tensor) if tensor >= 0 and self.is_float(tensor) else None
                if before is not None and self.kind(before) == kinds.DEQUANTIZE:
                    op.inputs[place] = before.inputs[0]

    def kind(self, op):
        return kind_of(self.model, op)

    def producer(self, tensor):
        return next((op for op in self.graph.operators if tensor in op.outputs), None)

    def readers(self, tensor):
        return [op for op in self.graph.operators if op.inputs is not None and tensor in op.inputs]

    def is_float(self, tensor):
        return self.graph.tensors[tensor].type == self.schema.TensorType.FLOAT32

    def take(self, op):
        """Converts one operation. Returns whether anything changed."""
        kinds = self.schema.BuiltinOperator
        if self.kind(op) not in self.functions | self.moves or not self.is_float(op.inputs[0]):
            return False
        before = self.producer(op.inputs[0])
        if before is None or self.kind(before) != kinds.DEQUANTIZE:
            return False
        small = before.inputs[0]
        if self.graph.tensors[small].type != self.schema.TensorType.INT8:
            return False
        if self.kind(op) in self.moves:
            return self.move(op, before, small)
        after = self.readers(op.outputs[0])
        if op.outputs[0] in self.graph.outputs or not after or any(self.kind(one) != kinds.QUANTIZE for one in after):
            return False
        if self.kind(op) == kinds.PRELU and not self.quantize_slopes(op):
            return False
        op.inputs[0] = small
        op.outputs[0] = after[0].outputs[0]
        self.graph.operators.remove(after[0])
        for other in after[1:]:
            other.inputs[0] = op.outputs[0]
        return True

    def move(self, op, before, small):
        """Converts an operation that only moves values: it now runs before DEQUANTIZE."""
        result = op.outputs[0]
        made = self.copy_of(self.graph.tensors[result])
        self.graph.tensors[made].type = self.schema.TensorType.INT8
        self.graph.tensors[made].quantization = self.graph.tensors[small].quantization
        op.inputs[0], op.outputs[0] = small, made
        back = self.schema.OperatorT()
        back.opcodeIndex, back.inputs, back.outputs = before.opcodeIndex, [made], [result]
        self.graph.operators.insert(self.graph.operators.index(op) + 1, back)
        for after in self.readers(result):
            if self.kind(after) == self.schema.BuiltinOperator.QUANTIZE:
                after.inputs[0] = made
        return True

    def copy_of(self, tensor):
        made = self.schema.TensorT()
        made.shape, made.shapeSignature, made.name, made.hasRank = tensor.shape, tensor.shapeSignature, tensor.name + b"_8", tensor.hasRank
        made.type = tensor.type
        self.graph.tensors.append(made)
        return len(self.graph.tensors) - 1

    def quantize_slopes(self, op):
        import numpy

        tensor = self.graph.tensors[op.inputs[1]]
        slopes = contents_of(self.model, tensor, numpy.float32) if tensor.type == self.schema.TensorType.FLOAT32 else None
        if slopes is None:
            return False
        scale = max(float(numpy.abs(slopes).max()), 1e-6) / 127
        made = self.copy_of(tensor)
        small = self.graph.tensors[made]
        small.type = self.schema.TensorType.INT8
        small.quantization = self.schema.QuantizationParametersT()
        small.quantization.scale, small.quantization.zeroPoint = [scale], [0]
        set_contents(self.schema, self.model, small, numpy.rint(slopes / scale).astype(numpy.int8))
        op.inputs[1] = made
        return True

    def drop_unread(self):
        kept = set(self.graph.outputs)
        for op in reversed(list(self.graph.operators)):
            if self.kind(op) == self.schema.BuiltinOperator.DEQUANTIZE and not kept & set(op.outputs):
                self.graph.operators.remove(op)
            else:
                kept.update(op.inputs if op.inputs is not None else [])


def ranges_of(quantizer, signature, samples):
    """Returns the ranges over all inferences. The quantizer's own running mean would depend mostly on the first one."""
    import numpy

    seen = {}
    for sample in samples:
        for name, found in quantizer.calibrate({signature: [sample]}).items():
            kept = seen.setdefault(name, found)
            for key, widest in (("min", numpy.minimum), ("max", numpy.maximum)):
                if key in found:
                    kept[key] = widest(kept[key], found[key])
    return seen


def quantize_tflite(path, data, out, by_channel):
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_quantizer import qtyping, quantizer, recipe

    model = ready_to_quantize(schema, Path(path).read_bytes())
    ready = packed(model)
    key, signature = next(iter(Interpreter(model_content=ready).get_signature_list().items()))
    by_index = {one.tensorIndex: one.name.decode() for one in model.signatureDefs[0].inputs}
    names = [by_index[int(i)] for i in model.subgraphs[0].inputs]
    assert sorted(names) == sorted(signature["inputs"]), "the signature leaves out inputs"

    how = recipe.static_wi8_ai8()
    if not by_channel:
        for rule in how:
            rule["op_config"]["weight_tensor_config"]["granularity"] = qtyping.QuantGranularity.TENSORWISE
    for port in ("INPUT", "OUTPUT"):
        how.append({"regex": ".*", "operation": port, "algorithm_key": "no_quantize", "op_config": {}})
    first = quantizer.Quantizer(ready, how)
    seen = ranges_of(first, key, inferences(data, names))
    let_biases_fit(schema, model, seen)
    made = quantizer.Quantizer(packed(model), how).quantize(seen).quantized_model
    small = read(schema, made)
    Leftovers(schema, small).run()
    Path(out).write_bytes(packed(small))
    return f"ai-edge-quantizer {version('ai-edge-quantizer')}"


# ---- ONNX files ----


def in_float(model):
    """Removes quantization from the model: constants of DequantizeLinear become floats, pairs of QuantizeLinear and DequantizeLinear disappear."""
    import numpy
    import onnx

    graph = model.graph
    constants = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    constants |= {node.output[0]: onnx.numpy_helper.to_array(node.attribute[0].t) for node in graph.node if node.op_type == "Constant"}
    quantized = {node.output[0]: node for node in graph.node if node.op_type == "QuantizeLinear"}
    now, kept = {}, []
    for node in graph.node:
        source = node.input[0] if len(node.input) else ""
        if node.op_type == "DequantizeLinear" and source in constants:
            stored, scale = constants[source], constants[node.input[1]]
            zero = constants[node.input[2]] if len(node.input) > 2 and node.input[2] else numpy.zeros_like(scale, stored.dtype)
            if scale.ndim == 1 and scale.size > 1:
                axis = next((one.i for one in node.attribute if one.name == "axis"), 1)
                shape = [-1 if i == axis % stored.ndim else 1 for i in range(stored.ndim)]
                scale, zero = scale.reshape(shape), zero.reshape(shape)
            real = (stored.astype(numpy.float64) - zero.astype(numpy.float64)) * scale
            graph.initializer.append(onnx.numpy_helper.from_array(real.astype(numpy.float32), node.output[0]))
        elif node.op_type == "DequantizeLinear" and source in quantized:
            before, scale = quantized[source].input[0], float(constants[node.input[1]])
            zero = constants[node.input[2]] if len(node.input) > 2 and node.input[2] else numpy.zeros((), numpy.uint8)
            kind = numpy.iinfo(zero.dtype)
            if int(zero) == kind.min:  # the quantizer replaced a Relu or Clip that ends at this value
                ends = [f"{node.output[0]}_{end}" for end in ("least", "most")]
                for name, end in zip(ends, (0, (kind.max - kind.min) * scale)):
                    graph.initializer.append(onnx.numpy_helper.from_array(numpy.float32(end).reshape(()), name))
                kept.append(onnx.helper.make_node("Clip", [before, *ends], [node.output[0]]))
            else:
                now[node.output[0]] = before
        elif node.op_type == "DequantizeLinear" or node.op_type.startswith("QLinear") or node.op_type.endswith("Integer"):
            raise SystemExit(f"its {node.op_type} '{node.name}' has no float form here: export it with QuantizeLinear and DequantizeLinear, or in float")
        elif node.op_type != "QuantizeLinear":
            kept.append(node)
    results = {one.name for one in graph.output}
    for node in kept:
        for i, name in enumerate(node.input):
            while name in now:
                name = now[name]
            node.input[i] = name
    for result in results & now.keys():
        source = now[result]
        while source in now:
            source = now[source]
        kept.append(onnx.helper.make_node("Identity", [source], [result]))
    del graph.node[:]
    graph.node.extend(kept)
    read = {name for node in kept for name in node.input}
    left = [one for one in graph.initializer if one.name in read]
    del graph.initializer[:]
    graph.initializer.extend(left)
    del graph.value_info[:]
    return model


# In this version DequantizeLinear gained a scale per channel.
OPSET = 13


def with_opset(model):
    """Converts the model to an operator set with scales per channel. Its inputs become those that are not constants."""
    import onnx

    constants = {one.name for one in model.graph.initializer}
    given = [one for one in model.graph.input if one.name not in constants]
    del model.graph.input[:]  # drops constants, which may also be inputs
    model.graph.input.extend(given)
    model.ir_version = max(model.ir_version, 7)
    opset = next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), OPSET)
    if opset >= OPSET:
        return model
    try:
        return onnx.version_converter.convert_version(model, OPSET)
    except Exception as failure:
        why = str(failure).strip().splitlines()[-1]
        raise SystemExit(f"it has opset {opset}, and onnx does not write it with opset {OPSET} ({why}): export it with opset {OPSET} or newer") from failure


def with_sizes(model, sample):
    """Sets the sizes of the inputs to those of the sample, so that all shapes are known. Returns a line for each input whose size was free."""
    fixed = []
    for one in model.graph.input:
        sizes, dims = sample[one.name].shape, one.type.tensor_type.shape.dim
        if not all(dim.HasField("dim_value") for dim in dims):
            fixed.append(f"input '{one.name}' has free sizes; in the new file it is {'x'.join(map(str, sizes))}")
        del dims[:]
        for size in sizes:
            dims.add().dim_value = size
    return fixed


def fold_transposed(model):
    """Merges BatchNormalization after ConvTranspose into weights and bias, as ONNX Runtime does after Conv."""
    import numpy
    import onnx

    graph = model.graph
    constants = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    made_by = {node.output[0]: node for node in graph.node if node.op_type == "ConvTranspose"}
    read = [name for node in graph.node for name in node.input] + [one.name for one in graph.output]
    for norm in [node for node in graph.node if node.op_type == "BatchNormalization"]:
        layer = made_by.get(norm.input[0])
        needed = [*norm.input[1:5], *(layer.input[1:] if layer else [])]
        if layer is None or read.count(norm.input[0]) != 1 or not all(name in constants for name in needed):
            continue
        gamma, beta, mean, variance = (constants[name].astype(numpy.float64) for name in norm.input[1:5])
        weights = constants[layer.input[1]]
        if weights.shape[1] != len(gamma):
            continue  # grouped convolution
        epsilon = next((one.f for one in norm.attribute if one.name == "epsilon"), 1e-5)
        factor = gamma / numpy.sqrt(variance + epsilon)
        bias = (constants[layer.input[2]] if len(layer.input) > 2 else 0) - mean
        names = [f"{norm.output[0]}_{part}" for part in ("weights", "bias")]
        for name, array in zip(names, (weights * factor.reshape(-1, *[1] * (weights.ndim - 2)), bias * factor + beta)):
            graph.initializer.append(onnx.numpy_helper.from_array(array.astype(numpy.float32), name))
        layer.input[1:] = names
        layer.output[0] = norm.output[0]
        graph.node.remove(norm)


def flatten_biases(model):
    """Gives each Gemm a bias with one number per output.

    With a scale per channel, ONNX Runtime's quantizer fails at others. ONNX Runtime itself makes a Gemm of a MatMul and an Add of 1xN."""
    import numpy
    import onnx

    constants = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    for node in [one for one in model.graph.node if one.op_type == "Gemm" and len(one.input) > 2]:
        weights, bias = constants.get(node.input[1]), constants.get(node.input[2])
        if weights is None or bias is None:
            continue
        outputs = weights.shape[0 if any(one.name == "transB" and one.i for one in node.attribute) else 1]
        if bias.shape == (outputs,) or bias.size not in (1, outputs) or (bias.ndim == 2 and bias.shape[0] != 1):
            continue
        node.input[2] = f"{node.output[0]}_bias"
        flat = numpy.ascontiguousarray(numpy.broadcast_to(bias.reshape(-1), (outputs,)))
        model.graph.initializer.append(onnx.numpy_helper.from_array(flat, node.input[2]))


def let_channels_count(model, floats):
    """Increases scales of channels whose bias does not fit.

    If a channel's weights are nearly zero, so is its scale, and its bias in these steps exceeds 32 bits. A channel of zero weights has
    scale 1, in which its bias is lost. Both get a scale at which the bias has 30 bits. FLOATS: the model before it was quantized."""
    import numpy
    import onnx

    graph = model.graph
    stored = {one.name: one for one in graph.initializer}
    made_by = {node.output[0]: node for node in graph.node}
    real = {one.name: onnx.numpy_helper.to_array(one) for one in floats.graph.initializer}

    def array(name):
        return onnx.numpy_helper.to_array(stored[name])

    for node in [one for one in graph.node if one.op_type in ("Conv", "ConvTranspose", "Gemm") and len(one.input) > 2]:
        x, weights, bias = (made_by.get(name) for name in node.input[:3])
        if any(one is None or one.op_type != "DequantizeLinear" for one in (x, weights, bias)):
            continue
        wanted = real.get(bias.input[0].removesuffix("_quantized"), numpy.zeros(0)).astype(numpy.float64)  # the quantizer's name for it
        scales, x_scale = array(weights.input[1]), float(array(x.input[1]))
        axis = next((one.i for one in weights.attribute if one.name == "axis"), 1)
        if scales.size != wanted.size or scales.size < 2:
            continue
        rows = numpy.moveaxis(array(weights.input[0]), axis, 0)
        has_any = numpy.abs(rows.reshape(len(rows), -1)).max(axis=1) > 0
        least = numpy.maximum(numpy.abs(wanted) / (x_scale * 2.0**29), scales[has_any].max(initial=1e-6) * 2.0**-24)
        grown = numpy.where(has_any, numpy.maximum(scales, least), least).astype(numpy.float32)
        changed = grown != scales
        if not changed.any():
            continue
        by_row = (scales / grown).reshape(-1, *[1] * (rows.ndim - 1))
        small = numpy.moveaxis(numpy.rint(rows * by_row), 0, axis).astype(rows.dtype)
        counts = numpy.where(changed, numpy.rint(wanted / (x_scale * grown.astype(numpy.float64))), array(bias.input[0])).astype(numpy.int32)
        for name, data in ((weights.input[0], small), (weights.input[1], grown), (bias.input[0], counts), (bias.input[1], x_scale * grown)):
            stored[name].CopyFrom(onnx.numpy_helper.from_array(numpy.ascontiguousarray(data, array(name).dtype), name))


def session(path, optimized=None):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = optimized
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


# Operations that have 8-bit forms on NPUs, and that onnxruntime leaves in float by default.
MORE_KINDS = ("PRelu", "HardSwish", "HardSigmoid", "Elu", "Tanh", "DepthToSpace", "SpaceToDepth")


def kinds_to_quantize():
    from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

    return sorted({*QLinearOpsRegistry, *QDQRegistry, *MORE_KINDS})


def quantize_onnx(path, data, out, by_channel):
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static, shape_inference

    model = onnx.load(path)
    if any(node.op_type == "QuantizeLinear" or node.op_type.startswith("QLinear") for node in model.graph.node):
        model = in_float(model)
    model = with_opset(model)
    names = [one.name for one in model.graph.input]
    first = next(inferences(data, names))
    notes = with_sizes(model, first)
    fixed, folded, ready = (f"{out}.{step}.onnx" for step in ("fixed", "folded", "ready"))
    onnx.save(model, fixed)
    session(fixed, folded)  # merges BatchNormalization into convolutions, and constants into initializers
    model = onnx.load(folded)
    used = {node.domain for node in model.graph.node}
    kept = [one for one in model.opset_import if one.domain in used]  # ONNX Runtime lists all domains that it knows
    del model.opset_import[:]
    model.opset_import.extend(kept)
    fold_transposed(model)
    flatten_biases(model)
    onnx.save(model, folded)
    shape_inference.quant_pre_process(folded, ready, skip_optimization=True, skip_symbolic_shape=True)

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.rest = inferences(data, names)

        def get_next(self):
            return next(self.rest, None)

    quantize_static(
        ready,
        out,
        Reader(),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=kinds_to_quantize(),
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=by_channel,
    )
    made = onnx.load(out)
    let_channels_count(made, onnx.load(ready))
    onnx.save(made, out)
    session(out).run(None, first)  # raises an exception if the file does not run
    return "\n".join([f"onnxruntime {version('onnxruntime')}", *notes])


def main(path, data, out, weights):
    quantize = quantize_onnx if path.endswith(".onnx") else quantize_tflite
    Path(f"{out}.by").write_text(quantize(path, data, out, weights == "channel"), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
