#!/usr/bin/env python3
"""skillet.conformance with folders, programs and delegates that do harm: each is a row, and the run goes on.

usage: runner_harm_test.py LIBPLANTED [--build DIR]
Exit code 77: there is no TensorFlow Lite runtime.
"""
import errno
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

from runner_environment import inside

PLANTED = inside(__file__, __doc__)[0]

from runner_cases import NAME, PATIENCE_SECONDS, InFolder, command  # noqa: E402

from skillet.conformance import _cases, _process, _run  # noqa: E402
from skillet.conformance.__main__ import named  # noqa: E402
from skillet.conformance._child import Case  # noqa: E402
from skillet.conformance._run import Runner  # noqa: E402
from skillet.conformance._targets import Target  # noqa: E402


class Folders(InFolder):
    def test_what_is_no_file_is_a_row_with_its_reason(self):
        (self.folder / "right.tflite").write_bytes(_cases.build(NAME).graph.file())
        os.mkfifo(self.folder / "pipe.tflite")
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(self.folder / "socket.tflite"))
        (self.folder / "device.tflite").symlink_to("/dev/zero")
        (self.folder / "loop.tflite").symlink_to("loop.tflite")
        (self.folder / "nowhere.tflite").symlink_to("nowhere")
        (self.folder / "folder.tflite").mkdir()
        (self.folder / "inner").mkdir()
        (self.folder / "inner/up").symlink_to("..")
        with (self.folder / "huge.tflite").open("wb") as file:
            file.truncate(10 << 30)
        begin = time.monotonic()
        code, out, err = command("--delegate", PLANTED, "--suite", self.folder, "--json", "-o", self.folder / "out")
        self.assertEqual(code, 0, err)
        self.assertLess(time.monotonic() - begin, PATIENCE_SECONDS)
        rows = {case["name"].removeprefix("nets/"): case for case in json.loads(out)["cases"]}
        self.assertEqual(rows.pop("right")["status"], "Pass")
        for name, words in dict(pipe="is not a regular file", socket="No such device or address", device="is not a regular file", loop="symbolic links", nowhere="No such file", folder="is not a regular file",
                                huge="has 10737418240 bytes").items():
            row = rows.pop(name)
            self.assertEqual((row["status"], row["taken"]), ("Skip", None), row)
            self.assertRegex(row["reason"], f"the model cannot be read: .*({words})")
        self.assertEqual(rows, {})
        self.assertEqual(command("--delegate", PLANTED, "--suite", self.folder, "--continue", "-o", self.folder / "out")[0], 0)

    def test_a_folder_that_cannot_be_listed_is_a_row(self):
        (self.folder / "inner/closed").mkdir(parents=True)
        (self.folder / "right.tflite").write_bytes(b"")
        real = os.scandir

        def closed(path):
            if str(path).endswith("closed"):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return real(path)
        with unittest.mock.patch.object(os, "scandir", closed):
            self.assertEqual(list(named(self.folder)), ["inner/closed", "right"])

    @unittest.skipUnless(os.geteuid() == 0, "whoever is not root cannot be another user")
    def test_an_unreadable_file_is_a_row(self):
        self.folder.chmod(0o755)
        (self.folder / "secret.tflite").write_bytes(b"x")
        (self.folder / "secret.tflite").chmod(0)
        process = os.fork()
        if process == 0:
            try:
                os.setuid(65534)
                with self.assertRaisesRegex(PermissionError, "secret"):
                    Case("nets/secret", str(self.folder / "secret.tflite")).content()
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(process, 0)[1], 0)


