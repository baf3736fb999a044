// RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR, where the chip's windows give the CPU's bytes (hardware specification,
// section 4.10): by 2, 4 and 8; nearest also by other factors, as copies.
#include "graph/ref/resize.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "npus/ethosu/compiler/lower.h"

namespace skillet::npus::ethosu {
namespace {

using ir::OpKind;
using npu::Remedy;
using npu::Support;

constexpr size_t kCopiesMax = 64;
constexpr uint32_t kFactorMax = 8;

// Outputs `period` apart read inputs `step` apart, each phase starting at an entry of `first`.
struct Phases {
  uint32_t period = 1, step = 1;
  std::vector<size_t> first;
};

std::optional<Phases> phases_of(int32_t input, int32_t output, const ir::ResizeAttrs& attrs) {
  const std::vector<size_t> taps = ref::nearest_taps(input, output, attrs);
  const int32_t more = attrs.align_corners && output > 1 ? 1 : 0, common = std::gcd(input - more, output - more);
  if (input == more) return std::nullopt;  // same size: a single phase whose repetition would be 0 bytes apart
  Phases out{.period = static_cast<uint32_t>((output - more) / common),
             .step = static_cast<uint32_t>((input - more) / common),
             .first = {}};
  for (size_t i = 0; i < taps.size(); ++i) {
    if (i < out.period)
      out.first.push_back(taps[i]);
    else if (taps[i] != taps[i - out.period] + out.step)
      return std::nullopt;
  }
  return out;
}

class Resizer {
 public:
  Resizer(const ir::Graph& graph, ir::OpId id)
      : graph_(graph), id_(id), op_(graph.op(id)), attrs_(op_.as<ir::ResizeAttrs>()) {}

  Lowered run() {
    const ir::Tensor &from = graph_.tensor(op_.inputs[0]), &to = graph_.tensor(op_.outputs[0]);
    for (const ir::Tensor* tensor : {&from, &to})
      if (Support one = is_activation(*tensor); !one.ok) return one;
    const auto input = whole_of(graph_, op_.inputs[0]), output = whole_of(graph_, op_.outputs[0]);
    if (!input || !output || from.shape[0] != 1)
      return Support::no(Remedy::one_image, "'{}' is {}; the chip takes one image of up to {} rows and columns",
                         from.name, from.shape.to_string(), kExtentMax);
    input_ = *input, output_ = *output;
    input_.zero_point = output_.zero_point = 0;
    const bool is_nearest = op_.kind == OpKind::resize_nearest_neighbor;
    if (!(is_nearest ? nearest() : bilinear()))
      return Support::no(npu::Remedy::none, "{} to {} rows and columns{}{}; the chip enlarges 2, 4 or 8 times{}",
                         from.shape.to_string(), to.shape.to_string(), attrs_.align_corners ? ", align_corners" : "",
                         attrs_.half_pixel_centers ? ", half_pixel_centers" : "",
                         is_nearest ? ", or what 64 copies can do" : ", with half_pixel_centers 2");
    Lowered made(std::move(operations_));
    made.scratch_bytes = std::move(scratch_bytes_);
    return made;
  }

 private:
  // The factor by which both rows and columns grow: 2, 4 or 8; else 0.
  uint32_t factor(uint32_t more) const {
    const auto of = [&](uint32_t in, uint32_t out) {
      return in > more && (out - more) % (in - more) == 0 ? (out - more) / (in - more) : 0;
    };
    const uint32_t rows = of(input_.height, output_.height), columns = of(input_.width, output_.width);
    return rows == columns && rows >= 2 && rows <= kFactorMax && std::has_single_bit(rows) ? rows : 0;
  }

  bool nearest() {
    const uint32_t times = attrs_.align_corners ? 0 : factor(0);
    if (times != 0) {
      double_to(enlarged(times / 2), output_);
      return true;
    }
    const auto rows = phases_of(static_cast<int32_t>(input_.height), static_cast<int32_t>(output_.height), attrs_);
    const auto columns = phases_of(static_cast<int32_t>(input_.width), static_cast<int32_t>(output_.width), attrs_);
    if (!rows || !columns || rows->first.size() * columns->first.size() > kCopiesMax) return false;
    for (uint32_t y = 0; y < rows->first.size(); ++y)
      for (uint32_t x = 0; x < columns->first.size(); ++x) copy_phase(*rows, *columns, y, x);
    return true;
  }

  void copy_phase(const Phases& rows, const Phases& columns, uint32_t y, uint32_t x) {
    Map from = input_, to = output_;
    from.height = to.height = (output_.height - y - 1) / rows.period + 1;
    from.width = to.width = (output_.width - x - 1) / columns.period + 1;
    from.offset = rows.first[y] * input_.stride_y + columns.first[x] * input_.stride_x;
    from.stride_y = rows.step * input_.stride_y, from.stride_x = columns.step * input_.stride_x;
    to.offset = y * output_.stride_y + x * output_.stride_x;
    to.stride_y = rows.period * output_.stride_y, to.stride_x = columns.period * output_.stride_x;
    add(make_copy(id_, from, to));
  }

