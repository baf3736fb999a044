"""Determines the verdict of a run of the peer's driver, from its exit code, its log and its outputs."""
import re

# name: (text in the table, whether it indicates a fault of our simulator)
VERDICTS = {
    "exact": ("exact", False),
    "within 1": ("within 1", False),
    "heap": ("within 1 only with zeros behind the driver's heap blocks: it reads past their end", False),
    "known": ("as bad as the recorded job, for a fault of the driver that tests/expectations names", False),
    "worse": ("worse", True),
    "crashed": ("crashed in the driver", False),
    "no job": ("no job: refused, or nothing for the NPU to do", False),
    "fault": ("simulator fault", True),
    "timeout": ("timed out", True),
    "failed": ("failed", True),
}

# Outcomes of recorded jobs of the same driver on our simulator, with reasons: only these indicate a fault of the driver.
KNOWN = re.compile(
    r"(worse|fault|not_comparable) +(?:\[[^]]*\] )?(\(\d.*|int8 .*|recorded tensors .*|(?:signed tensors are|the fused convolution is not"
    r"|rows are|pad bytes are|the input converter|one input and one output|the activation is|the model declares|the addition|rows of"
    r"|one stride for|the driver does not check)\b.*)")


def known_faults(path):
    """Returns {case: (outcome, reason)} from a file of expectations."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        name, _, rest = line.partition(" ")
        if known := KNOWN.fullmatch(rest.strip()):
            found[name] = (known[1], known[2])
    return found


def is_known(verdict, known):
    """Returns whether the case's recorded job has the same outcome."""
    if known is None:
        return False
    return verdict in ("fault", "worse") and (verdict == "fault") == (known[0] == "fault")


JOB = re.compile(r"virtual: submit: job \d+: (?:\d+ words, [1-9]\d* buffers|\d+ tasks)")
FAULT = re.compile(r"(?:recover hung GPU|NPU job timed out): (.*)")
# Without a device the driver crashes too, but the cause is the node.
NO_DEVICE = re.compile(r"virtual device node: (.*)|(Couldn't open kernel device)")
REFUSED = re.compile(r"^ *\d+ (\w+) +v\d+ +unsupported", re.MULTILINE)


def difference(expected, got):
    """Returns the largest difference of the bytes, and how many differ; None if the sizes differ."""
    if len(expected) != len(got):
        return None
    if expected == got:
        return 0, 0
    apart = [abs(a - b) for a, b in zip(expected, got) if a != b]
    return max(apart), len(apart)


def compare(expected, got, is_signed):
    """Returns (verdict, detail) for lists of outputs."""
    largest, differing, total = 0, 0, 0
    for index, (one, other) in enumerate(zip(expected, got)):
        if is_signed[index]:  # int8: adding 128 keeps the differences
            one, other = (bytes(value ^ 0x80 for value in data) for data in (one, other))
        found = difference(one, other)
        if found is None:
            return "failed", f"output {index} has {len(other)} bytes, expected {len(one)}"
        largest, differing, total = max(largest, found[0]), differing + found[1], total + len(one)
    if len(expected) != len(got) or not expected:
        return "failed", f"{len(got)} outputs, expected {len(expected)}"
    if largest == 0:
        return "exact", ""
    detail = f"{differing} of {total} elements differ, at most by {largest}"
    return ("within 1" if largest == 1 else "worse"), detail


def judge(run, expected):
    """Returns (verdict, detail). RUN: an outcome of runner.py; EXPECTED: the right outputs, as such an outcome."""
    if run.is_timeout:
        return "timeout", f"stopped after {run.seconds:.0f} s"
    if fault := FAULT.search(run.log):
        return "fault", fault[1]
    if missing := NO_DEVICE.search(run.log):
        return "failed", missing[1] or missing[2]
    if run.code < 0 or run.code > 128:
        return "crashed", f"signal {-run.code if run.code < 0 else run.code - 128}"
    if run.code != 0:
        return "failed", (run.log.strip().splitlines() or ["no message"])[-1]
    if not JOB.search(run.log):
        refused = REFUSED.search(run.log)
        verdict, detail = compare(expected.outputs, run.outputs, run.is_signed)
        why = f"{refused[1]} refused" if refused else "nothing to do on the NPU"
        return "no job", why if verdict == "exact" else f"{why}; yet {verdict}: {detail}"
    return compare(expected.outputs, run.outputs, run.is_signed)
