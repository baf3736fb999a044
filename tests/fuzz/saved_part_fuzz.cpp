// Any bytes behind a right beginning and checksum: read_part() returns an error, or a part that is written and read
// again as it was.
#include <cstdlib>
#include <string_view>

#include "frontend/host/saved_part.h"
#include "frontend/host/testing/repaired.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skillet::host;
  constexpr std::string_view kStart = {"SKILPART\1\0\0\0", 12};
  if (size < kHeaderBytes) return 0;
  skillet::Bytes bytes(data, data + size);
  std::ranges::copy(kStart, bytes.begin());
  const auto part = read_part(repaired(std::move(bytes)));
  if (!part.ok()) return 0;
  const auto again = read_part(save_part(part->chip, part->graph, part->programs).value());
  if (!again.ok() || skillet::ir::print(again->graph) != skillet::ir::print(part->graph)) std::abort();
  return 0;
}
