// The life of a delegate: options in, device opened, delegate out.
// Called by plugin_exports.cpp, which is all that the shared library exports, and by tests.
// Must not know: graphs.
#pragma once

#include <cstddef>

#include "frontend/tflite_delegate/tflite_abi.h"

namespace skillet::delegate {

// The contract of tflite_plugin_create_delegate: every pointer may be null (keys and values when count is 0). Null
// only on wrong use or with strict=1, after `report_error`, when there is one, got the cause.
TfLiteDelegate* create(const char* const* keys, const char* const* values, size_t count,
                       void (*report_error)(const char*));
// Null is fine.
void destroy(TfLiteDelegate* delegate);

}  // namespace skillet::delegate
