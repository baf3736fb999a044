#!/usr/bin/env python3
"""Validates the output of --json with the schemas of docs/json/ by an independent validator (python3-jsonschema).

Also checks that the schemas reject wrong reports: an additional or missing key, another type, another version.

usage: schemas_test.py SKILLET      run at the top of the source tree; exit code 77: the validator is not installed
"""
import copy
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    from jsonschema import Draft7Validator
except ImportError:
    print("schemas: skipped, there is no jsonschema for Python (Debian: python3-jsonschema)")
    sys.exit(77)

SKILLET = str(Path(sys.argv.pop(1)).resolve())
SCHEMAS = Path("docs/json")
PYTHON_ONLY = ("conformance", "fields", "bisect")  # not verbs of the command; runner_test.py and explore_test.py validate them
DIGITS, CONV, SCALES, CHAIN = "models/digits.tflite", "tests/models/conv3x3_s2_u8.tflite", "tests/models/conv_scales_i8.tflite", "tests/captures/models/chain_residual_add_i8.tflite"
TRANSPOSED, REFUSED, FREE = "tests/models/keras/transposed_i8.tflite", "tests/models/refused/no_kernel.tflite", "tests/models/free/free_sizes_u8.tflite"
PICTURE, LABELS, DATA = "models/digits/3.png", "models/digits_labels.txt", "models/digits"
A311D, RK3588 = "tests/captures/a311d_conv1x1_relu6_u8", "tests/captures/rk3588_conv1x1_relu6_u8"
# The commands for each verb; TMP is a temporary folder.
CASES = f"""
check {DIGITS}
check {DIGITS} --delegate
trust --device sim:a311d
check {TRANSPOSED} --per-channel approximate
check {REFUSED}
check {FREE}
check {DIGITS} --device sim:a311d
check {REFUSED} --device sim:rk3588
check {CHAIN} --device cpu
check {SCALES} --device sim:s905d3
run {DIGITS} --image {PICTURE} models/digits/4.png --labels {LABELS} --device sim:a311d --compare=layers
run {DIGITS} --random 3 --device sim:rk3588 --cores 3 --repeat 2 --compare
run {CHAIN} --random 3 --device cpu --output TMP/out.npz
run {CHAIN} --random 3 --device sim:imx8mp --expect TMP/out.npz --tolerance 1
run {DIGITS} --raw gray --device cpu
bench {DIGITS} --runs 2 --warm-up 1 --device sim:a311d
bench {DIGITS} --runs 2 --warm-up 1 --without-cpu --device sim:a311d --per-op
bench {TRANSPOSED} --runs 1 --warm-up 1 --without-cpu --device cpu
eval {DIGITS} --data {DATA} --device sim:a311d --layers
eval {DIGITS} --data {DATA} --device sim:rk3588 --labels TMP/truth --against sim:a311d
eval {DIGITS} --data {DATA} --device cpu --labels TMP/truth
fix {DIGITS} -o TMP/fixed.tflite --device sim:a311d
fix {DIGITS} -o TMP/always.tflite --device sim:rk3588 --always --approximate
fix {SCALES} -o TMP/scales.tflite --device sim:s905d3 --approximate
quantize {SCALES} -o TMP/q.tflite --data TMP/walk.npy --device sim:a311d
quantize {SCALES} -o TMP/q2.tflite --data TMP/walk.npy
quantize {DIGITS} -o TMP/q3.tflite --data {DATA}
plan {DIGITS}
plan {REFUSED}
plan {DIGITS} --chip s905d3 --chip rk3588
plan {A311D}
plan --layers TMP/layers.csv --chip a311d
plan --layers TMP/table.csv --chip rk3588 --program vendor
plan --parameters
plan {DIGITS} --device sim:a311d
compile {DIGITS} --device sim:rk3588 --cores 3
compile {CHAIN} --device sim:imx8mp --report --tuning tuned --explain
compile {DIGITS} --device sim:a311d --explain-partition --partition predicted
compile {CONV} --device sim:a311d -o TMP/program
decode {A311D} --model {A311D}/model.tflite --buffers --all
decode {RK3588} --weights TMP/weights
decode TMP/program
inspect TMP/program
decode {A311D} --last 1 --buffers
diff {A311D} {A311D}
diff {A311D} tests/captures/a311d_concat2_i8
diff {A311D} TMP/program --chip a311d
run {DIGITS} --device sim:a311d --trace TMP/run.pftrace
trace TMP/run.pftrace
lookup kernel_x_size
lookup 0x1030 --chip rk3588
lookup no_such_thing
edit {A311D} -o TMP/job.txt
edit TMP/job.txt -o TMP/job.skcap
replay {A311D} --device sim:a311d --model {A311D}/model.tflite
replay {RK3588} --device sim:rk3588 --output TMP/replayed
replay {RK3588} --device sim:rk3588 --expect TMP/replayed
replay {A311D} --device sim:a311d --set "job 1 nn_instruction.out_zero_point=2"
devices
top
doctor
prove --device sim:a311d --risky
prove --device sim:rk3588,quirk=sum_of_16_bits --risky
""".strip().splitlines()
LAYERS = """id,name,op,inputs,in_h,in_w,in_c,out_h,out_w,out_c,kh,kw,sh,sw,dh,dw,act,weight_elems
0,in,input,,32,32,3,32,32,3,0,0,1,1,1,1,none,0
1,c,conv,0,32,32,3,16,16,16,3,3,2,2,1,1,relu6,432
"""
TABLE = """id,op,in_c,in_h,in_w,out_c,out_h,out_w,kh,kw,stride,act,fused_add,dtype
7,conv,16,8,8,32,8,8,3,3,1,none,0,i8
"""


