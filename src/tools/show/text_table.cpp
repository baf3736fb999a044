#include "tools/show/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace skillet::tools {
namespace {

bool looks_like_number(const std::string& text) {
  return text.empty() || (text[0] >= '0' && text[0] <= '9') || text == "-";
}

}  // namespace

void TextTable::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

std::vector<TextTable::Line> TextTable::lines() const {
  std::vector<size_t> widths;
  std::vector<bool> numeric;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    numeric.resize(widths.size(), true);
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
      if (&row != &rows_.front() && !looks_like_number(row[i])) numeric[i] = false;
    }
  }
  numeric[0] = false;  // it has the names of rows
  std::vector<Line> out;
  for (const auto& row : rows_) {
    Line line{.text = " "};
    for (size_t i = 0; i < row.size(); ++i) {
      line.last_at = line.text.size() + 1;
      line.text += numeric[i] ? fmt::format(" {:>{}} ", row[i], widths[i]) : fmt::format(" {:<{}} ", row[i], widths[i]);
    }
    line.text.resize(line.text.find_last_not_of(' ') + 1);
    out.push_back(std::move(line));
  }
  return out;
}

std::string TextTable::print() const {
  std::string out;
  for (const Line& line : lines()) out += line.text + "\n";
  return out;
}

// If the last column begins too far right, its text continues further left.
std::string TextTable::print_wrapped() const {
  constexpr size_t kFarthest = 60, kInstead = 8;
  std::string out;
  for (const Line& line : lines()) {
    const bool has_last = line.last_at < line.text.size();  // else the last column is empty
    const bool is_narrow = has_last && line.text.size() > kLineColumns && line.last_at > kFarthest;
    if (!is_narrow) {
      out += wrapped(line.text, has_last ? line.last_at : kInstead) + "\n";
      continue;
    }
    const std::string before = line.text.substr(0, line.last_at);
    out += wrapped(before.substr(0, before.find_last_not_of(' ') + 1), kInstead) + "\n";
    out += wrapped(std::string(kInstead, ' ') + line.text.substr(line.last_at), kInstead) + "\n";
  }
  return out;
}

std::string wrapped(std::string_view text, size_t indent) {
  std::string out;
  size_t room = kLineColumns;
  while (text.size() > room) {
    const size_t word = text.find_first_not_of(' ');  // keep blanks at the start of a line
    size_t end = text.rfind(' ', room);
    if (end == std::string_view::npos || end <= word) end = text.find(' ', std::min(word, text.size()));
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(0, end);
    out.append(line.substr(0, line.find_last_not_of(' ') + 1)).append("\n").append(indent, ' ');
    text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
    room = kLineColumns - std::min(indent, kLineColumns - 1);
  }
  return out.append(text);
}

std::string wrapped_lines(std::string_view text, size_t indent) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1);
    out += wrapped(text.substr(0, end), indent) + "\n";
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string print_ms(double ms) {
  if (ms >= 1000) return fmt::format("{:.2f} s", ms / 1000);
  return ms >= 10 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.2g} ms", ms);
}

std::string print_count(uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string print_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const double kib = static_cast<double>(bytes) / 1024;
  return kib < 1024 ? fmt::format("{:.1f} KiB", kib) : fmt::format("{:.1f} MiB", kib / 1024);
}

}  // namespace skillet::tools
