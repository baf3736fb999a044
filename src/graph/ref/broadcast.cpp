#include "graph/ref/broadcast.h"

#include <algorithm>

namespace skillet::ref {
namespace {

struct Dim {
  size_t size, a_stride, b_stride;  // stride 0: this operand is repeated
};

// Dimensions, outermost first. Neighbouring dimensions that are contiguous in both operands are joined, so that rows
// are long.
std::vector<Dim> joined_dims(const ir::Shape& a, const ir::Shape& b) {
  std::vector<Dim> dims;  // innermost first while building
  size_t a_elems = 1, b_elems = 1;
  for (int i = 0; i < std::max(a.rank(), b.rank()); ++i) {
    const auto a_size = static_cast<size_t>(a.back(i)), b_size = static_cast<size_t>(b.back(i));
    const Dim dim = {std::max(a_size, b_size), a_size == 1 ? 0 : a_elems, b_size == 1 ? 0 : b_elems};
    a_elems *= a_size;
    b_elems *= b_size;
    if (dim.size == 1) continue;
    Dim* inner = dims.empty() ? nullptr : &dims.back();
    const bool joins = inner != nullptr && dim.a_stride == inner->a_stride * inner->size &&
                       dim.b_stride == inner->b_stride * inner->size;
    if (joins) {
      inner->size *= dim.size;
    } else {
      dims.push_back(dim);
    }
  }
  std::reverse(dims.begin(), dims.end());
  return dims;
}

}  // namespace

Broadcast::Broadcast(const ir::Shape& a, const ir::Shape& b) {
  std::vector<Dim> dims = joined_dims(a, b);
  if (!dims.empty()) {
    row_elems_ = dims.back().size;
    a_step_ = dims.back().a_stride;
    b_step_ = dims.back().b_stride;
    dims.pop_back();
  }
  for (const Dim& dim : dims) {
    rows_ *= dim.size;
    dims_.push_back(dim.size);
    a_strides_.push_back(dim.a_stride);
    b_strides_.push_back(dim.b_stride);
  }
}

}  // namespace skillet::ref
