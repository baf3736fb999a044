#!/usr/bin/env python3
"""Compares the output of commands with tests/expectations/command.txt, and hashes of many more with commands.txt (a long test).

Compares exit code, text, error lines and written files, without times of this machine. After an intended change:

    python3 src/tools/cli/outputs_test.py SKILLET --update      at the top of the source tree; git diff shows what changed

usage: outputs_test.py SKILLET      run at the top of the source tree
"""
import hashlib
import itertools
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, "tests/integration")
import long_cases  # noqa: E402
import many_commands  # noqa: E402

SKILLET = str(Path(sys.argv.pop(1)).resolve())
EXPECTED = Path("tests/expectations/command.txt")
MANY = Path("tests/expectations/commands.txt")  # hashes
LONGEST = 70  # lines; of a longer output only a hash is kept

# Most rows should show the NPU, but their networks are too small for the prediction to prefer it.
os.environ["SKILLET_PARTITION"] = "all"
MODELS = "models/digits.tflite", "tests/models/conv3x3_s2_u8.tflite", "tests/captures/models/chain_residual_add_i8.tflite"
DIGITS, CONV, CHAIN = MODELS
FC, JOIN = "tests/models/fc64x10_i8.tflite", "tests/models/concat2_i8.tflite"
REFUSED = "tests/models/refused/no_kernel.tflite"
# UpSampling2D, Conv2DTranspose and GELU as Keras writes them for an unknown batch size.
UPSAMPLED, TRANSPOSED, GELU = (f"tests/models/keras/{name}_i8.tflite" for name in ("unet", "transposed", "gelu"))
SILU, MISH = (f"tests/models/functions/{name}_i8.tflite" for name in ("silu", "mish"))  # one lookup table for each activation
# Input((None, None, 3)) as Keras writes it, and a file with two functions.
FREE, TWO = "tests/models/free/free_sizes_u8.tflite", "tests/models/free/two_signatures_i8.tflite"
PICTURE = "models/digits/3.png"
A311D, A311D_JOIN, RK3588 = (f"tests/captures/{name}" for name in ("a311d_conv1x1_relu6_u8", "a311d_concat2_i8", "rk3588_conv1x1_relu6_u8"))

