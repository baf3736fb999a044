// Loads one of our libraries and does what a host does. Exit code 0: it worked, 1: the library refused, 2: wrong use.
// usage: probe c LIBRARY DEVICE MODEL; probe delegate LIBRARY DEVICE (may be empty)
#include <dlfcn.h>

#include <cstdio>
#include <string_view>

#include "skillet/skillet.h"

namespace {

template <typename F>
F* function(void* library, const char* name) {
  return reinterpret_cast<F*>(::dlsym(library, name));
}

int run_model(void* library, const char* name, const char* file) {
  auto* const open = function<decltype(skillet_open)>(library, "skillet_open");
  auto* const load = function<decltype(skillet_load_file)>(library, "skillet_load_file");
  auto* const run = function<decltype(skillet_run)>(library, "skillet_run");
  auto* const last_error = function<decltype(skillet_last_error)>(library, "skillet_last_error");
  auto* const close_model = function<decltype(skillet_close_model)>(library, "skillet_close_model");
  auto* const close = function<decltype(skillet_close)>(library, "skillet_close");
  skillet_device* device = nullptr;
  skillet_model* model = nullptr;
  if (open(name, &device) != SKILLET_OK || load(device, file, nullptr, &model) != SKILLET_OK ||
      run(model) != SKILLET_OK) {
    std::fprintf(stderr, "%s\n", last_error());
    return 1;
  }
  close_model(model);
  close(device);
  return 0;
}

int g_errors = 0;
void report(const char* text) {
  std::fprintf(stderr, "%s\n", text);
  ++g_errors;
}

// The library's own pointer types are opaque here, so the types of the functions differ.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
int create_delegate(void* library, const char* device) {
  const char* const key = "device";
  using Create = void*(const char* const*, const char* const*, size_t, void (*)(const char*));
  using Destroy = void(void*);
  auto* const create = function<Create>(library, "tflite_plugin_create_delegate");
  void* const delegate = create(&key, &device, *device == '\0' ? 0 : 1, report);
  if (delegate != nullptr) function<Destroy>(library, "tflite_plugin_destroy_delegate")(delegate);
  return delegate == nullptr || g_errors != 0 ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  void* const library = count > 2 ? ::dlopen(arguments[2], RTLD_NOW) : nullptr;
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n",
                 count > 2 ? ::dlerror() : "usage: probe c LIBRARY DEVICE MODEL; probe delegate LIBRARY DEVICE");
    return 2;
  }
  if (count > 3 && std::string_view(arguments[1]) == "delegate") return create_delegate(library, arguments[3]);
  return count > 4 ? run_model(library, arguments[3], arguments[4]) : 2;
}
