"""The cases, one a process: cases.py CASE HOST DELEGATE DEVICE [MODEL]. Prints one JSON object as its last line.

A failing case raises an exception, whose text is the failure.
"""
import json
import multiprocessing
import os
import re
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

import hosts
import profiler

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "models/digits.tflite"
CONVOLUTION = ROOT / "tests/models/conv3x3_s2_u8.tflite"  # 3x3, stride 2, independent of the image's size
SHARED = ROOT.parent / "shared/models"


def read_bmp(path):
    """Returns the pixels of a 24-bit picture, height x width x RGB."""
    data = path.read_bytes()
    start, = np.frombuffer(data, "<u4", 1, 10)
    width, height = np.frombuffer(data, "<i4", 2, 18)
    row_bytes = (int(width) * 3 + 3) // 4 * 4
    rows = np.frombuffer(data, np.uint8, row_bytes * abs(int(height)), int(start)).reshape(abs(int(height)), row_bytes)
    pixels = rows[:, :int(width) * 3].reshape(abs(int(height)), int(width), 3)[:, :, ::-1]
    return pixels[::-1] if height > 0 else pixels


def picture_for(model):
    name = "squat" if "movenet" in model.name else "bird_segmentation" if "deeplab" in model.name else "grace_hopper"
    return SHARED / f"{name}.bmp"


