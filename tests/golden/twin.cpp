#include "twin.h"

#include <algorithm>

namespace skillet::golden {
namespace {

constexpr int32_t kDistance = 128;

bool same_bytes(const ir::Tensor& a, const ir::Tensor& b, uint8_t flip) {
  return a.is_constant() == b.is_constant() && std::ranges::equal(a.data, b.data, [flip](uint8_t x, uint8_t y) {
           return static_cast<uint8_t>(x ^ flip) == y;
         });
}

bool are_twins(const ir::Tensor& a, const ir::Tensor& b) {
  if (a.shape != b.shape) return false;
  if (a.dtype != ir::DType::int8 || b.dtype != ir::DType::uint8)
    return a.dtype == b.dtype && a.quant == b.quant && same_bytes(a, b, 0);
  ir::Quant moved = a.quant;
  for (int32_t& zero_point : moved.zero_points) zero_point += kDistance;
  return moved == b.quant && same_bytes(a, b, 0x80);
}

}  // namespace

bool are_twins(const ir::Graph& is_signed, const ir::Graph& is_unsigned) {
  const ir::Graph &a = is_signed, &b = is_unsigned;
  const auto any_signed =
      std::ranges::any_of(a.tensors, [](const ir::Tensor& t) { return t.dtype == ir::DType::int8; });
  const auto same_op = [](const ir::Op& x, const ir::Op& y) {
    return x.kind == y.kind && x.attrs == y.attrs && x.inputs == y.inputs && x.outputs == y.outputs;
  };
  const auto same_tensor = [](const ir::Tensor& x, const ir::Tensor& y) { return are_twins(x, y); };
  return any_signed && a.inputs == b.inputs && a.outputs == b.outputs && std::ranges::equal(a.ops, b.ops, same_op) &&
         std::ranges::equal(a.tensors, b.tensors, same_tensor);
}

}  // namespace skillet::golden
