// Small graphs on the simulated chip: within the driver's stated error of the CPU kernels, in the expected number of
// device operations, with all tensors kept and without.
#include "graph_judge.h"

namespace skillet {
namespace {

using namespace rockchip_graphs;  // NOLINT: the text forms

const std::string kPads = numbers(1, "4x2", {0, 0, 1, 2, 2, 1, 0, 0});
const std::string kConv3x3 = op("1 CONV_2D in=[2 3 -] out=[4] stride_h=2 stride_w=2 padding=valid");

// First layers as rows of pixels: 1 to 4 channels, padded by the convolution itself and by a PAD in front.
TEST(RockchipGraphs, FewInputChannels) {
  std::vector<Row> rows;
  for (const int channels : {1, 2, 3, 4, 5}) {
    const std::string in = fmt::format("1x19x21x{}", channels), padded = fmt::format("1x22x24x{}", channels);
    const std::string filter = fmt::format("24x3x3x{}", channels);
    for (const char* type : {"uint8", "int8"}) {
      const int zero = std::string_view(type) == "int8" ? -11 : 117;
      rows.push_back({"SAME",
                      tensor(0, in.c_str(), 0.02F, zero, type) + weights(1, filter.c_str(), zero / 2, type) +
                          tensor(2, "1x10x11x24", 0.05F, zero, type) +
                          "inputs 0\noutputs 2\nop 0 CONV_2D in=[0 1 -] out=[2] stride_h=2 stride_w=2\n",
                      1});
      rows.push_back({"PAD",
                      tensor(0, in.c_str(), 0.02F, zero, type) + kPads + tensor(2, padded.c_str(), 0.02F, zero, type) +
                          weights(3, filter.c_str(), zero / 2, type) + tensor(4, "1x10x11x24", 0.05F, zero, type) +
                          "inputs 0\noutputs 4\nop 0 PAD in=[0 1] out=[2]\n" + kConv3x3,
                      1});
    }
  }
  judge(rows, 1);
}

TEST(RockchipGraphs, PaddingInFront) {
  const std::string head = tensor(0, "1x9x11x20", 0.02F, 110) + kPads + tensor(2, "1x12x14x20", 0.02F, 110);
  const std::string conv = weights(3, "24x3x3x20") + tensor(4, "1x5x6x24", 0.3F, 90);
  const Row rows[] = {
      {"of a convolution", head + conv + "inputs 0\noutputs 4\nop 0 PAD in=[0 1] out=[2]\n" + kConv3x3, 1},
      {"of a convolution with padding",
       head + weights(3, "24x3x3x20") + tensor(4, "1x12x14x24", 0.3F, 90) +
           "inputs 0\noutputs 4\nop 0 PAD in=[0 1] out=[2]\nop 1 CONV_2D in=[2 3 -] out=[4]\n",
       2},
      {"of a convolution with padding, within the filter",
       head + weights(3, "24x5x5x20") + tensor(4, "1x12x14x24", 0.6F, 90) +
           "inputs 0\noutputs 4\nop 0 PAD in=[0 1] out=[2]\nop 1 CONV_2D in=[2 3 -] out=[4]\n",
       1},
      {"of two filters",
       head + conv + weights(5, "1x3x3x20") + tensor(6, "1x10x12x20", 0.1F, 90) +
           "inputs 0\noutputs 4 6\nop 0 PAD in=[0 1] out=[2]\n" + kConv3x3 +
           "op 2 DEPTHWISE_CONV_2D in=[2 5 -] out=[6] padding=valid\n",
       2},
      {"which is an output too", head + conv + "inputs 0\noutputs 4 2\nop 0 PAD in=[0 1] out=[2]\n" + kConv3x3, 2},
      {"larger than the filter",
       head + weights(3, "24x1x1x20") + tensor(4, "1x12x14x24", 0.1F, 90) +
           "inputs 0\noutputs 4\nop 0 PAD in=[0 1] out=[2]\nop 1 CONV_2D in=[2 3 -] out=[4]\n",
       2},
  };
  judge(rows, 1);
}

// Two filters over one input, concatenated; other readers of the pieces; pieces whose last surface is partly unused.
std::string joined(const char* first, int first_channels, const char* second, int second_channels,
                   const std::string& rest) {
  const auto filter = [](const char* kind, int channels) {
    return kind == std::string_view("CONV_2D") ? fmt::format("{}x3x3x64", channels) : fmt::format("1x3x3x{}", channels);
  };
  const auto plane = [](int channels) { return fmt::format("1x7x9x{}", channels); };
  return tensor(0, "1x7x9x64", 0.02F, 110) + weights(1, filter(first, first_channels).c_str()) +
         weights(2, filter(second, second_channels).c_str()) + tensor(3, plane(first_channels).c_str(), 0.2F, 100) +
         tensor(4, plane(second_channels).c_str(), 0.2F, 100) +
         tensor(5, plane(first_channels + second_channels).c_str(), 0.2F, 100) +
         fmt::format("op 0 {} in=[0 1 -] out=[3]\nop 1 {} in=[0 2 -] out=[4]\n", first, second) +
         "op 2 CONCATENATION in=[3 4] out=[5] axis=3\n" + rest;
}

TEST(RockchipGraphs, JoinedPieces) {
  const char* const conv = "CONV_2D";
  const char* const depthwise = "DEPTHWISE_CONV_2D";
  const std::string out = "inputs 0\noutputs 5\n";
  const std::string both = "inputs 0\noutputs 5 4\n";
  const Row rows[] = {
      {"two whole ones", joined(conv, 32, conv, 64, out), 2},
      {"the last one spills over the end", joined(conv, 32, conv, 48, out), 2},
      {"the first one would spill over the second", joined(conv, 48, conv, 48, out), 3},
      {"an odd one at the end", joined(conv, 64, conv, 5, out), 2},
      {"depthwise", joined(depthwise, 64, conv, 32, out), 2},
      {"a piece that is an output", joined(conv, 32, conv, 32, both), 3},
      {"read before it is joined",
       joined(conv, 32, conv, 32,
              weights(6, "1x3x3x32") + tensor(7, "1x7x9x32", 0.3F, 99) +
                  "inputs 0\noutputs 5 7\nop 3 DEPTHWISE_CONV_2D in=[3 6 -] out=[7]\n"),
       3},
      {"twice the same",
       tensor(0, "1x7x9x64", 0.02F, 110) + weights(1, "32x1x1x64") + tensor(2, "1x7x9x32", 0.2F, 100) +
           tensor(3, "1x7x9x64", 0.2F, 100) +
           "inputs 0\noutputs 3\nop 0 CONV_2D in=[0 1 -] out=[2]\nop 1 CONCATENATION in=[2 2] out=[3] axis=3\n",
       3},
      {"another scale",
       tensor(0, "1x7x9x64", 0.02F, 110) + weights(1, "32x1x1x64") + tensor(2, "1x7x9x32", 0.2F, 100) +
           tensor(3, "1x7x9x96", 0.3F, 100, "uint8") +
           "inputs 0\noutputs 3\nop 0 CONV_2D in=[0 1 -] out=[2]\nop 1 CONCATENATION in=[2 0] out=[3] axis=3\n",
       3},
      {"joined again, as dense networks do",
       joined(conv, 32, conv, 32,
              weights(6, "32x3x3x64") + tensor(7, "1x7x9x32", 0.2F, 100) + tensor(8, "1x7x9x96", 0.2F, 100) +
                  "inputs 0\noutputs 8\nop 3 CONV_2D in=[5 6 -] out=[7]\n"
                  "op 4 CONCATENATION in=[5 7] out=[8] axis=3\n"),
       3},
      {"a piece of one and of what that one is a piece of",
       joined(
           conv, 32, conv, 32,
           tensor(6, "1x7x9x96", 0.2F, 100) + "inputs 0\noutputs 6\n" + "op 3 CONCATENATION in=[5 3] out=[6] axis=3\n"),
       3},
      {"the same, the piece in front",
       joined(
           conv, 32, conv, 32,
           tensor(6, "1x7x9x96", 0.2F, 100) + "inputs 0\noutputs 6\n" + "op 3 CONCATENATION in=[4 5] out=[6] axis=3\n"),
       3},
      {"a depthwise filter does not write where it reads",
       joined(conv, 32, conv, 32,
              weights(6, "1x3x3x64") + tensor(7, "1x7x9x64", 0.2F, 100) + tensor(8, "1x7x9x128", 0.2F, 100) +
                  "inputs 0\noutputs 8\nop 3 DEPTHWISE_CONV_2D in=[5 6 -] out=[7]\n"
                  "op 4 CONCATENATION in=[5 7] out=[8] axis=3\n"),
       4},
      {"single pixels",
       tensor(0, "1x1x1x64", 0.02F, 110) + weights(1, "32x1x1x64") + tensor(2, "1x1x1x32", 0.2F, 100) +
           tensor(3, "1x1x1x96", 0.2F, 100) + tensor(4, "1x1x1x64", 0.2F, 100) + weights(5, "64x1x1x64") +
           "inputs 0\noutputs 3\nop 0 CONV_2D in=[0 1 -] out=[2]\nop 1 CONV_2D in=[0 5 -] out=[4]\n"
           "op 2 CONCATENATION in=[2 4] out=[3] axis=3\n",
       4},
  };
  judge(rows, 1);
}

// Rows wider than the chip's counter, for operations that do not depend on rows; and rows too wide for rows of pixels.
TEST(RockchipGraphs, WideRows) {
  const auto conv = [](int width) {
    const std::string in = fmt::format("1x4x{}x1", width), out = fmt::format("1x4x{}x8", width);
    return tensor(0, in.c_str(), 0.02F, 110) + weights(1, "8x3x3x1") + tensor(2, out.c_str(), 0.05F, 99) +
           "inputs 0\noutputs 2\nop 0 CONV_2D in=[0 1 -] out=[2]\n";
  };
  const Row rows[] = {
      {"2032 pixels", conv(2032), 1},
      {"2033 pixels", conv(2033), 1},
      {"2047 pixels", conv(2047), 1},
      {"SPLIT",
       tensor(0, "1x1x5000x32", 0.02F, 110) + numbers(1, "scalar", {3}) + tensor(2, "1x1x5000x16", 0.02F, 110) +
           tensor(3, "1x1x5000x16", 0.02F, 110) + "inputs 0\noutputs 2 3\nop 0 SPLIT in=[1 0] out=[2 3] count=2\n",
       2},
      {"RESHAPE",
       tensor(0, "1x64x64x16", 0.02F, 110) + numbers(1, "4", {1, 1, 4096, 16}) + tensor(2, "1x1x4096x16", 0.02F, 110) +
           "inputs 0\noutputs 2\nop 0 RESHAPE in=[0 1] out=[2] shape=[1 1 4096 16]\n",
       1},
      {"CONCATENATION",
       tensor(0, "1x1x5000x32", 0.02F, 110) + tensor(1, "1x1x5000x8", 0.03F, 110) +
           tensor(2, "1x1x5000x40", 0.02F, 110) + "inputs 0 1\noutputs 2\nop 0 CONCATENATION in=[0 1] out=[2] axis=3\n",
       2},
  };
  judge(rows, 1);
}

// Elementwise operations, in shapes at the limits of the division into two halves.
TEST(RockchipGraphs, AdditionsOfAllShapes) {
  std::vector<Row> rows;
  for (const char* shape :
       {"1x1x1x1",     "1x1x1x16",    "1x1x1x17",    "1x1x1x33",    "1x1x2x16",   "1x1x3x16",   "1x2x1x16",
        "1x3x1x16",    "1x3x3x16",    "1x3x5x48",    "1x5x7x40",    "1x1x4093x3", "1x1x4095x3", "1x3x2047x16",
        "1x3x2048x16", "1x1x5000x40", "1x2000x3x16", "1x4099x1x16", "1x2x2x500",  "7",          "3x40"}) {
    rows.push_back({shape,
                    tensor(0, shape, 0.02F, 110) + tensor(1, shape, 0.03F, 77) + tensor(2, shape, 0.04F, 120) +
                        "inputs 0 1\noutputs 2\nop 0 ADD in=[0 1] out=[2]\n",
                    1});
  }
  judge(rows, 1);
}

// All pairs of bytes: 256 rows of 256 columns; the first tensor holds the row's number, the second the column's.
struct Pairs {
  Bytes first, second;
};
Pairs all_pairs() {
  Pairs pairs;
  for (int i = 0; i < 256 * 256; ++i) {
    pairs.first.push_back(static_cast<uint8_t>(i >> 8));
    pairs.second.push_back(static_cast<uint8_t>(i));
  }
  return pairs;
}

// Returns the largest difference from the CPU kernels for all values of one operand, or all pairs of two.
int difference_for_all(const std::string& text) {
  const auto graph = ir::parse("graph \"\"\n" + text);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  const auto target = runtime::open_target("sim:rk3588");
  const auto session = runtime::Session::create(*graph, *target, {.allow_fallback = false, .cores = 1});
  EXPECT_TRUE(session.ok()) << session.error().message;
  if (!session.ok()) return -1;
  EXPECT_EQ((*session)->report().parts.size(), 1U);
  EXPECT_TRUE((*session)->report().parts[0].on_npu);
  const Pairs pairs = all_pairs();
  auto reference = ref::Interpreter::create(*graph).value();
  for (size_t i = 0; i < graph->inputs.size(); ++i) {
    const Bytes& bytes = i == 0 ? pairs.first : pairs.second;
    EXPECT_TRUE((*session)->set_input(i, bytes).ok());
    std::ranges::copy(bytes, reference.tensor(graph->inputs[i]).begin());
  }
  const auto ran = (*session)->run();
  EXPECT_TRUE(ran.ok()) << ran.error().message;
  if (!ran.ok() || !reference.run().ok()) return -1;
  const auto ours = (*session)->output(0).value();
  const auto theirs = reference.tensor(graph->outputs[0]);
  int most = 0;
  const bool is_signed = graph->tensor(graph->outputs[0]).dtype == ir::DType::int8;
  for (size_t at = 0; at < ours.size(); ++at) {
    const int difference =
        is_signed ? static_cast<int8_t>(ours[at]) - static_cast<int8_t>(theirs[at]) : int{ours[at]} - int{theirs[at]};
    most = std::max(most, std::abs(difference));
  }
  return most;
}

TEST(RockchipGraphs, FunctionsOfAllBytes) {
  const struct {
    const char* op;
    float in, out;
    int zero_in, zero_out;
    const char* type;
    int tolerance;
  } rows[] = {
      {"LOGISTIC", 0.05F, 1.0F / 256, 128, 0, "uint8", 0}, {"LOGISTIC", 0.05F, 1.0F / 256, 3, -128, "int8", 0},
      {"TANH", 0.03F, 1.0F / 128, 128, 128, "uint8", 0},   {"TANH", 0.03F, 1.0F / 128, 0, 0, "int8", 0},
      {"HARD_SWISH", 0.05F, 0.04F, 120, 10, "uint8", 0},   {"HARD_SWISH", 0.05F, 0.04F, -8, -118, "int8", 0},
      {"HARD_SWISH", 0.11F, 0.09F, 17, -124, "int8", 0},   {"ELU", 0.05F, 0.05F, 0, -110, "int8", 0},
      {"ABS", 0.05F, 0.03F, 4, -128, "int8", 0},           {"RELU_N1_TO_1", 0.05F, 0.05F, 4, 4, "int8", 0},
      {"LEAKY_RELU", 0.05F, 0.05F, 100, 20, "uint8", 1},   {"LEAKY_RELU", 0.05F, 0.03F, 0, -100, "int8", 1},
      {"LEAKY_RELU", 0.05F, 0.09F, -128, -128, "int8", 1},
  };
  for (const auto& row : rows) {
    for (const float alpha : {0.1F, 0.01F, 0.5F, 0.0001F, 2.0F, -0.5F}) {
      const bool leaky = std::string_view(row.op) == "LEAKY_RELU";
      if (!leaky && alpha != 0.1F) continue;
      const std::string attributes = leaky ? fmt::format(" alpha={}", alpha) : "";
      SCOPED_TRACE(fmt::format("{} {} {}{}", row.op, row.type, row.in, attributes));
      const int most =
          difference_for_all(tensor(0, "1x256x16x16", row.in, row.zero_in, row.type) +
                             tensor(1, "1x256x16x16", row.out, row.zero_out, row.type) +
                             fmt::format("inputs 0\noutputs 1\nop 0 {} in=[0] out=[1]{}\n", row.op, attributes));
      EXPECT_GE(most, 0);
      EXPECT_LE(most, row.tolerance);
    }
  }
}

TEST(RockchipGraphs, ProductsOfAllPairs) {
  const struct {
    float a, b, out;
    int zero_a, zero_b, zero_out;
    const char* type;
    const char* attributes;
  } rows[] = {
      {0.02F, 0.03F, 0.1F, 128, 128, 128, "uint8", ""},
      {0.02F, 0.03F, 0.04F, 0, 255, 7, "uint8", ""},
      {0.5F, 0.004F, 0.5F, -3, -128, -3, "int8", ""},
      {0.05F, 0.05F, 0.06F, 4, -11, -128, "int8", " activation=relu"},
      {0.02F, 0.03F, 0.04F, 128, 128, 3, "uint8", " activation=relu6"},
      {1e-9F, 1e-9F, 1e-18F, 1, 2, 3, "int8", ""},
      {3, 5, 1, 1, 2, 3, "int8", ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(fmt::format("{} {} {} {}", row.a, row.b, row.out, row.type));
    const int most = difference_for_all(
        tensor(0, "1x256x16x16", row.a, row.zero_a, row.type) + tensor(1, "1x256x16x16", row.b, row.zero_b, row.type) +
        tensor(2, "1x256x16x16", row.out, row.zero_out, row.type) +
        fmt::format("inputs 0 1\noutputs 2\nop 0 MUL in=[0 1] out=[2]{}\n", row.attributes));
    EXPECT_GE(most, 0);
    EXPECT_LE(most, 1);
  }
}

TEST(RockchipGraphs, Products) {
  const auto of = [](const char* a, const char* b, const char* second = "tensor") {
    const bool constant = second == std::string_view("constant");
    return tensor(0, a, 0.02F, 110) + (constant ? weights(1, b, 77) : tensor(1, b, 0.03F, 77)) +
           tensor(2, a, 0.05F, 120) + fmt::format("inputs 0{}\noutputs 2\nop 0 MUL in=[", constant ? "" : " 1") +
           (constant ? "1 0" : "0 1") + "] out=[2]\n";
  };
  const Row rows[] = {
      {"of one shape", of("1x7x9x40", "1x7x9x40"), 1},
      {"of one pixel each", of("1x1x1x40", "1x1x1x40"), 1},
      {"with one pixel: squeeze and excite", of("1x7x9x40", "1x1x1x40"), 1},
      {"the same, of more channels than a group", of("1x7x7x200", "1x1x1x200"), 1},
      {"the same, in several tasks", of("1x56x56x24", "1x1x1x24"), 1},
      {"the same, small", of("1x3x3x32", "1x1x1x32"), 1},
      {"with a constant for each channel", of("1x7x9x40", "1x1x1x40", "constant"), 1},
      {"with a constant for each channel, alone", of("1x7x9x40", "40", "constant"), 1},
      {"with one constant", of("1x7x9x40", "1", "constant"), 1},
      {"with one constant, of one channel", of("1x7x9x1", "1x1x1x1", "constant"), 1},
  };
  judge(rows, 1);
}

// Exact: the outputs are bytes of the inputs.
TEST(RockchipGraphs, LargestOfAWindow) {
  std::vector<Row> rows;
  std::vector<std::string> names;
  const struct {
    int height, width, channels, kernel_h, kernel_w, stride;
    bool same;
    size_t operations;
  } cases[] = {
      {8, 8, 16, 2, 2, 2, false, 3},      {7, 9, 40, 2, 2, 2, true, 4},   {12, 13, 24, 3, 3, 2, true, 6},
      {12, 13, 24, 3, 3, 2, false, 5},    {10, 11, 20, 5, 5, 1, true, 8}, {9, 9, 65, 7, 7, 7, false, 7},
      {20, 5, 3, 1, 1, 1, false, 1},      {6, 30, 3, 1, 4, 1, false, 3},  {40, 60, 64, 2, 2, 2, false, 3},
      {13, 13, 100, 13, 13, 1, true, 10},
  };
  for (const auto& c : cases) {
    const auto size = [&c = c](int in, int kernel) {
      return c.same ? (in + c.stride - 1) / c.stride : (in - kernel) / c.stride + 1;
    };
    names.push_back(fmt::format("{}x{} of {}x{}x{}", c.kernel_h, c.kernel_w, c.height, c.width, c.channels));
    rows.push_back(
        {"",
         tensor(0, fmt::format("1x{}x{}x{}", c.height, c.width, c.channels).c_str(), 0.02F, 5) +
             tensor(
                 1,
                 fmt::format("1x{}x{}x{}", size(c.height, c.kernel_h), size(c.width, c.kernel_w), c.channels).c_str(),
                 0.02F, 5) +
             fmt::format("inputs 0\noutputs 1\nop 0 MAX_POOL_2D in=[0] out=[1] filter_h={} filter_w={} "
                         "stride_h={} stride_w={} padding={}\n",
                         c.kernel_h, c.kernel_w, c.stride, c.stride, c.same ? "same" : "valid"),
         c.operations});
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(names[i]);
    judge(rows[i], 0);
  }
}

TEST(RockchipGraphs, EnlargedImages) {
  const auto of = [](const char* in, const char* out, std::initializer_list<int32_t> size, const char* attributes) {
    return tensor(0, in, 0.02F, 5) + numbers(1, "2", size) + tensor(2, out, 0.02F, 5) +
           fmt::format("inputs 0\noutputs 2\nop 0 RESIZE_NEAREST_NEIGHBOR in=[0 1] out=[2]{}\n", attributes);
  };
  const Row rows[] = {
      {"twice", of("1x7x9x40", "1x14x18x40", {14, 18}, ""), 2},
      {"twice, half pixels", of("1x7x9x40", "1x14x18x40", {14, 18}, " half_pixel_centers=true"), 2},
      {"four times", of("1x5x3x100", "1x20x12x100", {20, 12}, ""), 2},
      {"rows alone", of("1x5x3x20", "1x10x3x20", {10, 3}, ""), 1},
      {"columns alone", of("1x5x3x20", "1x5x24x20", {5, 24}, ""), 1},
      {"one pixel", of("1x1x1x20", "1x2x2x20", {2, 2}, ""), 2},
      {"not at all", of("1x5x3x20", "1x5x3x20", {5, 3}, ""), 1},
      {"in several tasks", of("1x40x40x64", "1x80x80x64", {80, 80}, ""), 2},
  };
  judge(rows, 0);
}

// Compares the network's output with the CPU kernel of the original operation, before the passes rewrote it.
void judge_whole(const ir::Graph& graph, uint32_t seed) {
  const auto target = runtime::open_target("sim:rk3588");
  const auto session = runtime::Session::create(graph, *target, {.allow_fallback = false, .cores = 1});
  ASSERT_TRUE(session.ok()) << session.error().message;
  ASSERT_EQ((*session)->report().parts.size(), 1U) << "not all on the NPU";
  const std::vector<Bytes> got = run(**session, seed);
  auto cpu = ref::Interpreter::create(graph);
  ASSERT_TRUE(cpu.ok()) << cpu.error().message;
  std::mt19937 random(seed);
  for (uint8_t& byte : cpu->tensor(graph.inputs[0])) byte = static_cast<uint8_t>(random());
  ASSERT_TRUE(cpu->run().ok());
  const std::span<const uint8_t> wanted = cpu->tensor(graph.outputs[0]);
  ASSERT_EQ(got.at(0).size(), wanted.size());
  const bool is_signed = graph.tensor(graph.outputs[0]).dtype == ir::DType::int8;
  const auto value = [&](uint8_t byte) { return is_signed ? int{static_cast<int8_t>(byte)} : int{byte}; };
  int most = 0;
  for (size_t i = 0; i < wanted.size(); ++i) most = std::max(most, std::abs(value(got[0][i]) - value(wanted[i])));
  EXPECT_LE(most, 1);
}

TEST(RockchipGraphs, TransposedConvolutions) {
  std::mt19937 random(11);
  const auto range = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1));
  };
  for (uint32_t round = 0; round < 150; ++round) {
    const bool same = range(0, 1) == 0, is_signed = range(0, 1) == 0, per_channel = is_signed && range(0, 1) == 0;
    int stride[2] = {range(1, 4), 0}, in[2] = {range(1, 9), range(1, 9)}, kernel[2], out[2];
    stride[1] = stride[0];
    if (range(0, 3) == 0) stride[0] = 1;             // stride in columns only
    if (range(0, 3) == 0) stride[1] = 1, in[1] = 1;  // one dimension, like sound
    for (int i : {0, 1}) {
      kernel[i] = stride[i] == 1 && in[i] == 1 ? 1 : range(1, 5);
      out[i] =
          same ? in[i] * stride[i] - range(0, stride[i] - 1) : (in[i] - 1) * stride[i] + std::max(kernel[i], stride[i]);
    }
    const int inputs = std::array{1, 3, 16, 20, 40}[random() % 5], outputs = std::array{1, 3, 16, 21, 32}[random() % 5];
    const char* const type = is_signed ? "int8" : "uint8";
    std::string scales = "0.01";
    for (int i = 0; per_channel && i < outputs; ++i)
      scales += fmt::format(" {}", 0.001F * static_cast<float>(range(5, 10)));
    if (per_channel) scales = "[" + scales.substr(5) + "]";
    const std::string text =
        tensor(0, fmt::format("1x{}x{}x{}", in[0], in[1], inputs).c_str(), 0.02F, 5, type) +
        fmt::format("tensor 1 \"w\" {} {}x{}x{}x{} scale={} zero={}{} const=zeros\n", type, outputs, kernel[0],
                    kernel[1], inputs, scales, is_signed ? 0 : 120, per_channel ? " axis=0" : "") +
        numbers(2, "4", {1, out[0], out[1], outputs}) +
        tensor(3, fmt::format("1x{}x{}x{}", out[0], out[1], outputs).c_str(), 0.2F, 9, type) +
        fmt::format("inputs 0\noutputs 3\nop 0 TRANSPOSE_CONV in=[2 1 0] out=[3] padding={} stride_h={} stride_w={}\n",
                    same ? "same" : "valid", stride[0], stride[1]);
    SCOPED_TRACE(text);
    auto graph = ir::parse("graph \"\"\n" + text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    fill(*graph, random);
    judge_whole(*graph, round);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

}  // namespace
}  // namespace skillet
