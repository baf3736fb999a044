"""One interface for the runtimes that load the delegate:
LiteRT and tflite-runtime in Python, TFLite 2.9 through its C API.

Runner(host, model, delegate).run(inputs) -> outputs; inputs and outputs are lists of NumPy arrays.
"""
import ctypes
import os

import numpy as np

TFLITE_TYPES = {1: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 7: np.int16, 9: np.int8}


def python_module(host):
    if host == "litert":
        from ai_edge_litert import interpreter
    else:
        from tflite_runtime import interpreter
    return interpreter


def version(host):
    if host == "tflite2.9":
        library = ctypes.CDLL(os.environ["TFLITE_2_9"])
        library.TfLiteVersion.restype = ctypes.c_char_p
        return library.TfLiteVersion().decode()
    from importlib.metadata import version as of
    return of({"litert": "ai-edge-litert", "tflite-runtime": "tflite-runtime"}[host])


def load_delegate(host, path, options):
    """Loads the delegate. Raises ValueError with the delegate's message."""
    if host == "tflite2.9":
        return CDelegate(path, options)
    return python_module(host).load_delegate(path, options)


class CDelegate:
    """Uses the delegate as a C program does: its two entry points, and destroy at the end."""

    def __init__(self, path, options):
        self.library = ctypes.CDLL(path)
        strings = ctypes.c_char_p * len(options)
        self.library.tflite_plugin_create_delegate.restype = ctypes.c_void_p
        self.library.tflite_plugin_destroy_delegate.argtypes = [ctypes.c_void_p]
        messages = []
        report = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda text: messages.append(text.decode()))
        keys, values = (strings(*[str(x).encode() for x in side]) for side in (options.keys(), options.values()))
        self.pointer = self.library.tflite_plugin_create_delegate(keys, values, ctypes.c_size_t(len(options)), report)
        if not self.pointer:
            raise ValueError("".join(messages))

    def __del__(self):
        if getattr(self, "pointer", None):
            self.library.tflite_plugin_destroy_delegate(self.pointer)


class PythonRunner:
    def __init__(self, host, model, delegate=None, reference=True):
        module = python_module(host)
        kind = module.OpResolverType
        kinds = {True: kind.BUILTIN_REF, False: kind.AUTO, None: kind.BUILTIN_WITHOUT_DEFAULT_DELEGATES}
        self.interpreter = module.Interpreter(
            str(model), experimental_delegates=[delegate] if delegate else None, num_threads=1,
            experimental_op_resolver_type=kinds[reference])
        self.interpreter.allocate_tensors()

    def inputs(self):
        return [(tuple(i["shape"]), i["dtype"]) for i in self.interpreter.get_input_details()]

    def resize(self, index, shape):
        self.interpreter.resize_tensor_input(self.interpreter.get_input_details()[index]["index"], shape)
        self.interpreter.allocate_tensors()

    def run(self, inputs):
        for detail, value in zip(self.interpreter.get_input_details(), inputs):
            self.interpreter.set_tensor(detail["index"], value)
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(o["index"]) for o in self.interpreter.get_output_details()]


