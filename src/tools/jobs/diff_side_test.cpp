// What `skillet diff` sees of two programs that differ in one thing.
#include "tools/jobs/diff_side.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/testing/own_folder.h"
#include "runtime/compiled_model.h"
#include "runtime/toy_session.h"

namespace skillet::tools {
namespace {

// x -> y = max(x, K)
npu::Program compiled(const npu::Chip& chip) {
  ir::Graph graph = runtime::chain_of_one();
  const ir::TensorId k = graph.add_tensor(graph.tensors[0]);
  ir::set_constant(graph.tensor(k), Bytes(runtime::kElems, 130));
  graph.ops[0].kind = ir::OpKind::maximum;
  graph.ops[0].inputs.push_back(k);
  return (*npu::driver_of(chip))->compile(chip, graph, {}).value();
}

DiffSide side_of(const npu::Program& program, const std::string& name) {
  const std::string path = own_path(name);
  runtime::CompiledModel model;
  model.programs.push_back({std::string(32, '0'), program.chip, npu::serialise(program, false).value()});
  EXPECT_TRUE(write_file(path, *runtime::save_compiled(model)).ok());
  auto side = load_side(path, std::nullopt, {});
  EXPECT_TRUE(side.ok()) << side.error().message;
  return std::move(side).value();
}

TEST(Diff, SeesWhatAProgramSaysOfTensorsAndSizes) {
  struct Case {
    const char* name;
    std::function<void(npu::Program&)> change;
    bool same = false;
  };
  const auto first = [](npu::Program& p, npu::BufferRole role) -> npu::Buffer& {
    return *std::ranges::find(p.buffers, role, &npu::Buffer::role);
  };
  const Case cases[] = {
      {"nothing", [](npu::Program&) {}, true},
      {"xor of an input", [](npu::Program& p) { p.inputs[0].layout.xor_byte ^= 0x80; }},
      {"pad of an output", [](npu::Program& p) { p.outputs[0].layout.pad_byte ^= 1; }},
      {"shape of an input", [](npu::Program& p) { --p.inputs[0].shape.height; }},
      {"room of a constant", [&](npu::Program& p) { first(p, npu::BufferRole::constant).size_bytes += 64; }},
      {"names", [](npu::Program& p) { p.buffers[0].name = "other"; }, true},
  };
  const npu::Chip chip = npu::find_chip("toy").value();
  const npu::Program program = compiled(chip);
  for (const Case& one : cases) {
    npu::Program changed = program;
    one.change(changed);
    const auto compared = compare(chip, side_of(program, "a.skp"), side_of(changed, "b.skp"));
    ASSERT_TRUE(compared.ok()) << one.name << ": " << compared.error().message;
    EXPECT_EQ(compared->same(), one.same) << one.name;
  }
}

TEST(Diff, SeesTensorsThatOneSideAloneKnows) {
  const npu::Chip chip = npu::find_chip("toy").value();
  const npu::Program program = compiled(chip);
  for (const bool first_knows : {false, true}) {
    DiffSide a = side_of(program, "a.skp"), b = side_of(program, "b.skp");
    std::vector<npu::KnownTensor>& fewer = (first_knows ? b : a).tensors;
    ASSERT_GT(fewer.size(), 1u);
    const std::string name = fewer.back().name;
    fewer.pop_back();
    const auto compared = compare(chip, std::move(a), std::move(b));
    ASSERT_TRUE(compared.ok()) << compared.error().message;
    ASSERT_EQ(compared->differences.size(), 1u) << name;
    const npu::Difference& found = compared->differences[0];
    EXPECT_EQ(found.path, name);
    EXPECT_EQ((first_knows ? found.b : found.a), "");
    EXPECT_NE((first_knows ? found.a : found.b), "");
  }
}

}  // namespace
}  // namespace skillet::tools
