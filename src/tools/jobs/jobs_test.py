#!/usr/bin/env python3
"""Tests how recorded jobs are read, looked up and run again: `skillet decode`, `lookup`, `replay`.

usage: jobs_test.py SKILLET      run at the top of the source tree
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, "tests/integration")
import long_cases  # noqa: E402

SKILLET = str(Path(sys.argv.pop(1)).resolve())
MODEL = "models/digits.tflite"
A311D, RK3588 = "tests/captures/a311d_conv1x1_relu6_u8", "tests/captures/rk3588_conv1x1_relu6_u8"
A311D_INPUT, A311D_OUTPUT = 3, 6  # buffers, by their recorded handles
FINE, FAILED, CANNOT_BEGIN = 0, 1, 2
PATIENCE = 120 * int(os.environ.get("SLOW_BUILD", 1))  # seconds


def skillet(*args):
    done = subprocess.run([SKILLET, *args], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stdout, done.stderr


class Jobs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)

    def fine(self, *args):
        code, out, err = skillet(*args)
        self.assertEqual((code, err), (FINE, ""))
        return out

    def refused(self, code, words, *args):
        got, _, err = skillet(*args)
        self.assertEqual((got, err.count("\n")), (code, 1), err)
        self.assertIn(words, err)

    def test_decode_tells_each_job_first(self):
        out = self.fine("decode", A311D)
        self.assertRegex(out, r"submission 1\n  job  what +shape +memory +constants\n"
                              r"  0    TP +16x32x16  in_base_address 3\+0, out_base_address 4\+0")
        self.assertRegex(out, r"\n  1    NN +16x16x32 -> 16x16x64, kernel 1x1  in_address 4\+0, out_address 5\+0 +kernel_address 8\+0")
        self.assertRegex(self.fine("decode", RK3588), r"\n  0    CONV  16x16x32 -> 16x16x64, kernel 1x1  feature_base_addr 3\+0, dst_base_addr 4\+0 ")

    def test_decode_all_has_words_bits_and_evidence(self):
        out = self.fine("decode", A311D, "--all")
        self.assertRegex(out, r"nn_instruction.kernel_z_size +32 +word 5 bits 31:26 \+ word 0 bits 19:6 +[0-9a-f]{8} [0-9a-f]{8} +confirmed")
        self.assertRegex(out, r"nn_instruction.kernel_x_size +1 +word 0 bits 5:2 +[0-9a-f]{8} +confirmed +filter width, px")
        self.assertRegex(out, r"\n  word 16 packet +0x0801042e \(load 1 from state 0x10b8 on\)")
        self.assertGreater(out.count("\n"), self.fine("decode", A311D).count("\n"))

    def test_decode_as_source(self):
        out = self.fine("decode", A311D, "--submission", "1", "--as-source")
        self.assertRegex(out, r"\nnn_instruction\{\n    .*\n(    .*\n)*    \.kernel_z_size = 32,\n")
        self.assertEqual((out.count("nn_instruction{"), out.count("tp_instruction{")), (1, 2))
        self.assertRegex(self.fine("decode", RK3588, "--as-source"), r"\n\w+\.data_size1\{\n    \.datain_channel = 32,\n    \.datain_channel_real = 32,\n\}")

    def test_decode_lists_buffers_and_extracts_them(self):
        out = self.fine("decode", A311D, "--submission", "1", "--buffers", "--extract", str(self.path))
        self.assertRegex(out, r"\n  3 +0xffff9000 +[\d,]+ +read\b.* in_base_address")
        listed = [buffer for buffer in json.loads(self.fine("decode", A311D, "--json"))["submissions"][1]["buffers"]
                  if len(buffer["contents"]) == 16]
        files = sorted(self.path.iterdir())
        self.assertEqual([file.name for file in files], sorted(f"submission1_buffer{one['buffer']}.bin" for one in listed))
        weights = Path(A311D + "/bo_8_0.bin").read_bytes().rstrip(b"\0")
        self.assertEqual((self.path / "submission1_buffer8.bin").read_bytes(), weights)

    def test_a_damaged_capture_is_a_document_all_the_same(self):
        folder = self.path / "damaged"
        whole = self.path / "whole"
        self.fine("run", MODEL, "--device", "sim:a311d", "--record", str(whole))
        data = whole.read_bytes()
        failed = 0
        for at in range(64, len(data), max(1, len(data) // 75)):
            folder.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1:])
            code, out, err = skillet("decode", str(folder), "--json")
            if out:
                self.assertEqual("error" in json.loads(out), code == FAILED and "cut_off" not in json.loads(out), err)
                failed += "error" in json.loads(out)
        self.assertGreater(failed, 0)

    def test_decode_tells_the_operation_of_a_model(self):
        out = self.fine("decode", A311D, "--model", A311D + "/model.tflite", "--submission", "1")
        self.assertRegex(out, r"\n  job +op  what .*\n  0 +-  TP .*\n  1 +0 CONV_2D  NN .*\n  2 +-  TP ")
        jobs = json.loads(self.fine("decode", RK3588, "--model", A311D + "/model.tflite", "--json"))["submissions"][0]["operations"]
        self.assertEqual([job["op"] for job in jobs], ["0 CONV_2D"])
        digits = self.fine("decode", MODEL, "--chip", "a311d")
        model = json.loads(self.fine("check", MODEL, "--device", "sim:a311d", "--json"))["ops"]
        told = dict(re.findall(r"^  \d+ +(\d+) (\w+)  (?:NN|TP) ", digits, re.M))
        self.assertEqual(told, {str(op["op"]): op["kind"] for op in model if op["where"] == "npu" and str(op["op"]) in told})
        self.assertGreaterEqual(len(told), 6)
        # With another model, or one of which the NPU takes nothing, jobs are decoded without operations.
        for capture, other in ((A311D, "tests/models/fc64x10_i8.tflite"), (RK3588, "tests/models/concat2_i8.tflite")):
            code, out, err = skillet("decode", capture, "--model", other, "--json")
            self.assertEqual(code, FINE)
            self.assertIn(f"no job looks like one of {other}", err)
            self.assertEqual({one["op"] for s in json.loads(out)["submissions"] for one in s["operations"]}, {""})
        self.refused(CANNOT_BEGIN, "nowhere", "decode", A311D, "--model", "nowhere")

    def test_decode_writes_weights(self):
        model = Path(A311D + "/model.tflite").read_bytes()
        for capture, job in ((A311D, "submission1_job1"), (RK3588, "submission0_job0")):
            with self.subTest(capture=capture):
                folder = self.path / capture.replace("/", "_")
                out = self.fine("decode", capture, "--weights", str(folder))
                self.assertIn(f"64x32x1x1  ", out)
                self.assertEqual(sorted(file.name for file in folder.iterdir()), [f"{job}_biases.npy", f"{job}_weights.npy"])
                file = (folder / f"{job}_weights.npy").read_bytes()
                self.assertIn(b"'descr': '|u1', 'fortran_order': False, 'shape': (64, 32, 1, 1, )", file[:128])
                self.assertIn(file[-64 * 32:], model)  # the filter in the model's order
                self.assertEqual(len((folder / f"{job}_biases.npy").read_bytes()), 128 + 64 * 4)
                told = json.loads(self.fine("decode", capture, "--weights", str(folder), "--json"))["submissions"]
                shapes = [one["weights"]["shape"] for s in told for one in s["operations"] if one.get("weights")]
                self.assertEqual(shapes, [[64, 32, 1, 1]])
        self.refused(CANNOT_BEGIN, "Not a directory", "decode", A311D, "--weights", MODEL + "/x")

    def test_weights_of_a_model_are_the_same_on_both_rockchips(self):
        """The RK3576 pads kernels and channels to multiples of 32. All other weights must be equal, dense and depthwise."""
        shapes = ("64x32x1x1", "64x64x1x1", "128x64x1x1", "32x1x3x3 depthwise", "64x1x3x3 depthwise", "128x1x7x7 depthwise")
        found = {}
        for chip in ("rk3588", "rk3576"):
            out = self.fine("decode", "models/digits.tflite", "--chip", chip, "--weights", str(self.path / chip))
            rows = re.findall(r"^  \d+ +(\d+x\d+x\d+x\d+(?: depthwise)?) +(\d+) +(submission\S+)$", out, re.MULTILINE)
            found[chip] = {(shape, zero, (self.path / chip / file).read_bytes()) for shape, zero, file in rows if shape in shapes}
        self.assertEqual({shape for shape, _, _ in found["rk3588"]}, set(shapes))
        padded = found["rk3576"] - found["rk3588"]  # the model's first depthwise filter has 16 channels
        self.assertEqual(({shape for shape, _, _ in padded}, found["rk3588"] - found["rk3576"]), ({"32x1x3x3 depthwise"}, set()))

    def test_the_order_of_our_own_weights_is_known(self):
        """Recorded jobs have this filter in another order, which cannot be derived from a job."""
        model, folder, program = "tests/models/conv5x5_one_channel_u8.tflite", self.path / "own", str(self.path / "program")
        self.fine("compile", model, "--device", "sim:a311d", "-o", program)
        for args in ([model, "--chip", "a311d"], [program], [model, "--chip", "s905d3"]):
            with self.subTest(args=args):
                out = self.fine("decode", *args, "--weights", str(folder))
                self.assertNotIn("  or  ", out)
                (name,) = [file.name for file in folder.iterdir() if "weights" in file.name]
                self.assertIn((folder / name).read_bytes()[-5 * 5 * 5:], Path(model).read_bytes())
                shutil.rmtree(folder)

    def test_decode_json_is_whole(self):
        report = json.loads(self.fine("decode", A311D, "--json"))
        self.assertEqual((report["count"], report["device"]["kernel_driver"], report["device"]["facts"]["model"]), (2, "etnaviv", 0x8000))
        fields = {field["path"]: field for field in report["submissions"][1]["fields"]}
        one = fields["job 1 nn_instruction.kernel_z_size"]
        self.assertEqual((one["value"], one["bits"], one["evidence"], one["operation"], one["kind"], len(one["words"])),
                         ("32", "word 5 bits 31:26 + word 0 bits 19:6", "confirmed", 1, "value", 2))
        place = fields["job 1 nn_instruction.in_address"]
        self.assertEqual((place["kind"], place["buffer"]), ("memory", {"buffer": 4, "offset": 0}))

    def test_models_and_programs_decode_as_what_they_send(self):
        model = A311D + "/model.tflite"
        self.fine("compile", model, "--device", "sim:a311d", "-o", str(self.path / "program"))
        from_program = self.fine("decode", str(self.path / "program"), "--model", model)
        head = r"a compiled model of 1 operations, made by this build\n  a program for a311d: \d+ bytes, [0-9a-f]{32}\n"
        self.assertRegex(from_program, head)
        self.assertEqual(re.sub(head, "", from_program), self.fine("decode", model, "--chip", "a311d"))
        self.assertRegex(from_program, r"NN +16x16x32 -> 16x16x64, kernel 1x1")
        self.refused(CANNOT_BEGIN, "name the chip with --chip", "decode", model)
        self.refused(CANNOT_BEGIN, "toaster", "decode", model, "--chip", "toaster")
        self.refused(CANNOT_BEGIN, "not a skillet capture file", "decode", "README.md")

    def test_each_job_has_its_lists_of_buffers(self):
        """Also for a buffer that another job of the same submission lists."""
        case = Path("tests/rockchip/small/rk3588/gen/add_8_1_1_16_1_0_0_0_4")
        for job in range(2):
            for field in ("in_bos", "out_bos"):
                with self.subTest(job=job, field=field):
                    copy = self.path / f"{field}{job}"
                    shutil.copytree(case, copy)
                    text = json.loads((case / "capture.json").read_text())
                    text["submits"][0]["jobs"][job][field] = []
                    (copy / "capture.json").write_text(json.dumps(text))
                    code, out, _ = skillet("diff", str(case), str(copy))
                    self.assertEqual(code, FAILED)
                    self.assertIn(f"{field} of job {job}", out)

    def test_lookup(self):
        rows = [(["kernel_x_size"], ["nn_instruction.kernel_x_size"]),
                (["KERNEL_X_SIZE", "--chip", "a311d"], ["nn_instruction.kernel_x_size"]),
                (["nn_instruction:0.2", "--chip", "a311d"], ["nn_instruction.kernel_x_size"]),
                (["nn_instruction:0.5", "--chip", "a311d"], ["nn_instruction.kernel_x_size"]),
                (["0x1038", "--chip", "rk3588"], ["cna.weight_size2.weight_kernels", "cna.weight_size2.weight_height",
                                                  "cna.weight_size2.weight_width"]),
                (["0x10a4", "--chip", "a311d"], ["wait_event"])]
        for args, names in rows:
            with self.subTest(args=args):
                found = json.loads(self.fine("lookup", *args, "--json"))["found"]
                self.assertEqual(sorted(set(row["name"] for row in found)), sorted(names))
                for name in names:
                    self.assertIn(name, self.fine("lookup", *args))
        bits = json.loads(self.fine("lookup", "nn_instruction:0", "--chip", "a311d", "--json"))["found"]
        self.assertGreater(len(bits), 5)
        self.assertIn({"family": "vivante", "chips": ["a311d"], "name": "nn_instruction.kernel_x_size", "place": "word 0 bits 5:2", "stored": "",
                       "evidence": "confirmed", "what": "filter width, px"}, bits)
        # For all chips, each row occurs once, with the chips that have it.
        for what in ("*", "0x1004", "nn_instruction:0"):
            rows = json.loads(self.fine("lookup", what, "--json"))["found"]
            once = {json.dumps({key: value for key, value in row.items() if key != "chips"}) for row in rows}
            self.assertEqual(len(once), len(rows), what)
            for chip in ("a311d", "rk3588"):
                of_chip = [dict(row, chips=[chip]) for row in rows if chip in row["chips"]]
                code, out, _ = skillet("lookup", what, "--chip", chip, "--json")
                self.assertEqual(sorted(map(json.dumps, of_chip)), sorted(map(json.dumps, json.loads(out)["found"])), what)
        for what in ("no_such_field", "9999.1", "0xfffffff0", "1.99"):
            self.refused(FAILED, f"no row has '{what}'", "lookup", what)
        self.refused(CANNOT_BEGIN, "toaster", "lookup", "x", "--chip", "toaster")
        self.refused(CANNOT_BEGIN, "must not be empty", "lookup", "")

    def test_a_replay_computes_what_was_recorded(self):
        self.fine("replay", A311D, "--device", "sim:a311d", "--input", f"{A311D_INPUT}={A311D}/input_0.bin", "--output",
                  str(self.path / "out"))
        expected = Path(A311D + "/output_0.bin").read_bytes()
        got = (self.path / f"out/submission1_buffer{A311D_OUTPUT}.bin").read_bytes()[:len(expected)]
        self.assertGreater(len(set(expected)), 10)
        self.assertLessEqual(max(abs(a - b) for a, b in zip(got, expected)), 1)

    def test_a_replay_runs_what_the_command_recorded(self):
        for chip in ("a311d", "rk3588"):
            with self.subTest(chip=chip):
                recorded, out = str(self.path / chip), str(self.path / (chip + "_out"))
                self.fine("run", MODEL, "--device", f"sim:{chip}", "--record", recorded)
                self.fine("replay", recorded, "--device", f"sim:{chip}", "--output", out)
                self.assertIn("no", self.fine("replay", recorded, "--device", f"sim:{chip}", "--expect", out))
                rows = json.loads(self.fine("replay", recorded, "--device", f"sim:{chip}", "--against", f"sim:{chip}", "--json"))
                self.assertEqual({row["differing"] for row in rows["written"]}, {0})
                self.assertGreater(len(rows["written"]), 0)
                code, _, err = skillet("replay", recorded, "--device", f"null:{chip}", "--expect", out)
                self.assertEqual(code, FAILED)  # computes nothing, and says that it is done
                self.assertIn(f": null:{chip} reported its end, but wrote nothing at ", err)
                code, text, _ = skillet("replay", recorded, "--device", f"null:{chip}", "--json")
                self.assertEqual(code, FAILED)
                self.assertGreater(len(json.loads(text)["not_written"][0]["fields"]), 3)

    def test_an_operation_may_leave_its_own_input_as_it_was(self):
        recorded = str(self.path / "copies")
        self.fine("run", "tests/models/concat2_i8.tflite", "--device", "sim:imx93", "--random", "1", "--partition", "all", "--unproven", "take", "--record", recorded)
        for device, fields in (("sim:imx93", []), ("null:imx93", ["word 73 ofm_base0.value", "word 84 dma0_dst.value"])):  # word 28: the source of the copy
            _, text, _ = skillet("replay", recorded, "--device", device, "--set", "word 28 ofm_base0.value=0", "--json")
            self.assertEqual([one["fields"] for one in json.loads(text)["not_written"]][:1], [fields] if fields else [])

    def test_a_byte_that_differs_is_a_pixel_of_a_job(self):
        for capture, chip, name, job, at, pixel in ((A311D, "a311d", "submission1_buffer5.bin", "job 1", 300, (2, 12, 1)),
                                                    (RK3588, "rk3588", "submission0_buffer4.bin", "task 0", 16 * (16 * 16 + 16 * 3 + 5) + 7, (3, 5, 23))):
            out = self.path / chip
            model = f"{A311D}/model.tflite"
            skillet("replay", capture, "--device", f"sim:{chip}", "--output", str(out))
            bytes_there = bytearray((out / name).read_bytes())
            bytes_there[at] ^= 3
            (out / name).write_bytes(bytes_there)
            base = ["replay", capture, "--device", f"sim:{chip}", "--expect", str(out), "--model", model]
            code, text, _ = skillet(*base, "--json")
            (row,) = [one for one in json.loads(text)["written"] if one["differing"]]
            self.assertEqual((code, row["differing"], row["first"], row["first_by"]), (FAILED, 1, at, job))
            self.assertEqual(row["pixel"], dict(zip(("row", "column", "channel"), pixel)))
            self.assertIn(row["largest"], (1, 2, 3))
            self.assertEqual([(one["job"], one["op"]) for one in row["written_by"]], [(job, "0 CONV_2D")])
            self.assertRegex(skillet(*base)[1], rf"{job} \w+ \(0 CONV_2D\) .*1 bytes by up to [123]; first byte {at}: {job} .*, row {pixel[0]}, column {pixel[1]}, channel {pixel[2]}\n")

    def test_values_differ_by_their_type_and_files_by_their_size(self):
        model, recorded, out = "tests/models/conv_scales_i8.tflite", str(self.path / "recorded"), self.path / "out"
        self.fine("run", model, "--device", "sim:imx93", "--random", "1", "--partition", "all", "--unproven", "take", "--record", recorded)
        base = ["replay", recorded, "--device", "sim:imx93"]
        last = next(one for one in json.loads(self.fine(*base, "--json", "--output", str(out)))["written"] if one["written_by"] and one["written_by"][-1]["what"] == "op_conv")
        file = out / f"submission{last['submission']}_buffer{last['buffer']}.bin"
        whole = file.read_bytes()
        at = last["written_by"][-1]["offset"]
        for changed, differing, first, largest in ((whole[:at] + bytes([whole[at] ^ 0xff]) + whole[at + 1:], 1, at, None), (whole[:-5], 5, len(whole) - 5, 0), (whole + b"xyz", 3, len(whole), 0)):
            file.write_bytes(changed)
            code, text, _ = skillet(*base, "--expect", str(out), "--json")
            (row,) = [one for one in json.loads(text)["written"] if one["differing"]]
            self.assertEqual((code, row["differing"], row["first"]), (FAILED, differing, first))
            value = int.from_bytes(whole[at:at + 1], "little", signed=True)
            other = int.from_bytes(bytes([whole[at] ^ 0xff]), "little", signed=True)
            self.assertEqual(row["largest"], abs(value - other) if largest is None else largest)

    def test_what_a_replay_changes_and_takes(self):
        base = ["replay", A311D, "--device", "sim:a311d", "--input", f"{A311D_INPUT}={A311D}/input_0.bin"]
        report = json.loads(self.fine(*base, "--set", "1:job 1 nn_instruction.out_zero_point=77", "--against", "sim:a311d", "--json"))
        self.assertEqual((report["compared_with"], {row["differing"] for row in report["written"]}), ("sim:a311d", {0}), "both run the changed jobs")
        self.refused(CANNOT_BEGIN, "it has one core, so its jobs never run at the same time", *base, "--beside", A311D)
        self.refused(CANNOT_BEGIN, "no submission has a buffer 8 without contents", "replay", A311D, "--device", "sim:a311d", "--input", f"8={A311D}/input_0.bin")
        whole, cut, text = (str(self.path / name) for name in ("whole", "cut", "text"))
        self.fine("run", MODEL, "--device", "sim:a311d", "--random", "1", "--record", whole)
        Path(cut).write_bytes(Path(whole).read_bytes()[:-100])
        code, _, err = skillet("replay", cut, "--device", "sim:a311d")
        self.assertEqual((code, "cut off" in err), (FAILED, True), err)
        self.refused(CANNOT_BEGIN, "cut off", "edit", cut, "-o", text)
        self.assertFalse(Path(text).exists())
        self.refused(CANNOT_BEGIN, "cut off", "diff", whole, cut)
        # A device that accepts jobs but does not write outputs.
        code, _, err = skillet("replay", whole, "--device", "null:a311d")
        self.assertEqual((code, "wrote nothing" in err), (FAILED, True), err)

    def test_recorded_jobs_may_write_what_they_do_not_list(self):
        """Some recorded jobs do, and the kernel accepts them. Our own sessions must not (rockchip_compiled_test)."""
        shutil.copytree(RK3588, self.path / "unlisted")
        capture = self.path / "unlisted/capture.json"
        told = capture.read_text()
        capture.write_text(told.replace('"in_bos":[3],"out_bos":[4]', '"in_bos":[4],"out_bos":[3]'))
        self.assertNotEqual(capture.read_text(), told)
        self.fine("replay", str(self.path / "unlisted"), "--device", "sim:rk3588")

    def test_a_field_may_be_set(self):
        base = ["replay", A311D, "--device", "sim:a311d", "--input", f"{A311D_INPUT}={A311D}/input_0.bin", "--json"]
        field = "job 1 nn_instruction.out_zero_point"
        fields = json.loads(self.fine("decode", A311D, "--json"))["submissions"][1]["fields"]
        value = int(next(one["raw"] for one in fields if one["path"] == field), 16)
        for number, prefix, code in ((value, "", FINE), (value, "1:", FINE), (value ^ 16, "", FAILED), (value ^ 16, "1:", FAILED)):
            got, out, err = skillet(*base, "--set", f"{prefix}{field}={number}")
            self.assertEqual((got, err), (code, ""))
            differing = {row["buffer"]: row["differing"] for row in json.loads(out)["written"] if row["submission"] == 1}
            self.assertEqual(differing[4], 0)  # written by the earlier job
            self.assertEqual(any(differing.values()), code == FAILED)
        self.refused(CANNOT_BEGIN, "did you mean 'job 1 nn_instruction.out_zero_point'?", *base, "--set", "job 1 nn_instruction.out_zero_piont=1")
        for name, words in (("job 1 out_zero_point", "; in full: 'job 1 nn_instruction.out_zero_point'\n"), ("out_zero_point", "'job 1 nn_instruction.out_zero_point'"),
                            ("nn_instruction", "; in full: 'job 1 nn_instruction."), ("job 0 nn_instruction", "no field 'job 0 nn_instruction' that can be set")):
            self.refused(CANNOT_BEGIN, words, *base, "--set", f"{name}=1")
        self.refused(CANNOT_BEGIN, "in full: 'task 0 cna.cbuf_con0.data_bank'", "replay", RK3588, "--device", "sim:rk3588", "--set", "data_bank=1")
        self.refused(CANNOT_BEGIN, "in full: 'task 0 cna.cbuf_con0.", "replay", RK3588, "--device", "sim:rk3588", "--set", "cna.cbuf_con0=0xb1")
        # The field is found with or without a submission, and the value is reported as wrong. Without one, the error explains how to name it.
        for prefix in ("", "1:"):
            self.refused(CANNOT_BEGIN, "kernel_x_size = 999: at most 15 in 4 bits", *base, "--set", f"{prefix}job 1 nn_instruction.kernel_x_size=999")
        for change in ("job 1 nn_instruction.kernel_x_size=999", "job 1 nn_instruction.kernel_x_siz=1"):
            self.refused(CANNOT_BEGIN, f'there are 2 submissions; name one, such as --set "1:{change}": ', *base, "--set", change)
        self.refused(CANNOT_BEGIN, "there is no submission 7", *base, "--set", "7:job 1 nn_instruction.out_zero_point=1")
        self.refused(CANNOT_BEGIN, "--set: must be FIELD=VALUE, not 'x'", *base, "--set", "x")

    def values(self, capture):
        """Returns the values of all documented fields, by submission and name."""
        submissions = json.loads(self.fine("decode", capture, "--json"))["submissions"]
        return {f"{i}:{field['path']}": int(field["raw"], 16) for i, one in enumerate(submissions) for field in one["fields"]
                if field.get("evidence") and field["kind"] == "value"}

    @unittest.skipIf("SANITIZED" in os.environ, "builds with sanitizers have no libraries to preload")
    def test_a_field_that_is_set_is_all_that_is_sent_otherwise(self):
        self.sets_fields(1, 1)

    @unittest.skipIf("SANITIZED" in os.environ, "builds with sanitizers have no libraries to preload")
    def test_long_fields_that_are_set(self):
        self.sets_fields(12, 5)

    def sets_fields(self, of_vivante, of_rockchip):
        # A replay on a virtual RK3588 needs 256 MB for the recorded addresses, so fewer fields are tried.
        for capture, chip, node, count in ((A311D, "a311d", "/dev/dri/renderD128", of_vivante), (RK3588, "rk3588", "/dev/accel/accel0", of_rockchip)):
            before = self.values(capture)
            fields = sorted(before)
            self.assertGreater(len(fields), 50)
            for field in fields[::len(fields) // count]:
                with self.subTest(capture=capture, field=field):
                    sent = str(self.path / f"{chip}{fields.index(field)}")
                    skillet("virtual", "--chip", chip, "--", SKILLET, "capture", "-o", sent, "--", SKILLET, "replay", capture, "--device", node,
                            "--set", f"{field}={before[field] ^ 1}")  # the chip may reject some values
                    jobs = [path for path in sorted(self.path.glob(f"{Path(sent).name}*"))]
                    changes = [{name: after[name] for name in before if after[name] != before[name]} for after in map(self.values, map(str, jobs))]
                    self.assertIn({field: before[field] ^ 1}, changes)
                    self.assertEqual([one for one in changes if one not in ({}, {field: before[field] ^ 1})], [])

    def test_what_was_not_recorded_is_said(self):
        code, _, err = skillet("replay", A311D, "--device", "sim:a311d")
        self.assertEqual((code, err.count("\n")), (FINE, 1), err)
        self.assertIn(f"contents of buffer {A311D_INPUT} (8192 bytes) were not recorded: zeros are used; give them with --input {A311D_INPUT}=FILE", err)
        self.assertEqual(skillet("replay", RK3588, "--device", "sim:rk3588")[2], "")

    def test_captures_of_two_chips_are_no_pair(self):
        self.refused(CANNOT_BEGIN, "is for a311d and ", "diff", A311D, RK3588)
        self.refused(CANNOT_BEGIN, "(--chip reads both as one of them)", "diff", RK3588, A311D, "--json")

    @unittest.skipIf("SANITIZED" in os.environ, "builds with sanitizers have no libraries to preload")
    def test_a_recording_within_a_recording_is_refused(self):
        own = str(self.path / "own")
        for inner in ([own], [own + ".2"], [str(self.path / "x/../own")]):
            with self.subTest(inner=inner):
                code, _, err = skillet("virtual", "--chip", "a311d", "--", SKILLET, "capture", "-o", own, "--", SKILLET, "run", MODEL, "--device", "sim:a311d",
                                       "--record", *inner)
                self.assertEqual(code, CANNOT_BEGIN, err)
                self.assertIn("skillet capture, which runs this program, writes there", err)
        code, _, err = skillet("run", MODEL, "--device", "null:a311d", "--record", own)
        self.assertEqual(code, FINE, err)

    def test_what_decode_recognises_has_no_warning_of_another_program(self):
        for chip in ("a311d", "rk3588", "imx93"):
            recorded = str(self.path / chip)
            self.fine("run", MODEL, "--device", f"sim:{chip}", "--record", recorded)
            for args in ([MODEL, "--chip", chip], [recorded, "--model", MODEL]):
                code, out, err = skillet("decode", *args)
                self.assertEqual((code, err), (FINE, ""), args)
                self.assertIn("0 CONV_2D", out)

    def test_each_start_of_an_ethos_u_is_of_an_operation(self):
        """The only exception is the last one, a copy that shows that the job ran to its end."""
        recorded = str(self.path / "recorded")
        self.fine("run", MODEL, "--device", "sim:imx93", "--record", recorded)
        jobs = json.loads(self.fine("decode", recorded, "--model", MODEL, "--json"))["submissions"][-1]["operations"]
        model = json.loads(self.fine("check", MODEL, "--device", "sim:imx93", "--json"))["ops"]
        self.assertEqual([job["op"] for job in jobs if not job["op"]], [jobs[-1]["op"]])
        told = dict(job["op"].split() for job in jobs[:-1])
        self.assertEqual(told, {str(op["op"]): op["kind"] for op in model if op["where"] == "npu" and str(op["op"]) in told})
        self.assertGreaterEqual(len(told), 6)

    def test_jobs_of_ethos_u_have_memory_weights_and_a_text(self):
        recorded, text, again = (str(self.path / name) for name in ("recorded", "text", "again"))
        self.fine("run", MODEL, "--device", "sim:imx93", "--random", "1", "--record", recorded)
        self.assertRegex(self.fine("decode", recorded), r"(?m)^  2 +op_conv +28x28x1 -> 14x14x16, kernel 3x3 +ifm_base0 \d+\+0$")
        self.assertIn("submission0_job2_weights.npy", self.fine("decode", recorded, "--weights", str(self.path / "weights")))
        self.assertRegex(self.fine("replay", recorded, "--device", "sim:imx93"), r"job \d+ op_elementwise")
        self.fine("edit", recorded, "-o", text)
        self.fine("edit", text, "-o", again)
        self.assertEqual(self.fine("diff", recorded, again), "no field differs\n")
        # Values that drivers never change can be changed here.
        lines = Path(text).read_text()
        field = re.search(r"(?m)^field (.*\.zero) = 0$", lines)[1]
        Path(text).write_text(lines.replace(f"field {field} = 0\n", f"field {field} = 5\n", 1))
        fields = json.loads(self.fine("decode", text, "--json"))["submissions"][0]["fields"]
        self.assertIn(5, [int(one["raw"], 16) for one in fields if one["path"] == field])

    def test_one_npu_under_two_names_runs_the_jobs_of_both(self):
        for chip, other in (("imx93", "ethos-u65-256"), ("ethos-u65-256", "imx93")):
            recorded, own = str(self.path / chip), str(self.path / f"own_{chip}")
            self.fine("run", MODEL, "--device", f"sim:{chip}", "--random", "1", "--record", recorded)
            self.fine("run", MODEL, "--device", f"sim:{other}", "--random", "1", "--record", own)
            self.fine("replay", recorded, "--device", f"sim:{other}")
            self.fine("diff", recorded, own)
            self.refused(CANNOT_BEGIN, "the jobs were recorded for chip", "replay", recorded, "--device", "sim:ethos-u65-512")

    def test_what_cannot_be_replayed(self):
        (self.path / "large").write_bytes(bytes(1 << 20))
        rows = [([A311D, "--device", "sim:rk3588"], CANNOT_BEGIN, "sim:rk3588 is chip 'rk3588'; the jobs were recorded for chip 'a311d'"),
                ([A311D, "--device", "cpu"], CANNOT_BEGIN, "device 'cpu' is not an NPU"),
                ([A311D, "--device", "npu"], CANNOT_BEGIN, "no NPU here"),
                (["README.md", "--device", "sim:a311d"], CANNOT_BEGIN, "README.md"),
                ([A311D, "--device", "sim:a311d", "--input", "3"], CANNOT_BEGIN, "--input: must be BUFFER=FILE"),
                ([A311D, "--device", "sim:a311d", "--input", "3=nowhere"], CANNOT_BEGIN, "nowhere: No such file"),
                ([A311D, "--device", "sim:a311d", "--input", f"3={self.path}/large"], CANNOT_BEGIN, "bytes for buffer 3 of"),
                ([A311D, "--device", "sim:a311d", "--input", f"77={A311D}/input_0.bin"], CANNOT_BEGIN, "no submission has a buffer 77"),
                ([A311D, "--device", "sim:a311d", "--expect", str(self.path)], CANNOT_BEGIN, "No such file"),
                ([A311D, "--device", "sim:a311d", "--output", f"{self.path}/large/x"], CANNOT_BEGIN, "Not a directory")]
        for args, code, words in rows:
            with self.subTest(args=args):
                self.refused(code, words, "replay", *args)


if __name__ == "__main__":
    long_cases.main()
