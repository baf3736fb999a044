"""Tests any NPU stack with generated models: `python3 -m skillet.conformance --help`.

A TensorFlow Lite delegate, a device of Skillet, or any command runs the models. TensorFlow Lite's reference kernels
compute the expected results. docs/conformance.md is the page for users.
"""