def example_inputs(model, wanted):
    """Returns a picture if the model takes one and one exists, else random numbers that are the same each time."""
    random = np.random.default_rng(1)
    values = []
    for shape, dtype in wanted:
        picture = picture_for(model)
        if len(shape) == 4 and shape[3] == 3 and picture.exists():
            pixels = read_bmp(picture)
            rows, cols = (np.arange(n) * pixels.shape[i] // n for i, n in enumerate(shape[1:3]))
            value = np.repeat(pixels[rows][:, cols][None].astype(np.int32), shape[0], axis=0)
        else:
            value = random.integers(0, 256, shape)
        if dtype == np.float32:
            values.append((value / 127.5 - 1).astype(np.float32))
        else:
            values.append((value - (128 if dtype == np.int8 else 0)).astype(dtype))
    return values


def differences(got, want):
    top = all(np.argmax(g) == np.argmax(w) for g, w in zip(got, want))
    diffs = [np.abs(g.astype(np.float64) - w.astype(np.float64)) for g, w in zip(got, want)]
    return {"max": max(float(d.max()) for d in diffs), "mean": max(float(d.mean()) for d in diffs), "top1": bool(top)}


class Case:
    def __init__(self, host, path, device, model):
        self.host, self.path, self.device, self.model = host, path, device, model

    def delegate(self, **options):
        # The default partition leaves small models to the CPU, which is predicted to be faster.
        return hosts.load_delegate(self.host, self.path, {"device": self.device, "partition": "work", **options})

    def pair(self, model, **options):
        return hosts.runner(self.host, model, self.delegate(**options)), hosts.runner(self.host, model)

    # ---- cases ----

    def model_case(self):
        """Compares the outputs with the delegate to those of the same runtime without it."""
        ours, theirs = self.pair(self.model, min_macs_per_byte=0)
        inputs = example_inputs(self.model, ours.inputs())
        got, want = ours.run(inputs), theirs.run(inputs)
        assert all(np.array_equal(a, b) for a, b in zip(got, ours.run(inputs))), "a second run gives other results"
        # Key points are y, x and a score, which has only 15 steps and is not compared.
        cut = (lambda arrays: [a[..., :2] for a in arrays]) if "movenet" in self.model.name else list
        return {**differences(cut(got), cut(want)), **self.compare_with_skillet(inputs, got)}

    def compare_with_skillet(self, inputs, got):
        """Checks that the bits equal Skillet's own.
        TFLite 2.9 is left out, since it has no reference kernels for the other operations."""
        library = os.environ.get("SKILLET_C_LIBRARY")
        if not library or self.host == "tflite2.9":
            return {}
        try:
            own = hosts.SkilletRunner(library, self.model, self.device).run(inputs, got)
        except RuntimeError as error:
            if "no CPU kernel" in str(error):  # only the host has a kernel
                return {"note": f"({error})"}
            raise
        return {"own": all(np.array_equal(a, b) for a, b in zip(got, own))}

    def default_kernels(self):
        """Runs beside the runtime's own delegate (XNNPACK), which takes the other operations."""
        ours = hosts.runner(self.host, DIGITS, self.delegate(), reference=False)
        theirs = hosts.runner(self.host, DIGITS)
        inputs = example_inputs(DIGITS, ours.inputs())
        return differences(ours.run(inputs), theirs.run(inputs))

    def resize(self):
        ours, theirs = self.pair(CONVOLUTION, min_macs_per_byte=0)
        worst = {"max": 0.0, "mean": 0.0, "top1": True}
        (shape, _), = ours.inputs()
        for height, width in ((12, 12), (7, 9), shape[1:3]):
            for one in (ours, theirs):
                one.resize(0, (shape[0], height, width, shape[3]))
            inputs = example_inputs(CONVOLUTION, ours.inputs())
            got, want = ours.run(inputs), theirs.run(inputs)
            assert got[0].shape == want[0].shape, f"{got[0].shape} is not {want[0].shape}"
            worst["max"] = max(worst["max"], differences(got, want)["max"])
        return worst

    def batches(self):
        """Runs Keras networks, whose shapes depend on an unknown batch size, with several sizes."""
        worst, left_out = 0.0, []
        for model in sorted((ROOT / "tests/models/keras").glob("*.tflite")):
            try:
                theirs = hosts.runner(self.host, model, reference=None)
                (shape, _), = theirs.inputs()
                theirs.resize(0, (2, *shape[1:]))
            except (RuntimeError, ValueError):  # the model is newer than the host, or for one image only
                left_out.append(model.stem)
                continue
            for partition in ("predicted", "all"):
                ours = hosts.runner(self.host, model, self.delegate(partition=partition), reference=None)
                for batch in (1, 2, 1, 3):
                    for one in (ours, theirs):
                        one.resize(0, (batch, *shape[1:]))
                    inputs = example_inputs(model, ours.inputs())
                    got, want = ours.run(inputs), theirs.run(inputs)
                    for one, other in zip(got, want):
                        assert one.shape == other.shape, f"{model.stem}, {batch} images: {one.shape} is not {other.shape}"
                    if model.stem == "keypoints_u8":  # the first output is the position of the largest values: one step can move it anywhere
                        got, want = got[1:], want[1:]
                    if (self.host, model.stem) != ("tflite2.9", "dense_i8"):  # TFLite 2.9 has no FULLY_CONNECTED per channel
                        worst = max(worst, differences(got, want)["max"])
        assert worst <= 4, f"difference {worst}"  # for whole networks
        assert left_out in ([], ["gelu_i8"]), left_out
        return {"max": 0, "note": f"differences up to {worst:.0f}; one image only: {', '.join(left_out)}"}

    def threads(self):
        """Runs four interpreters at once: two with a delegate each, and two that share one."""
        _, theirs = self.pair(DIGITS)
        inputs = example_inputs(DIGITS, theirs.inputs())
        want, shared, wrong = theirs.run(inputs), self.delegate(), []

        def work(delegate):
            try:
                one = hosts.runner(self.host, DIGITS, delegate)
                for _ in range(20):
                    if differences(one.run(inputs), want)["max"] != 0:
                        wrong.append("other results")
            except Exception as error:  # otherwise an exception of a thread is only printed
                wrong.append(str(error))

        threads = [threading.Thread(target=work, args=(d,)) for d in (shared, shared, self.delegate(), self.delegate())]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[0]
        return {"max": 0.0}

    def two(self):
        """A second delegate takes what the first one leaves, including operations that read the first one's outputs."""
        if self.host == "tflite2.9":
            return {"max": 0.0, "note": "(takes one)"}
        module = hosts.python_module(self.host)
        made = [self.delegate(partition="all", unproven="take", **more) for more in ({"max_delegated_partitions": 1}, {})]
        interpreter = module.Interpreter(str(ROOT / "tests/models/keras/gelu_i8.tflite"), experimental_delegates=made, num_threads=1,
                                         experimental_op_resolver_type=module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        interpreter.allocate_tensors()
        parts = [one["op_name"] for one in interpreter._get_ops_details()].count("DELEGATE")
        assert parts > 2, f"{parts} parts"
        return {"max": 0.0, "note": f"{parts} parts"}

    def processes(self):
        """Runs four processes at once, with one cache."""
        with tempfile.TemporaryDirectory() as folder:
            context = multiprocessing.get_context("spawn")
            with context.Pool(4) as pool:
                results = pool.starmap(run_process, [(self.host, self.path, self.device, folder)] * 4)
            files = [f.name for f in Path(folder).iterdir()]
            assert files and all(name.endswith(".skp") for name in files), f"cache: {files}"
        return {"max": max(results)}

    def reload(self):
        """Makes and drops interpreters: memory must not grow. ENDURANCE=10000 sets their number (300)."""
        inputs = example_inputs(DIGITS, hosts.runner(self.host, DIGITS).inputs())
        return self.growth(int(os.environ.get("ENDURANCE", 300)), lambda: hosts.runner(
            self.host, DIGITS, self.delegate(log="error")).run(inputs))

    def invokes(self):
        """Runs one interpreter many times, on a device that computes nothing if possible.
        ENDURANCE=1000000 sets the number of runs (3000)."""
        device = self.device.replace("sim:", "null:")
        one = hosts.runner(self.host, DIGITS, hosts.load_delegate(
            self.host, self.path, {"device": device, "partition": "work"}))
        inputs = example_inputs(DIGITS, one.inputs())
        return self.growth(int(os.environ.get("ENDURANCE", 3000)), lambda: one.run(inputs))

    @staticmethod
    def growth(count, work):
        sizes = []
        for i in range(count):
            work()
            if (i + 1) % (count // 3) == 0:
                sizes.append(resident_kib())
        assert sizes[-1] - sizes[0] < 2048, f"resident memory grows: {sizes} KiB"
        return {"max": 0.0, "note": f"{sizes[-1] - sizes[0]} KiB more after {count - count // 3} of {count}"}

    def options(self):
        """Options cause errors only if strict is set, and errors name the cause."""
        hosts.runner(self.host, DIGITS, hosts.load_delegate(self.host, self.path, {"device": "sim:nonesuch", "x": "y"}))
        for wrong, word in (({"device": "sim:nonesuch"}, "nonesuch"), ({"colour": "blue"}, "colour")):
            try:
                self.delegate(strict=True, **wrong) if "device" not in wrong else hosts.load_delegate(
                    self.host, self.path, {"strict": "1", **wrong})
            except ValueError as error:
                assert word in str(error), f"the message is '{error}'"
            else:
                raise AssertionError(f"{wrong} is no error with strict=1")
        try:
            hosts.runner(self.host, DIGITS, self.delegate(strict=1))
        except (RuntimeError, ValueError):
            return {"max": 0.0}
        raise AssertionError("SOFTMAX stays with the host, which is no error with strict=1")


    def profile(self):
        """Checks the events in the runtime's own profiler, with the option and without."""
        if self.host != "litert":
            return {"max": 0.0, "note": "(gives nobody its profiler)"}
        told = {}
        for asked in (0, 1):
            seen, delegate = profiler.Profiler(), self.delegate(profile=asked, min_macs_per_byte=0)
            seen.watch(delegate)
            one = hosts.runner(self.host, DIGITS, delegate)
            one.run(example_inputs(DIGITS, one.inputs()))
            told[asked] = seen.operations()
        assert told[0] == [], f"told though nobody asked: {told[0]}"
        nodes = [node for _, node, _ in told[1]]
        assert nodes == list(range(13)), f"operations {nodes}"  # all but SOFTMAX
        assert told[1][0][0] == "Skillet NPU CONV_2D" and sum(us for _, _, us in told[1]) > 0, told[1]
        return {"max": 0.0, "note": f"{len(nodes)} operations"}


def run_process(host, path, device, cache):
    case = Case(host, path, device, None)
    ours, theirs = case.pair(DIGITS, cache_dir=cache)
    inputs = example_inputs(DIGITS, theirs.inputs())
    return differences(ours.run(inputs), theirs.run(inputs))["max"]


def resident_kib():
    return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def main():
    name, host, path, device, *model = sys.argv[1:]
    if name == "version":
        print(json.dumps({"version": hosts.version(host)}))
        return
    case = Case(host, path, device, Path(model[0]) if model else None)
    print(json.dumps(getattr(case, name)()))


if __name__ == "__main__":
    main()
