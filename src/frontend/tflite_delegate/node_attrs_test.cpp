#include "frontend/tflite_delegate/node_attrs.h"

#include <gtest/gtest.h>

#include "frontend/tflite_delegate/builtin_params.h"
#include "frontend/tflite_delegate/testing/encode_params.h"
#include "graph/ir/attrs_fields.h"

namespace skillet::delegate {
namespace {

constexpr int kNewestVersion = 8;

// A different value for each field, none of them a default.
struct Fill {
  int next = 2;
  void operator()(std::string_view, ir::Padding& field, std::string_view) const { field = ir::Padding::valid; }
  void operator()(std::string_view, ir::Activation& field, std::string_view) const { field = ir::Activation::relu6; }
  void operator()(std::string_view, std::optional<ir::RowPads>&, std::string_view) const {}  // no file has this field
  void operator()(std::string_view, bool& field, std::string_view) const { field = true; }
  void operator()(std::string_view, int32_t& field, std::string_view) { field = next++; }
  void operator()(std::string_view, float& field, std::string_view) { field = static_cast<float>(next++); }
  void operator()(std::string_view, std::vector<int32_t>& field, std::string_view) { field = {next++, next++}; }
};

ir::Op filled(ir::OpKind kind) {
  ir::Op op{.kind = kind, .attrs = ir::default_attrs(kind)};
  std::visit([](auto& attrs) { ir::for_each_field(attrs, Fill{}); }, op.attrs);
  auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs);
  // Fields that these kinds do not have.
  if (conv != nullptr && kind != ir::OpKind::depthwise_conv_2d) conv->depth_multiplier = 1;
  if (conv != nullptr) conv->float_product = false;
  if (kind == ir::OpKind::transpose_conv) conv->dilation_h = conv->dilation_w = 1;
  // A host stores the hidden state's quantization at a tensor.
  if (auto* lstm = std::get_if<ir::LstmAttrs>(&op.attrs); lstm != nullptr) {
    lstm->hidden_scale = 0;
    lstm->hidden_zero_point = 0;
    if (kind == ir::OpKind::lstm) lstm->time_major = false;
  }
  return op;
}

// An op without a case would run with default attributes, ignoring the host's.
TEST(NodeAttrs, OfEveryOpAreRead) {
  for (int i = 0; i < static_cast<int>(ir::OpKind::opaque); ++i) {
    const ir::Op op = filled(static_cast<ir::OpKind>(i));
    if (op.kind == ir::OpKind::detection_post_process) continue;  // custom: the host has no parameters for it
    const Bytes params = encode_params(op);
    const auto attrs = read_attrs(op.kind, params.empty() ? nullptr : params.data(), kNewestVersion);
    ASSERT_TRUE(attrs.ok()) << ir::op_kind_name(op.kind) << ": " << attrs.error().message;
    EXPECT_EQ(*attrs, op.attrs) << ir::op_kind_name(op.kind);
  }
}

TEST(NodeAttrs, ReadsAppendedFieldsByVersion) {
  const TfLiteTransposeConvParams transpose{kTfLitePaddingSame, 1, 1, 77};
  EXPECT_TRUE(read_attrs(ir::OpKind::transpose_conv, &transpose, 3).ok()) << "no such field before version 4";
  EXPECT_FALSE(read_attrs(ir::OpKind::transpose_conv, &transpose, 4).ok());
  const TfLiteStridedSliceParams slice{0, 0, 0, 0, 0, true};
  EXPECT_TRUE(std::get<ir::StridedSliceAttrs>(*read_attrs(ir::OpKind::strided_slice, &slice, 8)).offset);
  // Newer hosts use these values.
  const TfLiteTransposeConvParams relu{kTfLitePaddingSame, 1, 1, 1};
  const TfLiteGatherParams batch{0, 1};
  for (const auto& [kind, params, version] :
       {std::tuple<ir::OpKind, const void*, int>{ir::OpKind::transpose_conv, &relu, 3},
        {ir::OpKind::strided_slice, &slice, 7},
        {ir::OpKind::gather, &batch, 4}}) {
    const auto attrs = read_attrs(kind, params, version);
    ASSERT_FALSE(attrs.ok()) << ir::op_kind_name(kind);
    EXPECT_NE(attrs.error().message.find(fmt::format("op version {} has no ", version)), std::string::npos);
    EXPECT_TRUE(read_attrs(kind, params, version + 1).ok());
  }
}

// A host's lists have places for eight numbers.
TEST(NodeAttrs, ListsHaveUpToEightNumbers) {
  for (const int count : {-1, 0, 1, 8, 9}) {
    const TfLiteReshapeParams reshape{{{1, 2, 3, 4, 5, 6, 7, 8}, count}};
    const auto attrs = read_attrs(ir::OpKind::reshape, &reshape, 1);
    ASSERT_EQ(attrs.ok(), count >= 0 && count <= 8) << count;
    const std::string said = attrs.ok() ? "" : attrs.error().message;
    EXPECT_EQ(said, attrs.ok() ? "" : fmt::format("a list of {} entries", count));
  }
}

}  // namespace
}  // namespace skillet::delegate
