// Parses arbitrary bytes, and arbitrary bytes after a valid header and checksum: deserialise() returns an error, or a
// program that verifies and survives writing and reading.
#include <cstdlib>

#include "program/program.h"
#include "program/testing/repaired.h"

namespace {

using skillet::Bytes;

using skillet::npu::testing::kHeaderBytes;
using skillet::npu::testing::repaired;

void check(Bytes bytes, bool packed) {
  using namespace skillet::npu;
  const auto program = deserialise(std::move(bytes));
  if (!program.ok()) return;
  const auto file = serialise(*program, packed);
  if (!file.ok() || print(*program).empty() || !(deserialise(*file).value() == *program)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes(data, data + size);
  check(bytes, size % 2 == 0);
  if (size >= kHeaderBytes) check(repaired(bytes), size % 2 == 0);
  return 0;
}
