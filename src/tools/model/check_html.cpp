// Makes the page of `skillet check --html`: one file without external resources.
#include <algorithm>

#include "base/text.h"
#include "compile/advice.h"
#include "tools/model/check_chips.h"
#include "tools/model/check_graph.h"
#include "tools/model/model.h"
#include "tools/show/text_table.h"
#include "tools/time/npu_use.h"
#include "tools/time/program_timing.h"

namespace skillet::tools {
namespace {

constexpr std::string_view kStyle = R"(
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1240px; padding: 0 1rem; color: #1a1a1a; background: #fff }
h1 { font-size: 1.4rem; overflow-wrap: anywhere } h2 { font-size: 1.1rem; margin-top: 2rem }
.chips { display: flex; flex-wrap: wrap; gap: 1rem } .chip { border: 1px solid #ccc; border-radius: 6px; padding: .8rem 1rem; flex: 1 1 240px }
.bar { height: .6rem; background: #f0d9b5; border-radius: 3px; overflow: hidden; margin: .4rem 0 } .bar div { height: 100%; background: #2e7d32 }
table { border-collapse: collapse; width: 100%; font-size: 14px } th, td { text-align: left; padding: .25rem .3rem; border-bottom: 1px solid #ddd; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap } th { position: sticky; top: 0; background: #fff }
.npu { background: #c8e6c9; fill: #a5d6a7 } .cpu { background: #ffe0b2; fill: #ffcc80 } .nowhere { background: #ffcdd2; fill: #ef9a9a }
.both { background: #fff9c4; fill: #fff59d } .folded { background: #eee; fill: #e0e0e0 }
.key span { display: inline-block; padding: 0 .6rem; margin-right: .5rem; border-radius: 3px }
.graph { overflow-x: auto; border: 1px solid #ccc; border-radius: 6px } svg text { font: 11px "DejaVu Sans Mono", "Liberation Mono", Menlo, Consolas, monospace; fill: #444 } svg .kind { font-weight: bold; fill: #1a1a1a }
svg .node { fill: #fff; stroke: #999 } svg .edge { fill: none; stroke: #888; stroke-width: 1.3 } svg .mark { stroke: #666; stroke-width: .7 }
ul { padding-left: 1.2rem } li { overflow-wrap: anywhere } small { color: #555 }
)";

std::string chip_box(const ChipCheck& chip) {
  const double percent = chip.share.percent();
  const std::string time =
      chip.wall_us < 0 ? ""
                       : fmt::format("<br>about {} (simulated{}, &plusmn;{:.0f} %{})", print_ms(chip.wall_us / 1000),
                                     at_clock(chip.clock), 100 * chip.time_error, on_cores(chip.cores));
  const std::string alone = escaped(print_cpu_alone(chip.chip.name, chip.cpu_alone_us));
  return fmt::format(
      "<div class=\"chip\"><b>{}</b> <small>{}</small><div class=\"bar\"><div style=\"width:{:.1f}%\"></div></div>"
      "{:.1f} % of the work on the NPU<br>{}, {}{}<br>{}</div>\n",
      escaped(chip.chip.name), escaped(chip.chip.title), percent, percent, compile::print(chip.use),
      counted(chip.npu_parts, "part"), chip.npu_parts == 0 ? "" : time, alone);
}

std::string reasons(const ChipCheck& chip, compile::Words words) {
  std::string out;
  for (const compile::ReasonGroup& group : compile::group_reasons(chip.rows))
    out += fmt::format("<li>{} operation{}: {}<br><small>{}</small></li>\n", group.ops, group.ops == 1 ? "" : "s",
                       escaped(group.reason), escaped(group.remedy_text(words)));
  if (out.empty()) out = "<li>every operation runs on the NPU</li>\n";
  out = fmt::format("<h2>{}: why not on the NPU</h2>\n<ul>\n{}</ul>\n", escaped(chip.chip.name), out);
  return chip.advice.empty() ? out : out + fmt::format("<p>{}</p>\n", escaped(chip.advice));
}

std::string key(const ChipsReport& report) {
  std::string out = "<p class=\"key\">";
  for (const char* const place : {"npu", "cpu", "nowhere", "both", "folded"}) {
    const bool is_used = std::ranges::any_of(
        report.chips, [&](const ChipCheck& chip) { return std::ranges::find(chip.where, place) != chip.where.end(); });
    if (is_used) out += fmt::format("<span class=\"{0}\">{0}</span>", place);
  }
  std::string chips;
  for (const ChipCheck& chip : report.chips) chips += (chips.empty() ? "" : ", ") + escaped(chip.chip.name);
  return out + fmt::format(" marks from left to right: {}; hover over one for its reason and time</p>\n", chips);
}

// ---- the table -------------------------------------------------------------------------------------------------

std::string op_row(const ChipsReport& report, size_t i) {
  const ModelOp& op = report.ops[i];
  std::string out = fmt::format("<tr><td class=\"number\">{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td>", i,
                                escaped(op.kind), escaped(op.output), op.macs ? print_count(op.macs) : "-");
  for (const ChipCheck& chip : report.chips)
    out += fmt::format(
        "<td class=\"{0}\" title=\"{1}\">{0}</td><td class=\"number\">{2}</td><td class=\"number\">{3}</td>",
        chip.where[i], escaped(chip.why[i]), chip.steps[i] < 0 ? "-" : steps_text(chip.steps[i]),
        chip.us[i] < 0 ? "-" : us_text(chip.us[i]));
  return out + "</tr>\n";
}

std::string table(const ChipsReport& report) {
  std::string out =
      "<h2>Operations</h2>\n"
      "<p><small>off: largest possible difference from the CPU's result, in steps of the output, for the same inputs; "
      "time: simulated</small></p>\n"
      "<table><thead><tr><th>op</th><th>kind</th><th>output</th><th>MACs</th>";
  for (const ChipCheck& chip : report.chips)
    out += fmt::format("<th>{}</th><th>off</th><th>time</th>", escaped(chip.chip.name));
  out += "</tr></thead><tbody>\n";
  for (size_t i = 0; i < report.ops.size(); ++i) out += op_row(report, i);
  return out + "</tbody></table>\n";
}

}  // namespace

std::string chips_html(const ChipsReport& report) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title><style>{1}</style></head><body>\n<h1>{0}</h1>\n"
      "<p>Which operations run on which NPU, as Skillet " SKILLET_VERSION
      " compiles them.</p>\n<div class=\"chips\">\n",
      escaped(report.model), kStyle);
  for (const ChipCheck& chip : report.chips) out += chip_box(chip);
  out += "</div>\n";
  for (const ChipCheck& chip : report.chips) out += reasons(chip, report.words);
  out += "<h2>Graph</h2>\n" + key(report) + graph_svg(report) + table(report);
  return out + "</body></html>\n";
}

}  // namespace skillet::tools
