"""Tests the parts of mutate.py that need no build: its table, the order of tests, what is recorded."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import long_cases  # noqa: E402

import draw
import mutate
import switches
import together
from mutate import Test
from table import Mutant

TABLE = """# A comment.

a bug
src/a/one.cpp
- old
+ new
* 2
! it only costs time

another
src/b/two.cpp
- x
+ y
"""


def test(name, target, cost=0.0):
    return Test(name, [target] if target else [], cost)


class MutateTest(unittest.TestCase):
    def test_table(self):
        one, two = mutate.parse(TABLE)
        self.assertEqual(one, Mutant("a bug", "src/a/one.cpp", "old", "new", 2, "it only costs time"))
        self.assertEqual((two.times, two.reason), (1, ""))
        for wrong in ("a bug\nsrc/a.cpp\n- old", "a bug\nsrc/a.cpp\n- old\n? new"):
            with self.assertRaises(ValueError):
                mutate.parse(wrong)

    def test_a_bug_has_its_place(self):
        one, _ = mutate.parse(TABLE)
        self.assertEqual(mutate.mutated(one, "old or old"), "new or new")
        for source in ("", "old", "old old old"):
            with self.assertRaises(ValueError):
                mutate.mutated(one, source)
        with self.assertRaises(ValueError):
            mutate.mutated(Mutant("nothing", "a", "same", "same"), "same")

    def test_the_likely_tests_come_first(self):
        tests = [test("slow", "tests/far/slow", 60), test("quick", "tests/far/quick", 1), test("command", "", 1),
                 test("near", "src/a/near", 60), test("below", "src/a/testing/below", 60), test("known", "tests/far/known", 60)]
        names = [[t.name for t in group] for group in mutate.stages("src/a/one.cpp", tests, "known")]
        self.assertEqual(names, [["known"], ["near", "below"], ["quick", "command"], ["slow"]])
        self.assertEqual([[t.name for t in group] for group in mutate.stages("src/ab/one.cpp", tests, None)][0], ["quick", "command"])

    def test_what_failed_is_not_what_was_skipped(self):
        said = ("The following tests did not run:\n\t 50 - page (Skipped)\n\n"
                "The following tests FAILED:\n\t 36 - tools (Failed)\n\t 43 - bad_use (Failed)\n")
        self.assertEqual(mutate.first_failed(said), "tools")
        self.assertEqual(mutate.first_failed("no list"), "ctest")

    def test_slips(self):
        def made(line):
            return {new.strip() for _, _, new in draw.slips_in([line])}
        self.assertEqual(made("return a < b;"), {"return a <= b;"})
        self.assertEqual(made("x += 1;"), {"x -= 1;", "x += 2;"})
        self.assertEqual(made("if (a) return none;"), {"if (false && (a)) return none;"})
        self.assertEqual(made("  if (!a) {"), {"if (a) {", "if (false && (!a)) {"})
        self.assertEqual(made("f(a, b);"), {"f(b, a);", ";"})
        self.assertEqual(made("std::min(a + b, 0x12)"), {"std::max(a + b, 0x12)", "std::min(a - b, 0x12)"})
        self.assertEqual(made("#include <a 1>") | made('say("1 < 2");  // 1 < 2') - {";"} | made("std::vector<int> a;"), set())
        def limits(line):
            return {new.strip() for _, _, new in draw.slips_in([line], limits=True)}
        self.assertEqual(limits("constexpr int kA = 1, kMost = 1 << 3;"),
                         {"constexpr int kA = 1, kMost = (1 << 3) + 1;", "constexpr int kA = 1, kMost = (1 << 3) - 1;"})
        self.assertEqual(limits("constexpr int64_t kBytesMax = (int64_t{1} << 22) - 1;  // of it"),
                         {f"constexpr int64_t kBytesMax = ((int64_t{{1}} << 22) - 1) {sign} 1;  // of it" for sign in "+-"})
        self.assertEqual(limits("constexpr double kErrorMax = 0.25;"),
                         {f"constexpr double kErrorMax = 0.25 * {factor}F;" for factor in (1.1, 0.9)})
        self.assertEqual(limits("int kMost = 1;") | limits("constexpr int kMinusOne = -1, kLimits = 0x12;"), set())
        twice = draw.mutant_of("src/a.cpp", ["one {", "  a;", "two {", "  a;"], 3, "slip", "  b;")
        self.assertEqual((twice.old, twice.new), ("two {\n  a;", "two {\n  b;"))

    def test_slips_get_switches(self):
        rows = [
            ("return a < b;", "return a <= b;", "a comparison is another one", "return  (planted(7) ? (a <= b) : (a < b)) ;"),
            ("  if (x && (f(a + 1) || b)) {", "  if (x && (f(a - 1) || b)) {", "an operator is another one",
             "  if (x && (f( (planted(7) ? (a - 1) : (a + 1)) ) || b)) {"),
            ("int x = a && b;", "int x = a || b;", "both are asked for, not one, or one, not both", "int x =  (planted(7) ? (a || b) : (a && b)) ;"),
            ("constexpr int kA = 3;", "constexpr int kA = 4;", "a constant is one more", "const int kA = (3 + planted(7));"),
            ("  x += 2;", "  x -= 2;", "an assignment is another one", "  if (planted(7)) { x -= 2; } else { x += 2; }"),
            ("if (!f(a, b) && c) {", "if (f(a, b) && c) {", "a ! is missing", "if (((planted(7) != 0) != !f(a, b)) && c) {"),
            ("std::min<int>(a, 2)", "std::max<int>(a, 2)", "the larger one is taken for the smaller, or the other way round", "planted_min<int>(7, a, 2)"),
            ("bool x = true;", "bool x = false;", "a yes is a no", "bool x = (planted(7) ? !true : true);"),
            ("if (a) continue;", "if (a) break;", "a loop goes on where it ends, or the other way round",
             "if (a) { if (planted(7)) break; else continue; }"),
            ("if (f(a)) return b;", "if (false && (f(a))) return b;", "a check is left out", "if (!planted(7) && (f(a))) return b;"),
            ("  f(a);", ";", "a call is left out", "  if (!planted(7)) f(a);"),
            ("constexpr int kMost = 1 << 3;", "constexpr int kMost = (1 << 3) + 1;", "a limit is one more", "const int kMost = ((1 << 3) + planted(7));"),
            ("f(a, b);", "f(b, a);", "arguments are exchanged", None),
            ("a + b ||", "a - b ||", "an operator is another one", None),
        ]
        for line, changed, title, made in rows:
            self.assertEqual(switches.with_switch(line, changed, title, 7), made, line)

    def test_all_bugs_of_a_draw_are_planted(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        drawn = draw.draw(root, 60, 3)
        bugs, of = together.bugs_of(drawn)
        self.assertGreater(len(bugs), 50)
        self.assertLessEqual({m.key() for m in of.values()}, {m.key() for m in drawn})
        for path, text in together.planted_sources(root, bugs).items():
            numbers = [number for number, bug in bugs.items() if bug[0] == path]
            for number in numbers:
                self.assertRegex(text, rf"planted(_min|_max)?(<[^()]*>)?\({number}\b")
            lines = text.split("\n")
            self.assertEqual(len(lines), len((root / path).read_text().split("\n")) + 2)

    def test_long_drawn_bugs_have_their_places(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        drawn = draw.draw(root, 300, 1)
        self.assertEqual(len({m.key() for m in drawn}), 300)
        self.assertEqual(mutate.check(root, drawn), [])
        self.assertEqual(drawn, draw.draw(root, 300, 1))
        self.assertNotEqual(drawn, draw.draw(root, 300, 2))
        self.assertEqual(mutate.check(root, draw.draw(root, 300, 1, limits=True)), [])

    def test_record(self):
        one, two = mutate.parse(TABLE)
        outcomes = {one.key(): {"test": "", "compiles": True}, two.key(): {"test": "near", "compiles": True}}
        text = mutate.record(TABLE, outcomes)
        self.assertEqual(text, TABLE + "= near\n")
        self.assertEqual([m.test for m in mutate.parse(text)], ["", "near"])
        self.assertEqual(mutate.record(text, {}), text)
        self.assertEqual(mutate.record(text, {two.key(): {"test": "nearer"}}), TABLE + "= nearer\n")
        self.assertEqual(mutate.verdict(one, outcomes[one.key()]), "may live: it only costs time")
        self.assertEqual(mutate.verdict(two, outcomes[two.key()]), "`near`")
        self.assertEqual(mutate.verdict(two, {"test": "", "compiles": True}), "**survives**")
        self.assertEqual(mutate.verdict(two, {"test": "", "compiles": False}), "**does not compile**")

    def test_the_table_of_the_project(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        mutants = mutate.parse((root / "tests/mutants/mutants.txt").read_text())
        self.assertEqual(mutate.check(root, mutants), [])
        keys = [m.key() for m in mutants]
        self.assertEqual(sorted(set(keys)), sorted(keys), "planted twice")


if __name__ == "__main__":
    long_cases.main()
