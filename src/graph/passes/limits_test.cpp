// Limits of passes, from both sides: a graph at the limit is rewritten and keeps its results, one just beyond stays
// unchanged. For passes that need their own driver or network; rewrite_test.cpp has the other limits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/passes/testing/plain_drivers.h"

namespace skillet::passes {
namespace {

// Convolutions of any stride.
class StridesDriver : public AddMulDriver {
 public:
  npu::Support supports(const npu::Chip&, const ir::Graph& graph, ir::OpId id) const override {
    const ir::OpKind kind = graph.op(id).kind;
    if (kind == ir::OpKind::conv_2d || kind == ir::OpKind::depthwise_conv_2d) return npu::Support::yes();
    return npu::Support::no(npu::Remedy::none, "no convolution");
  }
};
const StridesDriver kStrides;

std::string byte_tensor(int id, std::string_view shape) {
  return fmt::format("tensor {0} \"t{0}\" uint8 {1} scale=0.5 zero=3\n", id, shape);
}
std::string filter(int id, int rows, int columns) {
  return fmt::format("tensor {0} \"t{0}\" uint8 1x{1}x{2}x1 scale=0.5 zero=3 const=zeros:{3}\n", id, rows, columns,
                     rows * columns);
}

// A graph with one input and one output.
std::string one_op(std::string_view in, std::string_view out, std::string_view kind, std::string_view attributes) {
  return fmt::format("{}{}inputs 0\noutputs 1\nop 0 {} in=[0] out=[1] {}\n", byte_tensor(0, in), byte_tensor(1, out),
                     kind, attributes);
}
std::string strided_slice(int stride) {
  return byte_tensor(0, fmt::format("1x{}x1x1", 2 * stride)) + "tensor 1 \"b\" int32 4 const=[0 0 0 0]\n" +
         fmt::format("tensor 2 \"e\" int32 4 const=[1 {} 1 1]\ntensor 3 \"s\" int32 4 const=[1 {} 1 1]\n", 2 * stride,
                     stride) +
         byte_tensor(4, "1x2x1x1") + "inputs 0\noutputs 4\nop 0 STRIDED_SLICE in=[0 1 2 3] out=[4]\n";
}
std::string transposed(int stride) {
  return fmt::format("tensor 0 \"s\" int32 4 const=[1 {0} {0} 1]\n", 2 * stride) + filter(1, stride, stride) +
         byte_tensor(2, "1x2x2x1") + byte_tensor(3, fmt::format("1x{0}x{0}x1", 2 * stride)) +
         fmt::format("inputs 2\noutputs 3\nop 0 TRANSPOSE_CONV in=[0 1 2] out=[3] stride_h={0} stride_w={0}\n", stride);
}
// SPACE_TO_DEPTH by `block`: a filter of block^4 weights for one channel.
std::string blocks(int block, int channels) {
  return one_op(fmt::format("1x{0}x{0}x{1}", block, channels), fmt::format("1x1x1x{}", block * block * channels),
                "SPACE_TO_DEPTH", fmt::format("block_size={}", block));
}
std::string averaged(int rows, int columns) {
  return one_op(fmt::format("1x{}x{}x4", rows, columns), "1x1x1x4", "AVERAGE_POOL_2D",
                fmt::format("padding=valid filter_h={} filter_w={}", rows, columns));
}
std::string chain(std::string_view kind, int count) {
  std::string tensors = byte_tensor(0, "1x1x2x1"), ops;
  for (int i = 0; i < count; ++i) {
    tensors += byte_tensor(i + 1, "1x1x2x1");
    ops += fmt::format("op {0} {1} in=[{0}] out=[{2}]\n", i, kind, i + 1);
  }
  return fmt::format("{}inputs 0\noutputs {}\n{}", tensors, count, ops);
}

std::string multiplied(int channels, int columns) {
  return byte_tensor(0, fmt::format("1x1x{}x{}", columns, channels)) +
         fmt::format("tensor 1 \"w\" uint8 1x1x{}x{} scale=0.5 zero=3 const=zeros:{}\n", columns, 4 * channels,
                     4 * channels * columns) +
         byte_tensor(2, fmt::format("1x1x1x{}", 4 * channels)) +
         "inputs 0\noutputs 2\nop 0 DEPTHWISE_CONV_2D in=[0 1] out=[2] padding=valid depth_multiplier=4\n";
}

std::string largest(int columns, int filter) {
  return one_op(fmt::format("1x1x{}x1", columns), fmt::format("1x1x{}x1", columns - filter + 1), "MAX_POOL_2D",
                fmt::format("padding=valid filter_w={}", filter));
}

// A chain of operations that exchange channels within their pixels: reshapes, and a transpose before the last one.
std::string shuffled(int count) {
  std::string tensors = byte_tensor(0, "1x1x2x4"), ops;
  const char* const shapes[] = {"1x1x2x2x2", "1x2x1x2x2"};
  for (int i = 0; i < count; ++i) {
    const bool is_turn = i == count - 2, is_last = i == count - 1;
    tensors += byte_tensor(i + 1, is_last ? "1x1x2x4" : shapes[(is_turn ? i + 1 : i) % 2]);
    ops +=
        fmt::format("op {0} {1} in=[{0} {2}] out=[{3}]\n", i, is_turn ? "TRANSPOSE" : "RESHAPE", count + 1 + i, i + 1);
  }
  for (int i = 0; i < count; ++i) {
    const bool is_turn = i == count - 2, is_last = i == count - 1;
    const char* const numbers = is_turn ? "0 1 2 4 3" : is_last ? "1 1 2 4" : i % 2 == 0 ? "1 1 2 2 2" : "1 2 1 2 2";
    tensors += fmt::format("tensor {0} \"n{0}\" int32 {1} const=[{2}]\n", count + 1 + i, is_last ? 4 : 5, numbers);
  }
  return fmt::format("{}inputs 0\noutputs {}\n{}", tensors, count, ops);
}

struct Row {
  const char *pass, *what;
  std::string at, beyond;
  const npu::Driver* driver = nullptr;  // instead of the pass's own
  size_t rewrites_beyond = 0;           // rewrites of the rest
};

const Row kRows[] = {
    {"lower_slice_as_conv", "stride", strided_slice(7), strided_slice(8), &kStrides},
    {"lower_slice_as_conv", "weights", blocks(4, 64), blocks(4, 65), &kStrides},
    {"lower_transpose_conv", "stride", transposed(16), transposed(17)},
    {"lower_average_as_pointwise", "pixels", averaged(128, 128), averaged(5, 3277)},
    {"lower_depthwise_as_conv", "weights", multiplied(1024, 1), multiplied(1024, 2)},
    {"lower_max_pool_as_sums", "elements of all steps", largest(65536, 3), largest(43691, 4)},
    {"lower_slice_as_conv", "operations", shuffled(8), shuffled(9), &kStrides},
    {"fuse_byte_functions", "operations", chain("LOGISTIC", 24), chain("LOGISTIC", 25), nullptr, 2},
};

Result<std::vector<Rewrite>> rewrite_with(ir::Graph& graph, const Row& row) {
  for (const Pass& pass : exact_passes()) {
    if (pass.name != row.pass) continue;
    if (row.driver == nullptr) return rewrite(graph, pass);
    std::vector<Rewrite> rewrites;
    Target target{.driver = row.driver, .chip = {}, .per_channel = npu::PerChannel::strict};
    target.rewrites = &rewrites;
    pass.run(graph, target);
    SK_TRY(ir::verify(graph));
    return rewrites;
  }
  return Error{ErrorCode::internal, "no such pass"};
}

TEST(PassLimits, AreTakenAndNoMore) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(fmt::format("{}: {}", row.pass, row.what));
    auto at = ir::parse("graph \"\"\n" + row.at), beyond = ir::parse("graph \"\"\n" + row.beyond);
    ASSERT_TRUE(at.ok()) << at.error().message;
    ASSERT_TRUE(beyond.ok()) << beyond.error().message;
    ASSERT_TRUE(ir::verify(*at).ok()) << ir::verify(*at).error().message;
    ASSERT_TRUE(ir::verify(*beyond).ok()) << ir::verify(*beyond).error().message;
    const auto wanted = results(*at, 1);
    const auto taken = rewrite_with(*at, row), left = rewrite_with(*beyond, row);
    ASSERT_TRUE(taken.ok()) << taken.error().message;
    ASSERT_TRUE(left.ok()) << left.error().message;
    EXPECT_EQ(taken->size(), 1U) << ir::print(*at);
    EXPECT_EQ(left->size(), row.rewrites_beyond) << ir::print(*beyond);
    EXPECT_TRUE(wanted && wanted == results(*at, 1));
  }
}