class CRunner:
    """Runs a model through the C API (c_api.h), with its optimised kernels, since it offers no others."""

    def __init__(self, model, delegate=None):
        self.c = c = ctypes.CDLL(os.environ["TFLITE_2_9"])
        for name in ("ModelCreateFromFile", "InterpreterOptionsCreate", "InterpreterCreate", "TensorData",
                     "InterpreterGetInputTensor", "InterpreterGetOutputTensor"):
            getattr(c, f"TfLite{name}").restype = ctypes.c_void_p
        c.TfLiteTensorByteSize.restype = ctypes.c_size_t
        self.delegate = delegate  # must outlive the interpreter
        self.model = ctypes.c_void_p(c.TfLiteModelCreateFromFile(str(model).encode()))
        options = ctypes.c_void_p(c.TfLiteInterpreterOptionsCreate())
        c.TfLiteInterpreterOptionsSetNumThreads(options, 1)
        if delegate:
            c.TfLiteInterpreterOptionsAddDelegate(options, ctypes.c_void_p(delegate.pointer))
        self.interpreter = ctypes.c_void_p(c.TfLiteInterpreterCreate(self.model, options))
        c.TfLiteInterpreterOptionsDelete(options)
        if not self.interpreter:
            raise RuntimeError("TfLiteInterpreterCreate failed")
        self.check(c.TfLiteInterpreterAllocateTensors(self.interpreter), "AllocateTensors")

    def __del__(self):
        if getattr(self, "interpreter", None):
            self.c.TfLiteInterpreterDelete(self.interpreter)
            self.c.TfLiteModelDelete(self.model)

    def check(self, status, what):
        if status != 0:
            raise RuntimeError(f"{what}: status {status}")

    def tensors(self, way):
        count = getattr(self.c, f"TfLiteInterpreterGet{way}TensorCount")(self.interpreter)
        get = getattr(self.c, f"TfLiteInterpreterGet{way}Tensor")
        return [ctypes.c_void_p(get(self.interpreter, ctypes.c_int32(i))) for i in range(count)]

    def shape_and_type(self, tensor):
        rank = self.c.TfLiteTensorNumDims(tensor)
        return (tuple(self.c.TfLiteTensorDim(tensor, i) for i in range(rank)),
                TFLITE_TYPES[self.c.TfLiteTensorType(tensor)])

    def inputs(self):
        return [self.shape_and_type(t) for t in self.tensors("Input")]

    def resize(self, index, shape):
        dims = (ctypes.c_int * len(shape))(*shape)
        self.check(self.c.TfLiteInterpreterResizeInputTensor(self.interpreter, index, dims, len(shape)), "Resize")
        self.check(self.c.TfLiteInterpreterAllocateTensors(self.interpreter), "AllocateTensors")

    def run(self, inputs):
        for tensor, value in zip(self.tensors("Input"), inputs):
            data = np.ascontiguousarray(value).tobytes()
            self.check(self.c.TfLiteTensorCopyFromBuffer(tensor, data, ctypes.c_size_t(len(data))), "CopyFromBuffer")
        self.check(self.c.TfLiteInterpreterInvoke(self.interpreter), "Invoke")
        outputs = []
        for tensor in self.tensors("Output"):
            shape, dtype = self.shape_and_type(tensor)
            size = self.c.TfLiteTensorByteSize(tensor)
            data = ctypes.string_at(self.c.TfLiteTensorData(tensor), size)
            outputs.append(np.frombuffer(data, dtype).reshape(shape))
        return outputs


def runner(host, model, delegate=None, reference=True):
    return CRunner(model, delegate) if host == "tflite2.9" else PythonRunner(host, model, delegate, reference)


class SkilletRunner:
    """Runs the model through Skillet's own C interface (include/skillet/skillet.h), without TensorFlow Lite."""

    def __init__(self, library, model, device):
        self.c = c = ctypes.CDLL(library)
        c.skillet_last_error.restype = ctypes.c_char_p
        c.skillet_output_count.restype = ctypes.c_size_t
        self.device, self.model = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(c.skillet_open(device.encode(), ctypes.byref(self.device)))
        self.check(c.skillet_load_file(self.device, str(model).encode(), None, ctypes.byref(self.model)))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.c.skillet_last_error().decode())

    def run(self, inputs, like):
        """Runs the model. LIKE: arrays of the outputs' shapes and types."""
        for i, value in enumerate(inputs):
            data = np.ascontiguousarray(value).tobytes()
            self.check(self.c.skillet_set_input(self.model, ctypes.c_size_t(i), data, ctypes.c_size_t(len(data))))
        self.check(self.c.skillet_run(self.model))
        outputs = [np.empty_like(one, order="C") for one in like]
        for i, one in enumerate(outputs):
            self.check(self.c.skillet_get_output(self.model, ctypes.c_size_t(i), one.ctypes.data_as(ctypes.c_void_p),
                                                 ctypes.c_size_t(one.nbytes)))
        return outputs
