#include "npus/rockchip/compiler/pooling.h"

#include <algorithm>
#include <numeric>

#include "base/int_math.h"
#include "npus/rockchip/compiler/choices.h"
#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {
namespace {

constexpr uint32_t kSmallest = 0x80808080;  // -128 in each lane

// Makes the output bytes equal to the input bytes.
void copy_bytes(Conv& conv) {
  conv.bias.assign(static_cast<size_t>(conv.out.channels), 0);
  conv.pad_value = kSmallest;
  conv.out_gain = output_gain(1, true);
}

}  // namespace

void choose(Conv& conv, std::span<const int32_t> chosen) {
  const auto values = static_cast<size_t>(conv.taps()) * static_cast<size_t>(conv.in.channels);
  Bytes weights(chosen.size() * values, kWeightZero);
  for (size_t c = 0; c < chosen.size(); ++c) {
    if (chosen[c] >= 0) weights[c * values + static_cast<size_t>(chosen[c])] = kWeightZero + 1;
  }
  conv.weights = std::move(weights);
  copy_bytes(conv);
}

namespace {

Conv only_tap(const Window& w, int32_t tap, const Tuning& tuning) {
  Conv conv = constant_depthwise(w, {&tap, 1}, tuning);
  copy_bytes(conv);
  return conv;
}

// Surfaces that each hold the bytes of the same input surface.
Conv repeated(const Plane& row, int32_t times, int32_t count) {
  Conv conv{.in = row, .out = {row.height, row.width, kAtom * count}, .gap = (times - 1) * row.width};
  conv.out_pitch = row.width;
  std::vector<int32_t> chosen(static_cast<size_t>(conv.out.channels));
  for (size_t c = 0; c < chosen.size(); ++c) chosen[c] = static_cast<int32_t>(c % kAtom);
  choose(conv, chosen);
  return conv;
}

// Whether output pixel i of `times` as many is input pixel i / times, by TFLite's rule.
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

// Surfaces follow each other: two halves of them form a taller image of 32 channels, with the images below each other.
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

// Where tensors have equal quantization averages may be of stored bytes: halves go away from byte 0, whatever the zero
// point.
bool is_of_bytes(const ir::Tensor& from, const ir::Tensor& to, ir::Activation activation, const Tuning& tuning) {
  const Limits limits = limits_of(to, activation);
  return tuning.packing != nullptr && !limits.lower && !limits.upper && from.quant == to.quant;
}

// Averages are rounded once. Padding is byte 0 if `of_bytes`, else the zero point.
Result<void> set_average(const ir::Tensor& from, const ir::Tensor& to, float product, ir::Activation activation,
                         bool of_bytes, const Tuning& tuning, Conv& conv) {
  conv.once = to.quant.zero_point();
  if (!of_bytes) return set_values(from, to, {}, {.product = product}, activation, tuning, conv);
  ir::Tensor bytes = from;
  bytes.quant.zero_points.assign(1, 0);
  conv.once = 0;
  return set_values(bytes, bytes, {}, {.product = product}, ir::Activation::none, tuning, conv);
}

}  // namespace

Result<Conv> make_average(const ir::Graph& graph, ir::OpId id, const Tuning& tuning) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &to = graph.tensor(op.outputs[0]);
  const Window w = window_of(graph, id);
  const bool is_flat = tuning.choice(id, kFlatAverage) != 0 && may_be_flat(w);
  Conv conv = is_flat ? flat_average(w) : constant_depthwise(w, {}, tuning);
  const float product = from.quant.scale() / static_cast<float>(conv.taps());
  if (op.kind == ir::OpKind::average_pool_2d)
    SK_TRY(set_average(from, to, product, activation_of(op), is_of_bytes(from, to, activation_of(op), tuning), tuning,
                       conv));
  else
    SK_TRY(set_values(from, to, {}, {.product = product}, activation_of(op), tuning, conv));
  return conv;
}

Window maximum_window(const ir::Graph& graph, ir::OpId id) {
  Window w = window_of(graph, id);
  w.pad_bottom = std::max(w.pad_bottom, 0);
  w.pad_right = std::max(w.pad_right, 0);
  return w;
}

std::optional<ImageAxes> image_axes(const ir::Graph& graph, const ir::Op& op) {
  const ir::Tensor &from = graph.tensor(op.inputs[0]), &axes = graph.tensor(op.inputs[1]);
  if (!axes.is_constant() || axes.dtype != ir::DType::int32 || from.shape.rank() != 4) return std::nullopt;
  ImageAxes out;
  for (const int32_t axis : axes.values<int32_t>()) {
    const int32_t back = axis_from_back(from.shape, axis);
    if (back != 1 && back != 2) return std::nullopt;
    (back == 2 ? out.rows : out.columns) = true;
  }
  if (!out.rows && !out.columns) return std::nullopt;
  return out;
}

Result<Conv> make_average_part(const ir::Tensor& from, const ir::Tensor& to, const Move& move,
                               ir::Activation activation, const Tuning& tuning) {
  Conv conv = make_move(move);
  const Scales scales{.product = from.quant.scale() / static_cast<float>(conv.taps())};
  SK_TRY(set_values(from, to, {}, scales, activation, tuning, conv));
  return conv;
}

