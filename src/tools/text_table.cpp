#include "tools/text_table.h"

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

std::string TextTable::print() const {
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
  numeric[0] = false;  // it names the row
  std::string out;
  for (const auto& row : rows_) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i)
      line += numeric[i] ? fmt::format(" {:>{}} ", row[i], widths[i]) : fmt::format(" {:<{}} ", row[i], widths[i]);
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
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
