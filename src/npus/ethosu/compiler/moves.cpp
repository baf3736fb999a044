// Copies boxes of one tensor to boxes of another: ops that join, split, pad and transpose.
#include <algorithm>

#include "base/is_any_of.h"
#include "graph/ref/strided_copy.h"
#include "npu/driver.h"
#include "npus/ethosu/compiler/lower.h"

namespace skillet::npus::ethosu {
namespace {

using ir::OpKind;
using npu::Remedy;
using npu::Support;

constexpr size_t kCopiesMax = 64;  // for one operation of the graph
constexpr size_t kDepthIdeal = 1024;

// A tensor and a byte offset in it.
struct Place {
  ir::TensorId tensor = ir::kNoTensor;
  ptrdiff_t offset = 0;
};

bool has_bit(int32_t mask, size_t i) { return (static_cast<uint32_t>(mask) >> i & 1) != 0; }

class Mover {
 public:
  Mover(const ir::Graph& graph, ir::OpId id)
      : graph_(graph),
        id_(id),
        op_(graph.op(id)),
        elem_(graph.tensor(op_.outputs[0]).dtype == ir::DType::int16 ? 2 : 1) {}

  Lowered run() {
    for (const ir::TensorId id : op_.outputs) {  // inputs have the same type
      const ir::Tensor& tensor = graph_.tensor(id);
      if (!is_moved(tensor.dtype) || tensor.bytes() < 1)
        return Support::no(npu::remedy_of_type(tensor.dtype), "'{}' is {}; Skillet moves bytes", tensor.name,
                           ir::dtype_name(tensor.dtype));
    }
    Support support = moves();
    if (!support.ok) return support;
    if (copies_.size() > kCopiesMax)
      return Support::no(Remedy::split, "it takes {} copies of bytes; Skillet makes up to {}", copies_.size(),
                         kCopiesMax);
    return std::move(copies_);
  }

 private:
  Support moves() {
    switch (op_.kind) {
      case OpKind::concatenation: {
        const auto& attrs = op_.as<ir::ConcatAttrs>();
        if (attrs.activation != ir::Activation::none)
          return Support::no(Remedy::activation, "fused activation {}", ir::activation_name(attrs.activation));
        return join(op_.outputs[0], op_.inputs, attrs.axis, true);
      }
      case OpKind::pack: return join(op_.outputs[0], op_.inputs, op_.as<ir::PackAttrs>().axis, true);
      case OpKind::unpack: return join(op_.inputs[0], op_.outputs, op_.as<ir::UnpackAttrs>().axis, false);
      case OpKind::split: return split(1, 0);
      case OpKind::split_v: return split(0, 2);
      case OpKind::slice: return slice({});
      case OpKind::strided_slice: return slice(op_.as<ir::StridedSliceAttrs>());
      case OpKind::transpose: return transpose();
      case OpKind::depth_to_space: return blocks(op_.outputs[0], op_.inputs[0], false);
      case OpKind::space_to_depth: return blocks(op_.inputs[0], op_.outputs[0], true);
      default: return pad();
    }
  }

  std::optional<std::vector<int32_t>> ints(size_t i) const {
    const ir::Tensor& tensor = graph_.tensor(op_.inputs[i]);
    if (!tensor.is_constant() || tensor.dtype != ir::DType::int32) return std::nullopt;
    return tensor.values<int32_t>();
  }
  std::vector<ptrdiff_t> byte_strides(const ir::Shape& shape) const {
    return ref::byte_strides(shape, static_cast<size_t>(elem_));
  }
  static Support computed() { return Support::no(Remedy::freeze, "its begin and size are computed, or not int32"); }

