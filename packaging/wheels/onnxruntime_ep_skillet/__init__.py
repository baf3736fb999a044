"""Runs quantized ONNX networks on the NPUs of boards (Amlogic A311D, NXP i.MX 8M Plus, Rockchip RK3588), or on simulated ones.

A plug-in execution provider for ONNX Runtime 1.23 and later, which this package neither needs nor changes:

    import onnxruntime as ort, onnxruntime_ep_skillet as skillet
    ort.register_execution_provider_library("skillet", skillet.get_library_path())
    options = ort.SessionOptions()
    options.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == skillet.get_ep_name()][:1], {})
    session = ort.InferenceSession("model.onnx", options)
"""
from pathlib import Path

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]


def get_library_path():
    """Returns the path for register_execution_provider_library()."""
    return str(Path(__file__).with_name("libskillet_onnxruntime.so"))


def get_ep_names():
    """Returns the names of the providers in the library: `ep_name` of the devices that they offer."""
    return ["SkilletExecutionProvider"]


def get_ep_name():
    return get_ep_names()[0]
