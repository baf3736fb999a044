#include "npus/rockchip/compiler/support_rules.h"

#include <algorithm>
#include <cmath>

#include "base/int_math.h"
#include "base/leaked.h"
#include "npus/rockchip/compiler/conv.h"
#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {

using npu::Remedy;
using npu::Support;

namespace {

constexpr int32_t kWidthMax = 2047, kStrideMax = 7, kDilationMax = 32, kPadMax = 15;
constexpr int64_t kPlaneMax = 1 << 26;  // pixels: strides have 28 bits
constexpr int32_t kChannelsMax = 8128;  // exactly the maximum of 13 bits damages the last ones
constexpr double kGainMax = 128;        // sums times more do not fit the 32 bits of the CPU kernels

}  // namespace

const Tuning& proven(const hw::ChipRow& chip) {
  const auto& kAll = leaked([] {
    std::vector<Tuning> all;
    for (const hw::ChipRow& one : hw::chips()) all.push_back(tuning_for(one, {}).value());
    return all;
  });
  return kAll[static_cast<size_t>(&chip - hw::chips().data())];
}

namespace {

bool is_wide(ir::DType dtype) { return dtype == ir::DType::int16 || dtype == ir::DType::uint16; }

Support of_other_type(const ir::Tensor& tensor) {
  const Remedy remedy = is_wide(tensor.dtype) ? Remedy::activations : npu::remedy_of_type(tensor.dtype);
  return Support::no(remedy, "'{}' is {}; the NPU computes on 8-bit quantized tensors", tensor.name,
                     ir::dtype_name(tensor.dtype));
}

}  // namespace

Support no_program(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor* other = nullptr;  // a computed tensor that is not 8-bit; 16 bits are preferred to floats
  for (const auto* const list : {&op.inputs, &op.outputs}) {
    for (const ir::TensorId one : *list) {
      if (one == ir::kNoTensor || graph.tensor(one).is_constant()) continue;
      const ir::Tensor& tensor = graph.tensor(one);
      if (ir::is_8bit(tensor.dtype))
        return Support::no(Remedy::none, "no known program of the NPU computes {} on 8-bit tensors", ir::op_name(op));
      if (other == nullptr || (!is_wide(other->dtype) && is_wide(tensor.dtype))) other = &tensor;
    }
  }
  if (other == nullptr) return Support::no(Remedy::none, "no known program of the NPU computes {}", ir::op_name(op));
  if (is_wide(other->dtype) || npu::remedy_of_op(graph, id) == Remedy::quantize) return of_other_type(*other);
  return Support::no(Remedy::none, "no known program of the NPU computes {} on {} or on 8-bit tensors", ir::op_name(op),
                     ir::dtype_name(other->dtype));
}

Support takes(const ir::Tensor& tensor) {
  const ir::Quant& quant = tensor.quant;
  if (!ir::is_8bit(tensor.dtype)) return of_other_type(tensor);
  if (tensor.is_constant())
    return Support::no(Remedy::none, "'{}' is constant; the NPU takes constants only as weights", tensor.name);
  if (tensor.shape.rank() == 0)
    return Support::no(Remedy::form, "'{}' is a scalar; the NPU computes on images", tensor.name);
  if (tensor.shape.rank() > 4 && tensor.shape[0] == 1 && images_of(tensor.shape) != 1)
    return Support::no(Remedy::four_dimensions, "'{}' is {}; the NPU takes rows, columns and channels", tensor.name,
                       tensor.shape.to_string());
  if (images_of(tensor.shape) != 1 || tensor.shape.elems() < 1)
    return Support::no(Remedy::one_image, "'{}' is {}; the NPU takes one image at a time", tensor.name,
                       tensor.shape.to_string());
  if (is_per_channel(quant))
    return Support::no(Remedy::reconvert, "'{}' is quantized per channel; only weights may be", tensor.name);
  const int32_t zero = unsigned_zero(tensor);
  if (quant.empty() || !(quant.scale() > 0) || !std::isfinite(quant.scale()) || zero < 0 || zero > 255)
    return Support::no(quant.empty() ? Remedy::quantize : Remedy::reconvert, "'{}' has an invalid quantization",
                       tensor.name);
  if (quant.scale() < kScaleMin || quant.scale() > kScaleMax)
    return Support::no(Remedy::reconvert, "'{}' has a scale of {:g}, near the limits of floats", tensor.name,
                       quant.scale());
  if (plane_of(tensor.shape).channels > kChannelsMax)
    return Support::no(Remedy::split, "'{}' has {} channels; the NPU counts to {}", tensor.name,
                       plane_of(tensor.shape).channels, kChannelsMax);
  return Support::yes();
}

