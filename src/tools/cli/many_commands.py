"""A few hundred commands over verbs, options, networks and chips for outputs_test.py, which keeps a hash of what each prints and writes.

Must not know: what is right. A row of a table is a command with places: M a network, N another one, D a chip, # its number in the list.
"""
import json
import random
import sys
import zlib
from pathlib import Path

sys.path.insert(0, "tests/models")
import ssd_model  # noqa: E402

OF_CAPTURE = "models/digits.tflite", "tests/models/concat2_i8.tflite", "tests/models/keras/unet_i8.tflite"
CHIPS = "a311d", "rk3588", "imx8mp", "rk3576", "imx93", "s905d3"

# Of a network. TMP/#... are the command's own files.
OF_NETWORKS = """
check M --json
plan M --json --partition all
run M --device sim:D --random # --compare=layers --json ~
compile M --device sim:D --partition all --text ~
decode M --chip D --all
check M --device sim:D --json --verbose --partition work --min-macs-per-byte 2
fix M -o TMP/#.tflite --device sim:D --json
run M --device sim:D --random # --output TMP/#.npz --top 2 --compare --verbose ~
plan M --chip D --tuning tuned --partition predicted
compile M --device sim:D --partition all --report --tuning tuned ~
decode M --chip D --buffers --json
check M --partition all --html TMP/#.html
compile M --device sim:D --partition all --explain --tuning tuned ~
diff M N --chip D --json
fix M -o TMP/#.tflite --device sim:D --approximate --always
compile M --device sim:D --explain-partition --partition predicted ~
decode M --chip D --as-source
run M --device sim:D --random # --output TMP/#_folder --compare=layers --repeat 2 ~
check M --delegate --json
compile M --device sim:D,a311d --partition all -o TMP/#.program ~
decode M --chip D --weights TMP/#_weights
plan M --chip D --chip rk3588 --set error_percent=3 --partition all
check M --device sim:D --partition all --unproven refuse --verbose
decode M --chip D --extract TMP/#_buffers --submission 0
compile M --device sim:D --partition all --json --tuning tuned ~
diff M N --chip D --tuning tuned
run M --device cpu --random # --output TMP/#_raw --top 1 --json ~
SKILLET_DEBUG=ir,passes,stream,sim,submit SKILLET_LOG=debug run M --device sim:D --random # --partition all ~
SKILLET_LOG=info run M --device sim:D --random # --unproven check --compare ~
""".strip().splitlines()

# Of a capture C of a network on a chip, which the first row makes.
OF_CAPTURES = """
run M --device sim:D --random # --record C --partition all --output TMP/#.npz ~
decode C --all
decode C --json --buffers
decode C --as-source --last 1
decode C --weights TMP/#_weights
edit C -o TMP/#.txt --json
edit TMP/#.txt -o TMP/#.capture
diff C TMP/#.capture
replay C --device sim:D --output TMP/#_replayed
replay C --device sim:D --expect TMP/#_replayed --json
replay C --device sim:D --against sim:D --model M
plan C
plan C --json
diff C M --chip D
""".strip().splitlines()

# Without options, and with one.
PLAIN = """
eval M --data models/digits --device sim:D ~
eval M --data models/digits --device sim:D --json ~
eval M --data models/digits --device sim:D --require-npu ~
eval M --data models/digits --device cpu --against sim:D ~
run M --image models/digits/5.png --device sim:D ~
run M --image models/digits/5.png --device sim:D --json ~
check M --device sim:D
plan M --chip D
compile M --device sim:D ~
fix M -o TMP/#_plain.tflite --device sim:D
decode M --chip D
diff M M --chip D
inspect M
""".strip().splitlines()

# Of a network T that sees pictures, and a picture P.
OF_PICTURES = """
run T --image P --device sim:D --draw TMP/#.png --threshold 0.1 ~
run T --image P --device cpu --show ~
run T --image P --device cpu --json --top 9 --threshold 0.5 ~
eval M --data models/digits --device sim:D --layers ~
eval M --data models/digits --device sim:D --against cpu --bisect --bound 1 --json ~
""".strip().splitlines()
PICTURES = "models/digits/3.png", "models/digits/7.png", "TMP/squares.bmp"
OF_PICTURE = ("models/digits.tflite", "tests/models/keras/unet_i8.tflite --task mask", "tests/models/keras/keypoints_u8.tflite --task classes",
              "tests/models/keras/heads_i8.tflite --task yolov5", "TMP/ssd.tflite")

OTHERS = """
lookup 0x# --chip D
lookup #
lookup #.3 --json
quantize tests/models/conv_scales_i8.tflite -o TMP/#.tflite --device sim:D --data TMP/data.npy --json
quantize tests/models/conv_scales_i8.tflite -o TMP/#.tflite --device sim:D --data TMP/data.npy --allow-unproven --error 0.#
""".strip().splitlines()


# Of a device that fails at the Nth call, once, again or from then on. What is loaded, compared and proved is then tried again or given up.
FAULTS = *(f"submit:{n}{until}:{what}" for n in range(1, 10) for until in ("", "-*") for what in ("EIO", "reset")), *(
    f"{call}:{n}:ENOMEM" for call in ("open", "mmap") for n in (1, 2, 3, 5))
