// Additions fused into the pass of a convolution: on random networks they give the same bytes as two separate passes,
// which are within 1 of the CPU's layer by layer.
#include <cmath>
#include <cstdlib>

#include "graph_judge.h"
#include "random_graph.h"

namespace skillet {
namespace {

using namespace rockchip_graphs;  // NOLINT: the text forms

class Drawn {
 public:
  explicit Drawn(uint32_t seed) : random_(seed) {}

  // A sum of two operands, one or both computed by convolutions, in any order; sometimes concatenated with another
  // tensor.
  std::string graph() {
    height_ = pick({1, 3, 4, 7, 12}), width_ = pick({4, 5, 9, 14});
    in_ = pick({1, 3, 8, 16, 24, 40, 72}), out_ = pick({8, 16, 24, 32, 33, 48, 80, 160});
    is_signed_ = one_of(2);
    per_channel_ = is_signed_ && one_of(2);
    const int input = add(in_, 0.02F), own = add(out_, scale()), other = add(out_, scale());
    const std::string main = conv(input, in_, own);
    std::vector<std::string> ops = {main};
    const int kind = pick({0, 1, 2, 3});
    if (kind == 1) ops.insert(ops.begin() + pick({0, 1}), conv(input, in_, other));
    if (kind == 2) ops.push_back(conv(own, out_, other));  // its input is the other operand of the sum
    const float sum_scale = scale();
    const int sum_zero = zero(), sum = add(out_, sum_scale, sum_zero);
    const bool swapped = one_of(2);
    ops.push_back(fmt::format("ADD in=[{} {}] out=[{}] activation={}", swapped ? other : own, swapped ? own : other,
                              sum, pick({"none", "none", "relu", "relu6"})));
    int output = sum;
    if (one_of(3)) {  // bytes written past the sum's end would damage the tensor beside it
      const int before = add(16, sum_scale, sum_zero);
      output = add(out_ + 16, sum_scale, sum_zero);
      ops.insert(ops.begin(), conv(input, in_, before, 16));
      const bool first = one_of(2);
      ops.push_back(
          fmt::format("CONCATENATION in=[{} {}] out=[{}] axis=3", first ? sum : before, first ? before : sum, output));
    }
    std::string text = tensors_ + fmt::format("inputs {}", input) + (kind % 3 == 0 ? fmt::format(" {}", other) : "");
    text += fmt::format("\noutputs {}{}\n", output, kind == 3 ? fmt::format(" {}", own) : "");
    for (size_t i = 0; i < ops.size(); ++i) text += fmt::format("op {} {}\n", i, ops[i]);
    return text;
  }

 private:
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }
  bool one_of(uint32_t count) { return random_() % count == 0; }
  const char* type() const { return is_signed_ ? "int8" : "uint8"; }
  int zero() {
    const int drawn = one_of(3) ? pick({0, 255}) : static_cast<int>(random_() % 256);
    return is_signed_ ? drawn - 128 : drawn;
  }
  float scale() { return 0.02F * std::exp2(static_cast<float>(random_() % 640) / 100); }

  int add(int channels, float scale, int zero_point) {
    const std::string shape = fmt::format("1x{}x{}x{}", height_, width_, channels);
    tensors_ += tensor(count_, shape.c_str(), scale, zero_point, type());
    return count_++;
  }
  int add(int channels, float scale) { return add(channels, scale, zero()); }

  std::string conv(int from, int channels, int to, int kernels) {
    const int size = pick({1, 3});
    const std::string dims = fmt::format("{}x{}x{}x{}", kernels, size, size, channels);
    if (per_channel_) {
      std::string scales;
      for (int c = 0; c < kernels; ++c)
        scales += fmt::format("{}{}", c == 0 ? "" : " ", 0.01F * std::exp2(-static_cast<float>(random_() % 300) / 100));
      tensors_ += fmt::format("tensor {0} \"w{0}\" int8 {1} scale=[{2}] zero=0 const=zeros\n", count_, dims, scales);
    } else {
      tensors_ += weights(count_, dims.c_str(), is_signed_ ? 0 : static_cast<int>(random_() % 256), type());
    }
    return fmt::format("CONV_2D in=[{} {} -] out=[{}] activation={}", from, count_++, to,
                       pick({"none", "none", "none", "relu", "relu6"}));
  }
  std::string conv(int from, int channels, int to) { return conv(from, channels, to, out_); }

  std::mt19937 random_;
  int height_ = 1, width_ = 1, in_ = 1, out_ = 1, count_ = 0;
  bool is_signed_ = false, per_channel_ = false;
  std::string tensors_;
};

struct Ran {
  std::vector<Bytes> outputs;
  size_t operations = 0;
  int layer_difference = 0;
};

Ran run_graph(const ir::Graph& graph, bool keep, uint32_t seed) {
  const auto target = runtime::open_target("sim:rk3588");
  const auto session = runtime::Session::create(graph, *target, {.keep_intermediates = keep, .cores = 1});
  Ran ran;
  EXPECT_TRUE(session.ok()) << session.error().message;
  if (!session.ok()) return ran;
  for (size_t part = 0; part < (*session)->report().parts.size(); ++part) {
    for (const auto* program : (*session)->programs(part)) ran.operations += program->operations.size();
  }
  ran.outputs = run(**session, seed);
  const auto layers = (*session)->compare_layers();
  for (size_t i = 0; keep && layers.ok() && i < layers->size(); ++i)
    ran.layer_difference = std::max(ran.layer_difference, static_cast<int>((*layers)[i].max_abs_diff));
  return ran;
}

TEST(RockchipFusion, GivesTheSameBytes) {
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 60);
  uint32_t fused = 0;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = Drawn(seed).graph();
    auto graph = ir::parse("graph \"\"\n" + text);
    ASSERT_TRUE(graph.ok()) << graph.error().message << "\n" << text;
    std::mt19937 random(seed);
    fill(*graph, random);
    const Ran alone = run_graph(*graph, true, seed), together = run_graph(*graph, false, seed);
    EXPECT_LE(alone.layer_difference, 1) << text;
    ASSERT_EQ(alone.outputs, together.outputs) << text;
    fused += together.operations < alone.operations;
  }
  fmt::print("{} of {} graphs with an addition in the pass of a convolution\n", fused, count);
  if (first == 1) {
    EXPECT_GT(fused, count / 4);
  }
}

}  // namespace
}  // namespace skillet
