// Traces as an attacker writes them: read, counted and drawn. Run: trace_file_fuzz -max_len=65536 CORPUS
#include "base/check.h"
#include "tools/time/trace_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto trace = skillet::tools::read_trace({data, size});
  if (!trace.ok()) {
    SK_CHECK(!trace.error().message.empty());
    return 0;
  }
  const auto summary = skillet::tools::summarise(*trace);
  SK_CHECK(summary.longest.size() <= trace->slices.size());
  SK_CHECK(skillet::tools::draw_trace(*trace).ends_with("</svg>\n"));
  return 0;
}
