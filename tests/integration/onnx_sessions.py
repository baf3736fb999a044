"""Sessions of ONNX Runtime with one provider, and which nodes are whose. Imported in the virtual environment that has it."""
import numpy as np
import onnxruntime as ort

NAME = "SkilletExecutionProvider"
# On processors without VNNI, ONNX Runtime's sums of uint8 by int8 saturate at 16 bits; with this they do not.
EXACT_SUMS = "session.x64quantprecision"


def session(path, options, sizes=None, severity=3, provider=NAME, **entries):
    """PATH: or the bytes of a model; SIZES: of free dimensions; ENTRIES: of the session's configuration."""
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
    """ONNX Runtime's CPU without optimisation: in float between QuantizeLinear and DequantizeLinear."""
    so = ort.SessionOptions()
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), so, providers=["CPUExecutionProvider"])


def placed(made, provider=NAME):
    """How many nodes are the provider's, in how many parts; the kinds of the others."""
    info = made.get_provider_graph_assignment_info()
    parts = [len(one.get_nodes()) for one in info if one.ep_name == provider]
    return sum(parts), len(parts), sorted(node.op_type for one in info if one.ep_name != provider for node in one.get_nodes())


def alike(one, other):
    """The correlation."""
    return np.corrcoef(one.ravel(), other.ravel())[0, 1]
