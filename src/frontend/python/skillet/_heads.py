"""Detections of what networks give, as rows of class, score, y1, x1, y2, x2 (0 to 1). Called by `skillet serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import skillet

if TYPE_CHECKING:
    from skillet._memory import Array

ROWS = 20  # of an answer
TASKS = ("auto", "ssd", "yolov5", "yolov8", "yolox", "yolonas", "rfdetr")


class Found(NamedTuple):
    """Boxes as y1, x1, y2, x2, 0 to 1."""

    boxes: Array  # n x 4
    scores: Array  # n
    classes: Array  # n


def real(info: skillet.TensorInfo, stored: Array) -> Array:
    return info.dequantize(stored) if info.scale else stored.astype("float32")


def find_ssd(outputs: list[Array]) -> Found:
    """Boxes 1 x n x 4, classes 1 x n, scores 1 x n and a count, in any order of the two in the middle."""
    import numpy as np

    boxes = next(one for one in outputs if one.ndim == 3)[0]
    count = int(next(one for one in outputs if one.size == 1).reshape(-1)[0]) if len(outputs) > 3 else len(boxes)
    classes, scores = [one.reshape(-1) for one in outputs if one.ndim == 2][:2]
    if ((scores > 1) | (scores != scores)).any() and not ((classes < 0) | (classes > 1)).any():
        classes, scores = scores, classes
    count = max(0, min(count, len(boxes), len(scores)))
    return Found(np.clip(boxes[:count], 0, 1), scores[:count], classes[:count])


def find_yolo(output: Array, task: str, size: tuple[int, int], threshold: float) -> Found:
    """`output`: candidates by 5 + classes (v5, X), or 4 + classes by candidates (v8, v9), which may be transposed."""
    import numpy as np

    rows = output[0] if task != "yolox" else of_cells(output[0], size)
    if task == "yolov8" and rows.shape[1] > rows.shape[0]:
        rows = rows.T
    first = 4 if task == "yolov8" else 5
    scores_of = rows[:, first:] * (1 if task == "yolov8" else rows[:, 4:5])
    classes = scores_of.argmax(axis=1)
    scores = scores_of[np.arange(len(rows)), classes]
    kept = scores >= threshold
    return suppressed(Found(centred(rows[kept, :4], size), scores[kept], classes[kept]))


def of_cells(rows: Array, size: tuple[int, int]) -> Array:
    """What YOLOX gives: centres from the corner of each one's cell, and logarithms of sizes, both in cells of 8, 16 or 32 pixels."""
    import numpy as np

    cells = np.asarray([(x, y, side) for side in (8, 16, 32) for y in range(size[0] // side) for x in range(size[1] // side)], np.float32)
    out: Array = np.concatenate([(rows[:, :2] + cells[:, :2]) * cells[:, 2:], np.exp(rows[:, 2:4]) * cells[:, 2:], rows[:, 4:]], axis=1)
    return out


def find_pairs(outputs: list[Array], task: str, size: tuple[int, int], threshold: float) -> Found:
    """Boxes 1 x n x 4 and classes 1 x n x m: corners in pixels and scores (YOLO-NAS), or centres and logits (RF-DETR, which needs no suppression)."""
    import numpy as np

    box, scores_of = sorted((one[0] for one in outputs), key=lambda one: one.shape[1] != 4)
    if task == "rfdetr":
        scores_of = 1 / (1 + np.exp(-scores_of))
    classes, scores = scores_of.argmax(axis=1), scores_of.max(axis=1)
    kept = scores >= threshold
    box, scores, classes = box[kept], scores[kept], classes[kept]
    if task == "rfdetr":
        return Found(centred(box, size), scores, classes)
    return suppressed(Found(np.clip(box[:, [1, 0, 3, 2]] / np.asarray(2 * size, np.float32), 0, 1), scores, classes))


def centred(box: Array, size: tuple[int, int]) -> Array:
    """Corners of boxes x, y, width, height, in pixels or 0 to 1."""
    import numpy as np

    if len(box) and box.max() > 2:
        box = box / np.asarray([size[1], size[0], size[1], size[0]], np.float32)
    x, y, w, h = box.T
    corners: Array = np.clip(np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], axis=1), 0, 1)
    return corners


def with_area(found: Found) -> Found:
    """Without boxes that end where they begin, or before."""
    there = (found.boxes[:, 2] > found.boxes[:, 0]) & (found.boxes[:, 3] > found.boxes[:, 1])
    return Found(found.boxes[there], found.scores[there], found.classes[there])


def suppressed(found: Found, overlap: float = 0.5) -> Found:
    """The best of boxes of one class that overlap."""
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


PAIRS = "yolonas or rfdetr"  # their shapes are the same: a client says which in model_type


def task_of(outputs: tuple[skillet.TensorInfo, ...]) -> str:
    """By the shapes of the outputs; an error where no head has them."""
    shapes = [one.shape for one in outputs]
    if len(shapes) >= 3 and any(len(s) == 3 and s[2] == 4 for s in shapes) and sum(len(s) == 2 for s in shapes) >= 2:
        return "ssd"
    if len(shapes) == 1 and len(shapes[0]) == 3 and shapes[0][0] == 1 and min(shapes[0][1:]) > 5:
        return "yolov8" if shapes[0][2] > shapes[0][1] or shapes[0][2] == 84 else "yolov5"
    if len(shapes) == 2 and all(len(s) == 3 for s in shapes) and shapes[0][:2] == shapes[1][:2] and 4 in (shapes[0][2], shapes[1][2]):
        return PAIRS
    raise skillet.Unsupported(f"outputs of shapes {shapes} are those of no head that is decoded ({', '.join(TASKS[1:])})")
