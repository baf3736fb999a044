"""Operations that choose, such as the largest value or the boxes to keep.

Noise of one step, or two equal values, may change the choice and all tensors computed from it. For models of a folder, the tensors that such
operations read and write become further outputs, which are compared.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Any

ORDER = {"ARG_MAX": 1, "ARG_MIN": -1, "TOPK_V2": 1}  # chooses the largest values (1) or the smallest (-1)
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
PLAIN = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE")  # operations allowed between DEQUANTIZE and a float output
BOXES = ("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "TFLite_Detection_PostProcess")
SUBGRAPHS, OUTPUTS = 2, 2  # slots in tables
MARGIN_STEPS = 1
MARGIN_SHARE = 1e-3  # of the largest magnitude, for floats


def with_heads(host: Any, model: bytes) -> tuple[bytes, list[dict[str, Any]], list[float]]:
    """Adds outputs to the model.

    Returns the model; for each operation that chooses, which outputs it reads, which it makes, and which depend on it; and
    steps_of() all outputs."""
    outputs = [one["index"] for one in host.get_output_details()]
    chosen = [one for one in host._get_ops_details() if one["op_name"] in (*ORDER, *BOXES, *COMPARISONS)]
    if not chosen:
        return model, [], steps_of(host, outputs)
    computed = {int(tensor) for one in host._get_ops_details() for tensor in one["outputs"]} | {one["index"] for one in host.get_input_details()}
    reads = {id(one): [int(tensor) for tensor in one["inputs"] if int(tensor) in computed] for one in chosen}
    count = len(outputs)
    outputs += [tensor for one in chosen for tensor in (*reads[id(one)], *map(int, one["outputs"]))]
    outputs = list(dict.fromkeys(outputs))
    heads = []
    for one in chosen:
        behind = dependents(host, [int(tensor) for tensor in one["outputs"]])
        axis = int(host.get_tensor(int(one["inputs"][1])).ravel()[0]) if one["op_name"].startswith("ARG") else -1
        heads.append({"op": one["op_name"], "axis": axis, "reads": [outputs.index(tensor) for tensor in reads[id(one)]],
                      "is_output": [at < count for at in range(len(outputs))], "makes": [outputs.index(int(tensor)) for tensor in one["outputs"]], "behind": [at for at, tensor in enumerate(outputs) if tensor in behind]})
    return with_outputs(model, outputs), heads, steps_of(host, outputs)


def steps_of(host: Any, model_outputs: list[int]) -> list[float]:
    """Returns a step for each output: that of the quantized tensor if DEQUANTIZE makes the output, else 0."""
    makers = {int(tensor): one for one in host._get_ops_details() for tensor in one["outputs"]}
    scales = {one["index"]: float(one["quantization"][0]) for one in host.get_tensor_details()}
    out = []
    for tensor in model_outputs:
        while (maker := makers.get(tensor)) is not None and maker["op_name"] in PLAIN:
            tensor = int(maker["inputs"][0])
        out.append(scales.get(int(maker["inputs"][0]), 0.0) if maker is not None and maker["op_name"] == "DEQUANTIZE" else 0.0)
    return out


def dependents(host: Any, tensors: list[int]) -> set[int]:
    out = set(tensors)
    for one in host._get_ops_details():
        if out & {int(tensor) for tensor in one["inputs"]}:
            out |= {int(tensor) for tensor in one["outputs"]}
    return out


def with_outputs(model: bytes, tensors: list[int]) -> bytes:
    """Replaces the outputs of the first subgraph by TENSORS, with a new list at the end of the file."""
    out = bytearray(model) + bytes(-len(model) % 4)
    root, = struct.unpack_from("<I", out)
    graphs = field(out, root, SUBGRAPHS)
    graphs += struct.unpack_from("<I", out, graphs)[0] + 4  # the first subgraph in the list
    graph = graphs + struct.unpack_from("<I", out, graphs)[0]
    place = field(out, graph, OUTPUTS)
    struct.pack_into("<I", out, place, len(out) - place)
    return bytes(out + struct.pack(f"<I{len(tensors)}i", len(tensors), *tensors))


def field(data: bytearray, table: int, slot: int) -> int:
    """Returns the position of a table's field."""
    methods = table - struct.unpack_from("<i", data, table)[0]
    return table + int(struct.unpack_from("<H", data, methods + 4 + 2 * slot)[0])


def undecided(heads: list[dict[str, Any]], right: list[Any], got: list[Any]) -> tuple[set[int], str]:
    """Returns the outputs that depend on a choice which differs but is as good, and a message if a choice is wrong."""
    out: set[int] = set()
    for one in heads:
        reads, makes = one["reads"], one["makes"]
        if one["op"] in COMPARISONS:  # its own output is compared by itself
            if not np.array_equal(right[makes[0]], got[makes[0]]):
                out.update(set(one["behind"]) - set(makes))
            continue
        if one["op"] in BOXES:
            is_same = all(np.array_equal(right[at], got[at]) for at in reads)
        else:
            is_same = np.array_equal(right[makes[-1]], got[makes[-1]])
            wrong = badly_chosen(got[reads[0]], got[makes[-1]], one["axis"], ORDER[one["op"]])
            if wrong:
                return out, f"{one['op']} chose {wrong} values that are more than {MARGIN_STEPS} step from the best ones that it was given"
        if not is_same:
            out.update(one["behind"])
    return out, ""


def badly_chosen(values: Any, places: Any, axis: int, order: int) -> int:
    """Counts the indices in PLACES, along AXIS, whose values are worse than the best ones. PLACES has the best index first."""
    rows = np.moveaxis(values, axis, -1)
    rows = rows.reshape(-1, rows.shape[-1]).astype(np.float64) * order
    indices = places.reshape(len(rows), -1).astype(np.int64)
    if ((indices < 0) | (indices >= rows.shape[1])).any() or any(len(set(row)) < len(row) for row in indices.tolist()):
        return int(indices.size)
    best = -np.sort(-rows, axis=1)[:, :indices.shape[1]]
    margin = MARGIN_STEPS if values.dtype.kind != "f" else MARGIN_SHARE * float(np.abs(rows).max(initial=0))
    return int((best - np.take_along_axis(rows, indices, 1) > margin).sum())
