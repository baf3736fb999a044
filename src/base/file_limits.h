// Limits of the memory that an untrusted file may use: readers rely on the size of the file, not on the numbers in it.
// Called by the readers and writers of captures and programs.
// Must not know: what is in them.
#pragma once

#include <cstdint>

namespace skillet {

// Maximum size after unpacking `file_bytes`. Writers store data uncompressed if it would exceed this.
constexpr uint64_t expansion_limit(uint64_t file_bytes) {
  constexpr uint64_t kAlways = 64ULL << 20, kPerByte = 1024;
  return kAlways + kPerByte * file_bytes;
}

// Limits the bytes copied out of a FlatBuffers table to the table's size: it may refer to one piece a million times.
class CopyBudget {
 public:
  explicit CopyBudget(uint64_t table_bytes) : left_(table_bytes) {}
  // False once more than the limit was requested, and from then on.
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
