// Scores: tensor contents as real numbers, label files, the k best classes of a classifier's output.
// Called by code that shows or compares results.
// Must not know: devices, sessions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

struct TopClass {
  int64_t index = 0;
  double score = 0;   // dequantized
  std::string raw;    // "224/255"
  std::string label;  // empty without labels
};

// True if raw_value() can read elements of this type.
bool has_numbers(ir::DType dtype);
// Element `i` as stored (integers, float16, float32, float64); 0 for types without numbers.
double raw_value(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t i);
// Element `i` as a real number, dequantized if the tensor is quantized.
double real_value(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t i);
// "224/255" for uint8, "96 of -128..127" for int8, "" for other types.
std::string print_raw(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t i);

// Lines of a text file from any system, without line ends, trailing blanks and empty lines at the end. Error: it is in
// UTF-16.
Result<std::vector<std::string_view>> text_lines(std::string_view text);

// One label per line, or "INDEX label" lines (with spaces, tabs, colons or commas between). Missing indices stay empty;
// a repeated index is an error.
Result<std::vector<std::string>> read_labels(const std::string& path);
Result<std::vector<std::string>> parse_labels(std::string_view text);

// True for one vector of scores: all dimensions but the last are 1, and there are at least two classes.
bool is_scores(const ir::Tensor& tensor);
// Indices of the `count` highest elements, best first; equal ones by index.
std::vector<int64_t> top_classes(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int count);

// The same classes with their scores and labels.
std::vector<TopClass> best_classes(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int count,
                                   const std::vector<std::string>& labels);
// The label of an SSD class. SSD networks do not count the background, which many label files have in the first line.
std::string ssd_label(const std::vector<std::string>& labels, size_t index);

}  // namespace skillet::tools
