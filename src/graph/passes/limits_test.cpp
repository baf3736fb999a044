// What bounds a pass, from both sides: a graph at the limit, which is rewritten and keeps its results, and one just
// beyond, which stays as it was.
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
std::string filter(int id, int rows, int columns, int inputs = 1, int outputs = 1) {
  return fmt::format("tensor {0} \"t{0}\" uint8 {1}x{2}x{3}x{4} scale=0.5 zero=3 const=zeros:{5}\n", id, outputs, rows,
                     columns, inputs, outputs * rows * columns * inputs);
}

// One input and one output.
std::string one_op(std::string_view in, std::string_view out, std::string_view kind, std::string_view attributes) {
  return fmt::format("{}{}inputs 0\noutputs 1\nop 0 {} in=[0] out=[1] {}\n", byte_tensor(0, in), byte_tensor(1, out),
                     kind, attributes);
}
// A filter of `rows` x 1 on columns of `height`, which lie `dilation` apart.
std::string dilated(int rows, int dilation) {
  const int height = (rows - 1) * dilation + 1;
  return byte_tensor(0, fmt::format("1x{}x1x1", height)) + filter(1, rows, 1) + byte_tensor(2, "1x1x1x1") +
         fmt::format("inputs 0\noutputs 2\nop 0 CONV_2D in=[0 1] out=[2] padding=valid dilation_h={}\n", dilation);
}
std::string batches(int block) {
  return byte_tensor(0, fmt::format("1x{}x1x1", 2 * block)) +
         fmt::format("tensor 1 \"s\" int32 2 const=[{} 1]\n", block) + "tensor 2 \"p\" int32 2x2 const=[0 0 0 0]\n" +
         byte_tensor(3, fmt::format("{}x2x1x1", block)) + filter(4, 1, 1) +
         byte_tensor(5, fmt::format("{}x2x1x1", block)) + byte_tensor(6, fmt::format("1x{}x1x1", 2 * block)) +
         "inputs 0\noutputs 6\nop 0 SPACE_TO_BATCH_ND in=[0 1 2] out=[3]\nop 1 CONV_2D in=[3 4] out=[5] padding=valid\n"
         "op 2 BATCH_TO_SPACE_ND in=[5 1 2] out=[6]\n";
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
std::string padded(int rows) {
  return byte_tensor(0, "1x2x2x1") + fmt::format("tensor 1 \"p\" int32 4x2 const=[0 0 {} 0 0 0 0 0]\n", rows) +
         byte_tensor(2, fmt::format("1x{}x2x1", rows + 2)) + "inputs 0\noutputs 2\nop 0 PAD in=[0 1] out=[2]\n";
}
std::string images(int count) {
  return byte_tensor(0, fmt::format("{}x2x2x1", count)) + filter(1, 1, 1) +
         byte_tensor(2, fmt::format("{}x2x2x1", count)) + "inputs 0\noutputs 2\nop 0 CONV_2D in=[0 1] out=[2]\n";
}
std::string averaged(int rows, int columns) {
  return one_op(fmt::format("1x{}x{}x1", rows, columns), "1x1x1x1", "AVERAGE_POOL_2D",
                fmt::format("padding=valid filter_h={} filter_w={}", rows, columns));
}
std::string largest(int columns, int height, int width, int channels) {
  return one_op(fmt::format("1x{}x{}x{}", height, width, channels),
                fmt::format("1x{}x{}x{}", height, width - columns + 1, channels), "MAX_POOL_2D",
                fmt::format("padding=valid filter_w={}", columns));
}
// SPACE_TO_DEPTH by `block`: a filter of block^4 weights for one channel.
std::string blocks(int block, int channels) {
  return one_op(fmt::format("1x{0}x{0}x{1}", block, channels), fmt::format("1x1x1x{}", block * block * channels),
                "SPACE_TO_DEPTH", fmt::format("block_size={}", block));
}
std::string chain(std::string_view kinds_text, int count, bool constant) {
  std::string tensors = byte_tensor(0, "1x1x2x1"), ops;
  for (int i = 0; i < count; ++i) {
    const int to = 2 * i + 2;
    tensors +=
        fmt::format("tensor {0} \"c{0}\" uint8 1 scale=0.5 zero=3 const=[5]\n", to - 1) + byte_tensor(to, "1x1x2x1");
    ops += fmt::format("op {} {} in=[{}{}] out=[{}]\n", i, kinds_text, to - 2,
                       constant ? fmt::format(" {}", to - 1) : "", to);
  }
  return tensors + fmt::format("inputs 0\noutputs {}\n", 2 * count) + ops;
}

std::string multiplied(int channels, int columns) {
  return byte_tensor(0, fmt::format("1x1x{}x{}", columns, channels)) +
         fmt::format("tensor 1 \"w\" uint8 1x1x{}x{} scale=0.5 zero=3 const=zeros:{}\n", columns, 4 * channels,
                     4 * channels * columns) +
         byte_tensor(2, fmt::format("1x1x1x{}", 4 * channels)) +
         "inputs 0\noutputs 2\nop 0 DEPTHWISE_CONV_2D in=[0 1] out=[2] padding=valid depth_multiplier=4\n";
}
// RESHAPE of a constant.
std::string constant(int bytes) {
  return byte_tensor(0, fmt::format("1x{}", bytes)) +
         fmt::format("tensor 1 \"c\" uint8 {0} scale=0.5 zero=3 const=zeros:{0}\n", bytes) +
         byte_tensor(2, fmt::format("1x{}", bytes)) + byte_tensor(3, fmt::format("1x{}", bytes)) +
         fmt::format("inputs 0\noutputs 3\nop 0 RESHAPE in=[1] out=[2] shape=[1 {}]\nop 1 ADD in=[0 2] out=[3]\n",
                     bytes);
}

struct Row {
  const char *pass, *what;
  std::string at, beyond;
  const npu::Driver* driver = nullptr;  // instead of the pass's own
  size_t rewrites_beyond = 0;           // of what is left as well
};

const Row kRows[] = {
    {"expand_dilation", "rows", dilated(2, 63), dilated(2, 64)},
    {"expand_dilation", "rows of three taps", dilated(22, 3), dilated(23, 3)},
    {"fold_space_to_batch", "block", batches(64), batches(65)},
    {"moves_to_convolution", "stride", strided_slice(7), strided_slice(8), &kStrides},
    {"moves_to_convolution", "weights", blocks(4, 64), blocks(4, 65), &kStrides},
    {"transposed_to_convolution", "stride", transposed(16), transposed(17)},
    {"pads_to_steps", "steps", padded(16), padded(17)},
    {"split_batches", "images", images(8), images(9)},
    {"average_to_depthwise", "pixels", averaged(64, 64), averaged(17, 241)},
    {"max_pools_to_sums", "pixels", largest(9, 1, 12, 1), largest(10, 1, 12, 1)},
    {"max_pools_to_sums", "elements", largest(2, 2, 4096, 1), largest(2, 3, 2731, 1)},
    {"average_to_pointwise", "pixels",
     one_op("1x64x64x4", "1x1x1x4", "AVERAGE_POOL_2D", "padding=valid filter_h=64 filter_w=64"),
     one_op("1x17x241x4", "1x1x1x4", "AVERAGE_POOL_2D", "padding=valid filter_h=17 filter_w=241")},
    {"depthwise_to_dense", "weights", multiplied(1024, 1), multiplied(1024, 2)},
    {"fold_constants", "bytes", constant(1 << 19), constant((1 << 19) + 1)},
    {"byte_functions", "operations", chain("LOGISTIC", 24, false), chain("LOGISTIC", 25, false), nullptr, 2},
};

Result<std::vector<Rewrite>> rewrite_with(ir::Graph& graph, const Row& row) {
  for (const Pass& pass : exact_passes()) {
    if (pass.name != row.pass) continue;
    if (row.driver == nullptr) return rewrite(graph, pass);
    std::vector<Rewrite> rewrites;
    Target target{.driver = row.driver, .chip = {}, .per_channel = npu::PerChannel::strict};
    target.rewrites = &rewrites;
    SK_TRY(pass.run(graph, target));
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

}  // namespace
}  // namespace skillet::passes
