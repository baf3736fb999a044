// Walks two operands that broadcast against each other, one innermost row at a time.
// Called by elementwise ops of two operands.
// Must not know: element types.
#pragma once

#include <vector>

#include "graph/ir/shape.h"

namespace skillet::ref {

class Broadcast {
 public:
  // The shapes must broadcast (ir::verify() has checked it).
  Broadcast(const ir::Shape& a, const ir::Shape& b);

  size_t row_elems() const { return row_elems_; }
  // Calls body(a_first, a_step, b_first, b_step, out_first) for each row of row_elems() outputs; steps are 0 or 1.
  template <typename Body>
  void for_each_row(Body body) const {
    std::vector<size_t> at(dims_.size());
    size_t a = 0, b = 0;
    for (size_t out = 0; out < rows_ * row_elems_; out += row_elems_) {
      body(a, a_step_, b, b_step_, out);
      for (size_t i = dims_.size(); i-- > 0;) {
        a += a_strides_[i];
        b += b_strides_[i];
        if (++at[i] < dims_[i]) break;
        a -= dims_[i] * a_strides_[i];
        b -= dims_[i] * b_strides_[i];
        at[i] = 0;
      }
    }
  }

 private:
  std::vector<size_t> dims_, a_strides_, b_strides_;  // without the innermost dimension
  size_t a_step_ = 0, b_step_ = 0, row_elems_ = 1, rows_ = 1;
};

}  // namespace skillet::ref
