// How much memory a file may ask for: code that reads unchecked files trusts the size
// of the file, not by the numbers in it.
// Called by the readers and writers of captures and programs.
// Must not know: what is in them.
#pragma once

#include <cstdint>

namespace skillet {

// What `file_bytes` may unpack to. Writers store as it is what packs better than this.
constexpr uint64_t expansion_limit(uint64_t file_bytes) {
  constexpr uint64_t kAlways = 64ULL << 20, kPerByte = 1024;
  return kAlways + kPerByte * file_bytes;
}

// What is copied out of a FlatBuffers table is no more than the table has: it may name one piece a million times.
class CopyBudget {
 public:
  explicit CopyBudget(uint64_t table_bytes) : left_(table_bytes) {}
  // False, from there on, once more was asked for.
  bool take(uint64_t bytes) {
    is_spent_ |= bytes > left_;
    left_ -= is_spent_ ? 0 : bytes;
    return !is_spent_;
  }
  bool is_spent() const { return is_spent_; }

 private:
  uint64_t left_;
  bool is_spent_ = false;
};

}  // namespace skillet
