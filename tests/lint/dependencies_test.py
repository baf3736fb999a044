#!/usr/bin/env python3
"""Tests that each rule of dependencies.py finds violations, and nothing else."""
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import dependencies  # noqa: E402

HEADER = "// What this is.\n// Who calls it.\n// Must not know: anything.\n#pragma once\n"

# path, contents, words of the only finding (None: no finding)
CASES = [
    ("src/npus/acme/sim/sim.cpp", '#include "npus/acme/compiler/encode.h"\n', "sim must not include npus/acme/compiler/encode.h"),
    ("src/npus/acme/sim/sim.cpp", '#include "npus/acme/hw/acme.h"\n', None),
    ("src/sim/sim_test.cpp", '#include "npus/acme/compiler/encode.h"\n', None),
    ("src/sim/memory.cpp", '#include "kernels/api/device.h"\n', "sim must not include"),
    ("src/npus/acme/compiler/driver.cpp", '#include "sim/sim.h"\n', "compiler must not include sim/sim.h"),
    ("src/npus/acme/compiler/driver.cpp", '  #  include "kernels/api/device.h"\n', "compiler must not include"),
    ("src/npus/acme/compiler/driver.cpp", '#include "runtime/session.h"\n', "compiler must not include"),
    ("src/npus/acme/compiler/driver.cpp", '#include "npu/driver.h"\n#include "encode.h"\n#include <sim/x.h>\n', None),
    ("src/base/log.cpp", '#include "graph/ir/graph.h"\n', "base includes graph/ir/graph.h; it may include only base"),
    ("src/base/log.cpp", '#include "simd/gemm.h"\n', "base includes simd/gemm.h; it may include only base"),
    ("src/simd/gemm.cpp", '#include "base/check.h"\n', None),
    ("src/simd/gemm.cpp", '#include "bits/bits.h"\n', "simd includes bits/bits.h; it may include only base, simd"),
    ("src/program/layout.cpp", '#include "npu/driver.h"\n', "program must not include npu/driver.h"),
    ("src/npus/acme/fake/kern.cpp", '#include "kernels/kern/fake/identity.h"\n', None),
    ("src/npus/acme/fake/kern.cpp", '#include "kernels/other/fake/identity.h"\n', "belongs to one kernel driver"),
    ("src/npus/acme/sim/sim.cpp", '#include "npus/other/sim/other.h"\n', "belongs to one family"),
    ("src/graph/import/import.cpp", '#include "runtime/session.h"\n', "import must not include"),
    ("src/lab/compare/compare.cpp", '#include "runtime/session.h"\n', "compare must not include"),
    ("src/runtime/session.cpp", '#include "lab/compare/compare.h"\n', "runtime must not include lab/compare"),
    ("src/base/log.cpp", '#include "bits/bits.h"\n', "base includes bits/bits.h"),
    ("src/simd/gemm.cpp", '#include "hwy/highway.h"\n#include "log.h"\n', None),
    ("src/npu/registry.cpp", '#include "npus/acme/compiler/driver.h"\n', "npu must not include"),
    ("src/npu/registry.cpp", '#include "vendors.inc"\n', None),
    ("src/program/memory_plan.cpp", '#include "npus/acme/compiler/driver.h"\n', "program must not include"),
    ("src/bits/bits.cpp", '#include "base/result.h"\n#include "bits/bits.h"\n', None),
    ("src/bits/bits_test.cpp", '#include "graph/ir/graph.h"\n', "bits includes graph/ir/graph.h"),
    ("src/graph/ir/graph.cpp", '#include "npu/driver.h"\n', "ir must not include"),
    ("src/runtime/session.cpp", '#include "npus/acme/compiler/driver.h"\n', "runtime must not include"),
    ("src/runtime/session.cpp", 'if (name == "vivante") return;\n', "vendor name 'vivante'"),
    ("src/runtime/session.cpp", "int Rk3588Quirk = 0;\n", "vendor name 'Rk3588'"),
    ("src/runtime/session.cpp", "// for example sim:a311d\n", None),
    ("src/runtime/session_test.cpp", 'open("sim:a311d");\n', None),
    ("src/npus/vivante/compiler/driver.cpp", "namespace skillet::vivante {}\n", None),
    ("src/npu/registry.cpp", "vivante::driver(),\n", "vendor name"),
    ("src/program/memory_plan.cpp", "vivante::driver(),\n", "vendor name"),
    ("src/kernels/etnaviv/client/device.cpp", "int etnaviv;\n", None),
    ("src/kernels/etnaviv/fake/file.cpp", "int etnaviv;\n", None),
    ("src/kernels/fake/kernel.cpp", "int etnaviv;\n", "vendor name"),
    ("src/lab/interpose/node_tree.cpp", "int etnaviv;\n", "vendor name"),
    ("src/kernels/etnaviv/fake/file.cpp", '#include "kernels/etnaviv/abi.h"\n#include "sim/sim.h"\n', None),
    ("src/kernels/etnaviv/fake/file.cpp", '#include "kernels/rocket/abi.h"\n', "belongs to one kernel driver"),
    ("src/kernels/fake/kernel.cpp", '#include "kernels/acme/abi.h"\n', "belongs to one kernel driver"),
    ("src/kernels/api/kernels.cpp", '#include "kernels/etnaviv/client/etnaviv.h"\n', None),
    ("src/kernels/api/device.cpp", '#include "kernels/fake/simulated.h"\n', "kernels must not include kernels/fake"),
    ("src/npus/acme/compiler/driver.cpp", '#include "kernels/fake/simulated.h"\n', "compiler must not include"),
    ("src/runtime/device_context.cpp", '#include "kernels/fake/simulated.h"\n', None),
    ("src/runtime/device_context.cpp", '#include "kernels/fake/kernel.h"\n', "runtime must not include"),
    ("src/tools/jobs/virtual.cpp", '#include "lab/interpose/environment.h"\n#include "kernels/fake/fault_plan.h"\n', None),
    ("src/tools/jobs/virtual.cpp", '#include "lab/interpose/node_tree.h"\n', "tools must not include"),
    ("src/tools/machine/devices.cpp", '#include "kernels/fake/kernel.h"\n', "tools must not include"),
    ("src/kernels/api/recorder.cpp", "int etnaviv;\n", "vendor name"),
    ("src/npus/acme/sim/sim.cpp", '#include "npus/other/hw/other.h"\n', "belongs to one family"),
    ("src/tools/jobs/diff.cpp", "if (fs::exists(path(a, 1))) return;\n", "fs::exists(path(a, 1)) throws"),
    ("src/tools/jobs/diff.cpp", "std::filesystem::is_directory(options.path)", "throws"),
    ("src/tools/jobs/diff.cpp", "std::filesystem::temp_directory_path()", "throws"),
    ("src/tools/jobs/diff.cpp", "std::filesystem::temp_directory_path(failure); fs::is_directory(a, failure)", None),
    ("src/tools/jobs/diff.cpp", "if (fs::exists(status)) return;\n", None),
    ("src/tools/jobs/diff.cpp", "for (const auto& entry : fs::directory_iterator(path, ignored)) use(entry);\n", "throws"),
    ("src/tools/diff_test.cpp", "if (fs::exists(path)) return;\n", None),
    ("src/tools/diff_test.cpp", "std::ranges::stable_partition(rows, is_new);\n", "clang 14"),
    ("src/tools/diff_test.cpp", "std::ranges::partition_point(rows, is_new);\n", None),
    ("src/tools/diff_test.cpp", "if (ok) EXPECT_EQ(a, b);\n", "EXPECT_ and ASSERT_ after if need braces"),
    ("tests/x/x_test.cpp", "if (const auto a = f(); a.ok())\n  ASSERT_EQ(a, b);\n", "need braces"),
    ("tests/x/x_test.cpp", "if (ok) {\n  EXPECT_EQ(a, b);\n}\nfor (int i : all) EXPECT_EQ(i, 1);\n", None),
    ("src/npus/acme/fake/kern.cpp", '#include "npus/acme/hw/acme.h"\n', None),
    ("src/kernels/kern/fake/file.cpp", '#include "npus/acme/hw/acme.h"\n', "belongs to one family"),
    ("src/tools/model/check.cpp", '#include "npus/acme/hw/acme.h"\n', "belongs to one family"),
    ("src/tools/model/check.cpp", '#include "npus/acme/sim/acme.h"\n', "belongs to one family"),
    ("src/tools/model/check.cpp", '#include "sim/sim.h"\n', "tools must not include sim/sim.h"),
    ("src/tools/model/check.cpp", '#include "sim/memory.h"\n', "tools must not include"),
    ("src/tools/model/check.cpp", 'if (name == "etnaviv") return;\n', "vendor name 'etnaviv'"),
    ("src/tools/model/check.cpp", '"Example: skillet check a.tflite --device sim:a311d";\n', None),
    ("src/tools/jobs/virtual.cpp", "request.nr_bos = 1;\n", "word of a kernel driver"),
    ("src/lab/interpose/redirect.cpp", "request.nr_bos = 1;\n", "word of a kernel driver 'nr_bos'"),
    ("src/npu/chip.h", HEADER + "uint32_t product_id = 0;\n", "word of a kernel driver 'product_id'"),
    ("src/runtime/session.cpp", 'open("/dev/accel/accel0");\n', "word of a kernel driver '/dev/accel/'"),
    ("src/runtime/session.cpp", 'open("/dev/dri/renderD128");\n', None),
    ("src/lab/compare/compare.cpp", 'if (name == "nn_instruction.x") return;\n', "word of a chip 'nn_instruction'"),
    ("src/runtime/placement.cpp", "case Layout::nc1hwc2: break;\n", "format of a chip 'nc1hwc2'"),
    ("src/program/layout.h", HEADER + "// Blocks of channels: NC1HWC2.\n", None),
    ("src/kernels/etnaviv/abi.h", HEADER + "uint32_t nr_bos;\n", None),
    ("src/kernels/fake/CMakeLists.txt", "skillet_library(x LIBS skillet_vivante_hw)\n", "vendor name 'vivante' in a shared list"),
    ("src/kernels/fake/CMakeLists.txt", "skillet_library(x SOURCES ../etnaviv/fake/file.cpp)\n", None),
    ("src/runtime/CMakeLists.txt", "skillet_test(model SOURCES x.cpp VENDORS vivante)\n", None),
    ("src/npus/vivante/sim/CMakeLists.txt", "skillet_register(SIMULATOR vivante vivante_sim)\n", None),
    ("CMakeLists.txt", "add_subdirectory(src/npus/vivante/compiler)\n", "vendor name 'vivante' in a shared list"),
    ("src/graph/ir/graph.cpp", 'environment_variable("SKILLET_NEW");\n', "the environment variable SKILLET_NEW is not in"),
    ("src/graph/ir/graph.cpp", 'std::getenv("HOME");\n', "getenv: environment_variable() of"),
    ("src/graph/ir/graph.cpp", 'return parse(::getenv);\n', "getenv: environment_variable() of"),
    ("src/tools/cli/main.cpp", 'secure_getenv("HOME");\n', "secure_getenv: environment_variable() of"),
    ("src/graph/ir/graph.cpp", 'environment_variable("HOME");  // not getenv\n', None),
    ("src/graph/ir/graph_test.cpp", 'std::getenv("HOME");\n', None),
    ("src/base/environment.cpp", 'return secure_getenv(name);\n', None),
    ("src/base/environment.h", HEADER + '"SKILLET_NEW"\n', None),
    ("src/graph/ir/graph_test.cpp", 'const std::string path = ::testing::TempDir() + "x.bmp";\n', "TempDir(): a temporary name"),
    ("src/graph/ir/graph_test.cpp", 'open("/tmp/x.bmp");\n', '"/tmp: a temporary name'),
    ("src/graph/ir/testing/x.h", HEADER + 'auto x = fs::temp_directory_path() / "x";\n', "temp_directory_path: a temporary name"),
    ("tests/golden/x_test.cpp", 'getenv("TEST_TMPDIR");\n', "TEST_TMPDIR: a temporary name"),
    ("tests/golden/x.cpp", 'char name[] = "/tmp/x-XXXXXX";\nmkdtemp(name);\n', None),
    ("src/base/testing/own_folder.h", HEADER + "path(::testing::TempDir());\n", None),
    ("src/tools/x_test.py", 'Path(tempfile.gettempdir()) / "x"\n', "gettempdir: a temporary name"),
    ("tests/x/x.py", 'open("/tmp/x")\n', "\"/tmp/x: a temporary name"),
    ("src/tools/x_test.py", 'with tempfile.TemporaryDirectory() as folder:\n', None),
    ("src/graph/ir/graph.cpp", "int x;\n" * 500, None),
    ("src/graph/ir/graph.cpp", "int x;\n" * 501, "file has 501 lines"),
    ("src/graph/ir/op.def", "OP(x)\n" * 501, None),
    ("bench/bench_main.cpp", "int x;\n" * 501, "file has 501 lines"),
    ("src/graph/ir/graph.h", HEADER, None),
    ("src/graph/ir/graph.h", "#pragma once\n// late\n", "a header opens with a comment"),
    ("src/graph/ir/graph.h", "// What this is.\nint x;\n", "header without #pragma once"),
    ("src/graph/ir/rows.h", "// Rows.\n// Included many times on purpose: no include guard.\nint x;\n", None),
    ("src/graph/ir/graph.cpp", "void near() {\n" + "  x();\n" * 98 + "}\n", None),
    ("src/graph/ir/graph.cpp", "void much() {\n" + "  x();\n" * 99 + "}\n", "function much has 101 lines"),
]
NEEDS_CTAGS = "function much has"