# One command a line; TMP is one folder for all of them, in this order. "~": times of this machine are removed.
COMMANDS = f"""
check {DIGITS}
check {CONV} --device sim:rk3588
check {CONV} --device sim:a311d --json
check {CHAIN} --device sim:imx8mp --unproven refuse
check {CHAIN} --device sim:imx8mp --partition predicted
check {FC} --device cpu
check {FC} --json
check {REFUSED} --device sim:a311d
check {DIGITS} --device sim:a311d --require 100%
check {JOIN} --device sim:rk3588 --require 101%
check {DIGITS} --html TMP/page.html
check {FC} --delegate
check {JOIN} --device sim:rk3588 --require 90%
check {FREE} --device sim:a311d
check {FREE} --delegate
check {FREE} --device sim:rk3588 --input-shape 1x20x30x3
run {FREE} --device sim:rk3588 --input-shape 1x20x30x3 --random 5 --compare=layers ~
run {FREE} --device cpu --input-shape 1x20x30
run {TWO} --device sim:rk3588 --random 5 ~
run {TWO} --device sim:rk3588 --signature enc --random 5 --compare ~
run {TWO} --signature dec
fix {CONV} -o TMP/fixed.tflite --device sim:rk3588
fix {DIGITS} -o TMP/digits.tflite --device sim:rk3588 --approximate --json
fix {CHAIN} -o TMP/chain.tflite --device sim:a311d
fix {UPSAMPLED} -o TMP/unet.tflite --device sim:rk3588
fix {TRANSPOSED} -o TMP/transposed.tflite --device sim:a311d
run TMP/transposed.tflite --device cpu --random 5 --compare ~
run {UPSAMPLED} --device sim:a311d --random 5 --compare ~
run {GELU} --device sim:rk3588 --random 5 --compare ~
check {TRANSPOSED} --device sim:imx8mp
fix {DIGITS} -o TMP/copy.tflite --device sim:a311d
fix {DIGITS} -o TMP/rewritten.tflite --device sim:a311d --always
run TMP/digits.tflite --device cpu --random 3 --output TMP/fixed.npy ~
run {DIGITS} --device cpu --random 3 --output TMP/whole.npy ~
plan {DIGITS}
plan {CONV} --chip a311d --json
plan {CHAIN} --chip rk3588 --chip imx8mp --tuning tuned
plan {FC} --chip imx8mp --unproven refuse --set error_percent=7
plan {REFUSED} --chip a311d --chip rk3588
plan {RK3588}
plan {A311D} --json
plan --parameters
compile {DIGITS} --device sim:a311d ~
compile {DIGITS} --device sim:rk3588 --cores 3 --json ~
compile {CONV} --device sim:a311d --text -o TMP/conv.program ~
compile {CHAIN} --device sim:imx8mp --report ~
compile {DIGITS} --device sim:rk3588 --explain --tuning tuned ~
compile {CHAIN} --device sim:a311d --explain-partition ~
compile {DIGITS} --device sim:a311d --explain-partition ~
compile {FC} --device sim:rk3588 -o TMP/fc.program ~
decode {A311D}
decode {A311D} --submission 1 --all
decode {A311D_JOIN} --buffers --json
decode {A311D_JOIN} --last 1 --model {JOIN}
decode {RK3588} --all
decode {RK3588} --weights TMP/weights
decode {A311D} --extract TMP/buffers
decode {A311D} --weights TMP/weights_a311d
decode TMP/conv.program
inspect {CONV}
decode {CONV} --chip rk3588 --buffers
decode {A311D} --submission 9
diff {A311D} {A311D}
diff {A311D} {A311D_JOIN}
diff {A311D} {A311D}/model.tflite --json
diff TMP/conv.program {CONV} --chip a311d
diff {CONV} {CONV} --tuning tuned --chip rk3588
lookup kernel_x_size
lookup 15.31 --json
lookup 0x1030 --chip rk3588
lookup nn_instruction:0
lookup no_such_thing
replay {A311D_JOIN} --device sim:a311d
replay {A311D} --device sim:a311d --input 3={A311D}/input_0.bin --output TMP/replayed
replay {A311D} --device sim:a311d --input 3={A311D}/input_0.bin --expect TMP/replayed --json
replay {RK3588} --device sim:rk3588
replay {A311D} --device sim:a311d --set nn_instruction.kernel_x_size=2
tune {DIGITS} --device sim:rk3588 -o TMP/tuning ~
tune {DIGITS} --device sim:s905d3 -o TMP/none
compile {DIGITS} --device sim:rk3588 --tuning tuned --tuning-file TMP/tuning --explain ~
devices
run {DIGITS} --image {PICTURE} --device sim:a311d --compare=layers --labels models/digits_labels.txt ~
run {DIGITS} --image {PICTURE} models/digits/4.png --device sim:rk3588 --compare --json ~
run {CONV} --random 7 --device sim:imx8mp --record TMP/run.capture --output TMP/out.npz --top 3 ~
decode TMP/run.capture
replay TMP/run.capture --device sim:imx8mp --json
run {CONV} --random 7 --device cpu --expect TMP/out.npz --tolerance 1 ~
run {CONV} --random 8 --device cpu --expect TMP/out.npz --tolerance 1 ~
run {CONV} --random 7 --device sim:a311d --output TMP/folder --repeat 3 --tuning tuned ~
run {DIGITS} --image {PICTURE} --device cpu --draw TMP/drawn.png --labels models/digits_labels.txt ~
run {SILU} --device sim:a311d --random 5 --compare=layers ~
run {MISH} --device sim:imx8mp --random 5 --compare=layers ~
run {SILU} --device sim:rk3588 --random 5 --compare=layers ~
fix {SILU} -o TMP/silu.tflite --device sim:a311d --always ~
eval {DIGITS} --data models/digits --device sim:a311d --layers ~
eval {DIGITS} --data models/digits --device sim:rk3588 --against sim:a311d --json ~
bug {CONV} --device sim:a311d -o TMP/bug.tar ~
fix {DIGITS} -o TMP/digits_a311d.tflite --device sim:a311d
fix tests/models/conv_scales_i8.tflite -o TMP/scales.tflite --device sim:a311d --json
run TMP/scales.tflite --device cpu --random 3 --output TMP/scales.npy ~
plan --layers TMP/layers.csv --chip a311d
plan --layers TMP/layers.csv --chip rk3588 --json
plan --layers TMP/layers.csv --chip imx8mp --program vendor
plan --layers TMP/layers.csv --chip rk3588 --program vendor
virtual -- SKILLET run {CONV} --random 7 --device npu --top 3 ~
virtual --chip a311d -- SKILLET devices --json
virtual --chip rk3588 -- SKILLET devices --json
virtual --chip imx8mp -- SKILLET run {CONV} --random 7 --top 3 ~
virtual --chip rk3588 -- SKILLET run {DIGITS} --image {PICTURE} --device rocket0 --compare=layers ~
capture -o TMP/sent.capture -- SKILLET virtual --chip rk3588 -- SKILLET run {CONV} --random 7 --device auto ~
decode TMP/sent.capture
capture -o TMP/sent_viv.capture -- SKILLET virtual --chip a311d -- SKILLET run {CONV} --random 7 --device auto ~
decode TMP/sent_viv.capture
replay TMP/sent_viv.capture --device sim:a311d
""".strip().splitlines()
LAYERS = """id,name,op,inputs,in_h,in_w,in_c,out_h,out_w,out_c,kh,kw,sh,sw,dh,dw,act,weight_elems
0,in,input,,32,32,3,32,32,3,0,0,1,1,1,1,none,0
1,c,conv,0,32,32,3,16,16,16,3,3,2,2,1,1,relu6,432
2,d,dwconv,1,16,16,16,16,16,16,3,3,1,1,1,1,relu,144
3,e,conv,2,16,16,16,16,16,24,1,1,1,1,1,1,none,384
4,g,conv,3,16,16,24,16,16,24,3,3,1,1,2,2,swish,5184
5,f,fc,4,16,16,24,1,1,10,1,1,1,1,1,1,none,61440
6,t,transpose,4,16,16,24,16,24,16,0,0,1,1,1,1,none,0
7,m,maxpool,4,16,16,24,8,8,24,2,2,2,2,1,1,none,0
8,a,avgpool,7,8,8,24,1,1,24,8,8,1,1,1,1,none,0
9,r,reshape,8,1,1,24,1,24,1,0,0,1,1,1,1,none,0
10,s,add,3 4,16,16,24,16,16,24,0,0,1,1,1,1,relu,0
11,j,concat,4 10,16,16,24,16,16,48,0,0,1,1,1,1,none,0
12,u,convtranspose,11,16,16,48,32,32,8,2,2,2,2,1,1,none,1536
13,p,mul,3 4,16,16,24,16,16,24,0,0,1,1,1,1,none,0
"""
if "SANITIZED" in os.environ:  # sanitizers do not work with preloaded libraries
    COMMANDS = [line for line in COMMANDS if not line.startswith(("virtual", "capture")) and "TMP/sent" not in line]