  bool bilinear() {
    if (attrs_.half_pixel_centers) {
      if (attrs_.align_corners || factor(0) != 2) return false;
      between_pixels();
      return true;
    }
    const uint32_t times = factor(attrs_.align_corners ? 1 : 0);
    if (times == 0) return false;
    // The mean of times x times pixels of the image enlarged by nearest neighbour. At the end: the mean of existing
    // pixels.
    Operation one = make_copy(id_, enlarged(times / 2), output_);
    one.window.kernel_h = one.window.kernel_w = times;
    one.window.upscale = hw::Upscale::nearest;
    if (attrs_.align_corners)
      one.scale = scale_of_average(times * times);
    else
      one.window.bottom = one.window.right = times - 1, one.scale = {};
    add(std::move(one));
    return true;
  }

  Map scratch(uint32_t height, uint32_t width) {
    const uint64_t row = uint64_t{width} * input_.stride_x;
    scratch_bytes_.push_back(height * row);
    Map out = input_;
    out.tensor = static_cast<ir::TensorId>(graph_.tensors.size() + scratch_bytes_.size() - 1);
    out.height = height, out.width = width, out.stride_y = row;
    return out;
  }
  static Map part(const Map& whole, uint32_t y, uint32_t x, uint32_t height, uint32_t width) {
    Map out = whole;
    out.offset += y * whole.stride_y + x * whole.stride_x;
    out.height = height, out.width = width;
    return out;
  }

  void add(Operation one) {
    set_type_range(graph_.tensor(op_.outputs[0]), one);
    operations_.push_back(std::move(one));
  }
  void double_to(const Map& from, const Map& to) {
    Operation one = make_copy(id_, from, to);
    one.window.upscale = hw::Upscale::nearest;
    add(std::move(one));
  }
  // The input enlarged by nearest neighbour; `times` is a power of two.
  Map enlarged(uint32_t times) {
    Map from = input_;
    for (; times > 1; times /= 2) {
      const Map to = scratch(2 * from.height, 2 * from.width);
      double_to(from, to);
      from = to;
    }
    return from;
  }

  // Copies the input with its border repeated once; then combines two rows and two columns with 1/4 and 3/4, for each
  // of four phases.
  void between_pixels() {
    const uint32_t h = input_.height, w = input_.width;
    const Map wide = scratch(h + 2, w + 2);
    add(make_copy(id_, input_, part(wide, 1, 1, h, w)));
    add(make_copy(id_, part(input_, 0, 0, h, 1), part(wide, 1, 0, h, 1)));
    add(make_copy(id_, part(input_, 0, w - 1, h, 1), part(wide, 1, w + 1, h, 1)));
    add(make_copy(id_, part(wide, 1, 0, 1, w + 2), part(wide, 0, 0, 1, w + 2)));
    add(make_copy(id_, part(wide, h, 0, 1, w + 2), part(wide, h + 1, 0, 1, w + 2)));
    for (uint32_t y = 0; y < 2; ++y)
      for (uint32_t x = 0; x < 2; ++x) {
        const std::array<int16_t, 2> down = y == 0 ? std::array<int16_t, 2>{1, 3} : std::array<int16_t, 2>{3, 1};
        const std::array<int16_t, 2> across = x == 0 ? std::array<int16_t, 2>{1, 3} : std::array<int16_t, 2>{3, 1};
        Map to = part(output_, y, x, h, w);
        to.stride_y *= 2, to.stride_x *= 2;
        Operation one = make_copy(id_, part(wide, y, x, h + 1, w + 1), to);
        one.unit = Unit::depthwise;
        one.window.kernel_h = one.window.kernel_w = 2;
        for (const int16_t row : down)
          for (const int16_t column : across) one.taps.push_back(static_cast<int16_t>(row * column));
        one.channel_scales.assign(to.depth, {(1U << 31) + 1, 35});  // by 16, half away from zero
        add(std::move(one));
      }
  }

  const ir::Graph& graph_;
  ir::OpId id_;
  const ir::Op& op_;
  const ir::ResizeAttrs& attrs_;
  Map input_, output_;
  std::vector<Operation> operations_;
  std::vector<uint64_t> scratch_bytes_;
};

}  // namespace

bool is_resize(OpKind kind) { return kind == OpKind::resize_nearest_neighbor || kind == OpKind::resize_bilinear; }

Lowered lower_resize(const ir::Graph& graph, ir::OpId id) { return Resizer(graph, id).run(); }

}  // namespace skillet::npus::ethosu