// Additions, and convolutions with equal strides in both dimensions.
class SquareDriver : public AddMulDriver {
 public:
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const auto* const conv = std::get_if<ir::ConvAttrs>(&graph.op(id).attrs);
    if (conv == nullptr) return AddMulDriver::supports(chip, graph, id);
    if (conv->stride_h == conv->stride_w) return npu::Support::yes();
    return npu::Support::no(npu::Remedy::none, "two strides");
  }
};

TEST(Rewrites, AcrossASingleRowOrColumnTheStrideIsTheOther) {
  const SquareDriver driver;
  for (const std::string& text : {one_op("1x1x8x1", "1x1x4x1", "MAX_POOL_2D", "padding=valid filter_w=2 stride_w=2"),
                                  one_op("1x8x1x1", "1x4x1x1", "MAX_POOL_2D", "padding=valid filter_h=2 stride_h=2")}) {
    auto graph = ir::parse("graph \"\"\n" + text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto wanted = results(*graph, 1);
    const auto taken = rewrite_with(*graph, {.pass = "lower_max_pool_as_sums", .what = "stride", .driver = &driver});
    ASSERT_TRUE(taken.ok()) << taken.error().message;
    EXPECT_EQ(taken->size(), 1U) << text;
    EXPECT_TRUE(wanted && wanted == results(*graph, 1));
  }
}

TEST(Rewrites, LeaveToTheCpuWhatHasNoElements) {
  for (const char* batch : {"0", "1"}) {
    auto graph =
        ir::parse(fmt::format("tensor 0 \"in\" int8 {0}x1x1x4 scale=1 zero=0\n"
                              "tensor 1 \"filter\" int8 3x1x1x4 scale=1 zero=0 const=zeros\n"
                              "tensor 2 \"conv\" int8 {0}x1x1x3 scale=1 zero=0\n"
                              "tensor 3 \"shape\" int32 2 const=[-1 3]\n"
                              "tensor 4 \"out\" int8 {0}x3 scale=1 zero=0\ninputs 0\noutputs 4\n"
                              "op 0 CONV_2D in=[0 1] out=[2]\nop 1 RESHAPE in=[2 3] out=[4]\n",
                              batch));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const PlainDriver driver;
    std::vector<Rewrite> rewrites;
    Target target{.driver = &driver, .chip = {}};
    target.rewrites = &rewrites;
    const auto done = run_pipeline(*graph, target);
    ASSERT_TRUE(done.ok()) << done.error().message;
    for (const npu::Support& one : supports(*graph, target)) EXPECT_EQ(one.ok, *batch == '1') << one.reason;
  }
}

// A RESHAPE to the same shape with another scale stands for a MUL that changes no byte: no scale of the model is wrong.
TEST(Support, OfTheSameBytesWithAnotherScaleAsksForNothing) {
  struct Case {
    const char *to, *shape;
    bool is_same;
  };
  constexpr Case kCases[] = {{"1x4 scale=0.25 zero=3", "[1 4]", true},
                             {"1x4 scale=0.5 zero=4", "[1 4]", true},
                             {"4x1 scale=0.25 zero=3", "[4 1]", false},
                             {"1x4 scale=0.5 zero=3", "[1 4]", false}};
  for (const Case& c : kCases) {
    const auto graph = ir::parse(
        fmt::format("graph \"\"\ntensor 0 \"a\" uint8 1x4 scale=0.5 zero=3\ntensor 1 \"b\" uint8 {}\n"
                    "tensor 2 \"s\" int32 2 const={}\ninputs 0\noutputs 1\nop 0 RESHAPE in=[0 2] out=[1] shape={}\n",
                    c.to, c.shape, c.shape));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const npu::Support support = support_of(*graph, {&kStrides, {}}, 0);
    EXPECT_FALSE(support.ok);
    EXPECT_EQ(support.reason.find("the same bytes") != std::string::npos, c.is_same) << c.to << ": " << support.reason;
  }
}

}  // namespace
}  // namespace skillet::passes
