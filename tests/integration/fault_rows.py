"""Faults of a virtual node, and the check that a host handles each: the answer is right, or there is an error with a sentence."""

import re

LEFT = re.compile("runs? on the CPU")
CALLS = {
    "a311d": ["open", "mmap", "version", "get_param", "gem_new", "gem_info", "gem_cpu_prep", "gem_cpu_fini", "gem_close", "submit", "wait_fence"],
    "rk3588": ["open", "mmap", "version", "create_bo", "prep_bo", "fini_bo", "gem_close", "submit"],
}
NEW_BUFFER = {"a311d": "gem_new", "rk3588": "create_bo"}
# Each run compares first, which adds jobs that can fail.
ENVIRONMENT = {"SKILLET_TIMEOUT_MS": "1000", "SKILLET_UNPROVEN": "verify", "SKILLET_TRUST_DIR": ""}


ERRORS = ["ENODEV", "EIO", "ENOMEM", "ETIMEDOUT", "EACCES", "EINVAL", "EBUSY", "ENOSPC"]


def rows(chip):
    """Returns the faults: each call failing always, and from some place on, with various errors; a lost device; no memory; lost jobs."""
    places = [(call, place) for call in CALLS[chip] for place in ("*", f"{len(call) % 4 + 2}-*")]
    failing = [f"{call}:{place}:EIO" for call, place in places]
    others = [f"{call}:{place}:{ERRORS[i % len(ERRORS)]}" for i, (call, place) in enumerate(places)]
    gone = [f"{call}:{i % 3 + 1}:ENODEV" for i, call in enumerate(CALLS[chip])]
    return [*dict.fromkeys([*failing, *others, *gone]), "submit:2:hang", f"{NEW_BUFFER[chip]}:2-*:ENOMEM", "submit:3:reset", "submit:2:reset_before", "submit:*:hang"]


def check(host, skillet, chip, run, is_right):
    """Checks a host. RUN(command prefix, settings) returns the answer, or None after an error, and the messages."""
    def under(fault):
        return run([str(skillet), "virtual", "--chip", chip, *(["--fail", fault] if fault else []), "--"], ENVIRONMENT)

    answer, said = under("")
    assert answer is not None and is_right(answer) and not LEFT.search(said), said[-3000:]
    wrong, on_cpu, errors = [], 0, 0
    for fault in rows(chip):
        answer, said = under(fault)
        on_cpu += bool(LEFT.search(said))
        errors += answer is None
        is_told = "skillet: " in said
        if not is_told if answer is None else not is_right(answer):
            wrong.append((fault, said[-800:]))
        if fault.startswith("submit:") and fault.endswith("EIO") and not LEFT.search(said):
            wrong.append((fault, "the NPU is not left", said[-800:]))
    print(f"{host}: {len(rows(chip))} faults of {chip}, {on_cpu} times the CPU ran a part that had been the NPU's, {errors} errors")
    assert not wrong, wrong
    assert on_cpu >= 4, "faults do not reach the part"
