"""Models of one operation: written from a description, run by the published runtime.

Called by make_cases.py and grid.py. Needs flatc, NumPy and tflite-runtime 2.14.0 (or ai-edge-litert).
"""

import json
import pathlib
import subprocess
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = HERE / "../../src/graph/import/schema.fbs"
TYPES = {"float32": (0, "FLOAT32"), "float16": (1, "FLOAT16"), "int32": (2, "INT32"), "uint8": (3, "UINT8"), "int64": (4, "INT64"),
         "bool": (6, "BOOL"), "int16": (7, "INT16"), "int8": (9, "INT8"),
         "uint32": (15, "UINT32"), "uint16": (16, "UINT16")}
SAME, VALID = 0, 1
RELU, RELU_N1_TO_1, RELU6, TANH = 1, 2, 3, 4
CUSTOM = 32


def tensor(shape, dtype, scale=None, zero_point=0, data=None, axis=0, between=None, variable=False):
    """Describes a tensor. `between`: range of its random values, both ends included; None: all values of the type."""
    return dict(shape=[int(d) for d in shape], dtype=dtype, scale=scale, zero_point=zero_point, data=data, axis=axis,
                between=between, variable=variable)


def constant(values, dtype="int32", scale=None, zero_point=0, axis=0):
    data = np.array(values, dtype=dtype)
    return tensor(data.shape, dtype, scale, zero_point, data, axis)


def random_values(t, random):
    shape, dtype = t["shape"], np.dtype(t["dtype"])
    if t["between"] is not None:
        low, high = t["between"]
        if dtype == np.float32:
            return np.asarray(random.uniform(low, high, shape), np.float32)
        return np.asarray(random.randint(low, high + 1, shape), dtype)
    if dtype in (np.float32, np.float16):
        return np.asarray(random.randn(*shape) * 3, dtype)
    if dtype == np.bool_:
        return np.asarray(random.randint(0, 2, shape), np.bool_)
    info = np.iinfo(dtype)
    return np.asarray(random.randint(info.min, info.max, shape, dtype=np.int64), dtype)


def case(name, op, inputs, outputs, options=None, version=1, custom=None, intermediates=()):
    """Describes a model. `inputs` may contain None for an omitted operand; `op` is (name, builtin code)."""
    outputs = outputs if isinstance(outputs, list) else [outputs]
    return dict(name=name, op=op, inputs=inputs, outputs=outputs, options=options, version=version, custom=custom,
                intermediates=list(intermediates))


def tensor_json(t, name, buffers):
    quantization = {}
    if t["scale"] is not None:
        scales = t["scale"] if isinstance(t["scale"], list) else [t["scale"]]
        quantization = dict(scale=scales, zero_point=[t["zero_point"]] * len(scales), quantized_dimension=t["axis"])
    buffer = 0
    if t["data"] is not None:
        buffers.append(dict(data=list(t["data"].tobytes())))
        buffer = len(buffers) - 1
    out = dict(shape=t["shape"], type=TYPES[t["dtype"]][0], buffer=buffer, name=name, quantization=quantization)
    if t["variable"]:
        out["is_variable"] = True
    return out


def computed_inputs(c):
    return [t for t in c["inputs"] if t is not None and t["data"] is None and not t["variable"]]


def model_bytes(c):
    buffers, tensors, ids = [{}], [], []
    for k, t in enumerate(c["inputs"]):
        ids.append(-1 if t is None else len(tensors))
        if t is not None:
            tensors.append(tensor_json(t, f"i{k}", buffers))
    outputs = list(range(len(tensors), len(tensors) + len(c["outputs"])))
    tensors += [tensor_json(t, "o" if len(outputs) == 1 else f"o{k}", buffers) for k, t in enumerate(c["outputs"])]
    intermediates = list(range(len(tensors), len(tensors) + len(c["intermediates"])))
    tensors += [tensor_json(t, f"between{k}", buffers) for k, t in enumerate(c["intermediates"])]
    op = dict(opcode_index=0, inputs=ids, outputs=outputs)
    if c["options"]:
        op["builtin_options_type"], op["builtin_options"] = c["options"]
    if c["custom"] is not None:
        op["custom_options"] = list(c["custom"])
    if intermediates:
        op["intermediates"] = intermediates
    computed = [i for i, t in zip(ids, c["inputs"]) if t is not None and t["data"] is None and not t["variable"]]
    graph = dict(name="main", tensors=tensors, inputs=computed, outputs=outputs, operators=[op])
    name, code = c["op"]
    operator_code = dict(deprecated_builtin_code=min(code, 127), builtin_code=code, version=c["version"])
    if code == CUSTOM:
        operator_code["custom_code"] = name
    return file_bytes(dict(version=3, operator_codes=[operator_code], subgraphs=[graph], buffers=buffers))


def file_bytes(model):
    """Returns the file of MODEL, a dictionary in the form of TensorFlow Lite's schema."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "model.json"
        source.write_text(json.dumps(model))
        subprocess.run(["flatc", "-b", "-o", folder, SCHEMA, source], check=True)
        return (pathlib.Path(folder) / "model.tflite").read_bytes()
