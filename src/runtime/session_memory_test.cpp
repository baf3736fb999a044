// Session::run_on computes the same as Session::run, for any outputs of the graph and any place of the caller's memory.
#include <algorithm>
#include <random>

#include "runtime/toy_session.h"

namespace skillet::runtime {
namespace {

constexpr ir::TensorId kX = 0, kY = 1, kZ = 5, kK = 6;

// chain() with other outputs; v = max(v, y) keeps its value from run to run.
ir::Graph returning(std::vector<ir::TensorId> outputs) {
  ir::Graph graph = chain();
  ir::Tensor v = graph.tensor(kX);
  v.name = "v", v.is_variable = true;
  const ir::TensorId id = graph.add_tensor(std::move(v));
  graph.add_op({.kind = ir::OpKind::maximum, .inputs = {id, kY}, .outputs = {id}});
  graph.outputs = std::move(outputs);
  return graph;
}
constexpr ir::TensorId kV = 9;

const std::vector<std::vector<ir::TensorId>> kOutputs = {
    {kR, kZ}, {kR, kR},     {kZ, kR, kZ},     {kX, kZ}, {kZ, kX, kY},
    {kK, kZ}, {kK, kK, kR}, {kX, kK, kR, kR}, {kV, kZ}, {kZ, kV, kV, kX},
};

class CallersMemory : public ToySession {
 protected:
  static std::vector<std::span<const uint8_t>> inputs_of(const Inputs& inputs) { return {inputs.x, inputs.y}; }

