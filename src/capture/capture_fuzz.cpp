// Parses arbitrary bytes: parse() returns an error or a capture that survives writing and reading.
#include <cstdlib>

#include "capture/capture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skillet::capture;
  const auto capture = parse({data, size});
  if (!capture.ok()) return 0;
  const auto file = serialise(*capture);
  if (!file.ok() || !(parse(*file).value() == *capture)) std::abort();
  return 0;
}
