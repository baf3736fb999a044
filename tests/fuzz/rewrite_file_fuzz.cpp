// Model files as an attacker writes them, through the passes of a chip and back into a file, as in `skillet fix`: the
// written file can be read, and contains the graph of the passes. Run: rewrite_file_fuzz -max_len=65536 CORPUS
// tests/models
#include "base/check.h"
#include "graph/import/import.h"
#include "graph/import/rewrite_file.h"
#include "graph/passes/passes.h"
#include "npu/driver.h"

namespace {

using namespace skillet;

// A file cannot hold a row of padding. Leaves out sizes that keep the kernels in the passes busy for minutes.
bool is_small(const ir::Graph& graph) {
  for (const ir::Tensor& tensor : graph.tensors)
    if (tensor.shape.elems() > 1 << 12) return false;
  return graph.ops.size() < 64;
}

bool is_same(const ir::Graph& a, const ir::Graph& b) {
  if (a.ops.size() != b.ops.size() || a.tensors.size() != b.tensors.size()) return false;
  for (size_t i = 0; i < a.ops.size(); ++i)
    if (a.ops[i].kind != b.ops[i].kind || a.ops[i].outputs != b.ops[i].outputs) return false;
  return a.inputs == b.inputs && a.outputs == b.outputs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> file(data, size);
  const auto before = tflite::import(file, "fuzz");
  if (!before || !is_small(*before)) return 0;
  for (const char* name : {"a311d", "rk3588"}) {
    const auto chip = npu::find_chip(name);
    SK_CHECK(chip.ok());
    std::vector<passes::Rewrite> rewrites;
    std::vector<passes::WeightChange> changes;
    passes::Target target{.driver = *npu::driver_of(*chip), .chip = *chip};
    target.per_channel = npu::PerChannel::approximate;
    target.weight_changes = &changes;
    target.takes_unproven = true;
    target.rewrites = &rewrites;
    ir::Graph after = *before;
    SK_CHECK(passes::run_pipeline(after, target).ok());
    const auto written = tflite::rewrite_file(file, *before, after);
    if (!written) {
      SK_CHECK(!written.error().message.empty());
      continue;
    }
    const auto again = tflite::import(*written, "again");
    SK_CHECK(again.ok());
    SK_CHECK(is_same(*again, after));
  }
  return 0;
}
