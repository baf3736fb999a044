// Tests the result of `skillet diff` for two programs with one difference.
#include "tools/jobs/diff_side.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/int_math.h"
#include "base/testing/own_folder.h"
#include "capture/hardware.h"
#include "runtime/compiled_model.h"
#include "runtime/toy_session.h"
#include "tools/jobs/decoded.h"

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

TEST(ChipOf, SaysNamesOfACaptureInOneLine) {
  const auto chip = chip_of({"a\nb\x1b[31m", "c\nd\x1b", "e\nf\x1b", {{"model", 7}}}, "");
  ASSERT_FALSE(chip.ok());
  EXPECT_NE(chip.error().message.find("'a?b?[31m'"), std::string::npos) << chip.error().message;
  EXPECT_EQ(chip.error().message.find_first_of("\n\x1b"), std::string::npos) << chip.error().message;
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

// A capture of the same jobs in the hardware's view: contiguous pages, and no lists.
std::string seen_by_hardware(DiffSide side, const std::string& name) {
  constexpr uint64_t kPageBytes = 4096;
  capture::Capture seen{.device = side.reader.device(), .submissions = {}};
  seen.device.node = std::string(capture::kHardwareNode) + "toy";
  for (auto one = side.reader.next(); one.ok() && one->has_value(); one = side.reader.next()) {
    capture::Submission submission = std::move(**one);
    uint64_t first = ~uint64_t{0}, end = 0;
    for (const capture::BufferSnapshot& buffer : submission.buffers) {
      first = std::min(first, buffer.address / kPageBytes * kPageBytes);
      end = std::max(end, buffer.address + buffer.size_bytes);
    }
    Bytes pages(align_up(end - first, kPageBytes));
    for (const capture::BufferSnapshot& buffer : submission.buffers)
      std::ranges::copy(buffer.bytes, pages.begin() + static_cast<ptrdiff_t>(buffer.address - first));
    capture::BufferSnapshot run{.handle = 1, .address = first, .size_bytes = pages.size()};
    capture::set_contents(run, pages);
    submission.buffers = {run};
    seen.submissions.push_back(std::move(submission));
  }
  EXPECT_FALSE(seen.submissions.empty());
  EXPECT_TRUE(capture::write(seen, own_path(name)).ok());
  return own_path(name);
}

TEST(Diff, TakesWhatTheHardwareSawAsTheSecondSide) {
  const npu::Chip chip = npu::find_chip("toy").value();
  const npu::Program program = compiled(chip);
  const std::string path = seen_by_hardware(side_of(program, "a.skp"), "seen.skcap");
  const auto same = compare(chip, side_of(program, "a.skp"), load_side(path, std::nullopt, {}).value());
  ASSERT_TRUE(same.ok()) << same.error().message;
  for (const npu::Difference& one : same->differences) ADD_FAILURE() << one.path << ": " << one.a << " | " << one.b;
  const auto turned = compare(chip, load_side(path, std::nullopt, {}).value(), side_of(program, "a.skp"));
  ASSERT_FALSE(turned.ok());
  EXPECT_NE(turned.error().message.find("must be the second one"), std::string::npos) << turned.error().message;
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