FAULTS_OF_PROOFS = *(f"submit:{n}:{what}" for n in ("4", "9", "9-10", "9-11", "20-22", "30-*") for what in ("EIO", "reset")), "open:3:EIO"
OF_FAULTS = """
SKILLET_LOG=info SKILLET_TRUST_DIR=TMP/trust# virtual --chip D --fail F -- SKILLET run models/digits.tflite --random # --device npu ~
SKILLET_TRUST_DIR=TMP/trust# virtual --chip D --fail F -- SKILLET prove --risky --device npu -o TMP/#.proof.json ~
""".strip().splitlines()

# Of a chip Q that differs in one assumption: what is found out about it, and what is stored, shown, exported and forgotten.
QUIRKS = {"a311d": ("wide_last_patch", "large_filters_hang", "steps_fault", "tables_without_sign"),
          "imx8mp": ("channels_dealt_in_turn", "oblong_filters_hang", "long_rows_wrap"),
          "s905d3": ("v8_coefficients", "scale_stays", "filters_turned"),
          "rk3588": ("sum_of_16_bits", "notch_faults", "product_of_8_bits", "tables_hang", "packed_pixels_reversed"),
          "rk3576": ("products_of_32_bits", "second_bytes_ignored", "five_data_banks"),
          "imx93": ("half_counts_as_one", "words_hang", "copies_are_zeros")}
OF_QUIRKS = """
prove --device Q --risky -o TMP/#.proof.json ~
prove --read TMP/#.proof.json ~
SKILLET_TRUST_DIR=TMP/trust# prove --read TMP/#.proof.json --apply --device Q ~
SKILLET_TRUST_DIR=TMP/trust# trust --device Q ~
SKILLET_TRUST_DIR=TMP/trust# trust --device Q --json ~
SKILLET_TRUST_DIR=TMP/trust# run models/digits.tflite --device Q --random # --compare ~
SKILLET_TRUST_DIR=TMP/trust# plan models/digits.tflite --device Q --partition predicted ~
SKILLET_TRUST_DIR=TMP/trust# trust --device Q --export TMP/trust#/#.exported
SKILLET_TRUST_DIR=TMP/trust# trust --device Q --forget all ~
SKILLET_TRUST_DIR=TMP/trust# trust --device Q --import TMP/trust#/#.exported ~
SKILLET_TRUST_DIR=TMP/trust# trust --device Q --import TMP/trust#/#.exported --apply ~
SKILLET_TRUST_DIR=TMP/trust# trust --device Q ~
SKILLET_TRUST_DIR=TMP/trust# trust --device Q --forget A ~
SKILLET_TRUST_DIR=TMP/trust# trust --device sim:a311d --import TMP/trust#/#.exported ~
SKILLET_TRUST_DIR=TMP/trust# trust --device Q --import TMP/other_build.trust --apply ~
SKILLET_TRUST_DIR=TMP/trust# run tests/models/conv3x3_s2_u8.tflite --device Q --random # --verbose ~
""".strip().splitlines()


def of_name(path):
    """Returns a number that depends on the name alone, so that another network changes no other's rows."""
    return zlib.crc32(Path(path).name.encode()) % 1000


def networks():
    every = sorted(Path("tests/models").rglob("*.tflite"))
    models = [str(path) for path in every if not {"float", "refused"} & set(path.parts)]
    kernels = sorted(str(path) for path in Path("tests/conformance/models/kernels").glob("*.tflite")
                     if of_name(path) % 4 == 0)
    onnx = sorted(str(path) for path in Path("tests/models/onnx").glob("*.onnx"))
    return ["models/digits.tflite", *models, *kernels], onnx


# Files of a machine, for --root. Each machine of TMP lacks one of them. A value that begins with /dev/ is a link.
MACHINE = {
    "proc/sys/kernel/osrelease": "6.12.0\n",
    "proc/modules": "etnaviv 94208 1 - Live 0x0\nrocket 32768 0 - Live 0x0\n",
    "proc/1/cgroup": "0::/docker/1\n",
    "proc/1/environ": "HOME=/\0container=podman\0X=\0",
    "proc/71/comm": "camera\n",
    "proc/71/fd/4": "/dev/accel/accel0",
    "proc/71/fdinfo/4": "drm-driver:\trocket\ndrm-client-id:\t7\n"
                        "drm-engine-npu:\t5000000 ns\ndrm-engine-capacity-npu:\t3\ndrm-total-memory:\t12 KiB\n",
    "proc/71/fd/5": "/dev/accel/accel0",
    "proc/71/fdinfo/5": "drm-driver:\trocket\ndrm-client-id:\t8\ndrm-cycles-a:\t9000\ndrm-maxfreq-a:\t3 MHz\ndrm-memory-x:\t2 MiB\n",
    "lib/modules/6.12.0/modules.dep": "k/etnaviv.ko.xz:\n",
    "lib/modules/6.12.0/kernel/drivers/accel/rocket/rocket.ko.zst": "",
    "sys/firmware/devicetree/base/model": "A board\0",
    "sys/firmware/devicetree/base/compatible": "radxa,rock-5b\0rockchip,rk3588\0",
    "sys/firmware/devicetree/base/npu@fdab0000/compatible": "rockchip,rk3588-rknn-core\0",
    "sys/firmware/devicetree/base/npu@fdac0000/compatible": "rockchip,rk3588-rknn-core\0",
    "sys/firmware/devicetree/base/npu@fdac0000/status": "disabled\0",
    "sys/class/accel/accel0/device/power/runtime_active_time": "1234\n",
    "sys/class/accel/accel0/device/hwmon/hwmon0/temp1_input": "43500\n",
    "sys/class/devfreq/device/governor": "performance\n",
    "sys/class/devfreq/device/cur_freq": "600000000\n",
    "sys/class/thermal/thermal_zone3/type": "npu-thermal\n",
    "sys/class/thermal/thermal_zone3/temp": "51250\n",
    "sys/kernel/debug/clk/npu_clk/clk_rate": "700000000\n",
}


