"""One suite of generated models for any NPU stack: `python3 -m skillet.conformance --help`.

A TensorFlow Lite delegate, a device of Skillet, or any command computes them; TensorFlow Lite's reference kernels compute
what is right. docs/conformance.md is the page for users.
"""
