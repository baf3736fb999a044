"""Makes tables of docs/evidence.md from the outputs of the runs: a function for each directive of the template."""
import re

import runs as table_of_runs

SET_TITLES = {
    "coral": "whole networks", "gen": "generated layers", "ops": "single ops", "teflon": "MobileNet and MobileDet layers",
    "edge": "edges of what the chip does", "rand": "random layers and short chains",
}


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def words(text):
    return text.replace("_", " ")


def chip_title(run):
    return table_of_runs.CHIPS[run.rsplit("-", 1)[1]]


def counts(outputs, *names):
    """Returns a table with outcomes as rows, runs as columns."""
    all_counts = [outputs[name]["all"]["counts"] for name in names]
    outcomes = sorted({outcome for one in all_counts for outcome in one},
                      key=lambda outcome: -all_counts[0].get(outcome, 0))
    rows = [[words(outcome)] + [one.get(outcome, 0) for one in all_counts] for outcome in outcomes]
    return markdown(["outcome"] + [chip_title(name) for name in names],
                    rows + [["cases"] + [sum(one.values()) for one in all_counts]])


def sets(outputs, name):
    """Returns a table with sets of cases as rows, outcomes as columns."""
    found = outputs[name]["sets"]
    outcomes = list(outputs[name]["all"]["counts"])
    rows = [[f"{SET_TITLES.get(key, key)} (`{key}`)"] + [found[key]["counts"].get(one, 0) for one in outcomes]
            for key in sorted(found)]
    return markdown([chip_title(name)] + [words(one) for one in outcomes], rows)


def faults(outputs, name):
    """Returns how many differing cases name each known fault first."""
    chip = name.rsplit("-", 1)[1]
    names = {one["name"] for one in outputs[name]["cases"] if one["outcome"] == "differs"}
    found = {}
    with open(f"tests/expectations/golden-{chip}.txt", encoding="utf-8") as file:
        for line in file:
            parts = line.split(None, 2)
            if len(parts) == 3 and parts[0] in names:
                reason = re.sub(r"^\[[^]]*\] ", "", parts[2].strip()).split(";")[0]
                found[reason] = found.get(reason, 0) + 1
    rows = sorted(found.items(), key=lambda item: -item[1])
    return markdown([f"{chip_title(name)}: row of the list, and what", "cases"], rows + [("all", sum(found.values()))])


def switches(outputs, *names):
    first = outputs[names[0]]["switches"]
    rows = []
    for index, one in enumerate(first):
        changed = [outputs[name]["switches"][index]["cases"] for name in names]
        rows.append([f"`{one['name']}`", one["since"], *changed, one["reason"].replace("|", "\\|")])
    return markdown(["switch", "since"] + [f"{chip_title(name)}, of {outputs[name]['cases']}" for name in names] + ["what and why"],
                    rows)


def best(output):
    top = output.get("top")
    return f"{top[0].get('label') or top[0]['class']}, {top[0]['stored']}" if top else ""


def networks(outputs, chip):
    rows = []
    for model, picture, _ in table_of_runs.NETWORKS:
        one = outputs[f"network-{model}-{chip}"]
        run = one["runs"][0]
        layers = [layer for layer in run["layers"] if layer["compared"]]
        largest = max((layer["max_difference"] for layer in layers), default=0)
        differing, all_of_them = (sum(layer[key] for layer in layers) for key in ("differing", "elems"))
        rows.append([model, picture, f"{one['model_npu_ops']} of {one['model_ops']}", len(layers), f"{largest:g}",
                     f"{100 * differing / max(all_of_them, 1):.2g} %", best(run["outputs"][0])])
    return markdown([table_of_runs.CHIPS[chip], "picture", "ops on the NPU", "layers compared", "largest difference of one",
                     "results that differ", "best class"], rows)


def differences(outputs, *chips):
    """Returns the largest difference of whole networks' outputs for each picture, in steps of the output."""
    rows = []
    for model, _, _ in table_of_runs.NETWORKS:
        row = [model]
        for chip in chips:
            runs = outputs[f"whole-{model}-{chip}"]["runs"]
            largest = [max(one["max_difference"] for one in run["outputs"]) for run in runs]
            row.append(", ".join(f"{one:.3g}" for one in largest))
        rows.append(row + [outputs[f"whole-{model}-{chips[0]}"]["runs"][0]["outputs"][0]["type"]])
    titles = [f"{chip_title(f'x-{chip}')}: {', '.join(table_of_runs.PICTURES)}" for chip in chips]
    return markdown(["model"] + titles + ["first output"], rows)


def compression(outputs, chip):
    """Returns the sizes of whole models' weights in bytes."""
    rows = []
    for model, _, _ in table_of_runs.NETWORKS:
        layers = [one for part in outputs[f"weights-{model}-{chip}"]["parts"] for one in part["weights"]]
        total = {key: sum(one[key] for one in layers) for key in ("raw", "recorded", "tuned", "format", "entropy")}
        larger = sum(one["tuned"] > one["recorded"] for one in layers)
        rows.append([model, len(layers), *(f"{one:,}" for one in total.values()),
                     f"{100 * (total['tuned'] / total['format'] - 1):.1f} %",
                     f"{100 * (total['tuned'] / total['entropy'] - 1):.1f} %", larger])
    return markdown([table_of_runs.CHIPS[chip], "jobs with weights", "raw", "recorded", "tuned", "format's bound",
                     "entropy", "tuned over the bound", "tuned over entropy", "jobs where tuned is larger than recorded"], rows)


def peer(outputs, name):
    results = [one for one in outputs[name]["results"] if "/" in one["name"]]
    verdicts = sorted({one["verdict"] for one in results}, key=lambda v: -sum(one["verdict"] == v for one in results))
    names = sorted({one["name"].split("/")[0] for one in results})
    rows = [[f"`{key}`"] + [sum(one["verdict"] == v and one["name"].startswith(key + "/") for one in results)
                            for v in verdicts] for key in names]
    rows.append(["all"] + [sum(one["verdict"] == v for one in results) for v in verdicts])
    text = markdown(["set"] + verdicts, rows)
    for one in outputs[name]["results"]:
        if "/" not in one["name"]:
            text += f"\n\n{one['name']} on a picture: {one['verdict']}; {one['detail']}."
    versions = outputs[name]["versions"]
    text += f"\n\nMesa {versions['mesa-teflon-delegate']}, arm64, of Debian."
    return text


def lines(outputs, name, pattern):
    found = [line.rstrip() for line in outputs[name].splitlines() if re.search(pattern, line)]
    if not found:
        raise ValueError(f"{name}: no line with '{pattern}'")
    return "\n".join(["```text"] + found + ["```"])


def table(outputs, name):
    """Returns the output of a run that prints a table itself."""
    return outputs[name].strip()


def command(_, name):
    return f"`{table_of_runs.RUNS[name].text()}`"


DIRECTIVES = {one.__name__: one for one in (counts, sets, faults, switches, networks, differences, compression, peer,
                                              lines, table, command)}
