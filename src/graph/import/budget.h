// Copies lists and names of a model file. Called by import.cpp.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/text.h"
#include "graph/import/tables.h"

namespace skillet::tflite {

// Lists may be shared within a file, so a small file could cause endless copies.
class Budget {
 public:
  explicit Budget(const Bytes& file) : left_bytes_(4 * file.size() + 65536) {}

  template <typename T>
  Result<std::vector<T>> copy(const flatbuffers::Vector<T>* list) {
    SK_TRY(spend(count(list) * sizeof(T)));
    return list == nullptr ? std::vector<T>{} : std::vector<T>(list->begin(), list->end());
  }
  // Names are made printable here, so that code that shows them need not do it.
  Result<std::string> copy(const flatbuffers::String* string) {
    SK_TRY(spend(string == nullptr ? 0 : string->size()));
    return printable(view_of(string));
  }

 private:
  Result<void> spend(size_t bytes) {
    if (bytes > left_bytes_) return error(ErrorCode::malformed, "the file's lists add up to more than the file");
    left_bytes_ -= bytes;
    return {};
  }

  size_t left_bytes_;
};

}  // namespace skillet::tflite
