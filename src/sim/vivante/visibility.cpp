#include "sim/vivante/visibility.h"

#include <algorithm>

namespace skillet::sim::vivante {

Result<void> Visibility::read(uint64_t address, uint64_t size, std::string_view what) const {
  const auto hit = std::ranges::find_if(
      unseen_, [&](const Range& range) { return address < range.end && range.begin < address + size; });
  if (hit == unseen_.end()) return {};
  return error(ErrorCode::device, "{}: {} bytes at {:#x} were written by a {} job that has not been flushed", what,
               size, address, hit->unit == kNn ? "NN" : "TP");
}

void Visibility::wrote(Unit unit, uint64_t address, uint64_t size, bool flushes) {
  ++jobs_since_flush_;
  if (flushes && !no_flush_[unit])
    std::erase_if(unseen_, [unit](const Range& range) { return range.unit == unit; });
  else
    unseen_.push_back({unit, address, address + size});
}

void Visibility::flush_all() {
  unseen_.clear();
  jobs_since_flush_ = 0;
}

void Visibility::start_of_stream() {
  flush_all();
  no_flush_[kNn] = no_flush_[kTp] = false;
}

Result<void> Visibility::end_of_stream() const {
  if (jobs_since_flush_ == 0) return {};
  return error(ErrorCode::device,
               "the stream ends without flush_cache after its last {} jobs: nobody can see the results",
               jobs_since_flush_);
}

}  // namespace skillet::sim::vivante
