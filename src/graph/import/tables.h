// Lists, texts and codes of a model file. Called by the files of graph/import/.
#pragma once

#include <algorithm>
#include <string_view>

#include "tflite_schema_generated.h"

namespace skillet::tflite {

// 0 if the file has no such list.
template <typename T>
size_t count(const flatbuffers::Vector<T>* list) {
  return list == nullptr ? 0 : list->size();
}

// Empty if the file has no such text.
inline std::string_view view_of(const flatbuffers::String* text) { return text == nullptr ? "" : text->string_view(); }

// Files from before 2020 have only the byte; newer files have 127 there if the code does not fit it.
inline int32_t number_of(const schema::OperatorCode& code) {
  return std::max<int32_t>(code.deprecated_builtin_code(), code.builtin_code());
}

}  // namespace skillet::tflite
