// The model outputs of the hardware specification, section 12.3: compiled by our driver, run on the simulator behind
// the kernel's stand-in.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/session.h"

namespace skillet {
namespace {

// The specification's bytes, in the order in which a case draws them.
class Generator {
 public:
  uint8_t next() {
    state_ = 1664525 * state_ + 1013904223;
    return static_cast<uint8_t>(state_ >> 24);
  }
  Bytes bytes(int64_t count) {
    Bytes out(static_cast<size_t>(count));
    for (uint8_t& byte : out) byte = next();
    return out;
  }

 private:
  uint32_t state_ = 1;
};

uint32_t crc32(std::span<const uint8_t> bytes) {
  uint32_t crc = ~0U;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0);
  }
  return ~crc;
}

struct Case {
  const char* kind;
  ir::Shape in, filter, out;
  const char* attributes;
  float out_scale;
  bool addition;
  driver::Tuning tuning;
  std::vector<int> first;
  uint32_t crc;
};

ir::Graph graph_of(const Case& c, Generator& draw, Bytes& input) {
  const int32_t channels = c.out.back(0);
  const std::string text = fmt::format(
      "graph \"\"\ntensor 0 \"in\" uint8 {} scale=0.5 zero=120\ntensor 1 \"w\" uint8 {} scale=0.25 zero=131 "
      "const=zeros:{}\n"
      "tensor 2 \"b\" int32 {} scale=0.125 zero=0 const=zeros:{}\ntensor 3 \"conv\" uint8 {} scale={} zero=127\n{}"
      "op 0 {} in=[0 1 2] out=[3] {}\n{}",
      c.in.to_string(), c.filter.to_string(), c.filter.elems(), channels, channels * 4, c.out.to_string(), c.out_scale,
      c.addition ? fmt::format("tensor 4 \"second\" uint8 {0} scale=32 zero=100\ntensor 5 \"out\" uint8 {0} scale=96 "
                               "zero=127\ninputs 0 4\noutputs 5\n",
                               c.out.to_string())
                 : "inputs 0\noutputs 3\n",
      c.kind, c.attributes, c.addition ? "op 1 ADD in=[3 4] out=[5]\n" : "");
  ir::Graph graph = ir::parse(text).value();
  input = draw.bytes(graph.tensor(0).bytes());
  ir::set_constant(graph.tensor(1), draw.bytes(c.filter.elems()));
  Bytes bias(static_cast<size_t>(channels) * 4);
  for (int32_t o = 0; o < channels; ++o) store_le(bias.data() + o * 4, (int32_t{draw.next()} - 128) * 16);
  ir::set_constant(graph.tensor(2), std::move(bias));
  return graph;
}

TEST(RockchipCompiled, ModelOutputs) {
  constexpr auto kProven = driver::Tuning::proven, kRecorded = driver::Tuning::recorded;
  const Case cases[] = {
      {"CONV_2D",
       {1, 5, 5, 3},
       {16, 3, 3, 3},
       {1, 5, 5, 16},
       "",
       64,
       false,
       kProven,
       {154, 131, 152, 144, 158, 151, 141, 138, 160, 147, 144, 117, 99, 154, 151, 124},
       0x7DA4007C},
      {"DEPTHWISE_CONV_2D",
       {1, 7, 6, 40},
       {1, 3, 3, 40},
       {1, 4, 3, 40},
       "stride_h=2 stride_w=2",
       48,
       false,
       kProven,
       {129, 92, 122, 162, 55, 144, 50, 128, 85, 85, 58, 125, 156, 189, 196, 102},
       0x82271EE1},
      // As recorded: proven tunings form the convolution's output, whose clamp this sum does not have.
      {"CONV_2D",
       {1, 4, 5, 16},
       {32, 1, 1, 16},
       {1, 4, 5, 32},
       "",
       96,
       true,
       kRecorded,
       {108, 149, 202, 111, 133, 224, 175, 204, 168, 159, 180, 99, 126, 107, 199, 144},
       0x6702FE44},
  };
  for (const Case& c : cases) {
    Generator draw;
    std::vector<Bytes> inputs(1);
    ir::Graph graph = graph_of(c, draw, inputs[0]);
    if (c.addition) inputs.push_back(draw.bytes(c.out.elems()));
    const auto target = runtime::open_target("sim:rk3588");
    ASSERT_TRUE(target.ok()) << target.error().message;
    const auto session =
        runtime::Session::create(std::move(graph), *target, {.compile = {.tuning = c.tuning}, .allow_fallback = false});
    ASSERT_TRUE(session.ok()) << session.error().message;
    const std::vector<std::span<const uint8_t>> spans(inputs.begin(), inputs.end());
    const auto outputs = (*session)->run(spans);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    const Bytes& out = (*outputs)[0];
    EXPECT_EQ(std::vector<int>(out.begin(), out.begin() + 16), c.first) << c.kind;
    EXPECT_EQ(crc32(out), c.crc) << c.kind;
  }
}

}  // namespace
}  // namespace skillet
