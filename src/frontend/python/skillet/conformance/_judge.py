"""Compares outputs with those of the reference kernels, and defines the tolerances."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skillet.conformance._heads import undecided

if TYPE_CHECKING:
    from typing import Any

# In steps of the quantized output. Operations that are not listed move values, and must give the same bits.
TOLERANCE: dict[str, float] = {
    **dict.fromkeys("conv2d depthwise transpose_conv fully_connected batch_matmul average_pool".split(), 1),
    **dict.fromkeys("add sub mul squared_difference quantize float_quantize mean sum resize_bilinear prelu leaky_relu".split(), 1),
    **dict.fromkeys("relu relu6 relun1 relu_0_to_1 hard_swish gelu abs exp sqrt rsqrt div logistic tanh softmax log_softmax l2_normalization".split(), 1),
    "chain": 3,  # two or three operations
    "net": 8,
    "nets": 8,
}
# In ONNX, an operation that moves values is a float operation followed by other quantization, which rounds its scale or limits by itself.
REQUANTIZED = re.compile(r"/(scales=others|relu6|relun1|relu)(/|$)")
INT16_STEPS = 4  # times the above, for outputs of 16 bits
FLOAT_SHARE = 1e-3  # of the largest magnitude, for float outputs
INNER_SHARE = 0.01  # of the values that an operation which chooses reads: so many may exceed the tolerance, because earlier operations amplify noise
# In a network, a step in an early layer becomes several steps later: runtimes that round layers alike differ by 11 steps in 1 of 1,001 values.
# A fault shows in more values, or is larger.
NETWORK_SHARE, NETWORK_TIMES = 0.01, 2  # this share of a network's values may differ by up to this multiple of the tolerance
SUMS = ("conv2d", "depthwise", "transpose_conv", "fully_connected")
# Differences of one step are noise if they go both ways. If all go one way, sums are truncated instead of rounded.
BIAS_VALUES, BIAS_SHARE, BIAS_ONE_SIDE = 256, 0.1, 0.95  # least number of values; share of them that differs; share of those in one direction
MAP_MOST = 48  # rows and columns in a picture of differences


@dataclass
class Verdict:
    reason: str = ""  # empty: within the tolerance
    largest: float = 0.0  # largest difference, in steps or real numbers
    off: int = 0  # number of values that differ at all
    values: int = 0
    picture: list[list[float]] | None = None  # the largest difference over the channels, by row and column
    wrong: int = 0  # number of values that differ by more than the tolerance
    lean: int = 0  # number of values that are too high, minus those that are too low


def tolerance_of(name: str, given: dict[str, float], is_onnx: bool = False) -> float:
    op = name.split("/", 1)[0]
    least = 1 if is_onnx and REQUANTIZED.search(name) else 0
    return given.get(op, given.get("", max(TOLERANCE.get(op, 0), least)))


def compare(expected: list[Any], runs: list[list[Any]], tolerance: float, heads: list[dict[str, Any]] | None = None, steps: list[float] | None = None,
            is_sum: bool = False, is_network: bool = False) -> Verdict:
    """Compares the target's outputs with the expected ones.

    EXPECTED: the outputs for all sets of inputs, in order. RUNS: the target's outputs; the last run repeats the first inputs.
    STEPS: for each float output, the step of the quantized tensor that it was made from, or 0.
    IS_SUM: the outputs are sums. IS_NETWORK: the model is from a folder."""
    count = len(runs[0])
    got = [array for run in runs[:-1] for array in run]
    if len(got) != len(expected):
        return Verdict(f"{len(got)} outputs instead of {len(expected)}")
    out, open_choices = Verdict(), set[int]()
    inner = {at for head in heads or [] for at in head["reads"] if not head["is_output"][at]}
    for at, (right, array) in enumerate(zip(expected, got)):
        if heads and at % count == 0 and same_forms(expected, got):
            others, wrong = undecided(heads, expected[at:at + count], got[at:at + count])
            open_choices |= {at + one for one in others}
            out.reason = out.reason or wrong
        one = compare_array(right, array, tolerance, steps[at % count] if steps else 0) if at not in open_choices else Verdict()
        is_loose = at % count in inner or (right.dtype.kind == "b" and tolerance > 0)
        if is_loose and one.wrong <= INNER_SHARE * one.values and one.wrong:
            one.reason = ""
        if is_network and right.dtype.kind in "iu" and one.wrong <= NETWORK_SHARE * one.values and one.largest <= NETWORK_TIMES * limit_of(right, tolerance):
            one.reason = ""
        where = f"output {at % count}, inputs {at // count}: " if len(expected) > 1 else ""
        if one.reason and not out.reason:
            out.reason, out.picture = where + one.reason, one.picture
        out.largest, out.off, out.values, out.lean = max(out.largest, one.largest), out.off + one.off, out.values + one.values, out.lean + one.lean
    for at, (first, again) in enumerate(zip(runs[0], runs[-1])):
        if not out.reason and not np.array_equal(first, again, equal_nan=first.dtype.kind == "f"):
            out.reason = f"output {at}: the same inputs gave other values after another run"
    if is_sum and expected[0].dtype.kind != "f" and not out.reason:
        out.reason = bias(out)
    return out


def bias(verdict: Verdict) -> str:
    off, values = verdict.off, verdict.values
    if values < BIAS_VALUES or off < BIAS_SHARE * values or abs(verdict.lean) < (2 * BIAS_ONE_SIDE - 1) * off:
        return ""
    return f"{off} of {values} values are a step off, nearly all too {'high' if verdict.lean > 0 else 'low'}: sums are not rounded to the nearest step"


def same_forms(expected: list[Any], got: list[Any]) -> bool:
    return all(right.shape == array.shape and right.dtype == array.dtype for right, array in zip(expected, got))


def limit_of(right: Any, tolerance: float) -> float:
    """Returns the tolerance for quantized values, in steps."""
    return 0 if right.dtype.kind == "b" else tolerance * (INT16_STEPS if right.dtype.itemsize == 2 else 1)


def compare_array(right: Any, got: Any, tolerance: float, step: float = 0) -> Verdict:
    if right.shape != got.shape or right.dtype != got.dtype:
        return Verdict(f"{got.dtype} of shape {got.shape} instead of {right.dtype} of {right.shape}")
    if right.dtype.kind == "f":
        not_finite = ~np.isfinite(got) & np.isfinite(right)
        if not_finite.any():
            return Verdict(f"{int(not_finite.sum())} of {got.size} values are NaN or infinite", float("inf"), int(not_finite.sum()), got.size,
                           picture_of(not_finite.astype(float)))
        with np.errstate(invalid="ignore"):
            difference = np.where(np.isfinite(right), np.abs(got.astype(np.float64) - right), 0)
        limit = FLOAT_SHARE * max(1e-6, float(np.abs(np.where(np.isfinite(right), right, 0)).max(initial=0))) * max(1, tolerance)
        limit = max(limit, step * tolerance)
    else:
        difference = np.abs(got.astype(np.float64) - right.astype(np.float64))
        limit = limit_of(right, tolerance)
    largest, wrong = float(difference.max(initial=0)), int((difference > limit).sum())
    lean = int((got > right).sum()) - int((got < right).sum())
    out = Verdict("", largest, int((difference > 0).sum()), difference.size, wrong=wrong, lean=lean)
    if wrong:
        place = np.unravel_index(int(np.argmax(difference > limit)), difference.shape)
        at = ",".join(str(int(one)) for one in place)
        out.reason = f"{wrong} of {difference.size} values are off, by up to {largest:.6g} (allowed {limit:.3g}); the first at [{at}]: {got[place]} instead of {right[place]}"
        out.picture = picture_of(difference)
    return out


def picture_of(difference: Any) -> list[list[float]] | None:
    """Returns the upper left corner of the differences by row and column, as the largest over the other axes."""
    shape = difference.shape
    if len(shape) == 4:
        flat = difference.max(axis=(0, 3))
    else:
        flat = difference.reshape(-1, shape[-1]) if shape else difference.reshape(1, 1)
    return [[round(float(one), 4) for one in row] for row in flat[:MAP_MOST, :MAP_MOST]]
