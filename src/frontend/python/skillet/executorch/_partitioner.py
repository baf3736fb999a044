"""What goes to the NPU, in which parts, and each part as a compiled model. Needs PyTorch."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Callable, final

import torch  # type: ignore[import-not-found,import-untyped,unused-ignore]
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult  # type: ignore[import-not-found,import-untyped,unused-ignore]
from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import generate_partitions_from_list_of_nodes  # type: ignore[import-not-found,import-untyped,unused-ignore]
from executorch.exir.backend.compile_spec_schema import CompileSpec  # type: ignore[import-not-found,import-untyped,unused-ignore]
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult  # type: ignore[import-not-found,import-untyped,unused-ignore]
from executorch.exir.backend.utils import tag_constant_data  # type: ignore[import-not-found,import-untyped,unused-ignore]
from skillet import _paths
from skillet.executorch._onnx import ACTIVATIONS, DEQUANTIZE, FORMS, QUANTIZE, WITH_BIAS, NoForm, Writer, name_of
from torch.fx.passes.operator_support import OperatorSupportBase  # type: ignore[import-not-found,import-untyped,unused-ignore]

if TYPE_CHECKING:
    from torch._ops import OpOverload  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from torch.export import ExportedProgram  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from torch.fx import Node  # type: ignore[import-not-found,import-untyped,unused-ignore]

BACKEND = "SkilletBackend"  # as backend.cpp registers it


def is_8bit(node: Node) -> bool:
    """What quantizes to, or dequantizes from, a whole type of 8 bits; constants may leave out the lowest value."""
    if name_of(node) in QUANTIZE:
        dtype = node.meta["val"].dtype
        return dtype in (torch.int8, torch.uint8) and tuple(node.args[3:5]) == (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return name_of(node) in DEQUANTIZE and node.args[0].meta["val"].dtype in (torch.int8, torch.uint8)


def why_not(node: Node, taken: set[Node]) -> str:
    """Why NODE is no unit of quantized numbers, or the activation at the end of one in TAKEN; empty: it is."""
    name = name_of(node)
    form = FORMS.get(name)
    if form is None:
        return "Skillet has no such operation"
    try:
        _, _, inputs = form(node)
    except NoForm as reason:
        return str(reason)
    for one in inputs[:2 if name in WITH_BIAS else None]:
        if hasattr(one, "meta") and not is_8bit(one) and not (name in ACTIVATIONS and one in taken):
            return f"its input {one.name} is not quantized to 8 bits"
    users = list(node.users)
    if len(users) == 1 and name_of(users[0]) in ACTIVATIONS:
        users = list(users[0].users)
    return "" if users and all(name_of(one) in QUANTIZE and is_8bit(one) for one in users) else "its output is not quantized to 8 bits"


def units(program: ExportedProgram, left: list[str]) -> set[Node]:
    """The nodes of all units, what quantizes and dequantizes among them; LEFT: a line for each other operation."""
    taken: set[Node] = set()
    for node in program.graph.nodes:
        name = name_of(node)
        if not name or name in QUANTIZE | DEQUANTIZE:
            continue
        if reason := why_not(node, taken):
            left.append(f"{node.name} ({name}): {reason}")
            continue
        taken |= {node, *(one for one in node.all_input_nodes if name_of(one) in DEQUANTIZE), *(one for one in node.users if name_of(one) in QUANTIZE)}
    # What quantizes for units only, and what dequantizes a unit's output, or quantizes that anew.
    for node in program.graph.nodes:
        is_for_units = name_of(node) in QUANTIZE and all(one in taken for one in node.users)
        if is_8bit(node) and (is_for_units or node.args[0] in taken):
            taken.add(node)
    return taken


class _Taken(OperatorSupportBase):  # type: ignore[misc,unused-ignore]
    def __init__(self, nodes: set[Node]) -> None:
        self.nodes = nodes

    def is_node_supported(self, submodules: object, node: Node) -> bool:  # noqa: ARG002
        return node in self.nodes


@final
class SkilletPartitioner(Partitioner):  # type: ignore[misc,unused-ignore]
    """DEVICES: the chips to compile for, "a311d" or "a311d,rk3588"; OPTIONS: of `skillet compile`, such as ["--partition", "all"].

    After to_edge_transform_and_lower() `left` says what stays with ExecuTorch, and why.
    """

    def __init__(self, devices: str, options: list[str] | None = None) -> None:
        super().__init__()
        self.left: list[str] = []
        self._spec = DelegationSpec(BACKEND, [CompileSpec("devices", devices.encode()), *(CompileSpec("option", one.encode()) for one in options or [])])

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[OpOverload], Callable[[Node], bool]]:
        """Those that would become several, where they are units."""
        whole = {"aten.linear", "aten.hardswish", "aten.max_pool2d"}
        return [node.target for node in ep.graph.nodes if name_of(node) in whole], lambda node: name_of(node) in whole and not why_not(node, set())

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        self.left.clear()
        taken = units(exported_program, self.left)
        tags = {}
        for part in generate_partitions_from_list_of_nodes(exported_program.graph_module, op_support=_Taken(taken)):
            if all(name_of(node) in QUANTIZE | DEQUANTIZE for node in part.nodes):
                continue
            tags[f"skillet{part.id}"] = self._spec
            for node in part.nodes:
                node.meta["delegation_tag"] = f"skillet{part.id}"
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags)


@final
class SkilletBackend(BackendDetails):  # type: ignore[misc,unused-ignore]
    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        devices, *options = (spec.value.decode() for spec in compile_specs)
        with tempfile.TemporaryDirectory() as folder:
            model, made = Path(folder, "part.onnx"), Path(folder, "part.skillet")
            model.write_bytes(Writer(edge_program).file())
            command = [_paths.command_path(), "compile", str(model), "--device", devices, "-o", str(made), *options]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"skillet compile: exit code {done.returncode}\n{done.stderr or done.stdout}")
            return PreprocessResult(processed_bytes=made.read_bytes())
