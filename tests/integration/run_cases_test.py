"""Tests how a pattern selects cases of a test program."""
import contextlib
import io
import unittest

from run_cases import run_cases


class RunCasesTest(unittest.TestCase):
    def test_which_cases_run(self):
        ran = []
        names = {"case_a": lambda _: ran.append("a"), "case_ab": lambda _: ran.append("ab"), "other": 1}
        for pattern, want, code in (("", ["a", "ab"], 0), ("b", ["ab"], 0), ("case_a$", ["a"], 0), ("^a$", [], 2)):
            ran.clear()
            said = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
                self.assertEqual(run_cases(names, pattern), code)
            self.assertEqual(ran, want)
            self.assertEqual(said.getvalue(), "" if want else "no case matches '^a$': case_a, case_ab\n")


if __name__ == "__main__":
    unittest.main()