def findings(path, text):
    with tempfile.TemporaryDirectory() as root:
        file = Path(root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return dependencies.Lint(root).run(functions="void " in text)  # ctags is slow


class DependencyLint(unittest.TestCase):
    def test_rules(self):
        for path, text, expected in CASES:
            if expected and NEEDS_CTAGS in expected and not shutil.which("ctags"):
                continue
            with self.subTest(path=path, text=text[:60]):
                found = findings(path, text)
                if expected is None:
                    self.assertEqual(found, [])
                else:
                    self.assertEqual(len(found), 1, found)
                    self.assertIn(expected, found[0])
                    self.assertTrue(found[0].startswith(path + ":"), found[0])

    def test_types_of_one_name(self):
        def found(first, second):
            with tempfile.TemporaryDirectory() as root:
                lint = dependencies.Lint(root)
                for name, text in (("src/a.cpp", first), ("src/b.cpp", second)):
                    lint.check_types(name, text.splitlines())
                return lint.findings

        one = "namespace skillet {\nstruct Use {\n};\n}  // namespace skillet\n"
        apart = "namespace skillet {\nnamespace {\nstruct Use {\n};\n}  // namespace\n}  // namespace skillet\n"
        self.assertEqual(found(one, one.replace("struct", "class")), ["src/b.cpp:2: Use is a type of src/a.cpp, too"])
        for other in (apart, one.replace("skillet", "skillet::tools"), one.replace("Use {", "Use;").replace("};", "")):
            self.assertEqual(found(one, other), [])

    def test_exceptions_that_nothing_needs(self):
        with tempfile.TemporaryDirectory() as root:
            lint = dependencies.Lint(root)
            lint.run()
            self.assertEqual(len(lint.check_allowed()), sum(len(concepts) for concepts, _ in dependencies.ALLOWED.values()))


if __name__ == "__main__":
    unittest.main()
