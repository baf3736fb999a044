// Any bytes: deserialise() returns an error, or a program that verifies and survives writing and reading.
#include <cstdlib>

#include "program/program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skillet::npu;
  const auto program = deserialise(skillet::Bytes(data, data + size));
  if (!program.ok()) return 0;
  const auto file = serialise(*program, size % 2 == 0);
  if (!file.ok() || print(*program).empty() || !(deserialise(*file).value() == *program)) std::abort();
  return 0;
}