class Commands(InFolder):
    def rows(self, script, names=(NAME,)):
        """Returns the results of a shell script as a command."""
        path, results = self.folder / "script", []
        path.write_text(script)
        Runner(Target("command", f"sh {path} {{model}} {{inputs}} {{outputs}}"), results.append, 1, PATIENCE_SECONDS).run(Case(one) for one in names)
        return results

    def test_a_background_process_is_not_waited_for(self):
        for redirection in ("", "2>/dev/null", ">/dev/null", "</dev/null >/dev/null 2>&1"):
            begin, seconds = time.monotonic(), str(10**6 + os.getpid())
            rows = self.rows(f"setsid sleep {seconds} {redirection} &\necho done >&2\nexit 3\n", (NAME, "conv2d/u8/8x8/c8-9/k3x3/same"))
            self.assertEqual([(one.status, one.reason) for one in rows], [("Fail", "running: the command ended with exit code 3: done")] * 2)
            self.assertLess(time.monotonic() - begin, PATIENCE_SECONDS)
            self.assertNotIn(f"sleep {seconds}", subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines())

    def test_a_process_of_one_case_is_no_more_in_the_next(self):
        rows = self.rows(f"ls {self.folder}/*.pid 2>/dev/null && kill -0 $(cat {self.folder}/1.pid) && exit 5\nsleep 1000 &\necho $! > {self.folder}/1.pid\nexit 3\n",
                         (NAME, "conv2d/u8/8x8/c8-9/k3x3/same"))
        self.assertEqual(["exit code 3" in one.reason for one in rows], [True, True], rows)

    def test_what_a_command_may_use(self):
        python, place = sys.executable, f"{self.folder}/script.py"
        for script, constant, value, words in [
                ("import os, time\nfor _ in range(40):\n    if os.fork() == 0:\n        os.setsid()\n        break\ntime.sleep(1000)", "MOST_PROCESSES", 30, "Crash: it had more than 30 processes"),
                ("import time\nkept = bytearray(b'x') * (600 << 20)\ntime.sleep(1000)", "most_memory", lambda: 500 << 20, "Crash: it used more than 500 MB of memory"),
                ("import signal, sys\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nopen(sys.argv[3], 'wb').write(bytes(2 << 20))", "MOST_FILE", 1 << 20, "Crash: the command ended with signal 25"),
                ("import sys\nopen(sys.argv[3], 'wb').write(bytes(2 << 20))", "MOST_FILE", 1 << 20, "Fail: running: the command ended with exit code 1: .*File too large")]:
            Path(place).write_text(script)
            with unittest.mock.patch.object(_process, constant, value):
                (row,) = self.rows(f"exec {python} {place} $1 $2 $3\n")
            self.assertRegex(f"{row.status}: {row.reason}", words)

    def test_outputs_of_any_size_and_kind(self):
        bomb = f"{sys.executable} -c \"import sys, numpy; numpy.savez_compressed(sys.argv[1], numpy.zeros(100 << 20, numpy.uint8))\" $3"
        for script, words in [("true", "exit code 0, and wrote no file {outputs}"), ("mkfifo $3", "the file {outputs}: is not a regular file"), ("ln -s /dev/zero $3", "is not a regular file"),
                              ("mkdir $3", "the file {outputs}"), ("echo text > $3", "is no .npz file"), (bomb, "have 104857[0-9]* bytes, the model's outputs 200"),
                              ("ln -sf /dev/zero $2", "changed the file {inputs}")]:
            (row,) = self.rows(script + "\n")
            self.assertEqual(row.status, "Fail")
            self.assertRegex(row.reason, words.replace("{", "\\{").replace("}", "\\}"))

    def test_a_full_disk_is_nobodys_failure(self):
        real = Path.write_bytes

        def full(path, content):
            if path.name == "in.npz":
                raise OSError(errno.ENOSPC, "No space left on device", str(path))
            return real(path, content)
        with unittest.mock.patch.object(Path, "write_bytes", full), self.assertRaisesRegex(_run.Stopped, "folder for temporary files is full .*No space left"):
            self.rows("exit 77\n")
        with unittest.mock.patch.object(tempfile, "tempdir", str(self.folder / "nowhere")), self.assertRaisesRegex(_run.Stopped, "folder for temporary files: .*nowhere"):
            self.rows("exit 77\n")

    def test_errors_without_end_end_the_command(self):
        self.assertIn("Crash: it printed more than 64 MB", [f"{one.status}: {one.reason}" for one in self.rows("exec yes >&2\n")])

    def test_what_a_terminal_would_obey_is_left_out(self):
        said = r"a\033[31mred\033[0m\033]0;title\007\033[2Jb\rc\010\302\233d"
        for script in (f"printf '{said}' >&2; exit 3", f"printf '{said}' >&2; exit 77", f"printf '{said}'; exit 3", f"printf '{said}'; kill -9 $PPID"):
            (self.folder / "script").write_text(script)
            code, out, err = command("--command", f"sh {self.folder}/script {{model}} {{inputs}} {{outputs}}", "--case", NAME, "-o", self.folder / f"out{len(script)}{script[-1]}")
            shown = out + err + "".join(one.read_text() for one in self.folder.glob("out*/*.*"))
            self.assertEqual(code, 1)
            self.assertIn("ared", shown, script)
            self.assertEqual({one for one in shown if not one.isprintable()}, {"\n"}, script)

    def test_joined_results_have_no_commands_for_a_terminal(self):
        command("--command", "false {model} {inputs} {outputs}", "--case", NAME, "-o", self.folder / "one")
        log = self.folder / "one/cases.jsonl"
        head, row = log.read_text().splitlines()
        log.write_text(f"{head}\n{json.dumps({**json.loads(row), 'reason': chr(27) + '[2Jx'})}\n")
        code, out, err = command("--merge", self.folder / "one", "-o", self.folder / "all")
        self.assertEqual((code, chr(27) in out + err), (1, False))