  // The parts follow one another along an axis of the whole tensor.
  Support join(ir::TensorId whole, const std::vector<ir::TensorId>& parts, int32_t axis, bool joins) {
    const ir::Shape& shape = graph_.tensor(whole).shape;
    size_t outer = 1, elem = static_cast<size_t>(elem_);
    for (int i = 0; i < (axis < 0 ? axis + shape.rank() : axis); ++i) outer *= static_cast<size_t>(shape[i]);
    const auto row = static_cast<ptrdiff_t>(static_cast<size_t>(graph_.tensor(whole).bytes()) / outer);
    ptrdiff_t at = 0;
    for (const ir::TensorId part : parts) {
      const ir::Tensor &from = graph_.tensor(joins ? part : whole), &to = graph_.tensor(joins ? whole : part);
      const bool rescales = op_.kind == OpKind::concatenation && !from.quant.empty() && !to.quant.empty();
      if (rescales && (from.quant.scale() != to.quant.scale() || from.quant.zero_point() != to.quant.zero_point()))
        return Support::no(Remedy::same_scale, "'{}' and '{}' differ in quantization; Skillet moves bytes", from.name,
                           to.name);
      const size_t chunk = static_cast<size_t>(graph_.tensor(part).bytes()) / outer;
      const auto step = static_cast<ptrdiff_t>(chunk);
      if (joins)
        add({{outer, step, row}, {chunk / elem, elem_, elem_}}, {part, 0}, {whole, at});
      else
        add({{outer, row, step}, {chunk / elem, elem_, elem_}}, {whole, at}, {part, 0});
      at += step;
    }
    return Support::yes();
  }

  Support split(size_t input, size_t axis) {
    const auto values = ints(axis);
    if (!values || values->size() != 1) return computed();
    return join(op_.inputs[input], op_.outputs, values->front(), false);
  }

  Support slice(const ir::StridedSliceAttrs& masks) {
    const auto begins = ints(1);
    auto steps = op_.kind == OpKind::strided_slice ? ints(3) : begins;
    const ir::Shape &from = graph_.tensor(op_.inputs[0]).shape, &to = graph_.tensor(op_.outputs[0]).shape;
    if (!begins || !steps || begins->size() != steps->size() || begins->size() > from.dims.size()) return computed();
    if (op_.kind == OpKind::slice) std::ranges::fill(*steps, 1);
    if (masks.ellipsis_mask != 0 || masks.new_axis_mask != 0 || from.rank() != to.rank())
      return Support::no(Remedy::form, "its output and input have different dimensions");
    const auto from_bytes = byte_strides(from), to_bytes = byte_strides(to);
    std::vector<ref::CopyAxis> axes;
    ptrdiff_t first = 0;
    for (size_t i = 0; i < from.dims.size(); ++i) {
      const bool is_given = i < begins->size();
      const int32_t step = is_given ? (*steps)[i] : 1, dim = from.dims[i];
      if (step < 1) return Support::no(Remedy::form, "a step of {}; the chip goes forward", step);
      int32_t begin = is_given && !has_bit(masks.begin_mask, i) ? (*begins)[i] : 0;
      begin = std::clamp(begin < 0 ? begin + dim : begin, 0, dim);
      first += begin * from_bytes[i];
      axes.push_back({static_cast<size_t>(to.dims[i]), from_bytes[i] * step, to_bytes[i]});
    }
    add(axes, {op_.inputs[0], first}, {op_.outputs[0], 0});
    return Support::yes();
  }

  Support transpose() {
    const auto order = ints(1);
    const ir::Shape &from = graph_.tensor(op_.inputs[0]).shape, &to = graph_.tensor(op_.outputs[0]).shape;
    if (!order || order->size() != from.dims.size()) return computed();
    const auto from_bytes = byte_strides(from), to_bytes = byte_strides(to);
    std::vector<ref::CopyAxis> axes;
    for (size_t i = 0; i < order->size(); ++i) {
      const int32_t source = (*order)[i] < 0 ? (*order)[i] + from.rank() : (*order)[i];
      axes.push_back({static_cast<size_t>(to.dims[i]), from_bytes[static_cast<size_t>(source)], to_bytes[i]});
    }
    add(axes, {op_.inputs[0], 0}, {op_.outputs[0], 0});
    return Support::yes();
  }

