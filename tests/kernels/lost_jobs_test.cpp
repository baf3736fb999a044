// Jobs lost in a reset: in small programs, each job is lost once, or the core is reset before it, or it is lost
// permanently. The results, including intermediates, equal those of a healthy chip, or there is an error.
#include <gtest/gtest.h>

#include <map>

#include "base/splitmix64.h"
#include "kernels/kernel_node.h"
#include "npus/vivante/compiler/encode.h"
#include "npus/vivante/compiler/lower.h"
#include "runtime/device_context.h"
#include "runtime/loaded_program.h"

namespace skillet::testing {
namespace {

namespace vivante = npus::vivante;

// Constants have random bytes.
struct Network {
  const char* what;
  const char* text;
};
const Network kNetworks[] = {
    {"output through a reshape", R"(
tensor 0 "in" uint8 1x8x8x4 scale=0.02 zero=128
tensor 1 "w" uint8 8x3x3x4 scale=0.01 zero=127 const=zeros
tensor 2 "conv" uint8 1x8x8x8 scale=0.05 zero=16
tensor 3 "flat" uint8 1x512 scale=0.05 zero=16
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 -] out=[2] padding=same
op 1 RESHAPE in=[2] out=[3] shape=[1 512]
)"},
    {"a tensor and its reshape are outputs", R"(
tensor 0 "in" int8 1x8x8x4 scale=0.02 zero=0
tensor 1 "w" int8 8x1x1x4 scale=0.01 zero=0 const=zeros
tensor 2 "conv" int8 1x8x8x8 scale=0.05 zero=16
tensor 3 "flat" int8 1x512 scale=0.05 zero=16
inputs 0
outputs 2 3
op 0 CONV_2D in=[0 1 -] out=[2] padding=same
op 1 RESHAPE in=[2] out=[3] shape=[1 512]
)"},
    {"an input is an output", R"(
tensor 0 "in" uint8 1x6x7x8 scale=0.02 zero=128
tensor 1 "relu" uint8 1x6x7x8 scale=0.02 zero=128
inputs 0
outputs 0 1
op 0 RELU in=[0] out=[1]
)"},
    {"concatenation with an input", R"(
tensor 0 "in" uint8 1x8x8x8 scale=0.02 zero=128
tensor 1 "w" uint8 8x3x3x8 scale=0.01 zero=127 const=zeros
tensor 2 "conv" uint8 1x8x8x8 scale=0.02 zero=128
tensor 3 "both" uint8 1x8x8x16 scale=0.02 zero=128
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 -] out=[2] padding=same
op 1 CONCATENATION in=[0 2] out=[3] axis=3
)"},
    {"addition with an input, in its bytes", R"(
tensor 0 "in" uint8 1x8x8x8 scale=0.02 zero=128
tensor 1 "relu" uint8 1x8x8x8 scale=0.02 zero=128
tensor 2 "sum" uint8 1x8x8x8 scale=0.04 zero=128
inputs 0
outputs 2
op 0 RELU in=[0] out=[1]
op 1 ADD in=[0 1] out=[2]
)"},
    {"split, then a job on one half", R"(
tensor 0 "in" uint8 1x8x8x8 scale=0.02 zero=128
tensor 1 "w" uint8 8x1x1x8 scale=0.01 zero=127 const=zeros
tensor 2 "conv" uint8 1x8x8x8 scale=0.02 zero=128
tensor 3 "axis" int32 scalar const=[3]
tensor 4 "a" uint8 1x8x8x4 scale=0.02 zero=128
tensor 5 "b" uint8 1x8x8x4 scale=0.02 zero=128
tensor 6 "w2" uint8 4x1x1x4 scale=0.01 zero=127 const=zeros
tensor 7 "out" uint8 1x8x8x4 scale=0.02 zero=128
tensor 8 "again" uint8 1x8x8x8 scale=0.02 zero=128
inputs 0
outputs 7 5 8
op 0 CONV_2D in=[0 1 -] out=[2] padding=same
op 1 SPLIT in=[3 2] out=[4 5] count=2
op 2 CONV_2D in=[4 6 -] out=[7] padding=same
op 3 CONCATENATION in=[5 4] out=[8] axis=3
)"},
    {"outputs of one byte and of five", R"(
tensor 0 "in" uint8 1x4x4x4 scale=0.02 zero=128
tensor 1 "w" uint8 1x4x4x4 scale=0.01 zero=127 const=zeros
tensor 2 "one" uint8 1x1x1x1 scale=0.05 zero=16
tensor 3 "w2" uint8 5x4x4x4 scale=0.01 zero=127 const=zeros
tensor 4 "five" uint8 1x1x1x5 scale=0.05 zero=16
inputs 0
outputs 2 4
op 0 CONV_2D in=[0 1 -] out=[2] padding=valid
op 1 CONV_2D in=[0 3 -] out=[4] padding=valid
)"},
    {"tensors that several operations write", R"(
tensor 0 "in" uint8 1x2x1x40000 scale=0.02 zero=128
tensor 1 "relu" uint8 1x2x1x40000 scale=0.02 zero=128
tensor 2 "planar" uint8 1x2x1x40000 scale=0.02 zero=128
tensor 3 "abs" uint8 1x2x1x40000 scale=0.02 zero=128
inputs 0
outputs 3
op 0 RELU in=[0] out=[1]
op 1 CONCATENATION in=[1] out=[2] axis=3
op 2 ABS in=[2] out=[3]
)"},
};

