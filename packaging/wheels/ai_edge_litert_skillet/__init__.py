"""Runs quantized networks on the NPUs of boards (Amlogic A311D, NXP i.MX 8M Plus, Rockchip RK3588), or on simulated ones.

A compiler plug-in and a dispatch library for CompiledModel of LiteRT 2.2 and later, which this package neither needs nor changes:

    import ai_edge_litert_skillet as skillet
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.environment import Environment
    from ai_edge_litert.hardware_accelerator import HardwareAccelerator
    place = Environment.create(compiler_plugin_path=skillet.get_library_folder(), dispatch_library_path=skillet.get_library_folder())
    model = CompiledModel.from_file("model.tflite", hardware_accel=HardwareAccelerator.NPU | HardwareAccelerator.CPU, environment=place)
"""
from pathlib import Path

__all__ = ["get_library_folder"]


def get_library_folder():
    """Returns the folder of the plug-in.

    It is for compiler_plugin_path and dispatch_library_path of Environment.create(), and --libs of apply_plugin_main."""
    return str(Path(__file__).parent)
