// Difference: how far the outputs of a network are from the expected ones, and how far noise on its inputs moves them.
// Called by verbs that compare outputs.
// Must not know: the source of the outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::tools {

// Meaning of a difference of 1: a step of the scale, 1.0, or a different class number, whose size has no meaning.
enum class Unit : uint8_t { step, real, number };
Unit unit_of(const ir::Tensor& tensor);

// Difference of one tensor, or of the same tensor in several inferences.
struct Difference {
  Unit unit = Unit::step;
  double step = 1;  // step for beyond_one, in the unit; 0: no steps
  int64_t elems = 0, differing = 0, beyond_one = 0;
  double largest = 0, sum = 0;  // NaN: only one of the two is a number

  double mean() const { return elems == 0 ? 0 : sum / static_cast<double>(elems); }
  double share(int64_t some) const { return elems == 0 ? 0 : static_cast<double>(some) / static_cast<double>(elems); }
  void add(const Difference& other);
};
Difference difference_of(const ir::Tensor& tensor, std::span<const uint8_t> got, std::span<const uint8_t> wanted);
// For an output of `graph`. The output of a DEQUANTIZE has the steps of its input, also after operations that only move
// it.
Difference difference_of(const ir::Graph& graph, size_t output, std::span<const uint8_t> got,
                         std::span<const uint8_t> wanted);
// "9 LSB, mean 0.031, 1.20 % beyond 1", "0.02, mean 0.001, 1.20 % beyond 1 step", "1.08 % of elements".
std::string print(const Difference& difference);
nlohmann::json to_json(const Difference& difference);

// For a layer: "1 LSB", "13 LSB, 2.31 % beyond 1".
std::string print_largest(double largest, int64_t beyond_one, int64_t elems);

// For one row of scores.
struct SameClass {
  bool is_same = false;
  double margin = 0;  // lead of the wanted best class over the second, in stored units
};
// For scores: "9 LSB", "0.03".
std::string print_margin(double margin, Unit unit);
SameClass same_class(const ir::Tensor& scores, std::span<const uint8_t> got, std::span<const uint8_t> wanted);
// "the same best class, 9 LSB ahead of the second", "another best class, though theirs is 2 LSB ahead of the second".
std::string print(const SameClass& found, Unit unit);

// Moves random elements of each input with steps by one step up or down: 1 in 100, at least one. None: no input has
// steps. The result is reproducible.
std::optional<std::vector<Bytes>> with_noise(const ir::Graph& graph, std::span<const Bytes> inputs);

// By output: how far noise on the inputs moves the outputs of `run`; `outputs`: those for `inputs`. Empty: no input has
// steps.
using Run = std::function<Result<std::vector<Bytes>>(const std::vector<Bytes>& inputs)>;
Result<std::vector<Difference>> moved_by_noise(const ir::Graph& graph, std::span<const Bytes> inputs,
                                               std::span<const Bytes> outputs, const Run& run);
inline constexpr const char* kNoise = "noise of 1 step on 1 % of the input moves it on the CPU by";

}  // namespace skillet::tools
