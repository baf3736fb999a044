"""Runs each family of grid.py at the ends of types.

Inputs are at their limits, infinities and NaN; zero points at their ends; scales very different; some dimensions 0. Cases that the
published runtime refuses or crashes on are not compared, nor are results that C++ leaves undefined (a float beyond an integer's type).

Imported by grid.py, which runs them in a child process."""

import numpy as np

from grid import QUANTIZED, pick

FLOATS = np.array([np.inf, -np.inf, np.nan, 0, -0.0, 1e-45, -1e-40, 3.4e38, -3.4e38, 1, -1, 0.5, -0.5, 1.5, 2.5, 1e9, -1e-9], np.float32)
# For operations that convert to integers or sum many values: larger values have undefined results in C++.
MODERATE = np.array([0, -0.0, 1e-45, -1e-40, 1, -1, 0.5, -0.5, 1.5, 2.5, 1e5, -1e5, 1e-9], np.float32)
BECOME_INTEGERS = ("hybrid", "requantization", "plain_types", "float_lstm")
# The order of equal scores is undefined.
CONTENTS_STAY = ("detection", "non_max_suppression", "small_division", "integer_lstm")  # the sums of the last one exceed 16 bits
# Shifts by more bits than the type has are undefined,
# and so are quotients beyond their type.
SCALES_STAY = ("small_division", "int16_shifted_sum", "int16_exp", "integer_lstm")


def edge_values(make, t, values, random):
    """Replaces some of VALUES by ends of the tensor's range."""
    dtype = np.dtype(t["dtype"])
    if dtype == np.bool_ or values.size == 0 or make.__name__ in CONTENTS_STAY:
        return values
    if dtype in (np.float32, np.float16):
        ends = MODERATE if make.__name__.startswith(BECOME_INTEGERS) else FLOATS
    elif t["between"] is not None:
        ends = np.array(t["between"])  # indices, for example
    else:
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.min + 1, max(-1, info.min), 0, 1, info.max - 1, info.max], dtype)
    chosen = random.randint(0, len(ends), values.shape)
    return np.where(random.randint(0, 2, values.shape), ends[chosen], values).astype(dtype)


def distort_scales(c, random):
    """Changes the scales. Tensors that share a scale still do.

    Results may be far smaller than a step, but not so large that a multiplier leaves its type."""
    small, known = pick(random, 3, 12, 60), {}
    if c["options"] and c["options"][1].get("fused_activation_function", 0) != 0:
        small = 3  # the activation's limits must be integers
    for t in c["inputs"] + c["outputs"]:
        if t is None or not isinstance(t["scale"], float):
            continue
        key = t["scale"], t["zero_point"], t["dtype"]
        if t["data"] is not None and key not in known:
            continue  # weights
        if key not in known:
            zero = t["zero_point"]
            if t["dtype"] in QUANTIZED and t["between"] is None and random.randint(2):
                info = np.iinfo(t["dtype"])
                zero = int(pick(random, info.min, info.min + 1, info.max - 1, info.max))
            is_result = any(t is one for one in c["outputs"])
            low, high = (-5, small) if is_result else (-small, 5)
            known[key] = float(np.float32(t["scale"] * 2.0 ** random.randint(low, high + 1))), zero
        t["scale"], t["zero_point"] = known[key]


def make_empty(c, random):
    """Sets one dimension of the inputs to 0. Both runtimes compute the shape of the results themselves."""
    computed = [t for t in c["inputs"] if t is not None and t["data"] is None]
    if not computed or not computed[0]["shape"]:
        return
    if c["op"][0] in ("MEAN", "SUM", "REDUCE_PROD") and computed[0]["dtype"] in QUANTIZED:
        return  # TensorFlow Lite returns uninitialized memory
    axis = random.randint(len(computed[0]["shape"]))
    size, rank = computed[0]["shape"][axis], len(computed[0]["shape"])
    for t in computed + c["outputs"]:
        if len(t["shape"]) == rank and t["shape"][axis] == size:
            t["shape"] = t["shape"][:axis] + [0] + t["shape"][axis + 1:]


def divide_by_no_zero(c, inputs):
    """Replaces integer divisors of zero, whose results are undefined."""
    if c["op"][0] in ("DIV", "FLOOR_DIV", "FLOOR_MOD") and len(inputs) == 2 and inputs[1].dtype != np.float32:
        zero = c["inputs"][1]["zero_point"]
        inputs[1][inputs[1] == zero] = zero + 1 if zero < 100 else zero - 1


def copy_of(c):
    return dict(c, inputs=[t and dict(t) for t in c["inputs"]], outputs=[dict(t) for t in c["outputs"]])


def edge_case(make, random):
    """Returns a case of the family, possibly with an empty dimension or other scales."""
    c = copy_of(make(random))
    kind = random.randint(8)
    if kind == 0:
        make_empty(c, random)
    elif kind < 5 and make.__name__ not in SCALES_STAY and (c["op"][0] != "DIV" or c["outputs"][0]["dtype"] == "uint8"):
        distort_scales(c, random)
    return c

