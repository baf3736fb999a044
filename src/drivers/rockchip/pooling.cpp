#include "drivers/rockchip/pooling.h"

#include <algorithm>

#include "base/int_math.h"
#include "drivers/rockchip/choices.h"
#include "drivers/rockchip/numerics.h"
#include "drivers/rockchip/tile.h"

namespace skillet::drivers::rockchip {
namespace {

constexpr uint32_t kSmallest = 0x80808080;  // -128 in each lane

// Bytes as they are.
void copy_bytes(Conv& conv) {
  conv.bias.assign(static_cast<size_t>(conv.out.channels), 0);
  conv.pad_value = kSmallest;
  conv.out_gain = output_gain(1, true);
}

Conv only_tap(const Window& w, int32_t tap, const Tuning& tuning) {
  Conv conv = constant_depthwise(w, {&tap, 1}, tuning);
  copy_bytes(conv);
  return conv;
}

// `times` surfaces that each hold the bytes of one.
Conv repeated(const Plane& row, int32_t times) {
  Conv conv{.in = row, .out = {row.height, row.width, kAtom * times}, .gap = (times - 1) * row.width};
  conv.out_pitch = row.width;
  Bytes weights(static_cast<size_t>(conv.out.channels) * kAtom, kWeightZero);
  for (size_t c = 0; c < static_cast<size_t>(conv.out.channels); ++c) weights[c * kAtom + c % kAtom] = kWeightZero + 1;
  conv.weights = std::move(weights);
  copy_bytes(conv);
  return conv;
}

// Whether output pixel i of `times` as many is input pixel i / times, as TFLite counts.
bool repeats(int32_t in, int32_t out, const ir::ResizeAttrs& attrs) {
  const bool corners = attrs.align_corners && out > 1;
  const float scale = corners ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                              : static_cast<float>(in) / static_cast<float>(out);
  const float offset = attrs.half_pixel_centers ? 0.5F : 0.0F;
  for (int32_t i = 0; i < out; ++i) {
    const float at = (static_cast<float>(i) + offset) * scale;
    const auto nearest = static_cast<int32_t>(attrs.align_corners ? std::round(at) : std::floor(at));
    if (std::clamp(nearest, 0, in - 1) != i / (out / in)) return false;
  }
  return true;
}

}  // namespace

namespace {

// Surfaces lie one behind the other: two halves of them are an image of 32 channels, as many images high.
Conv flat_average(const Window& w) {
  constexpr int32_t kLanes = 2 * kAtom;
  const int32_t images = w.in.channels / kLanes;
  Conv conv{.in = {w.in.height * images, w.in.width, kLanes}, .out = {images, 1, kLanes}};
  conv.kernel_height = w.in.height, conv.kernel_width = w.in.width;
  conv.stride_y = conv.stride_x = w.in.height;
  const auto taps = static_cast<size_t>(conv.taps());
  Bytes weights(kLanes * taps * kLanes, kWeightZero);
  for (size_t c = 0; c < kLanes; ++c) {
    for (size_t tap = 0; tap < taps; ++tap) weights[(c * taps + tap) * kLanes + c] = kWeightZero + 1;
  }
  conv.weights = std::move(weights);
  return conv;
}

}  // namespace

Result<Conv> make_average(const ir::Graph& graph, ir::OpId id, const Tuning& tuning) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &to = graph.tensor(op.outputs[0]);
  const Window w = window_of(graph, id);
  const bool is_flat = tuning.choice(id, kFlatAverage) != 0 && may_be_flat(w);
  Conv conv = is_flat ? flat_average(w) : constant_depthwise(w, {}, tuning);
  const Scales scales{.product = from.quant.scale() / static_cast<float>(conv.taps())};
  SK_TRY(set_values(from, to, {}, scales, activation_of(op), tuning, conv));
  return conv;
}

Window maximum_window(const ir::Graph& graph, ir::OpId id) {
  Window w = window_of(graph, id);
  w.pad_bottom = std::max(w.pad_bottom, 0);
  w.pad_right = std::max(w.pad_right, 0);
  return w;
}

Window border_window(const Window& w) {
  Window border{.in = w.in, .out = w.in, .depthwise = true};
  border.kernel_height = w.pad_top + w.pad_bottom + 1, border.kernel_width = w.pad_left + w.pad_right + 1;
  border.pad_top = border.pad_bottom = border.kernel_height - 1;
  border.pad_left = border.pad_right = border.kernel_width - 1;
  border.out.height += border.kernel_height - 1;
  border.out.width += border.kernel_width - 1;
  return border;
}
Conv make_border(const Window& w, const Tuning& tuning) {
  const Window border = border_window(w);
  return only_tap(border, w.pad_bottom * border.kernel_width + w.pad_right, tuning);
}

Window corner_window(const Window& w) {
  Window corners = w;
  corners.in = border_window(w).out;
  corners.pad_top = corners.pad_bottom = corners.pad_left = corners.pad_right = 0;
  return corners;
}
Conv make_corners(const Window& w, const Tuning& tuning) { return only_tap(corner_window(w), 0, tuning); }

std::vector<int32_t> steps_to(int32_t size) {
  std::vector<int32_t> steps;
  for (int32_t have = 1; have < size; have += steps.back()) steps.push_back(std::min(have, size - have));
  return steps;
}

std::optional<Repeat> repeat_of(const ir::Graph& graph, const ir::Op& op) {
  const Plane in = plane_of(graph.tensor(op.inputs[0]).shape), out = plane_of(graph.tensor(op.outputs[0]).shape);
  if (out.height % in.height != 0 || out.width % in.width != 0) return std::nullopt;
  const auto& attrs = op.as<ir::ResizeAttrs>();
  if (!repeats(in.height, out.height, attrs) || !repeats(in.width, out.width, attrs)) return std::nullopt;
  return Repeat{out.height / in.height, out.width / in.width};
}

Conv make_repeated_rows(const Plane& plane, int32_t times) {
  const int32_t surfaces = ceil_div(plane.channels, kAtom);
  return repeated({plane.height * surfaces, plane.width, kAtom}, times);
}
Conv make_repeated_columns(const Plane& plane, int32_t times) {
  const int32_t surfaces = ceil_div(plane.channels, kAtom);
  return repeated({plane.height * surfaces * plane.width, 1, kAtom}, times);
}

}  // namespace skillet::drivers::rockchip