namespace {

// The size of the first step's parts: as little past the end as possible, both steps no longer than seen in programs.
int32_t part_of(int32_t size) {
  int32_t best = 1;
  for (int32_t part = 2; size > kKernelSeen && part <= kKernelSeen; ++part) {
    const auto cost = [&](int32_t p) {
      const int32_t rest = ceil_div(size, p);
      return std::pair{std::max(rest, kKernelSeen), p * rest};
    };
    if (best == 1 || cost(part) < cost(best)) best = part;
  }
  return best;
}

}  // namespace

std::optional<AverageSteps> average_steps(const Window& w) {
  const auto is_whole = [](int32_t kernel, int32_t in, int32_t out) { return kernel == in && out == 1; };
  const auto is_kept = [](int32_t kernel, int32_t in, int32_t out) { return kernel == 1 && in == out; };
  const bool rows = is_whole(w.kernel_height, w.in.height, w.out.height);
  const bool columns = is_whole(w.kernel_width, w.in.width, w.out.width);
  if (!(rows || is_kept(w.kernel_height, w.in.height, w.out.height)) ||
      !(columns || is_kept(w.kernel_width, w.in.width, w.out.width)) ||
      std::max(w.kernel_height, w.kernel_width) <= kKernelSeen || leaves_image(w))
    return std::nullopt;
  Window first = w, second = w;
  first.kernel_height = first.stride_y = rows ? part_of(w.in.height) : 1;
  first.kernel_width = first.stride_x = columns ? part_of(w.in.width) : 1;
  first.out.height = ceil_div(w.in.height, first.kernel_height);
  first.out.width = ceil_div(w.in.width, first.kernel_width);
  second.in = first.out;
  second.kernel_height = rows ? second.in.height : 1, second.kernel_width = columns ? second.in.width : 1;
  second.stride_y = second.stride_x = 1;
  return AverageSteps{first, second, w.kernel_height * w.kernel_width};
}

std::optional<AverageSteps> average_steps(const Window& w, const ir::Tensor& from, const ir::Tensor& to) {
  const bool fits = std::max(w.kernel_height, w.kernel_width) <= kKernelMax;
  const float most = fits ? 1.0F : 1.5F;
  return from.quant.scale() <= most * to.quant.scale() ? average_steps(w) : std::nullopt;
}

Result<AverageConvs> make_average_steps(const AverageSteps& steps, const ir::Tensor& from, const ir::Tensor& to,
                                        ir::Activation activation, const Tuning& tuning) {
  AverageConvs out{constant_depthwise(steps.first, {}, tuning), constant_depthwise(steps.second, {}, tuning)};
  const float unit = from.quant.scale(), taps = static_cast<float>(out.first.taps());
  const float pixels = static_cast<float>(steps.pixels);
  // Both steps alike: only then the padding that the first one adds counts as nothing in the second.
  const bool of_bytes = is_of_bytes(from, to, activation, tuning);
  SK_TRY(set_average(from, from, unit / taps, ir::Activation::none, of_bytes, tuning, out.first));
  // With two or four values many averages are halves: as many go up as down, so that the errors do not add up.
  if (out.first.taps() == 2 || out.first.taps() == 4) out.first.halves_away = false;
  SK_TRY(set_average(from, to, unit * taps / pixels, activation, of_bytes, tuning, out.second));
  return out;
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
  corners.kernel_height = corners.kernel_width = 1;
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
  if (op.kind == ir::OpKind::resize_bilinear) {
    const auto is_exact = [](int32_t from, int32_t to) { return from == 1 || from == to; };
    if (!is_exact(in.height, out.height) || !is_exact(in.width, out.width)) return std::nullopt;
    return Repeat{out.height / in.height, out.width / in.width};
  }
  if (!repeats(in.height, out.height, attrs) || !repeats(in.width, out.width, attrs)) return std::nullopt;
  return Repeat{out.height / in.height, out.width / in.width};
}

std::vector<Copies> copies_of(int32_t times) {
  constexpr int32_t kMost = 8;  // in one pass
  std::vector<Copies> out;
  for (int32_t first = 0; times > 1 && first < times; first += kMost) {
    const int32_t count = std::min(kMost, times - first);
    if (count > 1) out.push_back({first, count - count % 2});
    if (is_odd(count)) out.push_back({first + count - 2, 2});
  }
  return out;
}

Conv make_repeated_rows(const Plane& plane, int32_t times, const Copies& copies) {
  const int32_t surfaces = ceil_div(plane.channels, kAtom);
  return repeated({plane.height * surfaces, plane.width, kAtom}, times, copies.count);
}
Conv make_repeated_columns(const Plane& plane, int32_t times, const Copies& copies) {
  const int32_t surfaces = ceil_div(plane.channels, kAtom);
  return repeated({plane.height * surfaces * plane.width, 1, kAtom}, times, copies.count);
}
uint64_t bytes_before(const Copies& copies, int32_t row_pixels) {
  return static_cast<uint64_t>(int64_t{copies.first} * row_pixels * kAtom);
}

Window blocks_window(const Plane& in, const Plane& out) {
  const int32_t block = in.height / std::max(out.height, 1);
  return {.in = in, .out = out, .kernel_height = block, .kernel_width = block, .stride_y = block, .stride_x = block};
}

Conv make_blocks(const Plane& in, const Plane& out) {
  Conv conv = shape_of(blocks_window(in, out));
  std::vector<int32_t> chosen(static_cast<size_t>(out.channels));  // a window has as many values as there are outputs
  std::iota(chosen.begin(), chosen.end(), 0);
  choose(conv, chosen);
  return conv;
}

}  // namespace skillet::npus::rockchip
