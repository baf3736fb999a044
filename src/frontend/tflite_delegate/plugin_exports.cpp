// The two functions that the shared library exports (external_delegate_interface.h of TensorFlow Lite).
#include <atomic>

#include "base/leaked.h"
#include "frontend/tflite_delegate/plugin.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constinit std::atomic<int> g_delegates{0};

// Unloading the library frees its leaked tables, unless delegates still exist at process exit: their threads go on.
__attribute__((destructor)) void return_tables() {
  if (g_delegates == 0) skillet::destroy_leaked();
}

}  // namespace

EXPORTED TfLiteDelegate* tflite_plugin_create_delegate(const char* const* options_keys,
                                                       const char* const* options_values, size_t num_options,
                                                       void (*report_error)(const char*)) {
  ++g_delegates;
  TfLiteDelegate* const made = skillet::delegate::create(options_keys, options_values, num_options, report_error);
  if (made == nullptr) --g_delegates;
  return made;
}

EXPORTED void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) {
  skillet::delegate::destroy(delegate);
  if (delegate != nullptr) --g_delegates;
}
