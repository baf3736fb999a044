// Creates and destroys a delegate from options and a device.
// Called by tests and by plugin_exports.cpp, the exports of the shared library.
// Must not know: graphs.
#pragma once

#include <cstddef>

#include "frontend/tflite_delegate/tflite_abi.h"

namespace skillet::delegate {

// Implements tflite_plugin_create_delegate: every pointer may be null (keys and values if count is 0). Returns null
// only on wrong use or with strict=1, and then reports the cause to `report_error`, if there is one.
TfLiteDelegate* create(const char* const* keys, const char* const* values, size_t count,
                       void (*report_error)(const char*));
// Null is fine.
void destroy(TfLiteDelegate* delegate);

}  // namespace skillet::delegate
