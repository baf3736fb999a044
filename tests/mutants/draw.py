"""Draws random small bugs in the sources for mutate.py: typical slips in a line of C++."""
import functools
import random
import re

from table import Mutant

NOT_OF_THE_PRODUCT = re.compile(r"_test\.cpp$|/testing/|/fuzz/|_bench\.cpp$|/toy/|/test_support\.h$")
STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'')

# Title of a slip, where it can be made (a match in the code of one line), and the replacement.
SLIPS = [
    ("a comparison is another one", r" (<=|>=|<|>|==|!=) ", {"<=": "<", ">=": ">", "<": "<=", ">": ">=", "==": "!=", "!=": "=="}),
    ("both are asked for, not one, or one, not both", r" (&&|\|\|) ", {"&&": "||", "||": "&&"}),
    ("an operator is another one", r"(?<=[\w)\]]) (\+|-|\*|/|%|<<|>>|\||&) (?=[\w(])",
     {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "|": "&", "&": "|"}),
    ("an assignment is another one", r" (\+=|-=|\|=|&=) ", {"+=": "-=", "-=": "+=", "|=": "&=", "&=": "|="}),
    ("a constant is one more", r"(?<![\w.'])(\d{1,9})(?![\w.'])", lambda number: str(int(number) + 1)),
    ("a ! is missing", r"(?<=[( ])(!)(?=[\w(])", {"!": ""}),
    ("the larger one is taken for the smaller, or the other way round", r"std::(min|max)\b", {"min": "max", "max": "min"}),
    ("a yes is a no", r"\b(true|false)\b", {"true": "false", "false": "true"}),
    ("a loop goes on where it ends, or the other way round", r"\b(continue|break);", {"continue": "break", "break": "continue"}),
    ("arguments are exchanged", r"\w\((\w+, \w+)\)", lambda both: ", ".join(reversed(both.split(", ")))),
    ("a check is left out", r"^\s*(?:\} else )?if \((?!auto|const|std::|uint|int)(.+)\) (?:return|throw|continue|break)\b",
     lambda condition: f"false && ({condition})"),
    ("a body is left out", r"^\s*if \((?!auto|const|std::|uint|int)(.+)\) \{$", lambda condition: f"false && ({condition})"),
    ("a call is left out", r"^\s*((?!return|using|if|for|while|throw|static_assert|SK_|RETURN)[\w.:>\-]+\([^;]*\);)$", lambda _: ";"),
]

# A constant whose name shows that it is a limit, and its value. Times are left out: a second more is not a bug.
LIMIT = (r"\bk(?!Minus|Limits\b)[A-Za-z0-9]*(?:Max|Min(?!or)|Most|Limit|Largest|Smallest|Farthest|Fewest|Worth|Rounds|Tries|Trials|"
         r"Kept|Seen|Reach|OverRead|Room|Short|Wide|JobMs)[A-Za-z0-9]*(?: = |\{)(%s)(?=[,;]|\};)")
WHOLE = r"(?![0-9]*\.|0x[0-9]*p|[0-9]*e)(?=[-(0-9]|u?int\d+_t\{|size_t\{)(?:[^,;.{}]|\{\d*\})*"
PART = r"-?[0-9]+\.[0-9]+F?"
LIMIT_SLIPS = [
    ("a limit is one more", LIMIT % WHOLE, lambda value: f"({value}) + 1"),
    ("a limit is one less", LIMIT % WHOLE, lambda value: f"({value}) - 1"),
    ("a limit is a tenth more", LIMIT % PART, lambda value: f"{value} * 1.1F"),
    ("a limit is a tenth less", LIMIT % PART, lambda value: f"{value} * 0.9F"),
]
SLIPS, LIMIT_SLIPS = ([(title, re.compile(pattern), instead) for title, pattern, instead in rows] for rows in (SLIPS, LIMIT_SLIPS))


def code_of(line):
    """Returns the line with strings and comments blanked out, at the same length."""
    line = STRING.sub(lambda found: "~" * len(found[0]), line)
    begin = line.find("//")
    return line if begin < 0 else line[:begin]


def slips_in(lines, limits=False):
    """Yields every possible slip: the number of its line from 0, its title, and the changed line."""
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("#", "static_assert", "template")) or (limits and "constexpr" not in line):
            continue
        code = code_of(line)
        if not code.strip():
            continue
        for title, pattern, instead in LIMIT_SLIPS if limits else SLIPS:
            for found in pattern.finditer(code):
                begin, end = found.span(1)
                wrong = instead(line[begin:end]) if callable(instead) else instead[line[begin:end]]
                if wrong != line[begin:end]:
                    yield number, title, line[:begin] + wrong + line[end:]


def mutant_of(path, lines, number, title, new):
    """Returns the slip as a mutant, with enough of the lines above to make its place unique."""
    source, old, above = "\n".join(lines), lines[number], number
    title = f"line {number + 1}: {title}: {old.strip()} -> {new.strip()}"
    while source.count(old) > 1 and above > 0:
        above -= 1
        old, new = f"{lines[above]}\n{old}", f"{lines[above]}\n{new}"
    return Mutant(title, path, old, new)


@functools.cache
def slips_of(root, limits):
    """Returns the product's sources by path, and every slip in them: (path, number of the line, title, changed line)."""
    sources, every = {}, []
    for file in sorted(file for kind in (("*.cpp", "*.h") if limits else ("*.cpp",)) for file in (root / "src").rglob(kind)):
        path = file.relative_to(root).as_posix()
        if not NOT_OF_THE_PRODUCT.search(path):
            sources[path] = file.read_text().split("\n")
            every.extend((path, *slip) for slip in slips_in(sources[path], limits))
    return sources, every


def draw(root, count, seed, limits=False):
    """Returns `count` bugs, at most one a line; longer sources get more. `limits`: both changes of each limit, headers too."""
    sources, every = slips_of(root, limits)
    every = list(every)
    random.Random(seed).shuffle(every)
    drawn = {}
    for path, number, title, new in every:
        if len(drawn) == count:
            break
        drawn.setdefault((path, new if limits else number), mutant_of(path, sources[path], number, title, new))
    return list(drawn.values())