  // Copies rows of a block one by one; its columns and their channels are contiguous in both tensors.
  Support blocks(ir::TensorId wide, ir::TensorId deep, bool from_wide) {
    const ir::Shape &image = graph_.tensor(wide).shape, &blocks = graph_.tensor(deep).shape;
    const ptrdiff_t size = op_.as<ir::BlockAttrs>().block_size, pixel = size * image[3] * elem_,
                    row = image[2] * image[3] * elem_;
    const auto height = static_cast<ptrdiff_t>(blocks[1]), width = static_cast<ptrdiff_t>(blocks[2]);
    std::vector<ref::CopyAxis> axes{{static_cast<size_t>(size), row, pixel},
                                    {static_cast<size_t>(blocks[0]), image[1] * row, height * width * size * pixel},
                                    {static_cast<size_t>(height), size * row, width * size * pixel},
                                    {static_cast<size_t>(width), pixel, size * pixel},
                                    {static_cast<size_t>(pixel / elem_), elem_, elem_}};
    if (!from_wide)
      for (ref::CopyAxis& axis : axes) std::swap(axis.from_bytes, axis.to_bytes);
    add(axes, {from_wide ? wide : deep, 0}, {from_wide ? deep : wide, 0});
    return Support::yes();
  }

  // Copies the input into the output, and fills the padding before and after it along each axis.
  Support pad() {
    const auto pads = ints(1);
    const ir::Tensor &from = graph_.tensor(op_.inputs[0]), &to = graph_.tensor(op_.outputs[0]);
    if (!pads || pads->size() != from.shape.dims.size() * 2) return computed();
    fill_ = static_cast<uint8_t>(from.quant.empty() ? 0 : to.quant.zero_point());
    if (op_.kind == OpKind::pad_v2) {
      const ir::Tensor& value = graph_.tensor(op_.inputs[2]);
      if (!value.is_constant()) return computed();
      if (value.data.size() != 1) return Support::no(Remedy::zeros, "pads with a value of {} bytes", value.data.size());
      fill_ = value.data[0];
    }
    const auto from_bytes = byte_strides(from.shape), to_bytes = byte_strides(to.shape);
    std::vector<ref::CopyAxis> axes;
    ptrdiff_t first = 0;
    for (size_t i = 0; i < from.shape.dims.size(); ++i) {
      axes.push_back({static_cast<size_t>(from.shape.dims[i]), from_bytes[i], to_bytes[i]});
      first += (*pads)[2 * i] * to_bytes[i];
    }
    add(axes, {op_.inputs[0], 0}, {op_.outputs[0], first});
    // Axes before this one cover only the input, axes after it the whole output.
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const auto before = static_cast<size_t>((*pads)[2 * axis]), after = static_cast<size_t>((*pads)[2 * axis + 1]);
      const auto size = static_cast<size_t>(to.shape.dims[axis]);
      add_border(axes, axis, before, 0, *pads, to.shape, to_bytes);
      add_border(axes, axis, after, size - after, *pads, to.shape, to_bytes);
    }
    return Support::yes();
  }

  void add_border(const std::vector<ref::CopyAxis>& body, size_t axis, size_t count, size_t at,
                  const std::vector<int32_t>& pads, const ir::Shape& shape, const std::vector<ptrdiff_t>& to_bytes) {
    if (count == 0) return;
    std::vector<ref::CopyAxis> axes;
    ptrdiff_t first = static_cast<ptrdiff_t>(at) * to_bytes[axis];
    for (size_t i = 0; i < body.size(); ++i) {
      const size_t size = i < axis ? body[i].size : i == axis ? count : static_cast<size_t>(shape.dims[i]);
      if (i < axis) first += pads[2 * i] * to_bytes[i];
      axes.push_back({size, 0, to_bytes[i]});
    }
    // The source of the fill has the dense layout of the destination's box.
    ptrdiff_t bytes = elem_;
    for (size_t i = axes.size(); i-- > 0; bytes *= static_cast<ptrdiff_t>(axes[i].size)) axes[i].from_bytes = bytes;
    add(axes, {ir::kNoTensor, 0}, {op_.outputs[0], first});
  }

  // Merges axes that are contiguous with each other, if the result is short enough.
  static std::vector<ref::CopyAxis> merged(const std::vector<ref::CopyAxis>& axes) {
    std::vector<ref::CopyAxis> out;
    for (const ref::CopyAxis& axis : axes) {
      if (axis.size == 1) continue;
      const auto size = static_cast<ptrdiff_t>(axis.size);
      if (!out.empty() && out.back().from_bytes == axis.from_bytes * size &&
          out.back().to_bytes == axis.to_bytes * size && out.back().size * axis.size <= kDepthIdeal) {
        out.back() = {out.back().size * axis.size, axis.from_bytes, axis.to_bytes};
      } else {
        out.push_back(axis);
      }
    }
    // The last axis must be contiguous channels.
    if (out.empty() || out.back().from_bytes != 1 || out.back().to_bytes != 1) out.push_back({1, 1, 1});
    return out;
  }