ir::Graph make_graph(const Network& network) {
  auto graph = ir::parse(network.text);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  SplitMix64 random(1);
  for (ir::Tensor& tensor : graph->tensors) {
    if (!tensor.is_constant() || tensor.dtype == ir::DType::int32) continue;
    Bytes bytes(static_cast<size_t>(tensor.bytes()));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
    ir::set_constant(tensor, std::move(bytes));
  }
  return std::move(graph).value();
}

// Counts operations that write pieces of one slot once.
size_t written_slots(const std::vector<vivante::Operation>& operations) {
  size_t count = 0;
  auto last = vivante::kNoSlot;
  for (const vivante::Operation& op : operations) {
    const auto output = std::visit([](const auto& job) { return job.output; }, op.job);
    count += output != last ? 1 : 0;
    last = output;
  }
  return count;
}

// The operations of each slot become a job, or all operations become one job.
npu::Program compile(const ir::Graph& graph, size_t job_words = 0) {
  const auto& chip = *vivante::hw::find_chip("a311d");
  auto lowered = vivante::lower(chip, graph, {});
  EXPECT_TRUE(lowered.ok()) << lowered.error().message;
  const size_t slots = written_slots(lowered->operations);
  auto program = vivante::encode(chip, graph, std::move(lowered).value(), {.job_words = job_words});
  EXPECT_TRUE(program.ok()) << program.error().message;
  EXPECT_EQ(program->jobs.size(), job_words == 0 ? slots : 1);
  return std::move(program).value();
}

using Tensors = std::map<ir::TensorId, Bytes>;

// A program on a device, with memory for its tensors that the host owns or shares with the device.
class Runner {
 public:
  Runner(const runtime::Target& target, const ir::Graph& graph, const npu::Program& program, bool is_shared)
      : graph_(graph), context_(target.context) {
    auto loaded = runtime::LoadedProgram::load(context_, program, graph, std::chrono::seconds(10));
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    loaded_ = std::move(loaded).value();
    for (const auto* list : {&graph.inputs, &graph.outputs}) {
      for (const ir::TensorId id : *list) add_memory(id, is_shared);
    }
  }

