#include "graph/ref/pick.h"

#include <cstring>

namespace skillet::ref {
namespace {

// True if the whole axis is selected in its own order.
bool is_identity(const std::vector<size_t>& sources, size_t size) {
  if (sources.size() != size) return false;
  for (size_t i = 0; i < size; ++i) {
    if (sources[i] != i) return false;
  }
  return true;
}

}  // namespace

PickPlan::PickPlan(const ir::Shape& input, const std::vector<std::vector<size_t>>& sources, size_t elem_bytes)
    : offsets_(sources), block_bytes_(elem_bytes) {
  size_t stride = elem_bytes;
  for (size_t i = offsets_.size(); i-- > 0;) {
    const auto size = static_cast<size_t>(input.dims[i]);
    const bool innermost = i + 1 == offsets_.size();
    if (innermost && is_identity(sources[i], size)) {
      block_bytes_ *= size;
      offsets_.pop_back();
    } else {
      for (size_t& offset : offsets_[i]) offset *= stride;
    }
    stride *= size;
  }
}

void PickPlan::run(const uint8_t* from, uint8_t* to) const {
  std::vector<size_t> at(offsets_.size());
  for (;;) {
    size_t offset = 0;
    for (size_t i = 0; i + 1 < at.size(); ++i) offset += offsets_[i][at[i]];
    if (at.empty()) {
      std::memcpy(to, from, block_bytes_);
      return;
    }
    for (const size_t inner : offsets_.back()) {
      std::memcpy(to, from + offset + inner, block_bytes_);
      to += block_bytes_;
    }
    size_t i = at.size() - 1;
    while (i > 0 && ++at[i - 1] == offsets_[i - 1].size()) at[--i] = 0;
    if (i == 0) return;
  }
}

}  // namespace skillet::ref
