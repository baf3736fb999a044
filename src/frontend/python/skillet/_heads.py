"""Decodes the outputs of detection networks to rows of class, score, y1, x1, y2, x2 (0 to 1). Called by `skillet serve`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

import skillet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import TypeAlias

    from skillet._memory import Array

    Infos: TypeAlias = Sequence[skillet.TensorInfo]

ROWS = 20  # in an answer
TASKS = ("auto", "ssd", "yolov5", "yolov8", "yolox", "yolonas", "rfdetr")
PAIRS, CELLS = "yolonas or rfdetr", "yolov8 or yolox"  # heads whose outputs have the same shapes; the client's model_type selects one
# Tasks that a model may have if the client sends this model_type of Frigate. Other values, such as the default "ssd", do not restrict the task.
TASKS_OF = {"dfine": (), "rfdetr": ("rfdetr", PAIRS), "yolonas": ("yolonas", PAIRS), "yolox": ("yolox", "yolov5", CELLS)}
SCORE_MAX = 1.02  # rounding can exceed 1 a little


class Found(NamedTuple):
    """Boxes as y1, x1, y2, x2, from 0 to 1."""

    boxes: Array  # n x 4
    scores: Array  # n
    classes: Array  # n


def real(info: skillet.TensorInfo, stored: Array) -> Array:
    return info.dequantize(stored) if info.scale else stored.astype("float32")


class SsdOutputs(NamedTuple):
    """Indices of the outputs, derived from the model once for all frames."""

    boxes: int
    classes: int
    scores: int
    number: int | None  # the number of boxes; None: all boxes are valid


def ssd_outputs(infos: Infos, makers: Sequence[tuple[str, int]]) -> SsdOutputs | None:
    """Returns the indices of an SSD network's outputs. None: it is not an SSD network.

    The order comes from the operation that makes the outputs, else from their names, else from their shapes: classes
    before scores if the boxes come first. `makers`: for each output the operation that makes it, and which of that
    operation's outputs it is."""
    boxes = [i for i, one in enumerate(infos) if len(one.shape) == 3 and one.shape[0] == 1 and one.shape[2] == 4]
    if len(boxes) != 1 or len(infos) not in (3, 4):
        return None
    row = (1, infos[boxes[0]].shape[1])
    told = [place if "detectionpostprocess" in kind.replace("_", "").lower() else -1 for kind, place in makers]
    if sorted(told) == list(range(len(infos))):
        order = [told.index(place) for place in range(len(infos))]
    else:
        rows = [i for i, one in enumerate(infos) if one.shape == row and i not in boxes]
        counts = [i for i in range(len(infos)) if i not in rows + boxes]
        if len(rows) == 3 and row == (1, 1):  # the number of boxes has the same shape
            counts = [one for one in rows if re.search("num|count", infos[one].name, re.I)] or rows[-1:]
            rows = [one for one in rows if one not in counts]
        if len(rows) != 2:
            return None
        order = boxes + by_names(infos, rows, boxes[0] == 0) + counts
    fits = order[0] == boxes[0] and all(infos[one].shape == row for one in order[1:3])
    if not fits or (len(order) == 4 and math.prod(infos[order[3]].shape) != 1):
        return None
    return SsdOutputs(order[0], order[1], order[2], order[3] if len(order) == 4 else None)


def by_names(infos: Infos, rows: list[int], classes_first: bool) -> list[int]:
    """Returns the indices in ROWS, the output of classes first, the output of scores second."""
    is_class, is_score = ([bool(re.search(word, infos[one].name, re.I)) for one in rows] for word in ("class", "score|conf"))
    for first in (0, 1):
        if (is_class[first], is_class[1 - first]) == (True, False) or (is_score[first], is_score[1 - first]) == (False, True):
            return [rows[first], rows[1 - first]]
    return rows if classes_first else rows[::-1]


def find_ssd(outputs: list[Array], order: SsdOutputs) -> Found:
    import numpy as np

    boxes, classes, scores = outputs[order.boxes][0], outputs[order.classes].reshape(-1), outputs[order.scores].reshape(-1)
    count = len(boxes) if order.number is None else int(outputs[order.number].reshape(-1)[0])
    count = max(0, min(count, len(boxes)))
    if (scores[:count] > SCORE_MAX).any():
        raise ValueError(f"output {order.scores} has scores up to {np.nanmax(scores[:count]):g}")
    return Found(np.clip(boxes[:count], 0, 1), scores[:count], classes[:count])


