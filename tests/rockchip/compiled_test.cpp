// The model outputs of the hardware specification, section 12.3: compiled by our driver, run on the simulator behind
// the emulated kernel driver.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "graph/ref/ref.h"
#include "kernels/api/forwarding_device.h"
#include "kernels/api/kernels.h"
#include "kernels/fake/simulated.h"
#include "runtime/device_context.h"
#include "runtime/session.h"

namespace skillet {
namespace {

// The specification's generator of bytes; a case draws its tensors in order.
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
  npu::Tuning tuning;
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
  constexpr auto kProven = npu::Tuning::proven, kRecorded = npu::Tuning::recorded;
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
      // Tuning `recorded`: proven tunings form the convolution's output, whose clamp this sum does not have.
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

// Cases with coarse multipliers and limits: a channel whose scale is far below the others', and gains above 1.
TEST(RockchipCompiled, ExtremeGainsAreWithinOne) {
  constexpr const char* kIn = "tensor 0 \"in\" int8 1x8x8x16 scale={} zero=-3\n";
  constexpr const char* kFilter = "tensor 1 \"w\" int8 4x1x1x16 scale={} zero=0 axis=0 const=zeros:64\n";
  const struct {
    const char* what;
    float in, out;
    std::vector<float> filter;
    int32_t bias;
    const char* activation;
  } cases[] = {
      {"a scale of 1e-5 of the others'", 0.05F, 0.02F, {0.01F, 1e-7F, 0.02F, 0.005F}, 200'000'000, "none"},
      {"gains of 20", 0.5F, 0.025F, {0.9F, 1.0F, 0.3F, 0.7F}, 100, "none"},
      {"a limit between two steps of the sum", 0.8F, 0.03F, {1.0F}, 3, "relu6"},
      {"the same per channel", 0.8F, 0.03F, {1.0F, 0.6F, 0.1F, 0.8F}, 3, "relu6"},
  };
  for (const auto& c : cases) {
    const std::string text = fmt::format(
        "graph \"\"\n{}{}tensor 2 \"b\" int32 4 scale=1 zero=0 const=zeros:16\ntensor 3 \"out\" int8 1x8x8x4 scale={} "
        "zero=-128\ninputs 0\noutputs 3\nop 0 CONV_2D in=[0 1 2] out=[3] activation={}\n",
        fmt::format(fmt::runtime(kIn), c.in), fmt::format(fmt::runtime(kFilter), 1), c.out, c.activation);
    auto parsed = ir::parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    ir::Graph graph = std::move(parsed).value();
    Generator draw;
    graph.tensor(1).quant = {c.filter, std::vector<int32_t>(c.filter.size(), 0), 0};
    Bytes weights = draw.bytes(64);
    for (uint8_t& w : weights) w = static_cast<uint8_t>(static_cast<int8_t>(w) / 64);
    ir::set_constant(graph.tensor(1), std::move(weights));
    Bytes bias(16);
    store_le(bias.data() + 4, c.bias);
    ir::set_constant(graph.tensor(2), std::move(bias));
    const auto target = runtime::open_target("sim:rk3588");
    const auto session = runtime::Session::create(graph, *target, {.allow_fallback = false});
    ASSERT_TRUE(session.ok()) << c.what << ": " << session.error().message;
    const Bytes input = draw.bytes(1024);
    const std::span<const uint8_t> spans[] = {input};
    const auto outputs = (*session)->run(spans);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    auto reference = ref::Interpreter::create(graph);
    ASSERT_TRUE(reference.ok());
    std::ranges::copy(input, reference->tensor(0).begin());
    ASSERT_TRUE(reference->run().ok());
    int most = 0, distinct = 0;
    const std::span<uint8_t> expected = reference->tensor(3);
    for (size_t i = 0; i < expected.size(); ++i) {
      most = std::max(most, std::abs(static_cast<int8_t>(expected[i]) - static_cast<int8_t>((*outputs)[0][i])));
      distinct += expected[i] != expected[0];
    }
    EXPECT_LE(most, 1) << c.what;
    EXPECT_GT(distinct, 20) << c.what << ": says nothing";
  }
}

// The kernel drops jobs that run for 500 ms.
TEST(RockchipCompiled, LongOperationsAreSeveralJobs) {
  const ir::Graph graph =
      ir::parse(
          "graph \"\"\ntensor 0 \"in\" uint8 1x2000x256x64 scale=1 zero=0\ntensor 1 \"w\" uint8 128x3x3x64 "
          "scale=0.01 zero=128 const=zeros:73728\ntensor 2 \"out\" uint8 1x2000x256x128 scale=1 zero=0\n"
          "inputs 0\noutputs 2\nop 0 CONV_2D in=[0 1 -] out=[2]\n")
          .value();
  const npu::Chip chip = npu::find_chip("rk3588").value();
  const auto program = (*npu::driver_of(chip))->compile(chip, graph, {});
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_GE(program->jobs.size(), 2u);
}

// A device that leaves one written buffer out of a job, or lists it as read: the lists of a runtime with that bug.
class ForgetfulDevice : public kernels::ForwardingDevice {
 public:
  ForgetfulDevice(std::unique_ptr<kernels::Device> inner, size_t forgotten, bool is_read)
      : ForwardingDevice(std::move(inner)), forgotten_(forgotten), is_read_(is_read) {}
  Result<kernels::JobId> prepare(const kernels::Job& job) override {
    kernels::Job told = job;
    for (auto one = told.buffers.begin(); one != told.buffers.end(); ++one) {
      if (!one->write || seen++ != forgotten_) continue;
      one->write = false;
      if (!is_read_) told.buffers.erase(one);
      break;
    }
    return ForwardingDevice::prepare(told);
  }
  size_t seen = 0;

