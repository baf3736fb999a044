// A convolution with stride 2 along rows and 1 along columns (networks that read text lines and spectrograms) becomes
// one of stride 2x2 whose channels are the results of two adjacent columns; RESHAPE puts them in place. The filter
// keeps its height and gets one column more: a zero after it or before it.
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

constexpr int32_t kColumns = 2;  // that become channels

bool has_uneven_stride(const Rewriter& rewriter, const ir::Op& op) {
  if (op.kind != ir::OpKind::conv_2d && op.kind != ir::OpKind::depthwise_conv_2d) return false;
  const auto& attrs = op.as<ir::ConvAttrs>();
  const ir::Tensor &in = rewriter.tensor(op.inputs[0]), &filter = rewriter.tensor(op.inputs[1]);
  const ir::Tensor& out = rewriter.tensor(op.outputs[0]);
  const bool bias_known = op.input(2) == ir::kNoTensor || (rewriter.tensor(op.inputs[2]).is_constant() &&
                                                           rewriter.tensor(op.inputs[2]).dtype == ir::DType::int32);
  if (!is_computed_byte(in) || !is_computed_byte(out) || in.shape.rank() != 4 || in.shape[0] != 1 ||
      in.shape.elems() < 1 || out.shape.elems() < 1 || !filter.is_constant() || !ir::is_8bit(filter.dtype) ||
      filter.quant.zero_points.empty() || !ir::all_equal(filter.quant.zero_points) || !bias_known)
    return false;
  return attrs.stride_h == 2 && attrs.stride_w == 1 && attrs.dilation_h == 1 && attrs.dilation_w == 1 && !attrs.rows &&
         attrs.depth_multiplier == 1 && filter.shape[3] == in.shape[3] && out.shape[2] % kColumns == 0 &&
         filter.shape.elems() <= kDenseBytesMax / 4;
}

// True if the windows of two columns, joined, are those of stride 2.
bool has_same_windows(const ir::ConvAttrs& attrs, int32_t width, int32_t kernel, int32_t outputs) {
  if (attrs.padding == ir::Padding::valid) return true;
  const SamePads now = same_pads(width, kernel + 1, kColumns, 1);
  return now.before == same_pads(width, kernel, 1, 1).before && now.outputs * kColumns == outputs;
}

// Adds a zero before or after the columns.
Bytes widened(const ir::Tensor& filter, bool before) {
  const auto row = static_cast<std::ptrdiff_t>(int64_t{filter.shape[2]} * filter.shape[3]);
  const auto zeros = static_cast<size_t>(filter.shape[3]);
  Bytes out;
  out.reserve(filter.data.size() + zeros * static_cast<size_t>(filter.shape[0]) * static_cast<size_t>(filter.shape[1]));
  for (auto at = filter.data.begin(); at != filter.data.end(); at += row) {
    if (before) out.insert(out.end(), zeros, static_cast<uint8_t>(filter.quant.zero_point()));
    out.insert(out.end(), at, at + row);
    if (!before) out.insert(out.end(), zeros, static_cast<uint8_t>(filter.quant.zero_point()));
  }
  return out;
}

class Maker {
 public:
  Maker(Rewriter& rewriter, const ir::Op& old) : rewriter_(rewriter), old_(old) {}

  std::vector<ir::Op> run() {
    const ir::Shape out = rewriter_.tensor(old_.outputs[0]).shape;
    const ir::TensorId both = made("/columns", {1, out[1], out[2] / kColumns, out[3] * kColumns});
    std::vector<ir::Op> ops;
    if (old_.kind == ir::OpKind::conv_2d) {
      ops.push_back(joined(both));
    } else {
      ir::Op join{.kind = ir::OpKind::concatenation, .attrs = ir::ConcatAttrs{.axis = 3}};
      for (const bool before : {false, true}) {
        join.inputs.push_back(made(before ? "/odd" : "/even", {1, out[1], out[2] / kColumns, out[3]}));
        ops.push_back(one_of(before, join.inputs.back()));
      }
      join.outputs = {both};
      ops.push_back(std::move(join));
    }
    ops.push_back(rewriter_.reshape(both, old_.outputs[0]));
    return ops;
  }

 private:
  ir::TensorId made(std::string_view name, ir::Shape shape) {
    return rewriter_.add_like(rewriter_.tensor(old_.outputs[0]), name, std::move(shape));
  }
  ir::Op with_filter(ir::Shape shape, Bytes bytes, ir::Quant quant, const char* name, ir::TensorId to) {
    const ir::Tensor filter = rewriter_.tensor(old_.inputs[1]);
    ir::Op op = old_;
    std::get<ir::ConvAttrs>(op.attrs).stride_w = kColumns;
    op.inputs[1] =
        rewriter_.add_constant(filter.name + name, filter.dtype, std::move(shape), std::move(bytes), std::move(quant));
    op.outputs = {to};
    return op;
  }
  ir::Shape wide_shape() const {
    ir::Shape shape = rewriter_.tensor(old_.inputs[1]).shape;
    ++shape.dims[2];
    return shape;
  }
  ir::Op one_of(bool before, ir::TensorId to) {
    const ir::Tensor filter = rewriter_.tensor(old_.inputs[1]);
    return with_filter(wide_shape(), widened(filter, before), filter.quant, before ? "/odd" : "/even", to);
  }
  // All filters for the first column, then for the second.
  ir::Op joined(ir::TensorId to) {
    const ir::Tensor filter = rewriter_.tensor(old_.inputs[1]);
    Bytes bytes = widened(filter, false);
    const Bytes odd = widened(filter, true);
    bytes.insert(bytes.end(), odd.begin(), odd.end());
    ir::Shape shape = wide_shape();
    shape.dims[0] *= kColumns;
    ir::Op op = with_filter(std::move(shape), std::move(bytes), repeated(filter.quant, kColumns), "/columns", to);
    if (old_.input(2) == ir::kNoTensor) return op;
    const ir::Tensor bias = rewriter_.tensor(old_.inputs[2]);
    Bytes twice(bias.data.begin(), bias.data.end());
    twice.insert(twice.end(), bias.data.begin(), bias.data.end());
    op.inputs[2] = rewriter_.add_constant(bias.name + "/columns", bias.dtype, {bias.shape[0] * kColumns},
                                          std::move(twice), repeated(bias.quant, kColumns));
    return op;
  }

  Rewriter& rewriter_;
  const ir::Op old_;
};

}  // namespace

void lower_uneven_stride(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (!has_uneven_stride(rewriter, old) || rewriter.level(id) != Level::refused) return;
  const ir::Shape in = rewriter.tensor(old.inputs[0]).shape, out = rewriter.tensor(old.outputs[0]).shape;
  if (!has_same_windows(old.as<ir::ConvAttrs>(), in[2], rewriter.tensor(old.inputs[1]).shape[2], out[2])) return;
  std::string text =
      fmt::format("{} of stride 2x1 becomes one of 2x2 with two columns as channels, and RESHAPE", ir::op_name(old));
  rewriter.replace(id, Maker(rewriter, old).run(), std::move(text));
}

}  // namespace skillet::passes