HAS_NODES = any(Path(folder).glob(name) for folder, name in (("/dev/dri", "renderD*"), ("/dev/accel", "accel*")))
if HAS_NODES:  # their nodes would be listed too
    COMMANDS.remove("devices")

TIMES = [
    (re.compile(r"\n {8,}(?=\S)"), " "),  # text beside a time wraps depending on the width of the time
    (re.compile(r"\n(kernel|start of the machine): .*"), ""),
    (re.compile(r"\b20\d\d-\d\d-\d\d(T[\d:]+Z)?"), "DATE"),
    (re.compile(r"(\"[a-z_]*_ms\": \[)[^\]]*"), r"\1T"),
    (re.compile(r"(\"[a-z_]*_(?:ms|us)(?:_[a-z]+)?\": )[-\d.e+]+"), r"\1T"),
    (re.compile(r"-?\d[\d,.]*(?:e[-+]?\d+)?( ?)(?:ns|us|ms|s)\b"), r"T\1ms"),  # a slow machine prints seconds
    (re.compile(r" {2,}"), "  "),
    (re.compile(r"-{3,}"), "---"),
]


def file_lines(folder):
    """Yields a line for each file whose contents depend on the command alone."""
    for path in sorted(folder.rglob("*")):
        is_of_machine = path.name.endswith(".proof.json") or path.parent.name.startswith("trust")  # with its kernel and the date
        if path.is_file() and not is_of_machine and path.suffix not in (".tar", ".capture", ".program", ""):  # a program names the build
            yield f"{path.relative_to(folder)} {path.stat().st_size} {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def shown(text, folder, is_timed):
    text = text.replace(str(folder), "TMP").replace(SKILLET, "SKILLET")
    for pattern, by in TIMES if is_timed else []:
        text = pattern.sub(by, text)
    lines = [line.rstrip() for line in text.splitlines()]
    if len(lines) > LONGEST:
        lines = [f"({len(lines)} lines, {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:16]})"]
    return lines