class Ends(InFolder):
    """Runs that a signal ends: at once, or in the middle. They can continue."""
    CASES = "^relu/u8"

    def words(self):
        script = self.folder / "script"
        script.write_text(f"sleep 0.02\ntouch {self.folder}/began\nexit 3\n")
        return [sys.executable, "-m", "skillet.conformance", "--command", f"sh {script} {{model}} {{inputs}} {{outputs}}", "--only", self.CASES, "--jobs", "2", "-o", str(self.folder / "out")]

    def temporary(self):
        return list((self.folder / "tmp").iterdir())

    def test_a_signal_ends_it_cleanly(self):
        (self.folder / "tmp").mkdir()
        env = {**os.environ, "TMPDIR": str(self.folder / "tmp")}
        for number, has_begun in ((signal.SIGTERM, False), (signal.SIGINT, False), (signal.SIGHUP, False), (signal.SIGTERM, True), (signal.SIGINT, True), (signal.SIGHUP, True)):
            with self.subTest(number=number, has_begun=has_begun):
                (self.folder / "began").unlink(missing_ok=True)
                process = subprocess.Popen([*self.words(), "--continue"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                wanted = self.folder / ("began" if has_begun else "out/lock")
                while not wanted.exists() and process.poll() is None:
                    time.sleep(0.002)
                process.send_signal(number)
                _, err = process.communicate(timeout=PATIENCE_SECONDS)
                self.assertEqual((process.returncode, "interrupted" in err, "Traceback" in err), (1, True, False), err)
                self.assertEqual(self.temporary(), [])
                (self.folder / "out/lock").unlink(missing_ok=True)
        done = subprocess.run([*self.words(), "--continue", "--json"], env=env, capture_output=True, text=True, check=False)
        rows = [case["name"] for case in json.loads(done.stdout)["cases"]]
        self.assertEqual(sorted(rows), sorted(name for name in _cases.ops_suite() if re.search(self.CASES, name)))
        self.assertEqual(self.temporary(), [])

    def test_a_failure_that_waits_for_its_second_try_is_kept(self):
        (self.folder / "script").write_text(f"[ -e {self.folder}/first ] && touch {self.folder}/second && exec sleep 1000\ntouch {self.folder}/first\nexit 3\n")
        words = [sys.executable, "-m", "skillet.conformance", "--command", f"sh {self.folder}/script {{model}} {{inputs}} {{outputs}}", "--only", self.CASES, "--jobs", "1", "-o", str(self.folder / "out")]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while not (self.folder / "second").exists() and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE_SECONDS)
        report = json.loads((self.folder / "out/report.json").read_text())
        count = sum(re.search(self.CASES, name) is not None for name in _cases.ops_suite())
        self.assertEqual((process.returncode, err), (1, f"conformance: interrupted; {count - 1} cases were not run: --continue goes on\n"))
        self.assertEqual(([one["status"] for one in report["cases"]], report["not_run"]), (["Fail"], count - 1))
        self.assertEqual((self.folder / "out/failures.csv").read_text(), report["cases"][0]["name"] + ",Fail\n")

    def test_nothing_stays_of_a_run_that_is_killed(self):
        """Checks that no processes remain, whoever started them and however they hide, and no files."""
        (self.folder / "tmp").mkdir()
        seconds = str(10**6 + os.getpid())
        (self.folder / "script").write_text(f"setsid sleep {seconds} &\nsetsid sh -c 'sleep {seconds} & exit' &\ntouch {self.folder}/began\nexec sleep {seconds}\n")
        daemon = ["--delegate", PLANTED, "--option", "bug=forks_a_daemon", "--option", f"state={self.folder}/began"]
        for words in (["--command", f"sh {self.folder}/script {{model}} {{inputs}} {{outputs}}"], daemon):
            with subprocess.Popen([sys.executable, "-m", "skillet.conformance", *words, "--case", NAME, "-o", str(self.folder / "out"), "--continue"], start_new_session=True,
                                  stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(self.folder / "tmp")}) as process:
                while not (self.folder / "began").exists() and process.poll() is None:
                    time.sleep(0.01)
                time.sleep(0.2)
                before = self.running(seconds)
                os.killpg(process.pid, signal.SIGKILL)
                process.stdout.read()  # ends when no process holds the pipe
            end = time.monotonic() + PATIENCE_SECONDS
            while (self.temporary() or self.running(seconds)) and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual((self.temporary(), self.running(seconds), len(before) > 0), ([], [], True), words)
            shutil.rmtree(self.folder / "out")
            (self.folder / "began").unlink()

    def running(self, seconds):
        """Returns the programs of the test, and forks of its runs' processes."""
        listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
        return [line for line in listed if line.endswith(f"sleep {seconds}") or f"{self.folder}/out --continue" in line]

    def test_a_crashed_process_leaves_no_files(self):
        (self.folder / "tmp").mkdir()
        for script in ("kill -9 $PPID", "touch $TMPDIR/mine; exit 3"):
            (self.folder / "script").write_text(script)
            subprocess.run([sys.executable, "-m", "skillet.conformance", "--command", f"sh {self.folder}/script {{model}} {{inputs}} {{outputs}}", "--case", NAME], capture_output=True,
                           env={**os.environ, "TMPDIR": str(self.folder / "tmp")}, check=False)
            self.assertEqual(self.temporary(), [], script)


class Processes(unittest.TestCase):
    """Changes that a delegate leaves in its process: each kind is reported once."""

    def test_each_change_is_a_row(self):
        for bug, words in (("changes_limits", "changed the resource limits"), ("leaks_memory", "leaks memory"), ("leaks_processes", "leaks processes"),
                           ("sets_a_timer", "changed the timers"), ("lowers_priority", "changed the priority"), ("", None)):
            results = []
            Runner(Target("delegate", PLANTED, {"bug": bug}), results.append, 2, PATIENCE_SECONDS).run([Case(NAME)] * 6)
            ends = [f"{one.status}: {one.reason}" for one in results if one.name.startswith(_run.END)]
            self.assertEqual(ends if words is None else [words in one for one in ends], [] if words is None else [True], (bug, results))


if __name__ == "__main__":
    sys.exit(0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1)
