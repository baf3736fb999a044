// Calls the back end as ExecuTorch's runtime does, without PyTorch: a compiled model with one float input and one float
// output. usage: executorch_calls BACKEND COMPILED INPUT OUTPUT DIMS DIMS     (sizes of both: 1x3x32x32)
#include <dlfcn.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <vector>

namespace {

using namespace executorch::runtime;

std::vector<char> bytes_of(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<executorch::aten::SizesType> sizes_of(const char* text) {
  std::vector<executorch::aten::SizesType> out;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, 'x');) out.push_back(std::stoi(one));
  return out;
}

}  // namespace

int main(int, char** argv) {
  runtime_init();
  if (dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 2;
  const BackendInterface* backend = get_backend_class("SkilletBackend");
  if (backend == nullptr || !backend->is_available()) return std::fprintf(stderr, "no SkilletBackend\n"), 2;
  const std::vector<char> compiled = bytes_of(argv[2]);
  std::vector<char> input = bytes_of(argv[3]);
  const auto out_sizes = sizes_of(argv[6]);
  std::vector<float> output(std::accumulate(out_sizes.begin(), out_sizes.end(), size_t{1}, std::multiplies<>()));

  BackendInitContext init_context(nullptr);
  FreeableBuffer processed(compiled.data(), compiled.size(), nullptr);
  const auto handle = backend->init(init_context, &processed, {});
  if (!handle.ok()) return std::fprintf(stderr, "init: error 0x%x\n", static_cast<unsigned>(handle.error())), 1;
  const auto in = executorch::extension::from_blob(input.data(), sizes_of(argv[5]));
  const auto out = executorch::extension::from_blob(output.data(), out_sizes);
  EValue values[] = {EValue(*in), EValue(*out)};
  EValue* args[] = {&values[0], &values[1]};
  BackendExecutionContext context;
  const Error error = backend->execute(context, *handle, {args, 2});
  backend->destroy(*handle);
  if (error != Error::Ok) return std::fprintf(stderr, "execute: error 0x%x\n", static_cast<unsigned>(error)), 1;
  std::ofstream(argv[4], std::ios::binary)
      .write(reinterpret_cast<const char*>(output.data()), static_cast<std::streamsize>(output.size() * 4));
  return 0;
}