def skillet(args):
    env = {name: value for name, value in os.environ.items() if not name.startswith("SKILLET_")}
    env["SKILLET_PARTITION"] = "all"  # the prediction would leave these small networks to the CPU
    return subprocess.run([SKILLET, *args], capture_output=True, timeout=120, env=env, input=bytes(3 * 784))


def verb_names():
    """Returns the verbs with --json."""
    listed = skillet(["--help"]).stdout.decode()
    names = re.findall(r"^  (\w+) {2,}", listed[listed.index("ubcommands"):], re.M)
    return sorted(name for name in [*names, "trace"] if "--json" in skillet([name, "--help"]).stdout.decode())


def documents(text):
    """Parses one JSON document, or one a line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def objects(value, path=()):
    """Yields the path of each object in a report; in lists, of the first element only."""
    if isinstance(value, dict):
        yield path
        for key in value:
            yield from objects(value[key], (*path, key))
    elif isinstance(value, list) and value:
        yield from objects(value[0], (*path, 0))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def npy_of_bytes(shape):
    """Returns inputs for SCALES, whose filters have a scale for each channel."""
    header = f"{{'descr': '|i1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(i * i % 251 for i in range(math.prod(shape)))


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.reports = []
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "layers.csv").write_text(LAYERS)
            (folder / "table.csv").write_text(TABLE)
            (folder / "walk.npy").write_bytes(npy_of_bytes((20, 19, 7, 5)))
            (folder / "truth").write_text("".join(f"{path.name} {path.name[0]}\n" for path in Path(DATA).glob("*.png")))
            for line in CASES:
                done = skillet([*shlex.split(line.replace("TMP", name)), "--json"])
                cls.reports.append((line, done.stdout.decode(), done.stderr.decode()))
        cls.validators = {path.stem: Draft7Validator(json.loads(path.read_text())) for path in SCHEMAS.glob("*.json") if path.stem not in PYTHON_ONLY}

    def test_every_verb_has_one(self):
        self.assertEqual(sorted(self.validators), verb_names())
        self.assertEqual({line.split()[0] for line in CASES}, set(self.validators))
        for validator in self.validators.values():
            Draft7Validator.check_schema(validator.schema)

    def test_reports_are_as_the_schemas_say(self):
        for line, text, said in self.reports:
            with self.subTest(line):
                self.assertTrue(text, said)
                for report in documents(text):
                    errors = [f"{list(error.absolute_path)}: {error.message[:300]}" for error in self.explained(line, report)]
                    self.assertEqual(errors, [])
                    self.assertEqual(report["version"], 1)

    def explained(self, line, report):
        """Yields the errors of a report. If the schema has several forms, yields those of the form that fits best."""
        for error in self.validators[line.split()[0]].iter_errors(report):
            forms = {}
            for inner in error.context:
                forms.setdefault(inner.schema_path[0], []).append(inner)
            yield from min(forms.values(), key=len) if forms else [error]

    def test_what_is_otherwise_is_refused(self):
        for line, text, _ in self.reports:
            report = documents(text)[0]
            with self.subTest(line):
                self.refuses(line, [{**report, "version": other} for other in (2, "1", None)])
                self.refuses(line, [{k: v for k, v in report.items() if k != key} for key in report if key in self.required(line)])
                # Another type: text instead of an object, an object instead of other values.
                self.refuses(line, [{**report, key: "text" if isinstance(value, dict) else {"a": 1}} for key, value in report.items()
                                    if value is not None])
                for path in objects(report):
                    if self.is_open(path):
                        continue
                    changed = copy.deepcopy(report)
                    at(changed, path)["surprise"] = 1.5
                    self.refuses(line, [changed])

    def refuses(self, line, reports):
        for report in reports:
            self.assertFalse(self.validators[line.split()[0]].is_valid(report), json.dumps(report)[:500])

    def required(self, line):
        """Returns the keys that all forms require."""
        schema = self.validators[line.split()[0]].schema
        forms = schema.get("oneOf", [schema])
        return set.intersection(*(set(form["required"]) for form in forms))

    @staticmethod
    def is_open(path):
        """Returns whether the object's keys depend on the device."""
        return bool(path) and path[-1] in ("facts", "parameters")

    def test_the_page_names_them(self):
        self.assertIn("](json/", Path("docs/command.md").read_text())


if __name__ == "__main__":
    unittest.main()