  // Returns all tensors of the program: the outputs as returned, and once more as read from the device.
  Result<Tensors> infer(uint8_t seed) {
    for (const auto& [id, bytes] : memory_) std::ranges::fill(bytes, uint8_t{0xcd});
    SplitMix64 random(seed);
    for (const ir::TensorId id : graph_.inputs) {
      for (uint8_t& byte : memory_.at(id)) byte = static_cast<uint8_t>(random.next());
    }
    SK_TRY(loaded_->run([&](ir::TensorId id) { return memory_.at(id); }));
    Tensors all;
    for (const ir::TensorId id : graph_.outputs) all[id].assign(memory_.at(id).begin(), memory_.at(id).end());
    for (const npu::TensorBinding& binding : loaded_->program().intermediates) {
      Bytes bytes(binding.shape.bytes()), again(binding.shape.bytes());
      SK_TRY(loaded_->read(binding.tensor, bytes));
      SK_TRY(loaded_->read(binding.tensor, again));
      EXPECT_EQ(bytes, again);
      EXPECT_TRUE(!all.contains(binding.tensor) || all[binding.tensor] == bytes);
      all[binding.tensor] = std::move(bytes);
    }
    return all;
  }
  bool can_read(ir::TensorId id) {
    Bytes bytes(static_cast<size_t>(graph_.tensor(id).bytes()));
    return loaded_->read(id, bytes).ok();
  }

 private:
  void add_memory(ir::TensorId id, bool is_shared) {
    if (memory_.contains(id)) return;
    const auto size_bytes = static_cast<size_t>(graph_.tensor(id).bytes());
    if (is_shared) {
      memory_[id] = context_->shared.alloc(*context_->device, size_bytes).value().bytes;
    } else {
      own_[id].resize(size_bytes);
      memory_[id] = own_[id];
    }
  }

  const ir::Graph& graph_;
  std::shared_ptr<runtime::DeviceContext> context_;
  std::unique_ptr<runtime::LoadedProgram> loaded_;
  Tensors own_;
  std::map<ir::TensorId, std::span<uint8_t>> memory_;
};

constexpr uint8_t kInferences = 3;

class LostJobs : public ::testing::TestWithParam<std::tuple<Network, bool>> {
 protected:
  void SetUp() override {
    Runner healthy(runtime::open_target("sim:a311d").value(), graph_, program_, false);
    for (uint8_t i = 0; i < kInferences; ++i) expected_.push_back(healthy.infer(i).value());
  }
  bool is_shared() const { return std::get<1>(GetParam()); }
  // Submissions of a run without faults, including the initialisation.
  int submissions() const { return 1 + kInferences * static_cast<int>(program_.jobs.size()); }

  // Runs all inferences, checks each result, and returns the number of submissions.
  int run(const std::string& faults) {
    KernelNode node(faults);
    Runner runner(node.target().value(), graph_, program_, is_shared());
    for (uint8_t i = 0; i < kInferences; ++i) {
      const auto got = runner.infer(i);
      EXPECT_TRUE(got.ok()) << got.error().message;
      EXPECT_TRUE(got.ok() && *got == expected_[i]) << "inference " << int{i};
    }
    return node.spy().calls[abi::kGemSubmit];
  }

  ir::Graph graph_ = make_graph(std::get<0>(GetParam()));
  npu::Program program_ = compile(graph_);
  std::vector<Tensors> expected_;
};

TEST_P(LostJobs, EachIsNoticedAndRunAgain) {
  EXPECT_EQ(run(""), submissions()) << "nothing runs twice without a reason";
  for (int lost = 1; lost <= submissions(); ++lost) {
    SCOPED_TRACE(fmt::format("submission {}", lost));
    EXPECT_GT(run(fmt::format("submit:{}:reset", lost)), submissions());
  }
}

TEST_P(LostJobs, ResetsOfOthersAreRepaired) {
  for (int reset = 1; reset <= submissions(); ++reset) {
    SCOPED_TRACE(fmt::format("before submission {}", reset));
    EXPECT_GT(run(fmt::format("submit:{}:reset_before", reset)), submissions() - (reset == 1 ? 1 : 0));
  }
}

TEST_P(LostJobs, LostAgainIsAnErrorAndNothingIsRead) {
  const int jobs = static_cast<int>(program_.jobs.size());
  for (int lost = 1; lost <= jobs; ++lost) {
    SCOPED_TRACE(fmt::format("job {}", lost));
    const int before = 1 + jobs;
    KernelNode node(fmt::format("submit:{}:reset,submit:{}:reset", before + lost, before + jobs + 1 + lost));
    Runner runner(node.target().value(), graph_, program_, is_shared());
    EXPECT_TRUE(runner.infer(0).ok());
    const auto got = runner.infer(1);
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().code, ErrorCode::fault);
    EXPECT_NE(got.error().message.find("did not write its output"), std::string::npos) << got.error().message;
    EXPECT_FALSE(runner.can_read(graph_.outputs[0]));
    const auto next = runner.infer(2);
    ASSERT_TRUE(next.ok()) << next.error().message;
    EXPECT_EQ(*next, expected_[2]);
  }
}

