// ONNX files as an attacker writes them: import, verify, print and parse must neither crash nor disagree.
// Run: onnx_import_fuzz -max_len=65536 CORPUS tests/models/onnx
#include "frontend/onnx/import.h"
#include "round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skillet;
  auto graph = onnx::import(Bytes(data, data + size), "fuzz");
  if (!graph) {
    SK_CHECK(!graph.error().message.empty());
    return 0;
  }
  SK_CHECK(ir::verify(*graph).ok());
  fuzz::check_round_trip(*std::move(graph));
  return 0;
}
