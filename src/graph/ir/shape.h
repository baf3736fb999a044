// Shape: the dimensions of a tensor, outermost first (NHWC for images). Rank 0 is a scalar.
// Called by everything that touches a tensor.
// Must not know: operations, chips.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace skillet::ir {

struct Shape {
  std::vector<int32_t> dims;

  Shape() = default;
  Shape(std::initializer_list<int32_t> d) : dims(d) {}
  explicit Shape(std::vector<int32_t> d) : dims(std::move(d)) {}

  int rank() const { return static_cast<int>(dims.size()); }
  int32_t operator[](int i) const { return dims[static_cast<size_t>(i)]; }
  // Dimension counted from the innermost: back(0) is the last; 1 beyond the rank.
  int32_t back(int i) const { return i < rank() ? dims[dims.size() - 1 - static_cast<size_t>(i)] : 1; }
  // Product of all dimensions; the verifier has checked that it fits.
  int64_t elems() const;
  std::string to_string() const;  // "1x112x112x32", "scalar"

  bool operator==(const Shape&) const = default;
};

}  // namespace skillet::ir
