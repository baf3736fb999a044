// Checks of `skillet run`: errors that they must find, and results that they must accept.
#include "tools/run/run_judge.h"

#include <gtest/gtest.h>

#include "base/testing/in_tree.h"
#include "graph/import/import.h"
#include "npu/forwarding_driver.h"

namespace skillet::tools {
namespace {

// Errors of the program without kept intermediates: its outputs have a flipped bit, or its jobs name no buffers, which
// is refused.
enum class Wrong : uint8_t { no, outputs, jobs };

class WrongByDefault : public npu::ForwardingDriver {
 public:
  WrongByDefault(const npu::Driver& inner, Wrong wrong) : ForwardingDriver(inner), wrong_(wrong) {}
  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override {
    SK_TRY_ASSIGN(npu::Program program, inner().compile(chip, graph, options));
    if (options.keep_intermediates) return program;
    for (npu::TensorBinding& output : program.outputs) output.layout.xor_byte ^= wrong_ == Wrong::outputs ? 1 : 0;
    for (npu::Job& job : program.jobs) {
      if (wrong_ == Wrong::jobs) job.uses.clear();
    }
    return program;
  }

 private:
  const Wrong wrong_;
};

Result<void> check(Wrong wrong) {
  SK_TRY_ASSIGN(const ir::Graph graph, tflite::import_file(in_tree("tests/models/conv3x3_s2_u8.tflite")));
  SK_TRY_ASSIGN(runtime::Target target, runtime::open_target("sim:a311d"));
  const WrongByDefault driver(*target.driver, wrong);
  target.driver = &driver;
  SK_TRY_ASSIGN(const auto kept, runtime::Session::create(graph, target, {.keep_intermediates = true}));
  SK_TRY_ASSIGN(DefaultProgram by_default, DefaultProgram::create(graph, target, {.keep_intermediates = true}));
  InputSet set{.name = "ones", .path = {}, .frame = {}, .tensors = {}};
  set.tensors.emplace_back(static_cast<size_t>(graph.tensor(graph.inputs[0]).bytes()), uint8_t{1});
  const std::vector<std::span<const uint8_t>> inputs(set.tensors.begin(), set.tensors.end());
  SK_TRY_ASSIGN(const std::vector<Bytes> outputs, kept->run(inputs));
  return by_default.check(set, outputs, *kept);
}

TEST(DefaultProgram, OtherOutputsThanWithKeptIntermediatesAreAnError) {
  const auto same = check(Wrong::no);
  EXPECT_TRUE(same.ok()) << same.error().message;
  const auto other = check(Wrong::outputs);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("differs between the programs with and without intermediates"),
            std::string::npos)
      << other.error().message;
}

TEST(DefaultProgram, AFallbackOfItAloneIsAnError) {
  const auto failed = check(Wrong::jobs);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("outputs not compared"), std::string::npos) << failed.error().message;
}

}  // namespace
}  // namespace skillet::tools
