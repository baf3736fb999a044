"""Makes sessions of ONNX Runtime with one provider, and reports which nodes it has.
Imported in the virtual environment with ONNX Runtime."""
import numpy as np
import onnxruntime as ort

NAME = "SkilletExecutionProvider"
# On processors without VNNI, ONNX Runtime's sums of uint8 by int8 saturate at 16 bits; this option prevents it.
EXACT_SUMS = "session.x64quantprecision"


def session(path, options, sizes=None, severity=3, provider=NAME, **entries):
    """Makes a session.
    PATH may also be the bytes of a model; SIZES: of free dimensions; ENTRIES: of the session's configuration."""
    so = ort.SessionOptions()
    so.intra_op_num_threads = 1
    so.log_severity_level = severity
    for key, value in {EXACT_SUMS: "1", "session.record_ep_graph_assignment_info": "1", **entries}.items():
        so.add_session_config_entry(key, value)
    for name, size in (sizes or {}).items():
        so.add_free_dimension_override_by_name(name, size)
    so.add_provider_for_devices([one for one in ort.get_ep_devices() if one.ep_name == provider][:1], options)
    return ort.InferenceSession(path if isinstance(path, bytes) else str(path), so, enable_fallback=0)


def in_float(path):
    """Makes a session of ONNX Runtime's CPU without optimisation: in float between QuantizeLinear and DequantizeLinear."""
    so = ort.SessionOptions()
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), so, providers=["CPUExecutionProvider"])


def placed(made, provider=NAME):
    """Returns how many nodes the provider has, in how many parts, and the kinds of the other nodes."""
    info = made.get_provider_graph_assignment_info()
    parts = [len(one.get_nodes()) for one in info if one.ep_name == provider]
    return sum(parts), len(parts), sorted(node.op_type for one in info if one.ep_name != provider for node in one.get_nodes())


def alike(one, other):
    """Returns the correlation."""
    return np.corrcoef(one.ravel(), other.ravel())[0, 1]
