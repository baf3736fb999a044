// TextTable: rows of text in aligned columns; lines wrapped to the terminal's width; numbers for people ("12.3 ms").
// Called by the verbs that report.
// Must not know: the content of rows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skillet::tools {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) { add(std::move(header)); }
  void add(std::vector<std::string> row);  // a row is one line; control characters are escaped
  bool empty() const { return rows_.size() <= 1; }
  // Returns rows with two blanks before each row and between columns; columns of numbers, after the first, are
  // right-aligned.
  std::string print() const;
  // Returns lines of at most kLineColumns: the last column is wrapped in its column.
  std::string print_wrapped() const;

 private:
  struct Line {
    std::string text;
    size_t last_at = 0;  // where the last column begins
  };
  std::vector<Line> lines() const;

  std::vector<std::vector<std::string>> rows_;
};

inline constexpr size_t kLineColumns = 99;
// Breaks `text` between words into lines of at most kLineColumns; lines after the first are indented by `indent`
// blanks.
std::string wrapped(std::string_view text, size_t indent = 0);
// Wraps each line of a text, which ends with a newline.
std::string wrapped_lines(std::string_view text, size_t indent);

std::string print_ms(double ms);          // "0.4 ms", "12 ms", "1.25 s"
std::string print_count(uint64_t count);  // "1,234,567"
std::string print_bytes(uint64_t bytes);  // "12 B", "1.5 KiB", "4.2 MiB"

}  // namespace skillet::tools
