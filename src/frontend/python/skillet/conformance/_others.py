"""Operations that compare, choose and order values, and others that few NPUs support: a few cases each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillet.conformance._model import Tensor
from skillet.conformance._moves import moved
from skillet.conformance._ops import activation, family

if TYPE_CHECKING:
    from skillet.conformance._build import Build

SIZES, CHANNELS = "8x8 1x1 7x9 1x16 17x15", "16 3 17 1 33"
COMPARISONS = {"equal": ("EQUAL", 71), "not_equal": ("NOT_EQUAL", 72), "greater": ("GREATER", 61), "greater_equal": ("GREATER_EQUAL", 62),
               "less": ("LESS", 58), "less_equal": ("LESS_EQUAL", 63)}


@family(" ".join(COMPARISONS), grid=40, size=SIZES, c=CHANNELS, **{"with": "tensor pixel"})
def make_comparison(b: Build) -> None:
    x = b.input()
    y = b.graph.input(b.like(x, b.shape if b["with"] == "tensor" else (1, 1, 1, b.shape[3])))
    b.graph.outputs = [b.graph.operation(*COMPARISONS[b["op"]], 2, [x, y], Tensor(b.shape, "bool"))]


@family("select", grid=60, size=SIZES, c=CHANNELS, zp="mid low high sym")
def make_select(b: Build) -> None:
    which, x = b.graph.input(Tensor(b.shape, "bool")), b.input()
    b.graph.outputs = [moved(b, "SELECT_V2", 123, 1, [which, x, b.graph.input(b.like(x))], b.shape, like=x)]


@family("relu_0_to_1", grid=60, size=SIZES, c=CHANNELS, zp="mid low high sym")
def make_relu_0_to_1(b: Build) -> None:
    b.graph.outputs = [b.graph.operation("RELU_0_TO_1", 152, 1, [b.input()], b.tensor(b.shape))]


@family("sqrt rsqrt", "i8", grid=40, size=SIZES, c=CHANNELS)
def make_root(b: Build) -> None:
    """The input has no negative values."""
    x = b.input(zero=-128)
    op, code = {"sqrt": ("SQRT", 75), "rsqrt": ("RSQRT", 76)}[b["op"]]
    b.graph.outputs = [b.graph.operation(op, code, 2, [x], b.tensor(b.shape, zero=-128))]


@family("div", "u8 f32", grid=60, size=SIZES, c=CHANNELS, act="none relu relu6", zp="mid sym", **{"with": "const scalar"})
def make_division(b: Build) -> None:
    """Divides by small nonzero constants: the runtime's kernel is wrong for very small quotients."""
    x, divisor = b.input(), b.tensor(b.shape if b["with"] == "const" else (1,), zero=0)
    divisor.data = abs(b.values(divisor.shape, divisor.dtype)) % 8 + 1
    b.graph.outputs = [b.graph.operation("DIV", 42, 2, [x, b.graph.add(divisor)], b.tensor(b.shape, 0.02),
                                         options=("DivOptions", dict(activation=activation(b))))]


@family("arg_min", grid=40, size=SIZES, c=CHANNELS, axis="3 1 2")
def make_arg_min(b: Build) -> None:
    x, axis = b.input(), b.number("axis")
    out = Tensor(tuple(size for at, size in enumerate(b.shape) if at != axis), "int32")
    b.graph.outputs = [b.graph.operation("ARG_MIN", 79, 2, [x, b.graph.constant(axis)], out, options=("ArgMinOptions", dict(output_type=2)))]


@family("split_v", grid=60, size=SIZES, c=CHANNELS, axis="3 1 2", zp="mid low high sym")
def make_uneven_split(b: Build) -> None:
    """Splits into three parts. The second is larger by one, the last by two."""
    axis, parts = b.number("axis"), []
    for more in range(3):
        parts.append([size + more * (at == axis) for at, size in enumerate(b.shape)])
    whole = [sum(part[at] for part in parts) if at == axis else size for at, size in enumerate(b.shape)]
    x = b.input(whole)
    inputs = [x, b.graph.constant([part[axis] for part in parts]), b.graph.constant(axis)]
    first = moved(b, "SPLIT_V", 102, 2, inputs, *parts, options=("SplitVOptions", {"num_splits": 3}))
    b.graph.outputs = [first, first + 1, first + 2]


@family("reverse", grid=60, size=SIZES, c=CHANNELS, axis="2 1 3")
def make_reverse(b: Build) -> None:
    b.graph.outputs = [moved(b, "REVERSE_V2", 105, 3, [b.input(), b.graph.constant([b.number("axis")])], b.shape)]


@family("gather_nd", grid=40, size=SIZES, c=CHANNELS)
def make_gather_nd(b: Build) -> None:
    """Gathers the rows in reverse order, the last one twice."""
    rows = [*range(b.shape[1])[::-1], b.shape[1] - 1]
    b.graph.outputs = [moved(b, "GATHER_ND", 107, 3, [b.input(), b.graph.constant([[0, row] for row in rows])], (len(rows), *b.shape[2:]))]


@family("broadcast_to", grid=40, size=SIZES, c=CHANNELS, of="pixel row")
def make_broadcast(b: Build) -> None:
    x = b.input((1, 1, 1 if b["of"] == "pixel" else b.shape[2], b.shape[3]))
    b.graph.outputs = [moved(b, "BROADCAST_TO", 130, 3, [x, b.graph.constant(b.shape)], b.shape)]


@family("topk", grid=40, size=SIZES, c="16 3 17 33")
def make_topk(b: Build) -> None:
    """Compares values only: the order of equal values is not defined everywhere."""
    x, shape = b.input(), (*b.shape[:3], 3)
    b.graph.outputs = [b.graph.operation("TOPK_V2", 48, 2, [x, b.graph.constant(3)], b.like(x, shape), Tensor(shape, "int32"))]


@family("update_slice", grid=40, size="8x8 7x9 17x15 3x3", c=CHANNELS)
def make_update(b: Build) -> None:
    x, (_, height, width, channels) = b.input(), b.shape
    patch = b.graph.input(b.like(x, (1, height // 2, width // 2, channels)))
    b.graph.outputs = [moved(b, "DYNAMIC_UPDATE_SLICE", 151, 2, [x, patch, b.graph.constant([0, 1, 1, 0])], b.shape)]


@family("cast", grid=40, size=SIZES, c=CHANNELS, to="float32 int32")
def make_cast(b: Build) -> None:
    x = b.graph.input(Tensor(b.shape, b.dtype))
    b.graph.outputs = [b.graph.operation("CAST", 53, 3, [x], Tensor(b.shape, b["to"]))]