def make_machines(folder):
    for i in range(len(MACHINE) + 1):
        for j, (name, text) in enumerate(MACHINE.items()):
            path = folder / f"machine{i}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if j != i:
                path.symlink_to(text) if text.startswith("/dev/") else path.write_text(text)


def make_files(folder):
    """Writes the files of TMP that no command makes: a detector, its picture, and inputs of conv_scales_i8.tflite; machines."""
    make_machines(folder)
    # Findings of another build: only costs count.
    device = {"chip": "rk3588", "kernel_driver": "rocket, simulated",
              "facts": ["compatible=rockchip,rk3588-rknn-core", "cores=0x3", "quirk=sum_of_16_bits"]}
    of_both = {"verdict": "confirmed", "build": "0" * 32, "date": "2026-01-02T03:04:05Z", "evidence": "of another build"}
    entries = [{"kind": "assumption", "name": "dilation", **of_both}, {"kind": "cost", "name": "task_us", **of_both, "value": 20}]
    (folder / "other_build.trust").write_text(json.dumps({"skillet_trust": 3, "device": device, "entries": entries}))
    (folder / "ssd.tflite").write_bytes(ssd_model.ssd_model())
    (folder / "squares.bmp").write_bytes(ssd_model.picture(1))
    header = b"{'descr': '|i1', 'fortran_order': False, 'shape': (40, 19, 7, 5), }\n"
    inputs = random.Random(1).choices(range(256), k=40 * 19 * 7 * 5)
    (folder / "data.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(inputs))


def filled(row, number, words):
    return " ".join(words.get(word, word) for word in row.split(" ")).replace("#", str(number))


def commands():
    """Returns the commands, in order: some read what one before them wrote."""
    rows, (models, onnx) = [], networks()

    def add(row, number, chip, model="", **words):
        words = {"M": model, "D": chip, "sim:D": f"sim:{chip}", "sim:D,a311d": f"sim:{chip},sim:a311d", **words}
        rows.append(filled(row, number, words))

    for model in models + onnx:
        first = of_name(model)
        for j in range(6):
            add(OF_NETWORKS[(first + 7 * j) % len(OF_NETWORKS)], first + j, CHIPS[(first + j) % len(CHIPS)], model, N=OF_CAPTURE[first % 3])
    for i, chip in enumerate(CHIPS):
        for row in OF_CAPTURES:
            add(row, 1000 + i, chip, OF_CAPTURE[i % len(OF_CAPTURE)], C=f"TMP/{chip}.capture")
    for i, model in enumerate(OF_PICTURE):
        for j, picture in enumerate(PICTURES):
            for k, row in enumerate(OF_PICTURES):
                add(row, 2000 + 100 * i + 10 * j + k, CHIPS[(i + j + k) % len(CHIPS)], model.split(" ")[0], T=model, P=picture)
    for number in range(1, 10):
        for row in OTHERS:
            add(row, number, CHIPS[number % len(CHIPS)])
    for i, chip in enumerate(CHIPS):
        for row in PLAIN:
            add(row, 6000 + i, chip, "models/digits.tflite")
    for i, chip in enumerate(CHIPS):
        for j, fault in enumerate(FAULTS):
            add(OF_FAULTS[0], 3000 + 100 * i + j, chip, F=fault)
        for j, fault in enumerate(FAULTS_OF_PROOFS):
            add(OF_FAULTS[1], 4000 + 100 * i + j, chip, F=fault)
    for i, (chip, quirks) in enumerate(QUIRKS.items()):
        for j, quirk in enumerate(quirks):
            for row in OF_QUIRKS:
                add(row, 5000 + 100 * i + j, chip, Q=f"sim:{chip},quirk={quirk}", A="large_filters" if j % 2 == 0 else "no_such_entry")
    for number in range(len(MACHINE) + 1):
        rows += [f"doctor --root TMP/machine{number}", f"top --prometheus --root TMP/machine{number}"]
    return rows
