"""A minimal fake host for the pages: loads a delegate through its real entry point, with its options, and reads models."""
import ctypes
from pathlib import Path


class Delegate:
    def __init__(self, library, options):
        self.errors = []
        plugin = ctypes.CDLL(library)
        keys, values = ((ctypes.c_char_p * len(options))(*(str(text).encode() for text in texts))
                        for texts in (options.keys(), options.values()))
        report = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda text: self.errors.append(text.decode()))
        create = plugin.tflite_plugin_create_delegate
        create.restype = ctypes.c_void_p
        self.pointer = create(keys, values, ctypes.c_size_t(len(options)), report)
        if not self.pointer or self.errors:
            raise ValueError(f"Failed to load delegate from {library}: {self.errors}")


def load_delegate(library, options=None):
    return Delegate(library, options or {})


class Interpreter:
    def __init__(self, model_path, experimental_delegates=()):
        if Path(model_path).read_bytes()[4:8] != b"TFL3" or not all(isinstance(d, Delegate) for d in experimental_delegates):
            raise ValueError(model_path)

    def allocate_tensors(self):
        pass
