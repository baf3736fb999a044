"""Each family of grid.py again, at the ends of types: inputs at their limits, infinities and NaN; zero points at their ends, scales far
apart; dimensions of 0. What the published runtime refuses, or dies of, is not compared; so are results that C++ leaves open (a float
beyond an integer's type).

Imported by grid.py, which runs them in a process of their own."""

import numpy as np

from grid import QUANTIZED, pick

FLOATS = np.array([np.inf, -np.inf, np.nan, 0, -0.0, 1e-45, -1e-40, 3.4e38, -3.4e38, 1, -1, 0.5, -0.5, 1.5, 2.5, 1e9, -1e-9], np.float32)
# Where they become integers, or are sums of many: what is beyond those C++ leaves open.
MODERATE = np.array([0, -0.0, 1e-45, -1e-40, 1, -1, 0.5, -0.5, 1.5, 2.5, 1e5, -1e5, 1e-9], np.float32)
BECOME_INTEGERS = ("hybrid", "requantization", "plain_types", "float_lstm")
# Of equal scores the order is open.
CONTENTS_STAY = ("detection", "non_max_suppression", "small_division", "integer_lstm")  # whose sums leave 16 bits
# By shifts that a type does not have, nobody says what comes out.
# Quotients beyond their type are what is left of them.
SCALES_STAY = ("small_division", "int16_shifted_sum", "int16_exp", "integer_lstm")


def edge_values(make, t, values, random):
    """Some of VALUES at an end of what the tensor may hold."""
    dtype = np.dtype(t["dtype"])
    if dtype == np.bool_ or values.size == 0 or make.__name__ in CONTENTS_STAY:
        return values
    if dtype in (np.float32, np.float16):
        ends = MODERATE if make.__name__.startswith(BECOME_INTEGERS) else FLOATS
    elif t["between"] is not None:
        ends = np.array(t["between"])  # indices and the like
    else:
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.min + 1, max(-1, info.min), 0, 1, info.max - 1, info.max], dtype)
    chosen = random.randint(0, len(ends), values.shape)
    return np.where(random.randint(0, 2, values.shape), ends[chosen], values).astype(dtype)


def distort_scales(c, random):
    """Tensors of one scale still have one. Results may be far smaller than a step; not so large that a multiplier leaves its type."""
    small, known = pick(random, 3, 12, 60), {}
    if c["options"] and c["options"][1].get("fused_activation_function", 0) != 0:
        small = 3  # its limits must be integers
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
    """One dimension of the inputs is 0; both runtimes work out the shape of the results themselves."""
    computed = [t for t in c["inputs"] if t is not None and t["data"] is None]
    if not computed or not computed[0]["shape"]:
        return
    if c["op"][0] in ("MEAN", "SUM", "REDUCE_PROD") and computed[0]["dtype"] in QUANTIZED:
        return  # TensorFlow Lite leaves what its memory held
    axis = random.randint(len(computed[0]["shape"]))
    size, rank = computed[0]["shape"][axis], len(computed[0]["shape"])
    for t in computed + c["outputs"]:
        if len(t["shape"]) == rank and t["shape"][axis] == size:
            t["shape"] = t["shape"][:axis] + [0] + t["shape"][axis + 1:]


def divide_by_no_zero(c, inputs):
    """Of integers nobody says what it is."""
    if c["op"][0] in ("DIV", "FLOOR_DIV", "FLOOR_MOD") and len(inputs) == 2 and inputs[1].dtype != np.float32:
        zero = c["inputs"][1]["zero_point"]
        inputs[1][inputs[1] == zero] = zero + 1 if zero < 100 else zero - 1


def copy_of(c):
    return dict(c, inputs=[t and dict(t) for t in c["inputs"]], outputs=[dict(t) for t in c["outputs"]])


def edge_case(make, random):
    """A case of the family, and how its inputs are made."""
    c = copy_of(make(random))
    kind = random.randint(8)
    if kind == 0:
        make_empty(c, random)
    elif kind < 5 and make.__name__ not in SCALES_STAY and (c["op"][0] != "DIV" or c["outputs"][0]["dtype"] == "uint8"):
        distort_scales(c, random)
    return c