def find_yolo(output: Array, task: str, size: tuple[int, int], threshold: float) -> Found:
    """Returns the boxes of a YOLO network with scores of at least `threshold`.

    `output` is candidates x (5 + classes) for YOLOv5 and YOLOX, or (4 + classes) x candidates or its transpose for YOLOv8 and v9."""
    import numpy as np

    rows = output[0] if task != "yolox" else of_cells(output[0], size)
    if task == "yolov8" and is_transposed(rows.shape, size):
        rows = rows.T
    first = 4 if task == "yolov8" else 5
    scores_of = rows[:, first:] * (1 if task == "yolov8" else rows[:, 4:5])
    classes = scores_of.argmax(axis=1)
    scores = scores_of[np.arange(len(rows)), classes]
    kept = scores >= threshold
    return suppressed(Found(centred(rows[kept, :4], size), scores[kept], classes[kept]))


def cells_of(size: tuple[int, int]) -> int:
    return sum((size[0] // side) * (size[1] // side) for side in (8, 16, 32))


def is_transposed(shape: tuple[int, ...], size: tuple[int, int]) -> bool:
    """Returns whether the second axis holds the candidates: it has as many entries as the input has cells, or else is the longer axis."""
    cells = cells_of(size)
    return shape[1] == cells if (shape[0] == cells) != (shape[1] == cells) else shape[1] > shape[0]


def of_cells(rows: Array, size: tuple[int, int]) -> Array:
    """Converts YOLOX's boxes to pixels: centres relative to each box's cell and logarithms of sizes, in cells of 8, 16 or 32 pixels."""
    import numpy as np

    cells = np.asarray([(x, y, side) for side in (8, 16, 32) for y in range(size[0] // side) for x in range(size[1] // side)], np.float32)
    out: Array = np.concatenate([(rows[:, :2] + cells[:, :2]) * cells[:, 2:], np.exp(rows[:, 2:4]) * cells[:, 2:], rows[:, 4:]], axis=1)
    return out


def is_pair(infos: Infos) -> bool:
    shapes = [one.shape for one in infos]
    return len(shapes) == 2 and all(len(s) == 3 and s[0] == 1 for s in shapes) and shapes[0][1] == shapes[1][1] and 4 in (shapes[0][2], shapes[1][2])


def box_of_pair(infos: Infos, task: str) -> int | None:
    """Returns which of two outputs 1 x n x m has the boxes: by shapes, then names, then ranges of the stored numbers. None: unknown."""
    fours = [i for i, one in enumerate(infos) if one.shape[2] == 4]
    if len(fours) == 1:
        return fours[0]
    for word, step in (("box", 0), ("class|score|logit|conf", 1)):
        named = [i for i, one in enumerate(infos) if re.search(word, one.name, re.I)]
        if len(named) == 1:
            return abs(named[0] - step)
    if not all(one.scale for one in infos):
        return None
    low, high = zip(*(reach(one) for one in infos))
    # YOLO-NAS: box corners are in pixels, scores reach up to 1. RF-DETR: box sizes of 0 to 1 are hardly below 0, most logits are.
    boxes = [i for i in (0, 1) if (high[i] > 2 >= high[1 - i] if task == "yolonas" else low[1 - i] < -1 <= low[i])]
    return boxes[0] if boxes else None


def reach(info: skillet.TensorInfo) -> tuple[float, float]:
    """Returns the smallest and the largest number that the tensor can store."""
    import numpy as np

    ends = np.iinfo(info.dtype)
    low, high = info.dequantize(np.asarray([ends.min, ends.max], info.dtype))
    return float(low), float(high)


def find_pairs(outputs: list[Array], boxes: int, task: str, size: tuple[int, int], threshold: float) -> Found:
    """Returns the boxes of a network with boxes 1 x n x 4 (output `boxes`) and classes 1 x n x m, with scores of at least `threshold`.

    YOLO-NAS has corners in pixels and scores. RF-DETR has centres and logits, and needs no suppression."""
    import numpy as np

    box, scores_of = outputs[boxes][0], outputs[1 - boxes][0]
    if task == "rfdetr":
        scores_of = 1 / (1 + np.exp(-scores_of))
    classes, scores = scores_of.argmax(axis=1), scores_of.max(axis=1)
    kept = scores >= threshold
    box, scores, classes = box[kept], scores[kept], classes[kept]
    if task == "rfdetr":
        return Found(centred(box, size), scores, classes)
    return suppressed(Found(np.clip(box[:, [1, 0, 3, 2]] / np.asarray(2 * size, np.float32), 0, 1), scores, classes))


def centred(box: Array, size: tuple[int, int]) -> Array:
    """Converts boxes x, y, width, height, in pixels or 0 to 1, to corners."""
    import numpy as np

    if len(box) and box.max() > 2:
        box = box / np.asarray([size[1], size[0], size[1], size[0]], np.float32)
    x, y, w, h = box.T
    corners: Array = np.clip(np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], axis=1), 0, 1)
    return corners


def with_area(found: Found) -> Found:
    """Removes boxes whose height or width is not positive."""
    there = (found.boxes[:, 2] > found.boxes[:, 0]) & (found.boxes[:, 3] > found.boxes[:, 1])
    return Found(found.boxes[there], found.scores[there], found.classes[there])


def suppressed(found: Found, overlap: float = 0.5) -> Found:
    """Keeps the best of overlapping boxes of one class (non-maximum suppression)."""
    import numpy as np

    found = with_area(found)
    boxes, left = found.boxes, list(np.argsort(-found.scores))
    kept: list[int] = []
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    while left and len(kept) < ROWS:
        best, rest = left[0], np.asarray(left[1:], int)
        kept.append(best)
        low, high = np.maximum(boxes[best, :2], boxes[rest, :2]), np.minimum(boxes[best, 2:], boxes[rest, 2:])
        shared = np.prod(np.clip(high - low, 0, None), axis=1)
        covered = shared > overlap * (area[best] + area[rest] - shared)
        left = list(rest[~(covered & (found.classes[rest] == found.classes[best]))])
    return Found(boxes[kept], found.scores[kept], found.classes[kept])


def answer_rows(found: Found, threshold: float) -> bytes:
    import numpy as np

    out, found = np.zeros((ROWS, 6), np.float32), with_area(found)
    order = [i for i in np.argsort(-found.scores, kind="stable") if found.scores[i] >= threshold][:ROWS]
    if order:
        out[: len(order), 0], out[: len(order), 1] = found.classes[order], found.scores[order]
        out[: len(order), 2:] = found.boxes[order]
    return out.tobytes()


def task_of(infos: Infos, makers: Sequence[tuple[str, int]], size: tuple[int, int]) -> str:
    """Returns the task that the shapes of the outputs suggest, for an image of `size` (height, width).

    Raises Unsupported if no head has outputs of these shapes."""
    shapes, cells = [one.shape for one in infos], cells_of(size)
    if ssd_outputs(infos, makers):
        return "ssd"
    if len(shapes) == 1 and len(shapes[0]) == 3 and shapes[0][0] == 1 and cells:
        first, last = shapes[0][1:]
        if (first == 3 * cells and last > 5) or (last == cells and first > 4):
            return "yolov5" if first == 3 * cells else "yolov8"
        if first == cells and last > 4:
            return "yolov8" if last in (5, 84) else CELLS
    if is_pair(infos):
        return PAIRS
    asked = f"; a YOLO network has a candidate for each of {cells} cells, YOLOv5 three (--task decodes others)" if len(shapes) == 1 else ""
    raise skillet.Unsupported(f"outputs of shapes {[list(s) for s in shapes]} are those of no head that is decoded ({', '.join(TASKS[1:])}){asked}")


def wanted(task: str, infos: Infos, makers: Sequence[tuple[str, int]], size: tuple[int, int]) -> str:
    """Describes the outputs that a network of `task` has. Empty: `infos` match."""
    if task == "ssd":
        return "" if ssd_outputs(infos, makers) else "boxes 1 x n x 4, classes 1 x n, scores 1 x n and a count"
    if task in ("yolonas", "rfdetr", PAIRS):
        return "" if is_pair(infos) else "boxes 1 x n x 4 and scores 1 x n x classes"
    shape = infos[0].shape if len(infos) == 1 else ()
    if len(shape) != 3 or shape[0] != 1:
        return "one output, 1 x candidates x numbers"
    if task == "yolov8":
        return "" if shape[1 if is_transposed(shape[1:], size) else 2] > 4 else "1 x (4 + classes) x candidates, or the other way round"
    if task == "yolox" and shape[1] != cells_of(size):
        return f"1 x {cells_of(size)} x (5 + classes) for an image of this size"
    return "" if shape[2] > (4 if task == CELLS else 5) else "1 x candidates x (5 + classes)"


def head_of(task: str, model_type: object) -> str:
    """Returns which head the client's `model_type` selects, for a `task` that may leave a choice of two.

    Raises Unsupported if `model_type` contradicts `task`."""
    if isinstance(model_type, str) and model_type in TASKS_OF and task not in TASKS_OF[model_type]:
        why = "D-FINE is not decoded" if model_type == "dfine" else f"the model has outputs of {task}"
        raise skillet.Unsupported(f"model_type {model_type}: {why}")
    if task in ("yolov5", CELLS) and model_type == "yolox":
        return "yolox"
    if task == CELLS:
        if not isinstance(model_type, str) or not model_type.startswith("yolo"):
            raise skillet.Unsupported(f"model_type {model_type!r}: the model has outputs of {task}; set yolox, or yolo-generic for YOLOv8, or --task")
        return "yolov8"
    if task == PAIRS:
        return "rfdetr" if model_type == "rfdetr" else "yolonas"
    return task
