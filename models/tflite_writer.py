"""Writes quantized TFLite model files (schema version 3) tensor by tensor and op by op.

Called by train_digits.py. Must not know of training or of the network's shape.
"""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

BUFFER_ALIGNMENT_BYTES = 16
TENSOR_TYPES = {"uint8": schema.TensorType.UINT8, "int32": schema.TensorType.INT32}


class AlignedBuffer(schema.BufferT):
    """A constant whose bytes start at a multiple of 16 in the file, as the schema demands.

    The generated Python code ignores the schema's `force_align`; readers that map the file rely on it.
    """

    def Pack(self, builder):
        data = None if self.data is None else self._pack_data(builder)
        schema.BufferStart(builder)
        if data is not None:
            schema.BufferAddData(builder, data)
        return schema.BufferEnd(builder)

    def _pack_data(self, builder):
        builder.StartVector(1, len(self.data), BUFFER_ALIGNMENT_BYTES)
        builder.head -= len(self.data)
        builder.Bytes[builder.head:builder.head + len(self.data)] = self.data
        return builder.EndVector()


class ModelWriter:
    """Collects one subgraph and packs it into a model file."""

    def __init__(self, description):
        self.model = schema.ModelT(version=3, description=description, operatorCodes=[], subgraphs=[],
                                   buffers=[AlignedBuffer()])  # buffer 0 means "no data"
        self.graph = schema.SubGraphT(name="main", tensors=[], operators=[])
        self.model.subgraphs.append(self.graph)

    def tensor(self, name, shape, dtype, quant=None, data=None):
        """Adds a tensor, constant if `data` is given; `quant` has .scale and .zero_point. Returns its index."""
        tensor = schema.TensorT(name=name, shape=list(shape), type=TENSOR_TYPES[dtype], buffer=0)
        if quant is not None:
            tensor.quantization = schema.QuantizationParametersT(scale=[quant.scale], zeroPoint=[quant.zero_point])
        if data is not None:
            tensor.buffer = len(self.model.buffers)
            raw = np.ascontiguousarray(data, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()
            self.model.buffers.append(AlignedBuffer(data=raw))
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def op(self, kind, inputs, outputs, **options):
        """Adds an op. `kind` is a builtin's name, "CONV_2D"; `options` are the members of its options table."""
        table, members = OPTIONS[kind]
        operator = schema.OperatorT(opcodeIndex=self._opcode_index(kind), inputs=list(inputs), outputs=list(outputs))
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, table)
        operator.builtinOptions = getattr(schema, table + "T")(**members, **options)
        self.graph.operators.append(operator)

    def finish(self, inputs, outputs):
        """Names the graph's inputs and outputs (tensor indices) and returns the file's bytes."""
        self.graph.inputs, self.graph.outputs = list(inputs), list(outputs)
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def _opcode_index(self, kind):
        code = getattr(schema.BuiltinOperator, kind)
        codes = [known.builtinCode for known in self.model.operatorCodes]
        if code not in codes:
            codes.append(code)
            self.model.operatorCodes.append(
                schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=code, version=1))
        return codes.index(code)


# For each op, the options table and the members that are always the same in this project.
OPTIONS = {
    "CONV_2D": ("Conv2DOptions", {"dilationHFactor": 1, "dilationWFactor": 1}),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions",
                          {"depthMultiplier": 1, "dilationHFactor": 1, "dilationWFactor": 1}),
    "ADD": ("AddOptions", {}),
    "AVERAGE_POOL_2D": ("Pool2DOptions", {"padding": schema.Padding.VALID, "strideH": 1, "strideW": 1}),
    "RESHAPE": ("ReshapeOptions", {}),
    "SOFTMAX": ("SoftmaxOptions", {"beta": 1.0}),
}
