// Any bytes behind a valid header and checksum: read_compiled() returns an error, or a model that is equal after it is
// written and read again.
#include <cstdlib>
#include <string_view>

#include "runtime/compiled_model.h"
#include "runtime/testing/repaired.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skillet::runtime;
  constexpr std::string_view kStart = {"SKILMODL\2\0\0\0", 12};
  if (size < kHeaderBytes) return 0;
  skillet::Bytes bytes(data, data + size);
  std::ranges::copy(kStart, bytes.begin());
  const auto model = read_compiled(repaired(std::move(bytes)));
  if (!model.ok()) return 0;
  const auto file = save_compiled(*model);
  if (!file.ok()) return 0;  // keys of another length
  const auto again = read_compiled(*file);
  if (!again.ok() || skillet::ir::print(again->graph) != skillet::ir::print(model->graph) ||
      again->programs != model->programs || again->note != model->note)
    std::abort();
  return 0;
}
