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

// Whether raw_value() can read elements of this type.
bool has_numbers(ir::DType dtype);
// Element `i` as stored (integers) or as it is (float16, float32, float64); 0 for types without numbers.
double raw_value(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t i);
// Element `i` as a real number: dequantized where the tensor is quantized.
double real_value(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t i);
// "224/255" for uint8, "96 of -128..127" for int8, "" for the rest.
std::string print_raw(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t i);

// Lines of a file that people wrote, wherever they did so: without their ends, blanks before those, and empty ones at
// the end. Error: it is in UTF-16.
Result<std::vector<std::string_view>> text_lines(std::string_view text);

// One label a line, or "INDEX label" lines (any of space, tab, colon, comma between). Missing indices stay empty; one
// that is there twice is an error.
Result<std::vector<std::string>> read_labels(const std::string& path);
Result<std::vector<std::string>> parse_labels(std::string_view text);

// True for one vector of scores: every dimension but the last is 1, and there are two classes or more.
bool is_scores(const ir::Tensor& tensor);
// Indices of the `count` highest elements, best first; equal ones in order of index.
std::vector<int64_t> top_classes(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int count);

// The same with their scores and labels.
std::vector<TopClass> best_classes(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int count,
                                   const std::vector<std::string>& labels);
// The class numbers of SSD networks leave the background out, which many a file of labels has in its first line.
std::string ssd_label(const std::vector<std::string>& labels, size_t index);

}  // namespace skillet::tools
