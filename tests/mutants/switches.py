"""Turns a drawn bug into a line with a switch, so that all bugs of a draw are compiled once: `planted(7)` is 1 where bug 7 is asked for, else 0."""
import re

import draw

# Each program says which bugs it reached, by an empty file each in the folder MUTANTS_REACHED; MUTANT=7 turns bug 7 on.
HEADER = r"""#pragma once
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
inline int planted(int number) {
  static const int on = [] { const char* text = getenv("MUTANT"); return text == nullptr ? -1 : atoi(text); }();
  static const char* const folder = getenv("MUTANTS_REACHED");
  static bool seen[4096];
  if (folder != nullptr && !seen[number]) {
    seen[number] = true;
    char path[4096];
    snprintf(path, sizeof path, "%s/%d", folder, number);
    const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (fd >= 0) close(fd);
  }
  return on == number ? 1 : 0;
}
template <class... A> auto planted_min(int number, A... a) { return planted(number) ? std::max(a...) : std::min(a...); }
template <class... A> auto planted_max(int number, A... a) { return planted(number) ? std::min(a...) : std::max(a...); }
template <class T, class... A> T planted_min(int number, A... a) { return planted(number) ? std::max<T>(a...) : std::min<T>(a...); }
template <class T, class... A> T planted_max(int number, A... a) { return planted(number) ? std::min<T>(a...) : std::max<T>(a...); }
"""
OPENING, CLOSING = "([{", ")]}"


def changed_part(old, new):
    """Returns where the lines differ: the first column, and the ends in both."""
    begin = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    same = 0
    while same < min(len(old), len(new)) - begin and old[-1 - same] == new[-1 - same]:
        same += 1
    return begin, len(old) - same, len(new) - same


def found_at(pattern, code, column):
    """Returns the only match of PATTERN whose group 1 has COLUMN, or None."""
    found = [one for one in re.finditer(pattern, code) if one.start(1) <= column <= one.end(1)]
    return found[0] if len(found) == 1 else None


def not_constexpr(line):
    return re.sub(r"\bconstexpr\b", "const", line) if re.match(r"\s*(?:static |inline )?constexpr [\w:]+ k\w+(?: = |\{)", line) else line


def number_more(line, code, column, switch):
    found = found_at(r"(?<![\w.'])(\d{1,9})(?![\w.'])", code, column)
    return found and not_constexpr(f"{line[:found.start(1)]}({found[1]} + {switch}){line[found.end(1):]}")


def limit(line, code, column, switch, title):
    is_part = "tenth" in title
    found = found_at(draw.LIMIT % (draw.PART if is_part else draw.WHOLE), code, column)
    if not found:
        return None
    value = line[slice(*found.span(1))]
    factor = "1.1F" if "more" in title else "0.9F"
    made = f"({value} * ({switch} ? {factor} : 1.0F))" if is_part else f"(({value}) {'+' if 'more' in title else '-'} {switch})"
    return not_constexpr(line[:found.start(1)] + made + line[found.end(1):])


def check_or_body(line, changed, switch):
    head = re.match(r"\s*(?:\} else )?if \(", line)[0]
    rest, depth = changed[len(head) + len("false && ("):], 1
    for at, letter in enumerate(draw.code_of(rest)):
        depth += (letter in OPENING) - (letter in CLOSING)
        if depth == 0:
            return f"{head}!{switch} && ({rest[:at]}){rest[at + 1:]}"
    return None


def word(line, code, column, pattern, made):
    found = found_at(pattern, code, column)
    return found and line[:found.start()] + made(found) + line[found.end():]


def end_of_operand(code, begin):
    depth = 0
    for at in range(begin, len(code)):
        if depth == 0 and (code[at] in " ;,?" or code[at] in CLOSING):
            return at
        depth += (code[at] in OPENING) - (code[at] in CLOSING)
    return len(code)


def expression(line, changed, code, span, switch, is_logical):
    """Chooses between both forms of the smallest expression around the change. None if it does not begin and end on the line."""
    begin, end, new_end = span
    between = ",;?:" if is_logical else ",;?:&|"
    first, depth = begin, 0

    def divides(at):
        letter = code[at]
        is_double = code[at:at + 2] in ("::", "&&", "||") or code[at - 1:at + 1] in ("::", "&&", "||")
        return letter in between and (letter in ",;?" or is_double == (letter != ":"))

    while first > 0 and not (depth == 0 and (code[first - 1] in OPENING or divides(first - 1) or re.search(
            r"(?<![=!<>])=\s$|\breturn $", code[:first]))):
        depth += (code[first - 1] in CLOSING) - (code[first - 1] in OPENING)
        first -= 1
    last, depth = end, 0
    while last < len(code) and not (depth == 0 and (code[last] in CLOSING or divides(last))):
        depth += (code[last] in OPENING) - (code[last] in CLOSING)
        last += 1
    if first == 0 or last == len(code):
        return None
    old, new = line[first:last].strip(), (line[first:begin] + changed[begin:new_end] + line[end:last]).strip()
    return f"{line[:first]} ({switch} ? ({new}) : ({old})) {line[last:]}"


def with_switch(line, changed, title, number):
    """Returns LINE so that `planted(NUMBER)` makes it CHANGED, or None if that is not possible. TITLE: of the slip, as draw.py has it."""
    switch, code, span = f"planted({number})", draw.code_of(line), changed_part(line, changed)
    column, indent = span[0], line[:len(line) - len(line.lstrip())]
    if title == "a constant is one more":
        return number_more(line, code, column, switch)
    if title.startswith("a limit"):
        return limit(line, code, column, switch, title)
    if title in ("a check is left out", "a body is left out"):
        return check_or_body(line, changed, switch)
    if title == "a call is left out":
        return f"{indent}if (!{switch}) {line.lstrip()}"
    if title.startswith("a loop goes on"):
        return word(line, code, column, r"\b(continue|break);", lambda found: f"{{ if ({switch}) {'break' if found[1] == 'continue' else 'continue'}; else {found[1]}; }}")
    if title == "a yes is a no":
        return word(line, code, column, r"\b(true|false)\b", lambda found: f"({switch} ? !{found[1]} : {found[1]})")
    if title == "a ! is missing":
        end = end_of_operand(code, column + 1)
        return f"{line[:column]}(({switch} != 0) != !{line[column + 1:end]}){line[end:]}"
    if title.startswith("the larger one"):
        return word(line, code, column, r"std::(min|max)(<[^()]*>)?\(", lambda found: f"planted_{found[1]}{found[2] or ''}({number}, ")
    if title == "an assignment is another one":
        is_whole = re.fullmatch(r"\s*(?!for|if|while|return|const|auto)[\w(*\[][^;]*;", line)
        return f"{indent}if ({switch}) {{ {changed.strip()} }} else {{ {line.strip()} }}" if is_whole else None
    if title == "arguments are exchanged":
        return None  # which function it is stands further left
    return expression(line, changed, code, span, switch, title.startswith("both are"))
