// The two functions that the shared library exports (external_delegate_interface.h of TensorFlow Lite).
#include "frontend/tflite/delegate/plugin.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED TfLiteDelegate* tflite_plugin_create_delegate(const char* const* options_keys,
                                                       const char* const* options_values, size_t num_options,
                                                       void (*report_error)(const char*)) {
  return skillet::delegate::create(options_keys, options_values, num_options, report_error);
}

EXPORTED void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) { skillet::delegate::destroy(delegate); }
