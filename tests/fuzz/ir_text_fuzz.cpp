// Graphs in text form, with arbitrary contents that the grammar allows: parse, infer shapes, verify, print.
// Run: ir_text_fuzz -max_len=8192 CORPUS
#include "round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skillet;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto graph = ir::parse(text);
  if (!graph) {
    SK_CHECK(!graph.error().message.empty());
    return 0;
  }
  // Skips constants whose claimed size is large: otherwise the fuzzer spends its time clearing gigabytes.
  for (const ir::Tensor& tensor : graph->tensors) {
    if (tensor.data.size() > (1 << 20)) return 0;
  }
  (void)ir::print(*graph);
  if (ir::infer_shapes(*graph)) {
    SK_CHECK(ir::verify(*graph).ok());
  }
  if (ir::verify(*graph)) fuzz::check_round_trip(*std::move(graph));
  return 0;
}
