// Lists of a model file. Called by the files of graph/import/.
#pragma once

#include "tflite_schema_generated.h"

namespace skillet::tflite {

// 0 if the file has no such list.
template <typename T>
size_t count(const flatbuffers::Vector<T>* list) {
  return list == nullptr ? 0 : list->size();
}

}  // namespace skillet::tflite
