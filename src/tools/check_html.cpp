// The page of `skillet check --html`: one file that shows anywhere, and asks for nothing from elsewhere.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "compile/advice.h"
#include "tools/check_chips.h"
#include "tools/text_table.h"

namespace skillet::tools {
namespace {

constexpr std::string_view kStyle = R"(
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1240px; padding: 0 1rem; color: #1a1a1a; background: #fff }
h1 { font-size: 1.4rem; overflow-wrap: anywhere } h2 { font-size: 1.1rem; margin-top: 2rem }
.chips { display: flex; flex-wrap: wrap; gap: 1rem } .chip { border: 1px solid #ccc; border-radius: 6px; padding: .8rem 1rem; flex: 1 1 240px }
.bar { height: .6rem; background: #f0d9b5; border-radius: 3px; overflow: hidden; margin: .4rem 0 } .bar div { height: 100%; background: #2e7d32 }
table { border-collapse: collapse; width: 100%; font-size: 14px } th, td { text-align: left; padding: .25rem .5rem; border-bottom: 1px solid #ddd; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap } th { position: sticky; top: 0; background: #fff }
.npu { background: #c8e6c9; fill: #a5d6a7 } .cpu { background: #ffe0b2; fill: #ffcc80 } .nowhere { background: #ffcdd2; fill: #ef9a9a }
.both { background: #fff9c4; fill: #fff59d } .folded { background: #eee; fill: #e0e0e0 }
.key span { display: inline-block; padding: 0 .6rem; margin-right: .5rem; border-radius: 3px }
.graph { overflow-x: auto; border: 1px solid #ccc; border-radius: 6px } svg text { font: 12px system-ui, sans-serif; fill: #1a1a1a } svg .small { font-size: 11px; fill: #555 }
svg .node { fill: #fff; stroke: #999 } svg .edge { fill: none; stroke: #888; stroke-width: 1.3 } svg .mark { stroke: #666; stroke-width: .7 }
ul { padding-left: 1.2rem } li { overflow-wrap: anywhere } small { color: #555 }
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

std::string us_text(double us) { return us < 0 ? "" : fmt::format("{:.1f} us", us); }

std::string chip_box(const ChipsReport& report, const ChipCheck& chip) {
  const double percent = report.percent_on_npu(chip);
  const std::string time = chip.wall_us < 0 ? ""
                                            : fmt::format("<br>about {} (simulated, &plusmn;{:.0f} %)",
                                                          print_ms(chip.wall_us / 1000), 100 * chip.time_error);
  return fmt::format(
      "<div class=\"chip\"><b>{}</b> <small>{}</small><div class=\"bar\"><div style=\"width:{:.1f}%\"></div></div>"
      "{:.1f} % of the work on the NPU<br>{}, {} part(s){}</div>\n",
      escaped(chip.chip.name), escaped(chip.chip.title), percent, percent, print_use(chip.use), chip.npu_parts, time);
}

std::string reasons(const ChipCheck& chip) {
  std::string out;
  for (const compile::ReasonGroup& group : compile::group_reasons(chip.rows))
    out += fmt::format("<li>{} operation{}: {}<br><small>{}</small></li>\n", group.ops, group.ops == 1 ? "" : "s",
                       escaped(group.reason), escaped(group.remedy_text()));
  if (out.empty()) out = "<li>every operation runs on the NPU</li>\n";
  out = fmt::format("<h2>{}: why not on the NPU</h2>\n<ul>\n{}</ul>\n", escaped(chip.chip.name), out);
  return chip.advice.empty() ? out : out + fmt::format("<p>{}</p>\n", escaped(chip.advice));
}

// ---- the graph: a row for each step from the input, operations side by side ------------------------------------

constexpr int kNotesWidth = 640, kBoxWidth = 250, kBoxHeight = 46, kGapX = 24, kGapY = 20, kMargin = 12;

struct Place {
  int row = 0, column = 0;
  int x() const { return kMargin + column * (kBoxWidth + kGapX); }
  int y() const { return kMargin + row * (kBoxHeight + kGapY); }
};

std::vector<Place> places_of(const ChipsReport& report) {
  std::vector<Place> out(report.ops.size());
  std::map<int, int> used;
  for (size_t i = 0; i < report.ops.size(); ++i) {
    for (const size_t from : report.ops[i].from) out[i].row = std::max(out[i].row, out[from].row + 1);
    out[i].column = used[out[i].row]++;
  }
  return out;
}

std::string edge(const Place& from, const Place& to) {
  const int x0 = from.x() + kBoxWidth / 2, y0 = from.y() + kBoxHeight, x1 = to.x() + kBoxWidth / 2, y1 = to.y();
  // What skips rows goes by on the right of the boxes between.
  if (to.row > from.row + 1 && from.column == to.column) {
    const int side = from.x() + kBoxWidth + kGapX / 2;
    return fmt::format("<path class=\"edge\" d=\"M{} {}L{} {}L{} {}L{} {}\"/>\n", from.x() + kBoxWidth, from.y() + 12,
                       side, from.y() + 12, side, y1 + 12, to.x() + kBoxWidth, y1 + 12);
  }
  return fmt::format("<path class=\"edge\" d=\"M{} {}C{} {} {} {} {} {}\"/>\n", x0, y0, x0, y0 + kGapY, x1, y1 - kGapY,
                     x1, y1);
}

std::string about(const ChipCheck& chip, size_t i) {
  std::string out = fmt::format("{}: {}", chip.chip.name, chip.where[i]);
  if (chip.us[i] >= 0) out += ", " + us_text(chip.us[i]);
  return chip.why[i].empty() ? out : out + ", " + chip.why[i];
}

std::string box(const ChipsReport& report, size_t i, const Place& at) {
  constexpr int kMark = 14;
  const ModelOp& op = report.ops[i];
  std::string out = fmt::format(
      "<g><rect class=\"node\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"5\"/>"
      "<text x=\"{}\" y=\"{}\">{} {}</text><text class=\"small\" x=\"{}\" y=\"{}\">{}</text>",
      at.x(), at.y(), kBoxWidth, kBoxHeight, at.x() + 8, at.y() + 18, i, escaped(op.kind.substr(0, 26)), at.x() + 8,
      at.y() + 36, escaped(op.output.substr(0, 24)));
  int x = at.x() + kBoxWidth - 6 - static_cast<int>(report.chips.size()) * (kMark + 3);
  for (const ChipCheck& chip : report.chips) {
    out += fmt::format("<rect class=\"mark {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
                       chip.where[i], x, at.y() + 26, kMark, kMark, escaped(about(chip, i)));
    x += kMark + 3;
  }
  return out + "</g>\n";
}

// What there is room for beside a narrow graph: times, and why an operation is not on an NPU.
std::string notes(const ChipsReport& report, size_t i, int x, int y) {
  std::string times;
  std::vector<std::string> whys;
  for (const ChipCheck& chip : report.chips) {
    if (chip.us[i] >= 0)
      times += fmt::format("{}{} {}", times.empty() ? "" : ", ", chip.chip.name, us_text(chip.us[i]));
    if (!chip.why[i].empty() && std::ranges::find(whys, chip.why[i]) == whys.end()) whys.push_back(chip.why[i]);
  }
  constexpr size_t kMostLetters = 110;
  std::string why = fmt::format("{}", fmt::join(whys, "; "));
  if (why.size() > kMostLetters) why = why.substr(0, kMostLetters) + "...";
  return fmt::format(
      "<text class=\"small\" x=\"{0}\" y=\"{1}\">{2}</text><text class=\"small\" x=\"{0}\" y=\"{3}\">{4}</text>\n", x,
      y + 18, escaped(times), y + 36, escaped(why));
}

std::string graph(const ChipsReport& report) {
  const std::vector<Place> places = places_of(report);
  Place last;
  for (const Place& one : places) last = {std::max(last.row, one.row), std::max(last.column, one.column)};
  const bool has_room = last.column <= 1;
  std::string out = fmt::format("<div class=\"graph\"><svg role=\"img\" width=\"{}\" height=\"{}\">\n",
                                last.x() + kBoxWidth + kGapX + kMargin + (has_room ? kNotesWidth : 0),
                                last.y() + kBoxHeight + kMargin);
  for (size_t i = 0; i < places.size(); ++i) {
    for (const size_t from : report.ops[i].from) out += edge(places[from], places[i]);
  }
  for (size_t i = 0; i < places.size(); ++i) out += box(report, i, places[i]);
  for (size_t i = 0; has_room && i < places.size(); ++i) {
    const bool is_alone = std::ranges::count(places, places[i].row, &Place::row) == 1;
    if (is_alone) out += notes(report, i, last.x() + kBoxWidth + kGapX + 8, places[i].y());
  }
  return out + "</svg></div>\n";
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
  return out + fmt::format(" marks from left to right: {}; point at one for its reason and time</p>\n", chips);
}

// ---- the table -------------------------------------------------------------------------------------------------

std::string op_row(const ChipsReport& report, size_t i) {
  const ModelOp& op = report.ops[i];
  std::string out = fmt::format("<tr><td class=\"number\">{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td>", i,
                                escaped(op.kind), escaped(op.output), op.macs ? print_count(op.macs) : "-");
  for (const ChipCheck& chip : report.chips)
    out += fmt::format(
        "<td class=\"{0}\" title=\"{1}\">{0}</td><td class=\"number\">{2}</td><td class=\"number\">{3}</td>",
        chip.where[i], escaped(chip.why[i]), chip.error[i].empty() ? "-" : escaped(chip.error[i]),
        chip.us[i] < 0 ? "-" : us_text(chip.us[i]));
  return out + "</tr>\n";
}

std::string table(const ChipsReport& report) {
  std::string out =
      "<h2>Operations</h2>\n<p><small>off: how far a result may be from the CPU's, in steps of the output, given the "
      "same "
      "inputs; time: simulated</small></p>\n<table><thead><tr><th>op</th><th>kind</th><th>output</th><th>MACs</th>";
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
  for (const ChipCheck& chip : report.chips) out += chip_box(report, chip);
  out += "</div>\n";
  for (const ChipCheck& chip : report.chips) out += reasons(chip);
  out += "<h2>Graph</h2>\n" + key(report) + graph(report) + table(report);
  return out + "</body></html>\n";
}

}  // namespace skillet::tools
