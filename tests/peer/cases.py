"""Lists the cases: the recorded single layers, and whole networks on a picture."""
import dataclasses
import hashlib
import json
from pathlib import Path

import picture

# A network, the side of its input, and the class that the picture must have (None: TensorFlow Lite's result).
NETWORKS = [("mobilenet_v1_0.25_128_quant", 128, None), ("mobilenet_v1_1.0_224_quant", 224, 653)]
PICTURE = "grace_hopper.bmp"


@dataclasses.dataclass
class Case:
    name: str
    model: Path
    inputs: list  # files; empty: random inputs from seed 1
    recorded: list  # first 128 bits of the SHA-256 of the right outputs, for those that were recorded
    label: int | None = None


def recorded_cases(folder, sets):
    found = []
    for name in sets:
        for model in sorted((folder / "models" / name).glob("*.tflite")):
            found.append(recorded_case(folder, name, model))
    return found


def recorded_case(folder, name, model):
    place = folder / "cases" / name / model.stem
    if not (place / "case.json").exists():
        return Case(f"{name}/{model.stem}", model, [], [])
    known = json.loads((place / "case.json").read_text())
    files = [place / one["file"] for one in known["inputs"] if "file" in one]
    is_known = all("file" in one or "generator" in one for one in known["inputs"])
    # The generator is one stream for all inputs, so either all of them come from files or none.
    inputs = files if len(files) == len(known["inputs"]) else []
    recorded = [one.get("sha256_128") for one in known["outputs"]] if is_known else []
    return Case(f"{name}/{model.stem}", model, inputs, recorded)


def network_cases(models, work):
    """Returns networks whose model and picture are in MODELS. Writes their inputs to WORK."""
    found = []
    for name, side, label in NETWORKS:
        model = models / f"{name}.tflite"
        if not model.exists() or not (models / PICTURE).exists():
            continue
        path = work / f"picture_{side}.bin"
        path.write_bytes(picture.resize(picture.read_bmp(models / PICTURE), side))
        found.append(Case(name, model, [path], [], label))
    return found


def digest(data):
    return hashlib.sha256(data).hexdigest()[:32]


def wrong_reference(case, outputs):
    """Returns why OUTPUTS differ from the recorded ones, or None."""
    for index, (recorded, output) in enumerate(zip(case.recorded, outputs)):
        if recorded is not None and digest(output) != recorded:
            return f"output {index} of TensorFlow Lite is not the recorded one"
    return None
