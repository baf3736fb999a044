// Scores: tensor contents as real numbers, label files, the k best classes of a classifier's output.
// Called by `skillet run`.
// Must not know: devices, sessions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace skillet::tools {

// Element `i` as stored (integers) or as it is (float32); 0 for types without numbers.
double raw_value(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t i);
// Element `i` as a real number: dequantized where the tensor is quantized.
double real_value(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t i);
// "224/255" for uint8, "96 of -128..127" for int8, "" for the rest.
std::string print_raw(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t i);

// One label a line, or "INDEX label" lines (any of space, tab, colon, comma between). Missing indices stay empty.
Result<std::vector<std::string>> read_labels(const std::string& path);
std::vector<std::string> parse_labels(std::string_view text);

// True for one vector of scores: every dimension but the last is 1, and there are two classes or more.
bool is_scores(const ir::Tensor& tensor);
// Indices of the `count` highest elements, best first; equal ones in order of index.
std::vector<int64_t> top_classes(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int count);

// Largest absolute difference of two contents of one tensor, in stored units (LSB) or, for float32, real units.
double max_difference(const ir::Tensor& tensor, std::span<const uint8_t> a, std::span<const uint8_t> b);

}  // namespace skillet::tools