  // Splits an axis that is too long into two.
  static void cut_long(std::vector<ref::CopyAxis>& axes) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].size <= kExtentMax) continue;
      size_t inner = kExtentMax;
      while (axes[i].size % inner != 0) --inner;
      const ref::CopyAxis whole = axes[i];
      axes[i] = {inner, whole.from_bytes, whole.to_bytes};
      const auto step = static_cast<ptrdiff_t>(inner);
      axes.insert(axes.begin() + static_cast<ptrdiff_t>(i),
                  {whole.size / inner, whole.from_bytes * step, whole.to_bytes * step});
      --i;
      if (inner == 1) return;  // a prime number
    }
  }

  // Axes, outermost first. The last three are rows, columns and channels; each other axis becomes a sequence of
  // operations.
  void add(std::vector<ref::CopyAxis> given, const Place& from, const Place& to) {
    given.push_back({static_cast<size_t>(elem_), 1, 1});
    std::vector<ref::CopyAxis> axes = merged(given);
    cut_long(axes);
    while (axes.size() < 3) axes.insert(axes.begin(), {1, axes[0].from_bytes, axes[0].to_bytes});
    add_rest(axes, from, to);
  }

  void add_rest(std::span<const ref::CopyAxis> axes, const Place& from, const Place& to) {
    if (copies_.size() > kCopiesMax) return;
    if (axes.size() > 3) {
      for (size_t i = 0; i < axes[0].size && copies_.size() <= kCopiesMax; ++i) {
        const auto step = static_cast<ptrdiff_t>(i);
        add_rest(axes.subspan(1), {from.tensor, from.offset + step * axes[0].from_bytes},
                 {to.tensor, to.offset + step * axes[0].to_bytes});
      }
      return;
    }
    const auto map_of = [&](const Place& place, bool reads) {
      return Map{.tensor = place.tensor,
                 .offset = static_cast<uint64_t>(place.offset),
                 .height = static_cast<uint32_t>(axes[0].size),
                 .width = static_cast<uint32_t>(axes[1].size),
                 .depth = static_cast<uint32_t>(axes[2].size),
                 .stride_y = static_cast<uint64_t>(reads ? axes[0].from_bytes : axes[0].to_bytes),
                 .stride_x = static_cast<uint64_t>(reads ? axes[1].from_bytes : axes[1].to_bytes),
                 .is_signed = graph_.tensor(op_.outputs[0]).dtype == ir::DType::int8};
    };
    Operation copy = make_copy(id_, map_of(from, true), map_of(to, false));
    if (elem_ == 1)
      set_type_range(graph_.tensor(op_.outputs[0]), copy);
    else
      copy.least = 0, copy.most = UINT8_MAX;
    copy.fill = fill_;
    copies_.push_back(std::move(copy));
  }

  const ir::Graph& graph_;
  ir::OpId id_;
  const ir::Op& op_;
  ptrdiff_t elem_;  // bytes
  uint8_t fill_ = 0;
  std::vector<Operation> copies_;
};

}  // namespace

bool is_move(OpKind kind) {
  using enum OpKind;
  return is_any_of(kind, {concatenation, pack, unpack, split, split_v, slice, strided_slice, transpose, pad, pad_v2,
                          depth_to_space, space_to_depth});
}

// An average of one byte each.
Operation make_copy(ir::OpId op, Map from, Map to) {
  from.zero_point = to.zero_point = 0;
  return {.op = op,
          .unit = Unit::average_pool,
          .input = from,
          .input2 = {},
          .output = to,
          .window = {},
          .rounding = hw::Rounding::natural,
          .scale = {(1U << 31) + 1, 31},
          .channel_scales = {},
          .table = {}};
}

Lowered lower_move(const ir::Graph& graph, ir::OpId id) { return Mover(graph, id).run(); }

}  // namespace skillet::npus::ethosu
