#include "tools/model/check_graph.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "base/text.h"

namespace skillet::tools {
namespace {

// Maximum number of boxes in a row for a window of 1280 pixels; more go into the next row.
constexpr int kMostInRow = 4;
constexpr int kBoxWidth = 250, kBoxHeight = 48, kLaneWidth = 8, kGapX = 14, kGapY = 26, kMargin = 12, kPageWidth = 1216;
constexpr int kLetterPx = 7;  // width of a letter in the page's monospace fonts (kStyle)

// A box in a row, or a lane: a line that passes the row, from an operation's output to a row further down.
struct Slot {
  size_t op = 0;
  bool is_lane = false;
  double wanted = 0;  // ideal middle, below its inputs
  int x = 0;
  int width() const { return is_lane ? kLaneWidth : kBoxWidth; }
  int middle() const { return x + width() / 2; }
};
using Row = std::vector<Slot>;

int top_of(size_t row) { return kMargin + static_cast<int>(row) * (kBoxHeight + kGapY); }

// Row of each operation, number of operations in each row, and whether another operation reads it.
struct Rows {
  static constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> of;
  std::vector<int> used;
  std::vector<bool> is_read;

  explicit Rows(const ChipsReport& report) : of(report.ops.size(), kNone), is_read(report.ops.size()) {
    for (const ModelOp& op : report.ops) {
      for (const size_t from : op.from) is_read[from] = true;
    }
  }
  int room(size_t row) const { return kMostInRow - (row < used.size() ? used[row] : 0); }
  void put(size_t op, size_t row) {
    used.resize(std::max(used.size(), row + 1));
    ++used[row];
    of[op] = row;
  }
};

// Puts an operation below all its inputs. `loose`: inputs that have no row yet; they go directly above it.
void put_with(std::span<const size_t> loose, size_t op, std::span<const size_t> from, Rows& rows) {
  const size_t reach = loose.empty() ? 0 : loose.size() / kMostInRow + 2;  // number of rows for them
  size_t row = std::min<size_t>(loose.size(), 1);
  for (const size_t one : from) row = rows.of[one] == Rows::kNone ? row : std::max(row, rows.of[one] + 1);
  const auto fits = [&] {
    size_t free = 0;
    for (size_t i = 1; i <= std::min(reach, row); ++i) free += static_cast<size_t>(rows.room(row - i));
    return rows.room(row) > 0 && free >= loose.size();
  };
  while (!fits()) ++row;
  size_t above = row;
  for (const size_t one : loose) {
    if (above == row) --above;
    while (rows.room(above) == 0) --above;
    rows.put(one, above);
  }
  rows.put(op, row);
}

// Assigns rows: each operation below its inputs, with a maximum per row. An operation on constants only, such as a
// DEQUANTIZE of weights, goes next to its first reader.
std::vector<size_t> rows_of(const ChipsReport& report) {
  Rows rows(report);
  for (size_t i = 0; i < report.ops.size(); ++i) {
    const std::vector<size_t>& from = report.ops[i].from;
    if (from.empty() && rows.is_read[i]) continue;
    std::vector<size_t> loose;
    for (const size_t one : from) {
      const bool is_new = rows.of[one] == Rows::kNone && std::ranges::find(loose, one) == loose.end();
      if (is_new) loose.push_back(one);
    }
    put_with(loose, i, from, rows);
  }
  return rows.of;
}

const Slot* slot_of(const Row& row, size_t op) {
  const auto found = std::ranges::find(row, op, &Slot::op);
  return found == row.end() ? nullptr : &*found;
}

// Places slots side by side, each as near to its ideal position as possible.
void place(Row& row) {
  std::ranges::stable_sort(row, {}, &Slot::wanted);
  int next = kMargin;
  for (Slot& slot : row) {
    slot.x = std::max(next, static_cast<int>(slot.wanted) - slot.width() / 2);
    next = slot.x + slot.width() + kGapX;
  }
  int room = kPageWidth;
  const int needed = std::accumulate(row.begin(), row.end(), kMargin,
                                     [](int sum, const Slot& slot) { return sum + slot.width() + kGapX; });
  room = std::max(room, needed);
  for (size_t i = row.size(); i-- > 0; room = row[i].x - kGapX) row[i].x = std::min(row[i].x, room - row[i].width());
}

std::vector<Row> layout(const ChipsReport& report) {
  const std::vector<size_t> row_of = rows_of(report);
  std::vector<size_t> last(report.ops.size());  // the row of its last reader
  size_t count = 0;
  for (size_t i = 0; i < report.ops.size(); ++i) {
    for (const size_t from : report.ops[i].from) last[from] = std::max(last[from], row_of[i]);
    count = std::max(count, row_of[i] + 1);
  }
  std::vector<Row> rows(count);
  for (size_t i = 0; i < report.ops.size(); ++i) {
    rows[row_of[i]].push_back({i, false, 0, 0});
    for (size_t row = row_of[i] + 1; row < last[i]; ++row) rows[row].push_back({i, true, 0, 0});
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    for (Slot& slot : rows[r]) {
      const std::vector<size_t> itself = {slot.op};
      const std::vector<size_t>& from = slot.is_lane ? itself : report.ops[slot.op].from;
      double sum = 0;
      for (const size_t one : from) sum += slot_of(rows[r - 1], one) ? slot_of(rows[r - 1], one)->middle() : 0;
      slot.wanted = from.empty() ? 0 : sum / static_cast<double>(from.size());
      if (slot.is_lane) slot.wanted += kBoxWidth / 2.0 + kGapX;  // beside its box, not below it
      if (slot.is_lane && slot_of(rows[r - 1], slot.op)->is_lane) slot.wanted -= kBoxWidth / 2.0 + kGapX;
    }
    place(rows[r]);
  }
  return rows;
}

std::string curve(int x0, int y0, int x1, int y1) {
  return fmt::format("M{} {}C{} {} {} {} {} {}", x0, y0, x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
}

// Draws lines from row to row, each piece in the gap between two rows; lanes pass the row.
std::string edges(const ChipsReport& report, const std::vector<Row>& rows) {
  std::string out;
  for (size_t r = 1; r < rows.size(); ++r) {
    for (const Slot& slot : rows[r]) {
      const auto line = [&](size_t from, int x) {
        const Slot& above = *slot_of(rows[r - 1], from);
        std::string path = curve(above.middle(), top_of(r - 1) + kBoxHeight, x, top_of(r));
        if (slot.is_lane) path += fmt::format("V{}", top_of(r) + kBoxHeight);
        const std::string to = slot.is_lane ? "" : fmt::format(" data-to=\"{}\"", slot.op);
        out += fmt::format("<path class=\"edge\" data-from=\"{}\"{} d=\"{}\"/>\n", from, to, path);
      };
      std::vector<size_t> from = slot.is_lane ? std::vector<size_t>() : report.ops[slot.op].from;
      std::ranges::stable_sort(from, {}, [&](size_t one) { return slot_of(rows[r - 1], one)->middle(); });
      if (slot.is_lane) line(slot.op, slot.middle());
      const int ports = static_cast<int>(from.size());
      for (int i = 0; i < ports; ++i) line(from[static_cast<size_t>(i)], slot.x + kBoxWidth * (i + 1) / (ports + 1));
    }
  }
  return out;
}

// ---- text ------------------------------------------------------------------------------------------------------

// Splits into letters with their widths in a monospace font: East Asian letters and emoji are twice as wide.
std::vector<std::pair<std::string, int>> letters_of(const std::string& text) {
  std::vector<std::pair<std::string, int>> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (end < text.size() && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) ++end;
    out.emplace_back(text.substr(at, end - at), end - at >= 3 ? 2 : 1);
    at = end;
  }
  return out;
}

// Breaks text into at most `lines` lines of `columns` letters, between words if one is near the end. If it is too long,
// leaves out the middle, because names differ at their ends.
std::vector<std::string> lines_of(std::string_view text, int columns, int lines) {
  constexpr int kLongestEnd = 16;  // longest end of a line that moves to the next one with its word
  std::vector<std::pair<std::string, int>> letters = letters_of(printable(text));
  const auto width = [&] {
    return std::accumulate(letters.begin(), letters.end(), 0,
                           [](int sum, const auto& one) { return sum + one.second; });
  };
  const int room = columns * lines - (lines - 1) * kLongestEnd;
  if (width() > room) {
    ptrdiff_t cut = 0;
    while (width() > room - 1) {
      cut = std::ssize(letters) / 3;
      letters.erase(letters.begin() + cut);
    }
    letters.insert(letters.begin() + cut, {"\u2026", 1});
  }
  std::vector<std::string> out(1);
  int used = 0;
  for (const auto& [letter, wide] : letters) {
    if (used + wide > columns) {
      const size_t blank = out.back().find_last_of(' ');
      const bool is_near = blank != std::string::npos && blank + kLongestEnd > out.back().size();
      const std::string end = is_near ? out.back().substr(blank + 1) : "";
      if (is_near) out.back().resize(blank);
      out.push_back(end);
      used = static_cast<int>(end.size());
    }
    out.back() += letter;
    used += wide;
  }
  return out;
}

std::string text_at(std::string_view kind, int x, int y, std::string_view text) {
  return fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>", kind, x, y, escaped(text));
}

std::string about(const ChipCheck& chip, size_t i) {
  std::string out = fmt::format("{}: {}", chip.chip.name, chip.where[i]);
  if (chip.us[i] >= 0) out += ", " + us_text(chip.us[i]);
  return chip.why[i].empty() ? out : out + ", " + chip.why[i];
}

std::string box(const ChipsReport& report, size_t i, int x, int y) {
  constexpr int kMark = 14, kInset = 8;
  const ModelOp& op = report.ops[i];
  const int marks = static_cast<int>(report.chips.size()) * (kMark + 3);
  std::string out = fmt::format(
      "<g data-op=\"{0}\"><title>{0} {1}: {2}</title><rect class=\"node\" x=\"{3}\" y=\"{4}\" width=\"{5}\" "
      "height=\"{6}\" rx=\"5\"/>",
      i, escaped(op.kind), escaped(op.output), x, y, kBoxWidth, kBoxHeight);
  const int columns = (kBoxWidth - 2 * kInset) / kLetterPx;
  out += text_at("kind", x + kInset, y + 19, lines_of(fmt::format("{} {}", i, op.kind), columns, 1)[0]);
  const std::string shape = lines_of(op.output, columns - marks / kLetterPx - 1, 1)[0];
  if (!shape.empty()) out += text_at("name", x + kInset, y + 37, shape);
  int mark_x = x + kBoxWidth - 6 - marks;
  for (const ChipCheck& chip : report.chips) {
    out += fmt::format("<rect class=\"mark {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
                       chip.where[i], mark_x, y + 27, kMark, kMark, escaped(about(chip, i)));
    mark_x += kMark + 3;
  }
  return out + "</g>\n";
}

// Notes beside a row of one box: times, and why an operation is not on an NPU.
std::string notes(const ChipsReport& report, size_t i, int x, int y) {
  std::string times;
  std::vector<std::string> whys;
  for (const ChipCheck& chip : report.chips) {
    if (chip.us[i] >= 0)
      times += fmt::format("{}{} {}", times.empty() ? "" : ", ", chip.chip.name, us_text(chip.us[i]));
    if (!chip.why[i].empty() && std::ranges::find(whys, chip.why[i]) == whys.end()) whys.push_back(chip.why[i]);
  }
  const int columns = (kPageWidth - x) / kLetterPx;
  constexpr int kFewest = 40;
  if (columns < kFewest) return "";
  std::string out;
  if (!times.empty()) out += text_at("name", x, y + 13, lines_of(times, columns, 1)[0]);
  int line_y = y + 28;
  for (const std::string& line : lines_of(fmt::format("{}", fmt::join(whys, "; ")), columns, 2)) {
    if (!line.empty()) out += text_at("name", x, line_y, line);
    line_y += 14;
  }
  return out + "\n";
}

}  // namespace

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

std::string graph_svg(const ChipsReport& report) {
  const std::vector<Row> rows = layout(report);
  int width = kPageWidth;
  for (const Row& row : rows) width = std::max(width, row.back().x + row.back().width() + kMargin);
  std::string out = fmt::format("<div class=\"graph\"><svg role=\"img\" width=\"{}\" height=\"{}\">\n", width,
                                top_of(rows.size()) - kGapY + kMargin);
  out += edges(report, rows);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (const Slot& slot : rows[r]) {
      if (!slot.is_lane) out += box(report, slot.op, slot.x, top_of(r));
    }
    const auto is_box = [](const Slot& slot) { return !slot.is_lane; };
    if (std::ranges::count_if(rows[r], is_box) != 1) continue;
    const Slot& only = *std::ranges::find_if(rows[r], is_box);
    out += notes(report, only.op, rows[r].back().x + rows[r].back().width() + 2 * kGapX, top_of(r));
  }
  return out + "</svg></div>\n";
}

}  // namespace skillet::tools
