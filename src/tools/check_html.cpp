// The page of `skillet check --html`: one file that shows anywhere, and asks for nothing from elsewhere.
#include "base/text.h"
#include "compile/advice.h"
#include "tools/check_chips.h"
#include "tools/text_table.h"

namespace skillet::tools {
namespace {

constexpr std::string_view kStyle = R"(
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1200px; padding: 0 1rem; color: #1a1a1a; background: #fff }
h1 { font-size: 1.4rem; overflow-wrap: anywhere } h2 { font-size: 1.1rem; margin-top: 2rem }
.chips { display: flex; flex-wrap: wrap; gap: 1rem } .chip { border: 1px solid #ccc; border-radius: 6px; padding: .8rem 1rem; flex: 1 1 240px }
.bar { height: .6rem; background: #f0d9b5; border-radius: 3px; overflow: hidden; margin: .4rem 0 } .bar div { height: 100%; background: #2e7d32 }
table { border-collapse: collapse; width: 100%; font-size: 14px } th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #ddd }
td.number { text-align: right; font-variant-numeric: tabular-nums } th { position: sticky; top: 0; background: #fff }
.npu { background: #c8e6c9 } .cpu { background: #ffe0b2 } .nowhere { background: #ffcdd2 } .both { background: #fff9c4 } .folded { color: #777 }
ul { padding-left: 1.2rem } small { color: #555 }
)";

// Text of a model, harmless in a page.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string chip_box(const ChipsReport& report, const ChipCheck& chip) {
  const double percent = report.percent_on_npu(chip);
  return fmt::format(
      "<div class=\"chip\"><b>{}</b> <small>{}</small><div class=\"bar\"><div style=\"width:{:.1f}%\"></div></div>"
      "{:.1f} % of the work on the NPU<br>{} of {} operations, {} part(s)</div>\n",
      escaped(chip.chip.name), escaped(chip.chip.title), percent, percent, chip.npu_ops, report.ops.size(),
      chip.npu_parts);
}

std::string reasons(const ChipCheck& chip) {
  std::string out;
  for (const compile::ReasonGroup& group : compile::group_reasons(chip.rows))
    out += fmt::format("<li>{} operation{}: {}</li>\n", group.ops, group.ops == 1 ? "" : "s", escaped(group.reason));
  if (out.empty()) out = "<li>every operation runs on the NPU</li>\n";
  out = fmt::format("<h2>{}: why not on the NPU</h2>\n<ul>\n{}</ul>\n", escaped(chip.chip.name), out);
  return chip.advice.empty() ? out : out + fmt::format("<p>{}</p>\n", escaped(chip.advice));
}

std::string op_row(const ChipsReport& report, size_t i) {
  const ModelOp& op = report.ops[i];
  std::string out = fmt::format("<tr><td class=\"number\">{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td>", i,
                                escaped(op.kind), escaped(op.output), op.macs ? print_count(op.macs) : "");
  for (const ChipCheck& chip : report.chips)
    out += fmt::format("<td class=\"{}\" title=\"{}\">{}</td>", chip.where[i], escaped(chip.why[i]), chip.where[i]);
  return out + "</tr>\n";
}

}  // namespace

std::string chips_html(const ChipsReport& report) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title><style>{1}</style></head><body>\n<h1>{0}</h1>\n"
      "<p>Which operations run on which NPU, as Skillet " SKILLET_VERSION
      " compiles them.</p>\n<div class=\"chips\">\n",
      escaped(report.model), kStyle);
  for (const ChipCheck& chip : report.chips) out += chip_box(report, chip);
  out += "</div>\n";
  for (const ChipCheck& chip : report.chips) out += reasons(chip);
  out += "<h2>Operations</h2>\n<table><thead><tr><th>op</th><th>kind</th><th>output</th><th>MACs</th>";
  for (const ChipCheck& chip : report.chips) out += fmt::format("<th>{}</th>", escaped(chip.chip.name));
  out += "</tr></thead><tbody>\n";
  for (size_t i = 0; i < report.ops.size(); ++i) out += op_row(report, i);
  return out + "</tbody></table>\n</body></html>\n";
}

}  // namespace skillet::tools