 private:
  size_t forgotten_;
  bool is_read_;
};

// The kernel accepts the job without that buffer, and nothing waits for it. Sessions of simulated chips report it.
TEST(RockchipCompiled, AListThatLostAnOutputIsNoticed) {
  const log::ScopedLevel quiet(log::Level::error);
  constexpr const char* kText =
      "graph \"\"\ntensor 0 \"in\" int8 1x8x8x16 scale=1 zero=0\ntensor 1 \"w\" int8 16x3x3x16 scale=1 zero=0 "
      "const=zeros:2304\ntensor 2 \"b\" int32 16 scale=1 zero=0 const=zeros:64\ntensor 3 \"middle\" int8 1x8x8x16 "
      "scale=1 zero=0\ntensor 4 \"out\" int8 1x8x8x16 scale=1 zero=0\ninputs 0\noutputs 3 4\nop 0 CONV_2D in=[0 1 2] "
      "out=[3]\nop 1 CONV_2D in=[3 1 2] out=[4]\n";
  const auto graph = ir::parse(kText);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const npu::Chip chip = npu::find_chip("rk3588").value();
  const auto core = fake::simulated_core("rk3588").value();
  const auto message_of = [&](size_t forgotten, bool is_read, size_t& listed) -> std::string {
    auto device =
        std::make_unique<ForgetfulDevice>(kernels::open_core(core.core, core.calls).value(), forgotten, is_read);
    const ForgetfulDevice& seen_by = *device;
    auto context = std::make_shared<runtime::DeviceContext>();
    context->chip = "rk3588";
    context->device = std::move(device);
    const runtime::Target target{.name = "sim:rk3588",
                                 .chip = chip,
                                 .driver = npu::driver_of(chip).value(),
                                 .context = context,
                                 .simulated = true};
    const auto session = runtime::Session::create(*graph, target, {.allow_fallback = false});
    if (!session.ok()) return "no session: " + session.error().message;
    const Bytes input(1024);
    const std::span<const uint8_t> spans[] = {input};
    const auto outputs = (*session)->run(spans);
    listed = seen_by.seen;
    return outputs.ok() ? "" : outputs.error().message;
  };
  size_t listed = 0;
  ASSERT_EQ(message_of(SIZE_MAX, false, listed), "");
  ASSERT_GE(listed, 2U) << "a list for each output at least";
  const size_t all = listed;
  for (size_t forgotten = 0; forgotten < all; ++forgotten) {
    for (const bool is_read : {true, false}) {
      const std::string message = message_of(forgotten, is_read, listed);
      EXPECT_NE(message.find("which the job does not list as written"), std::string::npos)
          << forgotten << " of " << all << ": " << message;
    }
  }
}

}  // namespace
}  // namespace skillet