def run(line, folder):
    is_timed = line.endswith(" ~")
    args = re.sub(r"\bSKILLET\b", SKILLET, line.removesuffix(" ~").replace("TMP", str(folder))).split()
    variables = [args.pop(0).split("=", 1) for _ in itertools.takewhile(lambda word: word.startswith("SKILLET_"), args.copy())]
    env = {k: v for k, v in os.environ.items() if not k.startswith("SKILLET_")} | dict(variables)
    env |= {"XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "100"}
    done = subprocess.run([SKILLET, *args], capture_output=True, text=True, timeout=120, env=env, stdin=subprocess.DEVNULL)
    return [f"$ {line}", *shown(done.stdout, folder, is_timed), *(f"! {one}" for one in shown(done.stderr, folder, is_timed)), f"= {done.returncode}", ""]


def all_outputs():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "layers.csv").write_text(LAYERS)
        blocks = [run(line, folder) for line in COMMANDS]
        return blocks + [["$ (files)", *file_lines(folder), "= 0", ""]]


def many_outputs():
    """Returns a line with a hash for each of many_commands.commands(), and for each file or folder in TMP."""
    with tempfile.TemporaryDirectory() as name:
        folder, lines = Path(name).resolve(), []
        many_commands.make_files(folder)
        for command in many_commands.commands():
            _, *said, exit_code, _ = run(command, folder)
            text = "\n".join(said)
            lines.append(f"{command}: exits {exit_code[2:]}, {len(said)} lines {hashlib.sha256(text.encode()).hexdigest()[:10]}")
        files = itertools.groupby(file_lines(folder), key=lambda line: re.split("[/ ]", line)[0])
        return [*lines, *(f"TMP/{name}: {hashlib.sha256(repr(list(of_it)).encode()).hexdigest()[:10]}" for name, of_it in files)]


class Outputs(unittest.TestCase):
    maxDiff = None

    def test_long_many_are_what_they_were(self):
        before = dict(line.rsplit(": ", 1) for line in MANY.read_text().splitlines()[2:])
        now = dict(line.rsplit(": ", 1) for line in many_outputs())
        differ = [f"{name}: {now.get(name)}, not {before.get(name)}" for name in {**before, **now} if before.get(name) != now.get(name)]
        self.assertFalse(differ[:20], f"{len(differ)} are not as in {MANY}; if that was meant: outputs_test.py SKILLET --update")

    def test_they_are_what_they_were(self):
        expected, block = {}, None
        for line in EXPECTED.read_text().splitlines():
            if line.startswith("$ "):
                block = expected.setdefault(line, [])
            if block is not None:
                block.append(line)
        for block in all_outputs():
            with self.subTest(block[0]):
                self.assertEqual(expected.get(block[0]), block, f"not as in {EXPECTED}; if that was meant: outputs_test.py SKILLET --update")


if "--update" in sys.argv:
    for line in ("virtual --chip a311d -- true", "capture -o /dev/null -- true"):
        said = run(line, Path("/tmp"))
        if any("is neither in" in one for one in said):  # the expectations would be of a command without its libraries
            sys.exit("\n".join(["outputs_test.py: build skillet_virtual_preload and skillet_capture_preload first", *said]))
    EXPECTED.write_text("Written by src/tools/cli/outputs_test.py --update\n\n" + "\n".join(line for block in all_outputs() for line in block) + "\n")
    MANY.write_text("Written by src/tools/cli/outputs_test.py --update\n\n" + "\n".join(many_outputs()) + "\n")
else:
    long_cases.main()
