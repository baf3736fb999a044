#include "known_faults.h"

#include <algorithm>
#include <cmath>

namespace skillet::rockchip_replay {
namespace {

struct Context {
  const ir::Graph& graph;
  const Taken& taken;
  bool is_second_operand;
  std::span<const uint8_t> alone;

  const ir::Op& conv() const { return graph.op(taken.conv); }
  const ir::ConvAttrs& attrs() const { return conv().as<ir::ConvAttrs>(); }
  const ir::Tensor& in() const { return graph.tensor(conv().inputs[0]); }
  const ir::Tensor& filter() const { return graph.tensor(conv().inputs[1]); }
  const ir::Tensor& alone_out() const { return graph.tensor(conv().outputs[0]); }
  const ir::Tensor& out() const { return graph.tensor(taken.output); }
  bool fused() const { return taken.add >= 0; }
  bool in_addition() const { return fused() || is_second_operand; }
};

bool square(const ir::Shape& shape) { return shape.back(1) == shape.back(2); }
uint8_t zero_byte(const ir::Tensor& tensor) { return static_cast<uint8_t>(tensor.quant.zero_point()); }

bool takes_rows_for_columns(const Context& c) {
  const ir::ConvAttrs& a = c.attrs();
  const bool point =
      c.filter().shape.back(1) == 1 && c.filter().shape.back(2) == 1 && a.stride_h == 1 && a.stride_w == 1;
  return !point && !(square(c.in().shape) && square(c.out().shape) && square(c.filter().shape));
}

// Compares the range of real numbers that the output type holds with the activation's range.
bool clamps_more_than_saturation(const ir::Tensor& tensor, ir::Activation activation) {
  const double low = (0 - tensor.quant.zero_point()) * double{tensor.quant.scale()};
  const double high = (255 - tensor.quant.zero_point()) * double{tensor.quant.scale()};
  const double step = tensor.quant.scale() / 2;
  switch (activation) {
    case ir::Activation::relu: return low < -step;
    case ir::Activation::relu6: return low < -step || high > 6 + step;
    case ir::Activation::relu_n1_to_1: return low < -1 - step || high > 1 + step;
    default: return false;
  }
}
bool ignores_activation(const Context& c) {
  if (!c.fused()) return clamps_more_than_saturation(c.out(), c.attrs().activation);
  return c.graph.op(c.taken.add).as<ir::ActivationAttrs>().activation != ir::Activation::none;
}

// A fused addition never forms the convolution's output, so that output is not clamped.
bool loses_clamp(const Context& c) {
  const auto saturated = [](uint8_t byte) { return byte == 0 || byte == 255; };
  return c.fused() && (std::any_of(c.alone.begin(), c.alone.end(), saturated) ||
                       clamps_more_than_saturation(c.alone_out(), c.attrs().activation));
}

bool pads(const Context& c) {
  const bool any = c.filter().shape.back(1) > 1 || c.filter().shape.back(2) > 1;
  return any && c.attrs().padding == ir::Padding::same;
}
bool pads_wrong(const Context& c) {
  const uint32_t value = c.taken.op.get<hw::CnaPadCon1>().pad_value;
  const auto right = static_cast<uint8_t>(zero_byte(c.in()) ^ 0x80);
  const bool odd_channels = c.taken.op.depthwise && static_cast<uint8_t>(value >> 8) != right;
  return pads(c) && (static_cast<uint8_t>(value) != right || odd_channels);
}

bool wrong_gain(const Context& c) {
  const double gain = double{c.in().quant.scale()} * c.filter().quant.scale() / c.out().quant.scale();
  const double programmed = std::ldexp(c.taken.op.get<hw::DpuOutCvtScale>().out_cvt_scale,
                                       -static_cast<int>(c.taken.op.get<hw::DpuOutCvtShift>().out_cvt_shift)) /
                            std::ldexp(1, static_cast<int>(c.taken.op.get<hw::CoreClipTruncate>().clip_truncate));
  return std::abs(programmed / gain - 1) > 1.0 / 4096;
}

bool reads_rows_apart(const Context& c) {
  const uint32_t pitch = std::max(c.taken.op.get<hw::CnaFcDataSize0>().dma_width, 16U);
  return c.taken.op.packed && c.taken.op.get<hw::CnaDmaCon1>().line_stride != pitch;
}

bool operand_comes_later(const Context& c) {
  if (!c.fused()) return false;
  const auto producer = ir::producers(c.graph)[static_cast<size_t>(c.taken.second)];
  return producer > c.taken.conv;
}

bool too_large(const Context& c) {
  const auto over = [](int32_t v) { return v > 2047; };
  return over(c.in().shape.back(1)) || over(c.in().shape.back(2)) || over(c.out().shape.back(1));
}

struct Fault {
  bool (*applies)(const Context&);
  const char* what;
};
constexpr Fault kFaults[] = {
    {[](const Context& c) { return c.in().dtype == ir::DType::int8; }, "signed tensors are taken for unsigned ones"},
    {takes_rows_for_columns, "rows are taken for columns"},
    {[](const Context& c) { return c.attrs().stride_h != c.attrs().stride_w; }, "one stride for both directions"},
    {ignores_activation, "the activation is left to saturation"},
    {loses_clamp, kLostClamp},
    {pads_wrong, "pad bytes are not the zero point in every lane"},
    {[](const Context& c) {
       // With more than 16 channels beyond a multiple of 32, the last group is complete.
       const uint32_t channels = c.taken.op.out_channels;
       return c.taken.op.depthwise && channels % 64 > 32 && channels % 32 < 16;
     },
     "rows of depthwise weights are shorter than announced"},
    {[](const Context& c) {
       const uint32_t channels = c.taken.op.out_channels;
       return c.taken.op.depthwise && channels > 64 && channels % 64 > 16 && channels % 64 < 32;
     },
     "rows of depthwise weights are longer than announced"},
    {[](const Context& c) { return c.taken.op.get<hw::CnaCvtCon1>().cvt_scale0 == 32388; },
     "the input converter's constant for additions is not 1"},
    {reads_rows_apart, "one input and one output channel: rows are read four lengths apart, and no input is uploaded"},
    {[](const Context& c) {
       return c.taken.op.out_pixels != static_cast<uint32_t>(c.out().shape.back(1) * c.out().shape.back(2));
     },
     "the model declares another output size than its window gives"},
    {[](const Context& c) { return c.taken.op.get<hw::DpuOutCvtShift>().out_cvt_shift > 63; },
     "a gain that needs a shift of more than six bits"},
    {wrong_gain, "the output gain is not the model's"},
    {operand_comes_later, "the addition's other operand is computed later"},
    {too_large, "the image is larger than the register field"},
    {[](const Context& c) { return c.fused() && c.taken.op.out_pixels < 12 && c.taken.op.out_channels > 32; },
     "operands of small planes are read too far apart"},
    {[](const Context& c) { return c.attrs().depth_multiplier != 1; }, "a depth multiplier is not seen"},
};

}  // namespace

std::string known_faults(const ir::Graph& graph, const Taken& taken, bool is_second_operand,
                         std::span<const uint8_t> alone) {
  const Context context{graph, taken, is_second_operand, alone};
  std::string all;
  for (const Fault& fault : kFaults) {
    if (fault.applies(context)) all += fmt::format("{}{}", all.empty() ? "" : "; ", fault.what);
  }
  return all;
}

}  // namespace skillet::rockchip_replay
