// Which bytes that jobs wrote others can see: what a job leaves in the caches of its unit is seen only after a flush.
// Called by the units (reads, writes) and by vivante.cpp (states, end of a stream).
// Must not know: what the bytes mean.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace skillet::sim::vivante {

class Visibility {
 public:
  // The bits of state vip_flush_control: jobs from here on do not flush.
  void set_control(bool nn_no_flush, bool tp_no_flush) { no_flush_ = {nn_no_flush, tp_no_flush}; }
  // A job is about to read: a fault where bytes are not flushed yet.
  Result<void> read(uint64_t address, uint64_t size, std::string_view what) const;
  // A job wrote bytes. One that flushes makes what its unit wrote before visible too.
  enum Unit { kNn, kTp };
  void wrote(Unit unit, uint64_t address, uint64_t size, bool flushes);
  // State flush_cache with all caches: for whoever comes after the stream.
  void flush_all();
  void start_of_stream();
  // Error when jobs ran after the last flush_all().
  Result<void> end_of_stream() const;

 private:
  struct Range {
    Unit unit;
    uint64_t begin, end;
  };
  std::vector<Range> unseen_;
  std::array<bool, 2> no_flush_{};
  int jobs_since_flush_ = 0;
};

}  // namespace skillet::sim::vivante
