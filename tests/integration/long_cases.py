"""unittest.main() for tests whose methods test_long_... run in CI only, where LONG_CASES is set (skillet_long_methods of cmake/skillet.cmake)."""
import os
import unittest

IS_LONG = "LONG_CASES" in os.environ


class Cases(unittest.TestLoader):
    """Loads test methods. A method named on the command line always runs."""

    def getTestCaseNames(self, testCaseClass):
        return [name for name in super().getTestCaseNames(testCaseClass) if name.startswith("test_long_") == IS_LONG]


def main(argv=None):
    unittest.main(argv=argv, testLoader=Cases())
