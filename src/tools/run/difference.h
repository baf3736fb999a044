// Difference: how far what a network computed is from what it should be; and how far noise on its inputs moves it.
// Called by verbs that compare outputs.
// Must not know: where outputs come from.
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

// What a difference of 1 is: a step of the scale, 1.0, or another class or pixel of a mask, where its size says
// nothing.
enum class Unit : uint8_t { step, real, number };
Unit unit_of(const ir::Tensor& tensor);

// Of one tensor, or of the same one in several inferences.
struct Difference {
  Unit unit = Unit::step;
  double step = 1;  // what beyond_one is measured by, in the unit; 0: there are no steps
  int64_t elems = 0, differing = 0, beyond_one = 0;
  double largest = 0, sum = 0;  // NaN: one of the two is no number

  double mean() const { return elems == 0 ? 0 : sum / static_cast<double>(elems); }
  double share(int64_t some) const { return elems == 0 ? 0 : static_cast<double>(some) / static_cast<double>(elems); }
  void add(const Difference& other);
};
Difference difference_of(const ir::Tensor& tensor, std::span<const uint8_t> got, std::span<const uint8_t> wanted);
// Of an output of `graph`. What a DEQUANTIZE makes has the steps of its input, where it is only moved since.
Difference difference_of(const ir::Graph& graph, size_t output, std::span<const uint8_t> got,
                         std::span<const uint8_t> wanted);
// "9 LSB, mean 0.031, 1.20 % beyond 1", "0.02, mean 0.001, 1.20 % beyond 1 step", "1.08 % of elements".
std::string print(const Difference& difference);
nlohmann::json to_json(const Difference& difference);

// Of a layer: "1 LSB", "13 LSB, 2.31 % beyond 1".
std::string print_largest(double largest, int64_t beyond_one, int64_t elems);

// Of one row of scores.
struct SameClass {
  bool is_same = false;
  double margin = 0;  // how far the wanted best class is ahead of the second, in stored units
};
// Of scores: "9 LSB", "0.03".
std::string print_margin(double margin, Unit unit);
SameClass same_class(const ir::Tensor& scores, std::span<const uint8_t> got, std::span<const uint8_t> wanted);
// "the same best class, 9 LSB ahead of the second", "another best class, though theirs is 2 LSB ahead of the second".
std::string print(const SameClass& found, Unit unit);

// Each 100th element of each input that has steps, drawn at random, but one at least, is a step more or less. None: no
// input has steps. The same each time.
std::optional<std::vector<Bytes>> with_noise(const ir::Graph& graph, std::span<const Bytes> inputs);

// By output: how far noise on the inputs moves what `run` computes, which made `outputs` of `inputs`. Empty: no input
// has steps.
using Run = std::function<Result<std::vector<Bytes>>(const std::vector<Bytes>& inputs)>;
Result<std::vector<Difference>> moved_by_noise(const ir::Graph& graph, std::span<const Bytes> inputs,
                                               std::span<const Bytes> outputs, const Run& run);
inline constexpr const char* kNoise = "noise of 1 step on 1 % of the input moves it on the CPU by";

}  // namespace skillet::tools