  // Both get the same inputs in the same order, so their state between runs is equal.
  static void expect_equal(Session& by_run, Session& by_run_on, uint8_t seed) {
    const Inputs inputs(seed);
    auto expected = by_run.run(inputs_of(inputs));
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    std::vector<Bytes> outputs(expected->size(), Bytes(kElems, 0xEE));
    const std::vector<std::span<uint8_t>> spans(outputs.begin(), outputs.end());
    const auto ran = by_run_on.run_on(inputs_of(inputs), spans);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(outputs[i], (*expected)[i]) << "output " << i;
  }
};

TEST_F(CallersMemory, GivesWhatRunGives) {
  for (const auto& outputs : kOutputs) {
    SCOPED_TRACE(::testing::PrintToString(outputs));
    for (const Target& where : {target(), Target{.name = "cpu"}}) {
      SCOPED_TRACE(where.name);
      const auto by_run = open(returning(outputs), where), by_run_on = open(returning(outputs), where);
      for (const uint8_t seed : {9, 4, 7}) expect_equal(*by_run, *by_run_on, seed);
    }
  }
}

bool overlap(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

// Inputs and outputs anywhere in one block of memory. Outputs that overlap each other are refused; all else is right.
TEST_F(CallersMemory, MayOverlap) {
  std::mt19937 random(1);
  int right = 0, refused = 0;
  for (int round = 0; round < 600; ++round) {
    const auto& ids = kOutputs[random() % kOutputs.size()];
    const Target& where = target();
    const auto by_run = open(returning(ids), where), by_run_on = open(returning(ids), where);
    const Inputs inputs(static_cast<uint8_t>(round));
    Bytes memory(kElems * 8);
    const auto anywhere = [&] { return std::span(memory).subspan(random() % 15 * (kElems / 2), kElems); };
    std::vector<std::span<uint8_t>> outputs;
    for (size_t i = 0; i < ids.size(); ++i) outputs.push_back(anywhere());
    const auto x = anywhere(), y = anywhere();
    std::ranges::copy(inputs.x, x.begin());
    std::ranges::copy(inputs.y, y.begin());
    bool clash = false;
    for (size_t i = 0; i < ids.size(); ++i) {
      for (size_t j = 0; j < i; ++j)
        clash |= overlap(outputs[i], outputs[j]) && (ids[i] != ids[j] || outputs[i].data() != outputs[j].data());
    }
    const std::vector<Bytes> given = {Bytes(x.begin(), x.end()), Bytes(y.begin(), y.end())};
    const std::span<const uint8_t> in[] = {x, y};
    const auto ran = by_run_on->run_on(in, outputs);
    ASSERT_EQ(ran.ok(), !clash) << (ran.ok() ? "" : ran.error().message);
    (clash ? refused : right) += 1;
    if (clash) {
      EXPECT_NE(ran.error().message.find("overlap"), std::string::npos) << ran.error().message;
      continue;
    }
    const std::span<const uint8_t> copies[] = {given[0], given[1]};
    const auto expected = by_run->run(copies).value();
    for (size_t i = 0; i < ids.size(); ++i)
      ASSERT_TRUE(std::ranges::equal(outputs[i], expected[i])) << "round " << round << " output " << i;
  }
  EXPECT_GT(right, 100);
  EXPECT_GT(refused, 100);
}

// An input cannot be constant or listed twice: neither way of running supports that.
TEST_F(CallersMemory, OddInputsAreRefused) {
  for (const std::vector<ir::TensorId>& inputs : {std::vector<ir::TensorId>{kX, kY, kX}, {kX, kY, kK}}) {
    ir::Graph graph = chain();
    graph.inputs = inputs;
    const auto session = Session::create(std::move(graph), target());
    ASSERT_FALSE(session.ok());
    EXPECT_NE(session.error().message.find("graph input"), std::string::npos) << session.error().message;
  }
}

// Device-visible memory of the caller replaces a buffer of the program only where the results cannot differ.
TEST_F(CallersMemory, IsUsedInPlaceOnlyWhereNobodyCanTell) {
  using npu::Program;
  constexpr uint64_t kTensor = kElems;
  const auto input_use = [](Program& p) -> npu::BufferUse& {
    return *std::ranges::find(p.jobs[0].uses, p.inputs[0].buffer, &npu::BufferUse::buffer);
  };
  const struct Row {
    const char* what;
    std::function<void(Program&)> change;
    uint64_t shift;  // of the tensors in the shared memory
    uint64_t copied;
  } rows[] = {
      {"both tensors", [](Program&) {}, 0, 0},
      {"an input whose buffer a job writes", [&](Program& p) { input_use(p).write = true; }, 0, kTensor},
      {"a buffer that is larger than its input", [](Program& p) { p.buffers[p.inputs[0].buffer].size_bytes += 8; }, 0,
       kTensor},
      {"a buffer that is larger than its output", [](Program& p) { p.buffers[p.outputs[0].buffer].size_bytes += 8; }, 0,
       kTensor},
      {"an input's buffer that holds another tensor too",
       [](Program& p) {
         p.intermediates.push_back(p.inputs[0]);
         p.intermediates.back().tensor = p.outputs[0].tensor;
       },
       0, kTensor},
      {"tensors that do not begin at a multiple of the alignment", [](Program&) {}, 8, 2 * kTensor},
  };
  const ir::Graph graph = chain_of_one();
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Program program = driver_.compile({}, graph, {}).value();
    for (auto* binding : {&program.inputs[0], &program.outputs[0]}) binding->layout = npu::nhwc_layout(binding->shape);
    row.change(program);
    const auto context = target().context;
    const auto loaded = LoadedProgram::load(context, std::move(program), graph, std::chrono::seconds(1));
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    const auto shared = context->shared.alloc(*context->device, 256).value();
    const auto x = shared.bytes.subspan(row.shift, kTensor), y = shared.bytes.subspan(128 + row.shift, kTensor);
    const Inputs inputs(3);
    std::ranges::copy(inputs.x, x.begin());
    const auto run = [&](std::span<uint8_t> in, std::span<uint8_t> out) {
      const auto ran = (*loaded)->run([&](ir::TensorId tensor) { return tensor == graph.inputs[0] ? in : out; });
      ASSERT_TRUE(ran.ok()) << ran.error().message;
    };
    run(x, y);
    EXPECT_EQ((*loaded)->copied_bytes(), row.copied);
    Bytes own_in = inputs.x, own_out(kTensor);
    run(own_in, own_out);
    EXPECT_TRUE(std::ranges::equal(y, own_out));
    EXPECT_TRUE(std::ranges::equal(x, inputs.x)) << "inputs are only read";
  }
}

}  // namespace
}  // namespace skillet::runtime
