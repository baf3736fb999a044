#!/usr/bin/env python3
"""Writes manual pages and the completion of bash from the command's --help.

usage: pages.py SKILLET FOLDER
"""
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

COMPLETION = r"""# completion for skillet, of bash; of zsh after: autoload -U bashcompinit; bashcompinit
_skillet() {
  local words= values= typed current before head
  typed=${COMP_LINE:-${COMP_WORDS[*]}}
  typed=${typed:0:${COMP_POINT:-${#typed}}}
  current=${typed##* }
  before=${typed% *}
  before=${before##* }
  COMPREPLY=()
  if [[ $COMP_CWORD == 1 ]]; then
    COMPREPLY=($(compgen -W 'VERBS' -- "$current"))
    return
  fi
  case ${COMP_WORDS[1]} in
WORDS  esac
  case ${COMP_WORDS[1]}$before in
VALUES  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ -n $values ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$current"))
    head=${current%"${current##*:}"}
    [[ -n $BASH_VERSION && $COMP_WORDBREAKS == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"$head"}")
  fi
}
complete -o default -F _skillet skillet
"""


@dataclass
class Option:
    names: str  # "-o,--output", or "MODEL" for an argument
    type: str
    help: str = ""

    def long_names(self):
        return re.findall(r"--[\w-]+", self.names)


class Help:
    """The parsed --help of the command or of a verb."""

    def __init__(self, command, *verb):
        text = subprocess.run([command, *verb, "--help"], capture_output=True, text=True, check=True).stdout
        self.about, _, rest = text.partition("\nUsage: ") if "\nUsage: " in text else re.split(r"(\n\n)", text, maxsplit=1)
        if text.startswith("usage: "):  # a verb written in Python
            self.about, rest = re.search(r"\n\n(.*?)\n\n((?:positional|options).*)", text, re.S).groups()
        rest, _, codes = rest.partition("\nExit codes: ")
        rest = rest.partition("\nExample:")[0]
        self.codes = " ".join(codes.split())
        options, _, self.verbs = rest.partition("\nSubcommands:")
        self.options = []
        for line in options.splitlines():
            if head := re.match(r"  (\S.*?)(?: {2,}(.*))?$", line):
                names, _, type_ = re.sub(r", (?=--)", ",", head[1]).partition(" ")
                self.options.append(Option(names, re.split(r" ?(?:REQUIRED|Excludes:|Needs:|\(Env:|\.\.\.|=)", type_)[0], head[2] or ""))
            elif line.startswith("   ") and self.options:
                self.options[-1].help = f"{self.options[-1].help} {line.strip()}".strip()


def roff(text):
    return re.sub(r"(?m)^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"))


def page(version, name, synopsis, of, *more):
    first = re.split(r"\.\s|[.:]?\n\n|:\n", of.about + "\n\n")[0].replace("\n", " ")
    options = "".join(f".TP\n\\fB{roff(one.names)}\\fR \\fI{roff(one.type)}\\fR\n{roff(one.help)}\n" for one in of.options)
    return (f".TH {roff(name.upper())} 1 \"\" \"{version}\" \"User Commands\"\n.SH NAME\n{roff(name)} \\- {roff(first)}\n.SH SYNOPSIS\n{synopsis}\n"
            f".SH DESCRIPTION\n.nf\n{roff(of.about)}\n.fi\n.SH OPTIONS\n{options}{''.join(more)}")


def main():
    command, folder = sys.argv[1], Path(sys.argv[2])
    whole, version = Help(command), subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    of_python = re.search(r"if Python is here: ([\w\s,]+),\s+decode", whole.about)[1].replace(",", " ").split()
    can_say = [name for name in of_python if subprocess.run([command, name, "--help"], capture_output=True).returncode == 0]  # some need NumPy to print their help
    verbs = {name: Help(command, name) for name in [*re.findall(r"^  (\w+) ", whole.verbs, re.M), *can_say]}
    devices = json.loads(subprocess.run([command, "devices", "--all", "--json"], capture_output=True, text=True, check=True).stdout)["devices"]
    simulated = [one["device"] for one in devices if one["device"].startswith("sim:")]
    known = {"--chip": [one.removeprefix("sim:") for one in simulated], "--device": ["auto", "npu", "cpu", *simulated]}
    list_of_verbs = "".join(f".TP\n\\fBskillet\\-{name}\\fR(1)\n{roff(of.about.splitlines()[0])}\n" for name, of in verbs.items())
    (folder / "skillet.1").write_text(page(version, "skillet", r"\fBskillet\fR \fIVERB\fR [\fIOPTIONS\fR]", whole, ".SH VERBS\n", list_of_verbs))
    words = values = ""
    for name, of in verbs.items():
        arguments = "".join(f" \\fI{roff(one.names)}\\fR" for one in of.options if not one.names.startswith("-"))
        (folder / f"skillet-{name}.1").write_text(page(version, f"skillet-{name}", f"\\fBskillet {name}\\fR [\\fIOPTIONS\\fR]{arguments}", of, ".SH EXIT STATUS\n",
                                                       roff(of.codes), "\n.SH SEE ALSO\n\\fBskillet\\fR(1)\n"))
        words += f"    {name}) words='{' '.join(long for one in of.options for long in one.long_names())}' ;;\n"
        for one in of.options:
            given = re.search(r"\{(.*?)\}", one.type)
            for long in one.long_names():
                if offered := known.get(long) or (given and given[1].split(",")):
                    values += f"    {name}{long}) values='{' '.join(offered)}' ;;\n"
    (folder / "skillet.bash").write_text(COMPLETION.replace("VERBS", " ".join([*verbs, "--help", "--version"])).replace("WORDS  ", words + "  ")
                                         .replace("VALUES", values))


if __name__ == "__main__":
    main()
