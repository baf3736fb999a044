"""Selects nodes for the NPU, forms parts, and compiles each part. Needs PyTorch."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterable, final

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

BACKEND = "SkilletBackend"  # the name that backend.cpp registers
WHOLE = {"aten.linear", "aten.hardswish", "aten.max_pool2d"}  # kept whole: decomposed, they become several operations; ExecuTorch itself has no kernels for them
ALL = ["--partition", "all"]


def is_8bit(node: Node) -> bool:
    """Returns whether NODE quantizes to, or dequantizes from, a full 8-bit type. Constants may omit the lowest value."""
    if name_of(node) in QUANTIZE:
        dtype = node.meta["val"].dtype
        return dtype in (torch.int8, torch.uint8) and tuple(node.args[3:5]) == (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return name_of(node) in DEQUANTIZE and node.args[0].meta["val"].dtype in (torch.int8, torch.uint8)


def why_not(node: Node, taken: set[Node]) -> str:
    """Returns why NODE is neither a quantized unit nor the activation at the end of a unit in TAKEN; empty: it is one."""
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
    """Returns the nodes of all units, including those that quantize and dequantize. Appends a line to LEFT for each other operation."""
    taken: set[Node] = set()
    for node in program.graph.nodes:
        name = name_of(node)
        if not name or name in QUANTIZE | DEQUANTIZE:
            continue
        if reason := why_not(node, taken):
            left.append(f"{node.name} ({name}): {reason}")
            continue
        taken |= {node, *(one for one in node.all_input_nodes if name_of(one) in DEQUANTIZE), *(one for one in node.users if name_of(one) in QUANTIZE)}
    # Add nodes that quantize for units only, dequantize a unit's output, or requantize it.
    for node in program.graph.nodes:
        is_for_units = name_of(node) in QUANTIZE and all(one in taken for one in node.users)
        if is_8bit(node) and (is_for_units or node.args[0] in taken):
            taken.add(node)
    return taken


def unit_of(node: Node) -> set[Node]:
    """Returns NODE and its activation with the nodes that quantize and dequantize around them: a minimal part for a chip."""
    activation = [one for one in node.users if name_of(one) in ACTIVATIONS]
    after = [one for last in activation or [node] for one in last.users]
    before = [one for one in node.all_input_nodes if name_of(one) in DEQUANTIZE]
    ends = [one.args[0] for one in before if name_of(one.args[0]) in QUANTIZE] + [one for last in after for one in last.users]
    return {node, *activation, *before, *after, *(one for one in ends if name_of(one) in QUANTIZE | DEQUANTIZE)}


class _Taken(OperatorSupportBase):  # type: ignore[misc,unused-ignore]
    def __init__(self, nodes: set[Node]) -> None:
        self.nodes = nodes

    def is_node_supported(self, submodules: object, node: Node) -> bool:  # noqa: ARG002
        return node in self.nodes


def devices_in(text: str) -> list[str]:
    """Splits a list at commas, except at those within a name such as sim:rk3588,quirk=NAME."""
    out: list[str] = []
    for piece in text.split(","):
        if out and "=" in piece:
            out[-1] += "," + piece
        else:
            out.append(piece)
    return out


def compiled(file: bytes, devices: str, options: list[str]) -> tuple[bytes, str]:
    """Compiles a part. Returns the compiled model, or empty bytes and why there is none.

    Raises RuntimeError if devices or options are wrong."""
    with tempfile.TemporaryDirectory() as folder:
        model, made = Path(folder, "part.onnx"), Path(folder, "part.skillet")
        model.write_bytes(file)
        command = [_paths.command_path(), "compile", str(model), "--device", devices, "-o", str(made), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return made.read_bytes(), ""
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        if done.returncode == 1 or said[-1].startswith(f"skillet: {model}:"):  # the error is about the part, not about the command line
            reason = said[-1].removeprefix("skillet: ").removeprefix(f"{model}: ").removesuffix(" (see skillet check)")
            return b"", reason.replace(str(model), "this part")
        raise RuntimeError(f"skillet compile: exit code {done.returncode}\n{done.stderr or done.stdout}")


@final
class SkilletPartitioner(Partitioner):  # type: ignore[misc,unused-ignore]
    """Selects the parts of a program that Skillet runs.

    DEVICES: the chips to compile for, "a311d" or "a311d,rk3588". OPTIONS: of `skillet compile`, such as ["--partition", "all"].

    After to_edge_transform_and_lower(), `left` lists the operations that stay with ExecuTorch, and why.
    """

    def __init__(self, devices: str, options: list[str] | None = None) -> None:
        super().__init__()
        self.left: list[str] = []
        self._devices, self._options = devices_in(devices), options or []
        self._asked: dict[tuple[str, ...], str] = {}
        self._divided: dict[str, str] = {}  # by name of a node: a line for `left`

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[OpOverload], Callable[[Node], bool]]:
        """Returns the operations to keep whole: those in WHOLE that form a unit which a chip takes.

        The decision is needed now: when parts are formed, it is too late to decompose."""
        kept = [node for node in ep.graph.nodes if name_of(node) in WHOLE and not why_not(node, set()) and self._takes_alone(ep, node)]
        return [node.target for node in kept], lambda node: node in kept

    def _takes_alone(self, program: ExportedProgram, node: Node) -> bool:
        refusals = self._ask(program, unit_of(node), self._with_all())
        if len(refusals) < len(self._devices):
            return True
        self._divided[node.name] = f"{node.name} ({name_of(node)}): {'; '.join(refusals.values())}"
        return False

    def _with_all(self) -> list[str]:
        return self._options if "--partition" in self._options else [*self._options, *ALL]

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        self.left[:] = self._divided.values()
        self._divided.clear()
        taken = units(exported_program, self.left)
        tags: dict[str, DelegationSpec] = {}
        for part in generate_partitions_from_list_of_nodes(exported_program.graph_module, op_support=_Taken(taken)):
            if all(name_of(node) in QUANTIZE | DEQUANTIZE for node in part.nodes):
                continue
            options = self._options
            refusals = self._ask(exported_program, set(part.nodes), options)
            if len(refusals) == len(self._devices) and any(name_of(node) in WHOLE for node in part.nodes):
                options = self._with_all()
                refusals = self._ask(exported_program, set(part.nodes), options)
            devices = [device for device in self._devices if device not in refusals]
            self._tell(part.nodes, refusals, devices)
            if not devices:
                continue
            specs = [CompileSpec("option", one.encode()) for one in options]
            tags[f"skillet{part.id}"] = DelegationSpec(BACKEND, [CompileSpec("devices", ",".join(devices).encode()), *specs])
            for node in part.nodes:
                node.meta["delegation_tag"] = f"skillet{part.id}"
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags)

    def _ask(self, program: ExportedProgram, nodes: set[Node], options: list[str]) -> dict[str, str]:
        """Returns, for each device that takes none of the nodes, the reason."""
        file = Writer(program, nodes).file()
        out = {}
        for device in self._devices:
            question = (hashlib.sha256(file).hexdigest(), device, *options)
            if question not in self._asked:
                self._asked[question] = compiled(file, device, options)[1]
            if reason := self._asked[question]:
                out[device] = reason
        return out

    def _tell(self, nodes: Iterable[Node], refusals: dict[str, str], taking: list[str]) -> None:
        instead = f"; the part is for {','.join(taking)}, elsewhere Skillet's CPU kernels run it" if taking else ""
        for node in nodes:
            if refusals and name_of(node) not in QUANTIZE | DEQUANTIZE:
                self.left.append(f"{node.name} ({name_of(node)}): {'; '.join(refusals.values())}{instead}")


@final
class SkilletBackend(BackendDetails):  # type: ignore[misc,unused-ignore]
    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        devices, *options = (spec.value.decode() for spec in compile_specs)
        file = Writer(edge_program).file()
        part, reason = compiled(file, devices, options)
        if reason and "--partition" not in options:  # the real weights may cost more than the likely values that partition() used
            part, reason = compiled(file, devices, [*options, *ALL])
        if reason:
            raise RuntimeError(f"skillet compile: {reason}")
        return PreprocessResult(processed_bytes=part)
