#!/usr/bin/env python3
"""Tests bad uses of the `skillet` command: exit codes, and one-line errors without an abort.

usage: bad_use_test.py SKILLET      run at the top of the source tree
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, "tests/integration")
import long_cases  # noqa: E402

SKILLET = str(Path(sys.argv.pop(1)).resolve())
CANNOT_BEGIN, FAILED, FINE = 2, 1, 0
# Sanitizers need address space. The counters of a coverage build need files, and print a message if they get none.
NEEDS_SPACE = "SANITIZED" in os.environ or "SLOW_BUILD" in os.environ

# Shell text, exit code, words of the one line on stderr (None: stderr is empty). $sk: the command, $m: a good model,
# $n: a model with an operation that no kernel computes and with names that control terminals, $c: a good capture, $T: a folder of fixtures, $as_user:
# runs without root's rights.
USES = [
    # Outputs that cannot be written.
    ("$sk decode $c > /dev/full", FAILED, "standard output: No space left on device"),
    ("$sk decode $c --json > /dev/full", FAILED, "standard output: No space left on device"),
    ("$sk check $m --device sim:a311d > /dev/full", FAILED, "standard output: No space left on device"),
    ("$sk run $m --device sim:a311d > /dev/full", FAILED, "standard output: No space left on device"),
    ("$sk devices --json > /dev/full", FAILED, "standard output: No space left on device"),
    ("$sk --help > /dev/full", FAILED, "standard output: No space left on device"),
    ("$sk check --help > /dev/full", FAILED, "standard output: No space left on device"),
    ("$sk --version > /dev/full", FAILED, "standard output: No space left on device"),
    ("SKILLET_DEBUG=help $sk > /dev/full", FAILED, "standard output: No space left on device"),
    ("$sk devices >&-", FAILED, "standard output: Bad file descriptor"),
    ("$sk run no_such_file.tflite 2> /dev/full", CANNOT_BEGIN, None),
    ("$sk run no_such_file.tflite 2>&-", CANNOT_BEGIN, None),
    ("trap '' PIPE; exec 3> >(true); wait $!; $sk decode $c >&3", FAILED, None),
    ("trap '' PIPE; exec 3> >(true); wait $!; $sk decode $c --json >&3", FAILED, None),
    # Names that are not UTF-8.
    ("$sk check $T/x$'\\xff'.tflite --device cpu --json > /dev/null", FINE, None),
    ("$sk run $T/x$'\\xff'.tflite --device cpu --json > /dev/null", FINE, None),
    ("$sk compile $T/x$'\\xff'.tflite --device sim:a311d --json > /dev/null", FINE, None),
    ("$sk run $T/y$'\\xff'.tflite --device cpu --json", CANNOT_BEGIN, "No such file or directory"),
    ("$sk run $T/y$'\\x1b[31m'.tflite --device cpu --json", CANNOT_BEGIN, "y?[31m.tflite"),
    ("$sk run $T/y$'\\n'second.tflite", CANNOT_BEGIN, "y?second.tflite: No such file or directory"),
    ("$sk check $n 2>&1 | grep -aP '^second|\\x1b' >&2; false", FAILED, None),
    ("$sk check $T/x$'\\n'second.tflite --device cpu | grep '^second' >&2; false", FAILED, None),
    ("$sk run $T/x$'\\n'second.tflite --device cpu --image $T/x$'\\n'second.png --show | grep '^second' >&2; false", FAILED, None),
    ("$sk cdi --mount /a$'\\xff':/b", CANNOT_BEGIN, "a name with control characters, or not in UTF-8"),
    ("$sk cdi --mount /a:/b$'\\x7f'", CANNOT_BEGIN, "a name with control characters, or not in UTF-8"),
    # Files of a wrong kind, or too large.
    ("$sk run $T/fifo", CANNOT_BEGIN, "fifo: is a pipe, not a file"),
    ("$sk run /dev/zero", CANNOT_BEGIN, "/dev/zero: is a device, not a file"),
    ("$sk run $T/sparse", CANNOT_BEGIN, "sparse: not a TensorFlow Lite model"),
    ("$sk run $T/zeros", CANNOT_BEGIN, "zeros: not a TensorFlow Lite model"),
    ("$sk run $T/empty", CANNOT_BEGIN, "empty: is empty"),
    ("$sk run $T", CANNOT_BEGIN, "is a folder, not a file"),
    ("$sk run $m --image $T/fifo", CANNOT_BEGIN, "fifo: is a pipe, not a file"),
    ("$sk run $m --image /dev/zero", CANNOT_BEGIN, "/dev/zero: is a device, not a file"),
    ("$sk run $m --image $T/sparse", CANNOT_BEGIN, "sparse: is larger than 2 GiB"),
    ("$sk run $m --input $T/fifo", CANNOT_BEGIN, "fifo: is a pipe, not a file"),
    ("$sk run $m --input $T/sparse.npy", CANNOT_BEGIN, "sparse.npy: is larger than 2 GiB"),
    ("$sk run $m --labels $T/fifo", CANNOT_BEGIN, "fifo: is a pipe, not a file"),
    ("$sk run $m --labels no_such_file", CANNOT_BEGIN, "no_such_file: No such file or directory"),
    ("$sk run $m --image no_such_file", CANNOT_BEGIN, "no_such_file"),
    ("printf '\\377\\376a\\0' > $T/wide; $sk run $m --labels $T/wide", CANNOT_BEGIN, "wide: is not UTF-8 text"),
    ("printf 'a\\nthr\\xe9e\\n' > $T/latin1; $sk run $m --labels $T/latin1", CANNOT_BEGIN, "latin1: line 2 is not UTF-8 text"),
    ("$sk run tests/models/concat2_i8.tflite --device cpu --record $T/none.skcap", CANNOT_BEGIN, "the CPU submits no jobs"),
    ("printf '0 a\\n0 b\\n' > $T/twice; $sk run $m --labels $T/twice", CANNOT_BEGIN, "twice: line 2: class 0 is 'a' and 'b'"),
    ("$sk run tests/models/no_inputs.tflite > /dev/null", FINE, None),
    ("$sk run tests/models/no_inputs.tflite --image models/digits/3.png", CANNOT_BEGIN, "--image needs a network with one input"),
    ("$sk bench tests/models/no_inputs.tflite --runs 1 > /dev/null", FINE, None),
    ("$sk run $m --image models/digits/3.png --draw $T/z.jpg", CANNOT_BEGIN, "z.jpg: pictures are written as .png, or to a folder"),
    ("$sk check $m --require 0.9", CANNOT_BEGIN, "0.9 is less than one percent; write 90%"),
    # The old file stays if the new one does not fit.
    ("echo old > $T/kept.npy; (trap '' XFSZ; ulimit -f 0; $sk run $m --device cpu --output $T/kept.npy > /dev/null); grep -q old $T/kept.npy", FINE,
     "kept.npy: File too large"),
    ("echo old > $T/kept2.npy; ln -s kept2.npy $T/link.npy; $sk run $m --device cpu --output $T/link.npy > /dev/null; test -L $T/link.npy && "
     "grep -q NUMPY $T/kept2.npy && test -z \"$(ls $T | grep 'npy\\.')\"", FINE, None),
    # Outputs that would overwrite inputs, or each other.
    ("cp $m $T/own.tflite; $sk compile $T/own.tflite --device sim:a311d -o $T/own.tflite; code=$?; cmp $m $T/own.tflite && exit $code", CANNOT_BEGIN,
     "own.tflite is the file that MODEL reads"),
    ("cp $m $T/own.tflite; ln -sf own.tflite $T/link.tflite; $sk fix $T/own.tflite --device sim:a311d -o $T/link.tflite", CANNOT_BEGIN,
     "link.tflite is the file that MODEL reads"),
    ("cp $m $T/own.tflite; $sk tune $T/own.tflite --device sim:a311d -o $T/own.tflite", CANNOT_BEGIN, "is the file that MODEL reads"),
    ("$sk edit tests/captures/a311d_conv1x1_relu6_u8 -o $T/e.txt; $sk edit $T/e.txt -o $T/e.txt", CANNOT_BEGIN, "is the file that PATH reads"),
    ("cp $m $T/own.tflite; $sk bug $T/own.tflite -o $T/./own.tflite", CANNOT_BEGIN, "is the file that MODEL reads"),
    ("cp $m $T/own.tflite; $sk check $T/own.tflite --html $T/own.tflite", CANNOT_BEGIN, "--html: "),
    ("cp models/digits/3.png $T/p.png; $sk run $m --image $T/p.png --draw $T/p.png", CANNOT_BEGIN, "--draw: "),
    ("cp models/digits/3.png $T/p.png; $sk run $m --image $T/p.png --draw $T", CANNOT_BEGIN, "is the file that --image reads"),
    ("$sk run $m --image models/digits/3.png --device sim:a311d --draw $T/q.png --record $T/q.png", CANNOT_BEGIN,
     "is the file that --draw writes"),
    ("$sk run $m --device sim:a311d --random 1 --output $T/one.npy --record $T/one.npy", CANNOT_BEGIN, "one.npy is the file that"),
    ("cp models/digits_labels.txt $T/l.npy; $sk run $m --labels $T/l.npy --output $T/l.npy", CANNOT_BEGIN, "is the file that --labels reads"),
    ("$sk decode no_such_file", CANNOT_BEGIN, "no_such_file: No such file or directory"),
    ("$sk decode README.md", CANNOT_BEGIN, "README.md"),
    ("$sk diff $c no_such_file", CANNOT_BEGIN, "no_such_file"),
    # Models that nothing here can run: shown with the reason as a failure, or refused at the start.
    ("$sk check $n > /dev/null", FAILED, "a311d: 1 operation runs nowhere: "),
    ("$sk check $n --json > /dev/null", FAILED, "a host may run it (check --delegate)"),
    ("$sk check $n --device sim:rk3588 > /dev/null", FAILED, "sim:rk3588: 1 operation runs nowhere: "),
    ("SKILLET_DEVICE=sim:rk3588 $sk check $n > /dev/null", FAILED, "sim:rk3588: 1 operation runs nowhere: "),
    ("$sk check $n --delegate > /dev/null", FINE, None),
    ("$sk check $m --verbose", CANNOT_BEGIN, "--verbose requires --device"),
    ("SKILLET_DEVICE=sim:a311d $sk check $m --verbose > /dev/null", FINE, None),
    ("SKILLET_DEVICE=nope $sk check $m", CANNOT_BEGIN, "nope"),
    ("SKILLET_DEVICE=nope $sk check $m --delegate > /dev/null", FINE, None),
    ("SKILLET_DEVICE= $sk check $m > /dev/null", FINE, None),
    ("$sk run $n", CANNOT_BEGIN, "no_kernel.tflite: op 0 Foo?second?[31m -> 'o?second': no CPU kernel"),
    ("$sk run $n --device sim:a311d", CANNOT_BEGIN, "no CPU kernel"),
    ("$sk bench $n --device cpu", CANNOT_BEGIN, "no_kernel.tflite: op 0"),
    ("$sk bench $n --device sim:a311d", CANNOT_BEGIN, "no CPU kernel"),
    ("$sk fix $n --device sim:a311d -o $T/x.tflite", CANNOT_BEGIN, "no CPU kernel"),
    ("$sk bug README.md --device sim:a311d -o $T/bug.tar > /dev/null; code=$?; tar tf $T/bug.tar > /dev/null && exit $code", FINE,
     "the report contains this, and nothing else of the model: README.md: not a TensorFlow Lite model"),
    # Damaged, or of another kind than it is taken for.
    ("$sk decode $T/flipped.skp", CANNOT_BEGIN, "flipped.skp: it is damaged: its checksum does not match"),
    ("$sk decode $T/cut.skp", CANNOT_BEGIN, "cut.skp: it has "),
    ("$sk diff $T/flipped.skp $c", CANNOT_BEGIN, "it is damaged: its checksum does not match"),
    ("$sk lookup 0x1004 --chip rk3566", CANNOT_BEGIN, "rk3566: no rows describe it"),
    ("$sk lookup kernel --chip rk3568", CANNOT_BEGIN, "rk3568: no rows describe it"),
    # Outputs to places that cannot be written.
    ("$sk run $m --device sim:a311d --tuning-file $T/fifo", CANNOT_BEGIN, "fifo: is a pipe, not a file"),
    ("$sk bug $m --device sim:a311d -o $T/fifo", CANNOT_BEGIN, "fifo: is a pipe, not a file"),
    ("$sk compile $m --device sim:a311d -o $T/fifo", CANNOT_BEGIN, "fifo: is a pipe, not a file"),
    ("$sk check $m --html $T/fifo", CANNOT_BEGIN, "fifo: is a pipe, not a file"),
    ("$sk run $m --device cpu --output /proc/x.npy", CANNOT_BEGIN, "/proc/x.npy"),
    ("ln -s nothing.npy $T/gone.npy; $sk run $m --device cpu --output $T/gone.npy", CANNOT_BEGIN, "gone.npy: is a link to a file that does not exist"),
    ("ln -s nothing $T/gone; $sk run $m --device cpu --output $T/gone", CANNOT_BEGIN, "gone: is a link to a file that does not exist"),
    ("$sk run $m --image models/digits/3.png --device cpu --draw $T/gone", CANNOT_BEGIN, "gone: is a link to a file that does not exist"),
    ("$sk run $m --device sim:a311d --cache-dir $T/gone", CANNOT_BEGIN, "gone: is a link to a file that does not exist"),
    ("$sk decode $c --extract $T/gone", CANNOT_BEGIN, "gone: is a link to a file that does not exist"),
    ("$sk decode $c --weights $T/gone", CANNOT_BEGIN, "gone: is a link to a file that does not exist"),
    ("$sk replay $c --device sim:a311d --output $T/gone", CANNOT_BEGIN, "gone: is a link to a file that does not exist"),
    ("$sk compile $m --device sim:a311d -o $T/gone", CANNOT_BEGIN, "gone: is a link to a file that does not exist"),
    ("$sk compile $m --device sim:a311d -o $T/socket", CANNOT_BEGIN, "socket: is a socket, not a file"),
    ("$sk bug $m --device sim:a311d -o $T/socket", CANNOT_BEGIN, "socket: is a socket, not a file"),
    # A capture that was cut off, and what it lacks.
    ("$sk replay $T/cut.skcap --device sim:a311d", FAILED, "cut off after submission 1"),
    ("$sk plan $T/cut.skcap", FAILED, "cut off after submission 1"),
    ("$sk capture -o $T/copied -- cp $T/cut.skcap $T/copied 2> $T/said; code=$?; head -1 $T/said >&2; exit $code", FAILED, "cut off after submission 1"),
    ("$sk replay $c --device sim:a311d --set foo=1", CANNOT_BEGIN, "foo"),
    ("$sk replay $c --device sim:a311d --input 99=$m", CANNOT_BEGIN, "no submission has a buffer 99"),
    ("$sk replay $c --device sim:a311d --expect $T", CANNOT_BEGIN, "No such file or directory"),
    # Options that would have no effect.
    ("$sk plan $c --partition all", CANNOT_BEGIN, "--partition: only for a model"),
    ("$sk plan $c --input-shape 1x2x2x1", CANNOT_BEGIN, "--input-shape: only for a model"),
    ("$sk plan $c --chip a311d --chip s905d3", CANNOT_BEGIN, "for one chip"),
    ("$sk plan $c --set foo=1", CANNOT_BEGIN, "foo"),
    ("$sk eval $m --data models/digits --device cpu --bound 2", CANNOT_BEGIN, "--bisect"),
    # Invalid numbers.
    ("$sk run $m --device cpu --compare --tolerance nan", CANNOT_BEGIN, "must be a number of 0 or more, not 'nan'"),
    ("$sk run $m --device cpu --compare --tolerance inf", CANNOT_BEGIN, "must be a number of 0 or more, not 'inf'"),
    ("$sk run $m --device cpu --threshold nan", CANNOT_BEGIN, "not 'nan'"),
    ("$sk eval $m --data models/digits --device cpu --bisect", FAILED, "--bisect: cpu computes no operation"),
    ("$sk eval $m --data models/digits --device cpu --bisect --bound nan", CANNOT_BEGIN, "not 'nan'"),
    # Too little memory.
    ("ulimit -v 500000; $sk run $m --input $T/zeros", CANNOT_BEGIN, "not enough memory"),
    ("ulimit -v 500000; $sk decode $T/zeros", CANNOT_BEGIN, "not a skillet capture file"),
    ("ulimit -v 500000; $sk diff $T/zeros $c", CANNOT_BEGIN, "nor a compiled model"),
    ("$as_user $sk run $T/locked/model.tflite", CANNOT_BEGIN, "Permission denied"),
    ("$as_user $sk decode $T/locked/model.tflite", CANNOT_BEGIN, "Permission denied"),
    ("$as_user $sk diff $c $T/locked/model", CANNOT_BEGIN, "Permission denied"),
    # Places to write are checked before the work.
    ("$sk run $m --device sim:a311d --record $T/nowhere/x", CANNOT_BEGIN, "nowhere/x: No such file or directory"),
    ("$sk run $m --device sim:a311d --record $T", CANNOT_BEGIN, "exists and is not a capture file"),
    ("$sk run $m --device cpu --record $T/x", CANNOT_BEGIN, "--record: the CPU submits no jobs"),
    ("$sk compile $m --device sim:a311d -o $T/nowhere/x", CANNOT_BEGIN, "nowhere/x: No such file or directory"),
    ("$sk compile $c/model.tflite --device sim:a311d --partition all -o /dev/full > /dev/null", FAILED, "/dev/full: No space left on device"),
    ("$sk run $m --device sim:a311d --record /dev/full", CANNOT_BEGIN, "/dev/full exists and is not a capture file"),
    ("$sk run $m --device sim:a311d --cache-dir $T/empty", CANNOT_BEGIN, "empty: Not a directory"),
    ("$as_user $sk run $m --device sim:a311d --record $T/locked/x", CANNOT_BEGIN, "locked/x: Permission denied"),
    ("$sk capture -o $T/nowhere/x -- true", CANNOT_BEGIN, "nowhere/x: No such file or directory"),
    ("$as_user $sk capture -o $T/locked/x -- true", CANNOT_BEGIN, "locked/x: Permission denied"),
    ("$sk capture -o $T/empty -- true", CANNOT_BEGIN, "exists and is not a capture file"),
    ("TMPDIR=/proc/nowhere $sk virtual --chip a311d -- true", CANNOT_BEGIN, "/proc/nowhere"),
    ("$sk run $m --device sim:a311d --record ''", CANNOT_BEGIN, "--record: must not be empty"),
    ("$sk run $m --device sim:a311d --cache-dir ''", CANNOT_BEGIN, "--cache-dir: must not be empty"),
    ("$sk bug $m --device sim:a311d -o ''", CANNOT_BEGIN, "--output: must not be empty"),
    ("$sk run $m --device sim:a311d --labels ''", CANNOT_BEGIN, "--labels: must not be empty"),
    ("$sk eval $m --data models/digits --device cpu --labels ''", CANNOT_BEGIN, "--labels: must not be empty"),
    ("$sk run $m --device sim:a311d --tuning-file ''", CANNOT_BEGIN, "--tuning-file: must not be empty"),
    ("SKILLET_TUNING_FILE= SKILLET_CORES= SKILLET_ALLOW_UNPROVEN= $sk run $m --device sim:a311d > /dev/null", FINE, None),
    *[(f"SKILLET_{name}=x $sk {verb}", CANNOT_BEGIN, f"--{name.lower().replace('_', '-')}: must be ") for name in ("HOST_THREADS", "MIN_MACS_PER_BYTE", "PARTITION")
      for verb in ("run $m", "bench $m", "check $m", "plan $m", "compile $m --device sim:a311d", "tune $m --device sim:a311d -o $T/none")],
    ("$sk compile $m --device sim:rk3588 --partition predicted -o $T/none", FAILED, "--partition all takes what it can"),
    ("$sk compile $m --device sim:rk3588 --partition predicted > /dev/null", FINE, None),
    ("$sk tune $m --device sim:rk3588 --partition predicted -o $T/none", FAILED, "--partition all takes what it can"),
    ("$sk run $m --device sim:xyz", CANNOT_BEGIN, "no chip 'xyz' (known: "),
    ("$sk decode $m --chip xyz", CANNOT_BEGIN, "no chip 'xyz' (known: "),
    *[(f"SKILLET_TUNING=x $sk {verb}", CANNOT_BEGIN, "--tuning: must be ") for verb in ("run $m", "bench $m", "plan $m")],
    ("SKILLET_ALLOW_UNPROVEN= $sk run $m --device ''", CANNOT_BEGIN, "--device: must not be empty"),
    ("$sk capture -o '' -- true", CANNOT_BEGIN, "--output: must not be empty"),
    ("SKILLET_ALLOW_UNPROVEN=1 $sk virtual --chip a311d --fail '' -- true", FINE, None),
    ("$sk decode $c --chip ''", CANNOT_BEGIN, "--chip: must not be empty"),
    ("$sk run ''", CANNOT_BEGIN, "MODEL: must not be empty"),
    ("$sk capture -o $T/none -- test -z ''", FAILED, "nothing was recorded"),
    # A tuning file with unknown names.
    ("$sk tune $m --device sim:a311d -o $T/tuned.json > /dev/null 2>&1; sed 's/\"name\": \"/&no_/' $T/tuned.json > $T/wrong.json; "
     "$sk run $m --device sim:a311d --tuning-file $T/wrong.json", CANNOT_BEGIN, "wrong.json: tuning file: part "),
    ("$sk bench $m --device sim:a311d --tuning-file $T/wrong.json", CANNOT_BEGIN, "wrong.json: tuning file: part "),
    ("$sk eval $m --data models/digits --device sim:a311d --tuning-file $T/wrong.json", CANNOT_BEGIN, "wrong.json: tuning file: part "),
    ("$sk compile $m --device sim:a311d --tuning-file $T/wrong.json", CANNOT_BEGIN, "wrong.json: tuning file: part "),
    ("SKILLET_DEBUG=capture= $sk run $m --device sim:a311d > /dev/null", FINE, "SKILLET_DEBUG: 'capture' does nothing: it must be capture=FILE"),
    ("SKILLET_DEBUG=capture $sk run $m --device sim:a311d > /dev/null", FINE, "SKILLET_DEBUG: 'capture' does nothing: it must be capture=FILE"),
    ("SKILLET_REQUIRE_NPU=true $sk run $m", CANNOT_BEGIN, "no NPU here"),
    ("SKILLET_REQUIRE_NPU= $sk run $m > /dev/null", FINE, None),
    ("SKILLET_REQUIRE_NPU=0 $sk run $m > /dev/null", FINE, None),
    ("$sk compile $m --device sim:a311d -o ''", CANNOT_BEGIN, "--output: must not be empty"),
    ("ulimit -f 1; $sk compile $c/model.tflite --device sim:a311d --partition all -o $T/limited > /dev/null", FAILED, "limited: File too large"),
    # Pictures that are damaged.
    ("$sk run $m --image $T/flipped.png", CANNOT_BEGIN, "flipped.png: the picture is damaged or cut off"),
    ("$sk run $m --image $T/cut.png", CANNOT_BEGIN, "cut.png: the picture is damaged or cut off"),
    # Values that make no sense.
    ("SKILLET_SIM_POINTERS=foo $sk run $m --device sim:rk3588", CANNOT_BEGIN,
     "skillet: sim:rk3588: SKILLET_SIM_POINTERS=foo: must be one of off, warn, fault\n"),
    ("SKILLET_SIM_SEED=foo $sk run $m --device sim:rk3588", CANNOT_BEGIN,
     "skillet: sim:rk3588: SKILLET_SIM_SEED=foo: must be a number from 0 to 2^64 - 1\n"),
    ("SKILLET_SIM_TIE_RULE=foo $sk run $m --device sim:a311d", CANNOT_BEGIN,
     "skillet: sim:a311d: SKILLET_SIM_TIE_RULE=foo: must be one of half_up, half_even, half_away, half_down\n"),
    ("$sk run $m --device sim:toy,quirk=foo", CANNOT_BEGIN, "skillet: sim:toy,quirk=foo: no quirk 'foo': toy has none\n"),
    ("$sk run $m --device sim:toy,foo=1", CANNOT_BEGIN,
     "skillet: sim:toy,foo=1: 'foo=1' after the chip: must be quirk=NAME[+NAME...]\n"),
    ("$sk run $m --device null:toy,quirk=foo", CANNOT_BEGIN, "a device that computes nothing has no quirks"),
    ("$sk run $m --device sim:x,quirk=foo", CANNOT_BEGIN, "skillet: sim:x,quirk=foo: no chip 'x'"),
    ("SKILLET_SIM_QUIRK=foo $sk run $m --device sim:toy", CANNOT_BEGIN,
     "skillet: sim:toy: SKILLET_SIM_QUIRK=foo: no quirk 'foo': toy has none\n"),
    ("SKILLET_SIM_QUIRK=foo $sk virtual --chip toy -- true", CANNOT_BEGIN,
     "skillet: sim:toy: SKILLET_SIM_QUIRK=foo: no quirk 'foo': toy has none\n"),
    ("$sk run $m --device sim:a311d,quirk=large_filters_hng", CANNOT_BEGIN,
     "no quirk 'large_filters_hng'; did you mean 'large_filters_hang'?; a311d can have channels_dealt_in_turn, "),
    ("SKILLET_ALOW_UNPROVEN=1 $sk run $m --device cpu > /dev/null", FINE, "did you mean 'SKILLET_ALLOW_UNPROVEN'"),
    ("$sk", CANNOT_BEGIN, "subcommand is required"),
    ("$sk run", CANNOT_BEGIN, "MODEL is required"),
    # An option with a list does not consume the model.
    ("$sk run --image models/digits/3.png $m --device cpu > /dev/null", FINE, None),
    ("$sk run --device cpu --image models/digits/*.png $m > /dev/null", FINE, None),
    ("$sk run --image models/digits/*.png $m --device cpu --json | grep -c '\"input\"' | grep -q $(ls models/digits/*.png | wc -l)", FINE, None),
    ("$sk run $m --image models/digits/*.png --device cpu > /dev/null", FINE, None),
    ("$sk run --image=models/digits/3.png $m --device cpu > /dev/null", FINE, None),
    ("$sk run --image models/digits/3.png --device cpu", CANNOT_BEGIN, "MODEL is required"),
    ("$sk plan --chip a311d $m > /dev/null", FINE, None),
    ("$sk plan --chip a311d --chip rk3588 $m > /dev/null", FINE, None),
    ("$sk plan --set x=1 $m", CANNOT_BEGIN, "no timing parameter 'x'"),
    ("$sk plan --chip a311d --set task_us=1 $m", CANNOT_BEGIN, "chip a311d has no timing parameter 'task_us' (--chip rk3588, rk3576 has)"),
    ("$sk plan --chip rk3588 $c", CANNOT_BEGIN, "these are jobs for a311d; rk3588 is of another family"),
    ("$sk decode --chip rk3588 $c", CANNOT_BEGIN, "these are jobs for a311d; rk3588 is of another family"),
    ("$sk plan --chip nope $m", CANNOT_BEGIN, "nope"),
    ("$sk replay --set foo=1 $c --device sim:a311d", CANNOT_BEGIN, "foo"),
    ("timeout 10 $sk replay --set $(head -c 100000 /dev/zero | tr '\\0' x)=1 $c --device sim:a311d 2> /dev/null", CANNOT_BEGIN, None),
    ("$sk run $m --device gpu0", CANNOT_BEGIN, "no device 'gpu0'; did you mean 'npu'?"),
    ("$sk run $m --device npu0", CANNOT_BEGIN, "; did you mean 'npu'?"),
    ("$sk run $m --device SIM:A311D", CANNOT_BEGIN, "; did you mean 'sim:a311d'?"),
    ("$sk run $m --device Etnaviv0", CANNOT_BEGIN, "; did you mean 'etnaviv0'?"),
    ("$sk run $m --device dev/dri/renderD128", CANNOT_BEGIN, "; did you mean '/dev/dri/renderD128'?"),
    ("$sk run $m --device something", CANNOT_BEGIN, "device 'something' is not one of auto, npu, cpu, /dev/..., etnaviv0, sim:CHIP, null:CHIP"),
    ("$sk run $m --device etnaviv0", CANNOT_BEGIN, "no NPU here"),
    ("$sk run $m --device cpu --cores 99", CANNOT_BEGIN, "from 1 to 64, not '99'"),
    ("$sk run $m --device sim:a311d --cores 9 > /dev/null", FINE, "--cores 9: sim:a311d has only 1"),
    ("$sk run $m --device sim:rk3588 --cores 4 > /dev/null", FINE, "--cores 4: sim:rk3588 has only 3"),
    ("$sk run $m --device sim:rk3588 --cores 3 > /dev/null", FINE, None),
    ("$sk check $m --device sim:a311d --partition all --host-threads 2 > /dev/null", FINE, "--host-threads: used with --partition predicted; with all"),
    ("$sk check $m --device sim:a311d --partition all --min-macs-per-byte 2 > /dev/null", FINE, "used with --partition work; with all it counts for nothing"),
    ("$sk check $m --device sim:a311d --partition predicted --host-threads 2 > /dev/null", FINE, None),
    ("$sk run $m --device null:a311d --compare > /dev/null", FINE, "null:a311d takes jobs but computes nothing"),
    ("$sk plan README.md", CANNOT_BEGIN, "README.md: neither a model, whose name ends with .tflite or .onnx, nor a capture"),
    # An operation left to the CPU is printed with its number in the model, once.
    ("$sk plan $m --chip rk3588 --tuning recorded 2>&1 > /dev/null | grep -E 'op [0-9]+ .* op [0-9]+ ' >&2; false", FAILED, None),
    ("$sk plan $m --chip rk3588 --tuning recorded 2>&1 > /dev/null | grep -q \"op 12 RESHAPE -> .* runs on the CPU: the recorded driver does not take RESHAPE$\"", FINE, None),
    ("$sk replay $c --device cpu", CANNOT_BEGIN, "device 'cpu' is not an NPU"),
    ("$sk replay $c --device auto", CANNOT_BEGIN, "device 'auto' is not an NPU"),
    # Wrong options are errors. Wrong values of the environment are warnings, since they may be meant for other programs.
    ("SKILLET_CACHE_DIR=/dev/null $sk run $m --device sim:a311d > /dev/null 2> $T/said; code=$?; tail -1 $T/said >&2; exit $code", FINE, "Not a directory; cache_dir (SKILLET_CACHE_DIR) names the folder"),
    ("SKILLET_ALLOW_UNPROVEN=1 SKILLET_CACHE_DIR=/dev/null $sk virtual --chip a311d -- $sk run $m --device npu > /dev/null 2> $T/said; code=$?; tail -1 $T/said >&2; exit $code", FINE,
     "Not a directory; cache_dir (SKILLET_CACHE_DIR) names the folder"),
    ("$sk run $m --device sim:a311d --cache-dir /dev/null", CANNOT_BEGIN, "--cache-dir: /dev/null: Not a directory"),
    ("$sk bench $m --device sim:a311d --cache-dir /dev/null", CANNOT_BEGIN, "--cache-dir: /dev/null: Not a directory"),
    ("$sk eval $m --data models/digits --device sim:a311d --cache-dir /dev/null", CANNOT_BEGIN, "--cache-dir: /dev/null: Not a directory"),
    ("SKILLET_CACHE_DIR=$T/kept $sk bench $m --device sim:a311d --runs 1 --without-cpu > /dev/null; ls $T/kept/*.skp > /dev/null 2>&1", FINE, None),
    ("SKILLET_TIMEOUT_MS=abc $sk run $m --device sim:a311d", CANNOT_BEGIN, "--timeout-ms: must be a number of milliseconds, 1 or more, not 'abc' (as SKILLET_TIMEOUT_MS says)"),
    ("SKILLET_TIMEOUT_MS=7 $sk run $m --device sim:a311d --timeout-ms abc 2>&1 | grep -q 'SKILLET_' && echo wrong >&2", FAILED, None),
    ("SKILLET_FALLBACK=bogus $sk bench $m --device sim:a311d", CANNOT_BEGIN, "must be 1 or 0, not 'bogus' (as SKILLET_FALLBACK says)"),
    ("SKILLET_SWITCHES=bogus $sk run $m --device sim:a311d", CANNOT_BEGIN, "bogus"),
    ("SKILLET_SWITCHES=+ $sk compile $m --device sim:a311d", CANNOT_BEGIN, "must be names of switches, joined by +, not '+'"),
    ("SKILLET_TIMEOUT_MS=300 SKILLET_FALLBACK=0 $sk virtual --chip rk3588 --fail 'submit:1-*:hang' -- $sk run $m --device npu --unproven take --partition all", FAILED,
     "waiting up to 300 ms"),
    ("SKILLET_ALLOW_UNPROVEN=1 $sk virtual --chip a311d --fail open:1:EACCES -- $sk run $m --device npu", CANNOT_BEGIN,
     "/dev/dri/renderD128: opening: EACCES"),
    ("SKILLET_DEBUG=capture=$T/cut.skcap $sk run $m --device sim:a311d > /dev/null", FINE, "cut.skcap exists; submissions to sim:a311d are recorded in"),
    ("$sk run $m --device npu", CANNOT_BEGIN, "no NPU here"),
    ("$sk compile $m --device cpu", CANNOT_BEGIN, "nothing is compiled for the CPU"),
    ("$sk virtual --chip toaster -- true", CANNOT_BEGIN, "toaster"),
    ("$sk virtual --chip a311d --fail nonsense -- true", CANNOT_BEGIN, "nonsense"),
    ("$sk virtual --chip a311d --fail submit:5-2:EIO -- true", CANNOT_BEGIN, "'5-2' ends before it begins"),
    ("$sk capture -o $T/x -- no_such_program", 127, "no_such_program: No such file or directory"),
]

# Ranges of numbers that options take: verb, option, lowest, highest.
RANGES = [
    ("run", "--top", 1, 10**6), ("run", "--repeat", 1, 10**6), ("run", "--random", 0, 2**64 - 1),
    ("bench", "--runs", 1, 10**7), ("bench", "--warm-up", 0, 10**7), ("tune", "--runs", 1, 10**5), ("tune", "--warm-up", 0, 10**5),
    ("decode", "--submission", 0, 2**31 - 1), ("decode", "--last", 1, 2**31 - 1), ("diff", "--last", 1, 2**31 - 1),
]


def make_fixtures(folder):
    model = Path("models/digits.tflite").read_bytes()
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(folder / "socket"))
    for name in ("sparse", "sparse.npy"):
        with open(folder / name, "wb") as file:
            file.truncate(40 << 30)
    with open(folder / "zeros", "wb") as file:
        file.truncate(1 << 30)
    (folder / "empty").touch()
    Path(os.fsdecode(bytes(folder) + b"/x\xff.tflite")).write_bytes(model)
    Path(folder / "x\nsecond.tflite").write_bytes(model)
    png = next(Path("models/digits").glob("*.png")).read_bytes()
    Path(folder / "x\nsecond.png").write_bytes(png)
    (folder / "flipped.png").write_bytes(png[:60] + bytes([png[60] ^ 4]) + png[61:])
    (folder / "cut.png").write_bytes(png[:-16])
    subprocess.run([SKILLET, "run", "models/digits.tflite", "--device", "sim:a311d", "--record", str(folder / "whole.skcap")],
                   stdout=subprocess.DEVNULL, check=True)
    whole = (folder / "whole.skcap").read_bytes()
    (folder / "cut.skcap").write_bytes(whole[:-1])
    subprocess.run([SKILLET, "compile", "models/digits.tflite", "--device", "sim:a311d", "-o", str(folder / "whole.skp")],
                   stdout=subprocess.DEVNULL, check=True)
    program = (folder / "whole.skp").read_bytes()
    (folder / "flipped.skp").write_bytes(program[:-20] + bytes([program[-20] ^ 1]) + program[-19:])
    (folder / "cut.skp").write_bytes(program[:-20])
    (folder / "locked").mkdir()
    (folder / "locked/model.tflite").write_bytes(model)
    (folder / "locked").chmod(0)


def as_user():
    return "setpriv --reuid=65534 --regid=65534 --clear-groups" if os.geteuid() == 0 and shutil.which("setpriv") else ""


class BadUse(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="skillet_bad_use_")
        folder = Path(cls.folder.name)
        folder.chmod(0o755)
        make_fixtures(folder)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SKILLET_")}
        cls.environment = {**kept, "sk": SKILLET, "m": "models/digits.tflite", "n": "tests/models/refused/no_kernel.tflite",
                           "c": "tests/captures/a311d_conv1x1_relu6_u8", "T": str(folder), "as_user": as_user()}

        # Root may do everything, and another user may have no access to the build's folder.
        cls.is_user = os.geteuid() != 0 or as_user() and cls.use("$as_user $sk --version > /dev/null && cd $PWD")[0] == FINE

    @classmethod
    def tearDownClass(cls):
        (Path(cls.folder.name) / "locked").chmod(0o700)
        cls.folder.cleanup()

    @classmethod
    def use(cls, text):
        done = subprocess.run(["bash", "-c", text], capture_output=True, timeout=60, env=cls.environment)
        return done.returncode, done.stderr.decode("utf-8", "replace")

    def test_numbers_of_options(self):
        for verb, option, lowest, highest in RANGES:
            for value in ("x", str(lowest - 1), str(highest + 1), f"{lowest}.5"):
                with self.subTest(verb=verb, option=option, value=value):
                    got, said = self.use(f"$sk {verb} $m {option}={value}")
                    self.assertEqual(got, CANNOT_BEGIN, said)
                    self.assertIn(f"{option}: must be a whole number from {lowest} to {highest}, not '{value}'", said)

    def test_each_bad_use(self):
        for text, code, words in USES:
            if "$as_user" in text and not self.is_user:
                continue
            if NEEDS_SPACE and "ulimit" in text:
                continue
            with self.subTest(use=text):
                got, said = self.use(text)
                if "SANITIZED" in os.environ and "is neither in" in said:
                    continue  # builds with sanitizers have no libraries to preload
                self.assertEqual(got, code, said)
                if words is None:
                    self.assertEqual(said, "")
                else:
                    self.assertIn(words, said)
                    self.assertTrue(said.startswith("skillet: "), said)
                    self.assertEqual(said.count("\n"), 1, said)

    def test_long_too_little_memory(self):
        """With any amount of memory the command succeeds or prints a one-line error, also behind a virtual node, whose library needs memory too."""
        if NEEDS_SPACE:
            self.skipTest("a build that needs space")
        uses = ["$sk run $m --device sim:a311d --json > /dev/null"]
        if self.use("$sk virtual --chip a311d -- true")[0] == FINE:
            uses += ["$sk virtual --chip a311d -- $sk run $m --device npu > /dev/null",
                     "$sk capture -o $T/low -- $sk virtual --chip a311d -- $sk run $m --device npu > /dev/null"]
        # With less, the command itself does not start.
        limits_kb = [limit for limit in range(10_000, 40_000, 3_000)
                     if self.use(f"ulimit -v {limit}; $sk --version > /dev/null")[0] <= CANNOT_BEGIN]
        for use in uses:
            outcomes = set()
            for limit_kb in limits_kb:
                with self.subTest(use=use, limit_kb=limit_kb):
                    got, said = self.use(f"ulimit -v {limit_kb}; {use}")
                    if "terminate called without an active exception" in said:
                        continue  # not even enough for the C++ library's own store of exceptions
                    self.assertNotIn("terminate called", said)
                    # The system may be unable to load the program at all.
                    if not any(words in said for words in ("shared librar", "failed to map", "out of memory")):
                        self.assertIn(got, (FINE, FAILED, CANNOT_BEGIN), said)
                    outcomes.add(got)
            self.assertIn(FINE, outcomes, use)


if __name__ == "__main__":
    long_cases.main()
