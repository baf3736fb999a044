#!/usr/bin/env python3
"""Prints the table of docs/yolo.md for networks that yolo_networks.py made.

usage: yolo_table.py FOLDER SKILLET
"""
import json
import subprocess
import sys

NETWORKS = {
    "v5, SiLU, whole head": "v5-silu-full-pt",
    "v5, RELU6, whole head": "v5-relu6-full-pt",
    "v8, SiLU, whole head": "v8-silu-full-pt",
    "v8, RELU6, whole head": "v8-relu6-full-pt",
    "v9, SiLU, whole head": "v9-silu-full-pt",
    "v9, RELU6, whole head": "v9-relu6-full-pt",
    "v11, SiLU, whole head": "v11-silu-full-pt",
    "v11, RELU6, whole head": "v11-relu6-full-pt",
    "v11, SiLU, boxes and classes of each grid": "v11-silu-cat-pt",
}
CHIPS = {"a311d": "predicted", "imx8mp": "predicted", "rk3588": "all"}


def cell(skillet, model, chip, partition):
    command = [skillet, "check", model, "--device", f"sim:{chip}", "--partition", partition, "--json"]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    macs = f"{int(said['percent_of_macs'] * 10) / 10:g}"
    return (f"{said['model_npu_ops']} of {said['model_ops']} in {said['npu_parts']}, {macs} %, "
            f"{said['simulated']['wall_ms']:.2g} ms ({said['cpu_alone_ms']:.2g})")


if __name__ == "__main__":
    folder, skillet = sys.argv[1:]
    for name, file in NETWORKS.items():
        cells = [cell(skillet, f"{folder}/{file}.tflite", chip, partition) for chip, partition in CHIPS.items()]
        print(f"| {name} | {' | '.join(cells)} |")