Support fits(const hw::ChipRow& chip, const Window& w) {
  const auto over = [](int32_t v, int32_t limit) { return v < 1 || v > limit; };
  if (std::max(w.in.pixels(), w.out.pixels()) > kPlaneMax)
    return Support::no(Remedy::split, "images of {} and {} pixels; the NPU's strides count to {}", w.in.pixels(),
                       w.out.pixels(), kPlaneMax);
  if (over(w.in.width, kWidthMax) || over(w.out.width, kWidthMax) || w.in.height < 1 || w.out.height < 1)
    return Support::no(Remedy::split, "rows of {} and {} pixels; the NPU counts to {}", w.in.width, w.out.width,
                       kWidthMax);
  if (over(w.kernel_height, kKernelMax) || over(w.kernel_width, kKernelMax))
    return Support::no(Remedy::split, "a filter of {}x{}; the NPU has at most {}x{}", w.kernel_height, w.kernel_width,
                       kKernelMax, kKernelMax);
  if (over(w.stride_y, kStrideMax) || over(w.stride_x, kStrideMax))
    return Support::no(Remedy::form, "strides of {} and {}; the NPU has 1 to {}", w.stride_y, w.stride_x, kStrideMax);
  if (over(w.dilation_y, kDilationMax) || over(w.dilation_x, kDilationMax))
    return Support::no(Remedy::form, "dilations of {} and {}; the NPU has 1 to {}", w.dilation_y, w.dilation_x,
                       kDilationMax);
  if (w.pad_top > kPadMax || w.pad_left > kPadMax)
    return Support::no(Remedy::form, "{} rows and {} columns of padding; the NPU has at most {}", w.pad_top, w.pad_left,
                       kPadMax);
  const Conv conv = shape_of(w);
  const Geometry g = geometry(conv, proven(chip));
  if (const auto parts = split(chip, conv, g, proven(chip)); !parts.ok())
    return Support::no(Remedy::split, "{}", parts.error().message);
  if (w.stride_y != w.stride_x) return Support::yes_unproven("different strides for rows and columns");
  if (w.kernel_height > kKernelSeen || w.kernel_width > kKernelSeen)
    return Support::yes_unproven(fmt::format("a filter larger than {}x{}", kKernelSeen, kKernelSeen));
  return Support::yes();
}

Support keeps_values(const ir::Tensor& from, const ir::Tensor& to) {
  if (from.quant == to.quant) return Support::yes();
  return Support::no(Remedy::same_scale, "its output has a different quantization");
}

Support fits_flat(const ir::Tensor& tensor) {
  const Plane plane = plane_of(tensor.shape);
  if (plane.pixels() * ceil_div(plane.channels, kAtom) <= kPlaneMax) return Support::yes();
  return Support::no(Remedy::split, "'{}' is {}; the NPU's strides count to {}", tensor.name, tensor.shape.to_string(),
                     kPlaneMax);
}

Support takes_gain(double gain) {
  if (gain < kGainMax && is_valid(output_gain(static_cast<float>(gain), true))) return Support::yes();
  return Support::no(Remedy::range, "a gain of {:g}: the NPU multiplies by 2^-49 to {}", gain, kGainMax);
}

Support takes_activation(ir::Activation activation) {
  if (activation == ir::Activation::none || activation == ir::Activation::relu || activation == ir::Activation::relu6)
    return Support::yes();
  return Support::no(Remedy::activation, "the NPU fuses RELU and RELU6, not {}", ir::activation_name(activation));
}

Support all_of(const std::vector<Support>& parts) {
  const auto refused = std::ranges::find(parts, false, &Support::ok);
  if (refused != parts.end()) return *refused;
  const auto unproven = std::ranges::find(parts, true, &Support::unproven);
  return unproven != parts.end() ? *unproven : Support::yes();
}

Support same_types(const ir::Tensor& a, const ir::Tensor& b) {
  if (a.dtype == b.dtype) return Support::yes();
  return Support::no(Remedy::one_type, "'{}' is {}, '{}' {}", a.name, ir::dtype_name(a.dtype), b.name,
                     ir::dtype_name(b.dtype));
}

}  // namespace skillet::npus::rockchip