// A buffer that a submission does not list is not mapped: the program is refused, or its jobs fail.
TEST_P(LostJobs, EachBufferOfAJobMustBeListed) {
  if (is_shared()) return;
  int run = 0;
  for (size_t i = 0; i < program_.jobs.size(); ++i) {
    for (size_t lost = 0; lost < program_.jobs[i].uses.size(); ++lost) {
      npu::Program program = program_;
      auto& uses = program.jobs[i].uses;
      SCOPED_TRACE(fmt::format("job {} without buffer '{}'", i, program.buffers[uses[lost].buffer].name));
      uses.erase(uses.begin() + static_cast<ptrdiff_t>(lost));
      if (!npu::verify(program).ok()) continue;
      ++run;
      const auto got = Runner(runtime::open_target("sim:a311d").value(), graph_, program, false).infer(0);
      ASSERT_FALSE(got.ok());
      EXPECT_NE(got.error().message.find("are not mapped"), std::string::npos) << got.error().message;
    }
  }
  EXPECT_GT(run, 0);
}

TEST_P(LostJobs, WitnessesHoldSixteenBytesOrAllThatIsWritten) {
  ASSERT_TRUE(npu::verify(program_).ok());
  for (const npu::Job& job : program_.jobs) {
    uint64_t written = 0;
    for (const npu::BufferUse& use : job.uses) written += use.write ? program_.buffers[use.buffer].size_bytes : 0;
    EXPECT_EQ(job.witness.size_bytes, std::min(written, npu::kWitnessBytes)) << job.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, LostJobs, ::testing::Combine(::testing::ValuesIn(kNetworks), ::testing::Bool()),
                         [](const auto& one) {
                           std::string name = std::get<0>(one.param).what;
                           for (char& c : name) c = std::isalnum(c) != 0 ? c : '_';
                           return name + (std::get<1>(one.param) ? "_shared" : "");
                         });

// A failed run leaves a completion marker in the caller's memory, which the caller may overwrite before the next run.
TEST(LostJob, IsNoticedAfterARunThatFailed) {
  const ir::Graph graph = make_graph(kNetworks[2]);
  // Submissions: initialisation, a job; a job that fails; initialisation again, a lost job; both once more.
  KernelNode node("submit:3:EIO,submit:5:reset");
  Runner runner(node.target().value(), graph, compile(graph), true);
  const auto expected = runner.infer(1).value();
  EXPECT_FALSE(runner.infer(1).ok());
  EXPECT_EQ(node.spy().calls[abi::kGemSubmit], 3);
  const auto got = runner.infer(1);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(*got, expected);
  EXPECT_EQ(node.spy().calls[abi::kGemSubmit], 7);
}

// A job must list each buffer that it writes as written: otherwise no fence covers the data.
TEST(LostJob, EachBufferThatAJobWritesMustBeListedAsWritten) {
  int run = 0;
  for (const Network& network : kNetworks) {
    const ir::Graph graph = make_graph(network);
    const npu::Program whole = compile(graph, vivante::kJobWords);
    for (size_t i = 0; i < whole.jobs[0].uses.size(); ++i) {
      npu::Program program = whole;
      npu::BufferUse& use = program.jobs[0].uses[i];
      if (!use.write) continue;
      use.read = true;
      use.write = false;
      if (!npu::verify(program).ok()) continue;  // the job's completion marker is there
      SCOPED_TRACE(fmt::format("{}, buffer '{}'", network.what, program.buffers[use.buffer].name));
      ++run;
      const auto got = Runner(runtime::open_target("sim:a311d").value(), graph, program, false).infer(0);
      ASSERT_FALSE(got.ok());
      EXPECT_NE(got.error().message.find("which the job does not list as written"), std::string::npos)
          << got.error().message;
    }
  }
  EXPECT_GT(run, 5);
}

// Markers are written and checked while the buffers are open anyway: one access per input and output.
TEST(LostJob, WatchingAPartOfOneJobCostsNoCall) {
  for (const Network& network : kNetworks) {
    const ir::Graph graph = make_graph(network);
    KernelNode node;
    const auto context = node.target().value().context;
    const npu::Program program = compile(graph, vivante::kJobWords);
    auto loaded = runtime::LoadedProgram::load(context, program, graph, std::chrono::seconds(10)).value();
    std::map<ir::TensorId, Bytes> memory;
    for (const auto* list : {&graph.inputs, &graph.outputs}) {
      for (const ir::TensorId id : *list) memory[id].resize(static_cast<size_t>(graph.tensor(id).bytes()));
    }
    const auto run = [&] { return loaded->run([&](ir::TensorId id) { return std::span(memory.at(id)); }); };
    ASSERT_TRUE(run().ok() && run().ok()) << network.what;
    const int tensors = static_cast<int>(graph.inputs.size() + graph.outputs.size());
    const std::pair<unsigned long, int> wanted[] = {
        {abi::kGemCpuPrep, tensors}, {abi::kGemCpuFini, tensors}, {abi::kGemSubmit, 1}, {abi::kWaitFence, 1}};
    std::map<unsigned long, int> before;
    for (const auto& [request, count] : wanted) before[request] = node.spy().calls[request];
    ASSERT_TRUE(run().ok()) << network.what;
    for (const auto& [request, count] : wanted)
      EXPECT_EQ(node.spy().calls[request] - before[request], count) << network.what << ": " << request;
  }
}

ir::Graph small_graph() {
  return make_graph({"", R"(
tensor 0 "in" uint8 1x6x7x8 scale=0.02 zero=128
tensor 1 "out" uint8 1x6x7x8 scale=0.04 zero=3
inputs 0
outputs 1
op 0 RELU in=[0] out=[1]
)"});
}

// The marker of the previous run is where the output was then.
TEST(LostJob, IsNoticedWhenTheOutputLiesElsewhereThanBefore) {
  const ir::Graph graph = small_graph();
  Bytes in(336), own(336);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 7);
  for (const bool is_shared_first : {false, true}) {
    KernelNode node("submit:3:reset");  // after the initialisation and a job
    const auto context = node.target().value().context;
    auto loaded = runtime::LoadedProgram::load(context, compile(graph), graph, std::chrono::seconds(10)).value();
    const std::span<uint8_t> shared = context->shared.alloc(*context->device, 336).value().bytes;
    for (const bool is_shared : {is_shared_first, !is_shared_first}) {
      const std::span<uint8_t> out = is_shared ? shared : std::span(own);
      std::ranges::fill(out, uint8_t{0xcd});
      const auto ran = loaded->run([&](ir::TensorId id) { return id == 0 ? std::span(in) : out; });
      ASSERT_TRUE(ran.ok()) << ran.error().message;
    }
    EXPECT_TRUE(std::ranges::equal(own, shared)) << is_shared_first;
    EXPECT_EQ(node.spy().calls[abi::kGemSubmit], 5);
  }
}

// The repeated run needs the input, so the lost one must not have overwritten it.
TEST(LostJob, InAndOutInTheSameSharedBytes) {
  const ir::Graph graph = small_graph();
  Bytes expected(336);
  for (const int lost : {0, 2}) {
    KernelNode node(lost == 0 ? "" : fmt::format("submit:{}:reset", lost));
    const auto context = node.target().value().context;
    auto loaded = runtime::LoadedProgram::load(context, compile(graph), graph, std::chrono::seconds(10)).value();
    const std::span<uint8_t> bytes = context->shared.alloc(*context->device, 336).value().bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
    const auto ran = loaded->run([&](ir::TensorId) { return bytes; });
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    if (lost == 0) std::ranges::copy(bytes, expected.begin());
    EXPECT_TRUE(std::ranges::equal(bytes, expected)) << lost;
  }
}

}  // namespace
}  // namespace skillet::testing
