// Whether a part, or which runs of its ops, go to the NPU by predicted time: compared with all sets of its ops, in
// random graphs; and the result of compile().
#include "compile/offload.h"

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <random>
#include <set>

#include "compile/compile.h"
#include "graph/passes/testing/letters.h"

namespace skillet::compile {
namespace {

using passes::Letters;

constexpr double kTensorBytes = 16;  // of Letters

// One operation for each op, named after the op's result.
class NamingDriver : public passes::AddMulDriver {
 public:
  Result<npu::Program> compile(const npu::Chip&, const ir::Graph& graph, const npu::CompileOptions&) const override {
    npu::Program program;
    for (size_t i = 0; i < graph.ops.size(); ++i)
      program.operations.push_back({static_cast<ir::OpId>(i), graph.tensor(graph.ops[i].outputs[0]).name, 0, 1});
    return program;
  }
};
const NamingDriver kDriver;

// Times by the letter of an op; the CPU takes `cpu_byte_us` for each byte of its operands.
CostModel cost_model_of(std::map<std::string, double> npu_us, double cpu_byte_us, double transfer_byte_us,
                        double submit_us, double margin = 0) {
  CostModel out;
  out.program_costs = [npu_us = std::move(npu_us)](const npu::Program& program) -> Result<std::vector<OperationCost>> {
    std::vector<OperationCost> costs;
    for (const npu::OperationInfo& one : program.operations) {
      const auto at = npu_us.find(one.kind);
      if (at == npu_us.end()) return error(ErrorCode::unsupported, "no price of {}", one.kind);
      costs.push_back({.device_us = at->second, .tasks = 1});
    }
    return costs;
  };
  out.cpu = plain_cpu(1, 1 / cpu_byte_us);
  out.in_bytes_per_us = out.out_bytes_per_us = 1 / transfer_byte_us;
  out.submit_us = submit_us;
  out.margin = margin;
  return out;
}

OffloadChoice compared(const Letters& letters, const CostModel& cost_model) {
  const auto program = kDriver.compile({}, letters.graph, {});
  auto out = choose_offload(letters.graph, *program, cost_model);
  EXPECT_TRUE(out.ok()) << out.error().message;
  return std::move(out).value();
}

TEST(Weigh, ChoosesWhatIsFasterBeyondDoubt) {
  const Letters chain("a", {"c=add(a,a)", "d=add(c,c)", "e=add(d,d)"}, "e");
  const struct {
    const char* what;
    std::map<std::string, double> npu_us;
    double cpu_byte_us, transfer_byte_us, submit_us, margin;
    std::vector<Span> on_npu;
  } kRows[] = {
      // An op has 48 bytes of operands, a tensor 16.
      {"fast on the NPU", {{"c", 1}, {"d", 1}, {"e", 1}}, 1, 0.1, 10, 0, {{0, 3}}},
      {"the submission costs more than all", {{"c", 1}, {"d", 1}, {"e", 1}}, 1, 0.1, 200, 0, {}},
      {"so does the way", {{"c", 1}, {"d", 1}, {"e", 1}}, 1, 5, 10, 0, {}},
      {"the last op is slow there", {{"c", 1}, {"d", 1}, {"e", 90}}, 1, 0.1, 10, 0, {{0, 2}}},
      {"so is the first", {{"c", 90}, {"d", 1}, {"e", 1}}, 1, 0.1, 10, 0, {{1, 3}}},
      {"one in the middle stays: the way would be twice as long",
       {{"c", 1}, {"d", 60}, {"e", 1}},
       1,
       0.1,
       10,
       0,
       {{0, 3}}},
      {"if it is slow enough it does not", {{"c", 1}, {"d", 90}, {"e", 1}}, 1, 0.1, 10, 0, {{0, 1}, {2, 3}}},
      {"the ends go", {{"c", 90}, {"d", 1}, {"e", 90}}, 1, 0.1, 10, 0, {{1, 2}}},
      {"a division for little is within the margin", {{"c", 1}, {"d", 1}, {"e", 55}}, 1, 0.1, 10, 0.2, {{0, 3}}},
      {"without a margin it is not", {{"c", 1}, {"d", 1}, {"e", 55}}, 1, 0.1, 10, 0, {{0, 2}}},
      {"within the margin it is the NPU's", {{"c", 50}, {"d", 50}, {"e", 50}}, 1, 0.1, 10, 0.2, {{0, 3}}},
      {"without a margin the CPU's", {{"c", 50}, {"d", 50}, {"e", 50}}, 1, 0.1, 10, 0, {}},
      {"and where that is faster by more than the margin", {{"c", 70}, {"d", 70}, {"e", 70}}, 1, 0.1, 10, 0.2, {}},
  };
  for (const auto& row : kRows) {
    const OffloadChoice got =
        compared(chain, cost_model_of(row.npu_us, row.cpu_byte_us, row.transfer_byte_us, row.submit_us, row.margin));
    EXPECT_EQ(got.alternatives[got.chosen].on_npu, row.on_npu) << row.what;
  }
}

// Up to 2048 operations are divided in any place; more only as a whole.
TEST(Weigh, DividesPartsOfLimitedLength) {
  constexpr size_t kOpsMax = 2048;
  ir::Graph graph = Letters("a", {"c=add(a,a)"}, "c").graph;
  while (graph.ops.size() < kOpsMax) {
    ir::Op next = graph.ops.back();
    ir::Tensor tensor = graph.tensor(next.outputs[0]);
    if (graph.ops.size() + 1 == kOpsMax) tensor.name = "slow";
    next.inputs = {next.outputs[0], next.outputs[0]};
    next.outputs = {graph.add_tensor(std::move(tensor))};
    graph.outputs = next.outputs;
    graph.add_op(std::move(next));
  }
  const CostModel model = cost_model_of({{"c", 1}, {"slow", 1e6}}, 1, 0.1, 10);
  const auto choice = [&] { return choose_offload(graph, *kDriver.compile({}, graph, {}), model).value(); };
  EXPECT_EQ(choice().alternatives.size(), 3U);
  ir::Op last = graph.ops.back();
  last.inputs = {last.outputs[0], last.outputs[0]};
  last.outputs = {graph.add_tensor(graph.tensor(last.outputs[0]))};
  graph.outputs = last.outputs;
  graph.add_op(std::move(last));
  EXPECT_EQ(choice().alternatives.size(), 2U);
}

// Tensors that enter and leave a run of ops, counted independently.
double transfer_bytes(const ir::Graph& graph, size_t first, size_t last) {
  std::set<ir::TensorId> made, enters, leaves;
  for (size_t i = first; i < last; ++i) made.insert(graph.ops[i].outputs[0]);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    for (const ir::TensorId id : graph.ops[i].inputs) {
      const bool inside = i >= first && i < last;
      if (inside && !made.contains(id) && !graph.tensor(id).is_constant()) enters.insert(id);
      if (!inside && made.contains(id)) leaves.insert(id);
    }
  }
  for (const ir::TensorId id : graph.outputs)
    if (made.contains(id)) leaves.insert(id);
  return kTensorBytes * static_cast<double>(enters.size() + leaves.size());
}

// A network of additions and, sometimes, of ops that the chip does not take, with its cost model.
struct Case {
  Letters letters;
  std::map<std::string, double> npu_us;
  double transfer_us, submit_us;
  CostModel cost_model;
};
Case random_case(std::mt19937& random, double margin, bool with_others) {
  std::vector<std::string> lines;
  std::map<std::string, double> npu_us;
  const size_t count = 1 + random() % 9;
  for (size_t i = 0; i < count; ++i) {
    const auto any = [&] { return random() % 8 == 0 ? 'K' : static_cast<char>('a' + random() % (2 + i)); };
    const char to = static_cast<char>('c' + i);
    lines.push_back(with_others && random() % 4 == 0
                        ? fmt::format("{}=relu({})", to, static_cast<char>('a' + random() % (2 + i)))
                        : fmt::format("{}=add({},{})", to, any(), any()));
    npu_us[std::string(1, to)] = static_cast<double>(random() % 64);
  }
  std::string outputs(1, static_cast<char>('c' + count - 1));
  if (random() % 2 == 0) outputs += static_cast<char>('c' + random() % count);
  const bool is_near = random() % 2 == 0;  // copies and starts are cheap, so that divisions pay
  const double transfer_us = static_cast<double>(random() % (is_near ? 3 : 20)) / 8;
  const double submit_us = static_cast<double>(random() % (is_near ? 8 : 64));
  return {Letters("ab", {lines.begin(), lines.end()}, outputs), npu_us, transfer_us, submit_us,
          cost_model_of(npu_us, 0.5, transfer_us, submit_us, margin)};
}

TEST(Weigh, CountsAsOneWouldInRandomGraphs) {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    const double margin = round % 2 == 0 ? 0 : 0.25;
    const Case one = random_case(random, margin, false);
    const ir::Graph& graph = one.letters.graph;
    const size_t count = graph.ops.size();
    const OffloadChoice got = compared(one.letters, one.cost_model);

    // Bit i of `set`: op i is on the NPU.
    const auto total = [&](unsigned set) {
      double us = 0;
      for (size_t i = 0; i < count; ++i) {
        const bool on_npu = (set >> i & 1) != 0;
        us += on_npu ? one.npu_us.at(graph.tensor(graph.ops[i].outputs[0]).name)
                     : one.cost_model.cpu.us(graph, static_cast<ir::OpId>(i));
        if (!on_npu || (i > 0 && (set >> (i - 1) & 1) != 0)) continue;
        size_t end = i;
        while (end < count && (set >> end & 1) != 0) ++end;
        us += one.submit_us + one.transfer_us * transfer_bytes(graph, i, end);
      }
      return us;
    };
    const unsigned all = (1U << count) - 1;
    double best = total(0);
    for (unsigned set = 1; set <= all; ++set) best = std::min(best, total(set));
    const Alternative& chosen = got.alternatives[got.chosen];
    unsigned set = 0;
    for (const Span& span : chosen.on_npu)
      for (size_t i = span.first; i < span.last; ++i) set |= 1U << i;
    EXPECT_DOUBLE_EQ(chosen.times.us(), total(set)) << round;
    const double plain = total(0) < total(all) * (1 - margin) ? total(0) : total(all);
    EXPECT_LE(chosen.times.us(), plain + 1e-6) << round;
    if (set == all || set == 0) {
      EXPECT_DOUBLE_EQ(total(set), plain) << round;
      EXPECT_GE(best + 1e-6, total(set) * (1 - margin)) << round;
    } else {
      EXPECT_DOUBLE_EQ(chosen.times.us(), best) << round;
    }
    EXPECT_DOUBLE_EQ(got.alternatives[0].times.us(), total(all)) << round;
    EXPECT_DOUBLE_EQ(got.alternatives[1].times.us(), total(0)) << round;
  }
}

// Time of a division, computed from its parts alone.
double time_of(const Compiled& compiled, const Case& one) {
  double us = 0;
  for (const Part& part : compiled.parts) {
    for (const ir::OpId op : part.partition.op_map)
      us += part.partition.on_npu ? one.npu_us.at(compiled.graph.tensor(compiled.graph.op(op).outputs[0]).name)
                                  : one.cost_model.cpu.us(compiled.graph, op);
    if (!part.partition.on_npu) continue;
    const size_t crossings = part.partition.graph.inputs.size() + part.partition.graph.outputs.size();
    us += one.submit_us + one.transfer_us * kTensorBytes * static_cast<double>(crossings);
  }
  return us;
}

// For any parts that result from the compared runs.
TEST(Compile, IsNotSlowerByPredictionThanAPlainDivision) {
  std::mt19937 random(23);
  size_t divided = 0;
  for (int round = 0; round < 1000; ++round) {
    const double margin = round % 2 == 0 ? 0 : 0.25;
    const Case one = random_case(random, margin, true);
    Options options{.rewrite = false};
    const auto compiled = [&] {
      auto out = compile(one.letters.graph, {&kDriver, {}}, options);
      EXPECT_TRUE(out.ok());
      return std::move(out).value();
    };
    const double all = time_of(compiled(), one);
    options.min_macs_per_byte = 4;
    const double work = time_of(compiled(), one);
    options = {.cost_model = &one.cost_model, .rewrite = false};
    const Compiled got = compiled();
    double cpu = 0;
    for (size_t op = 0; op < got.graph.ops.size(); ++op)
      cpu += one.cost_model.cpu.us(got.graph, static_cast<ir::OpId>(op));
    EXPECT_LE(time_of(got, one), all + 0.05) << round;
    EXPECT_LE(time_of(got, one) * (1 - margin), std::min(work, cpu) + 0.05) << round;
    ASSERT_EQ(got.network.size(), 3U) << round;
    EXPECT_NEAR(got.network[0].times.us(), all, 0.05) << round;
    EXPECT_NEAR(got.network[1].times.us(), cpu, 0.05) << round;
    for (const NetworkTimes& way : got.network) {
      if (!way.is_chosen) continue;
      EXPECT_NEAR(way.times.us(), time_of(got, one), 0.05) << round;
    }
    EXPECT_EQ(std::ranges::count(got.network, true, &NetworkTimes::is_chosen), 1) << round;
    divided += time_of(got, one) < std::min(all, cpu) - 0.05 ? 1 : 0;
  }
  EXPECT_GT(divided, 50U);
}

// "N[cd] C[e]", reasons without their times, and the alternatives.
std::string compiled(const Letters& letters, const Options& options) {
  const auto got = compile(letters.graph, {&kDriver, {}}, options);
  if (!got.ok()) return got.error().message;
  std::string out;
  for (const Part& part : got->parts) {
    out += out.empty() ? "" : " ";
    out += part.partition.on_npu ? "N[" : "C[";
    for (const ir::OpId op : part.partition.op_map) out += got->graph.tensor(got->graph.op(op).outputs[0]).name;
    out += "]";
    EXPECT_EQ(part.program.has_value(), part.partition.on_npu);
  }
  for (const OpPlace& op : got->ops)
    if (!op.on_npu) out += fmt::format("\n{}: {}", npu::remedy_name(op.remedy), op.reason);
  return out;
}

TEST(Compile, DividesByPredictedTime) {
  const Letters two("a", {"c=add(a,a)", "d=relu(c)", "e=add(d,d)", "f=add(e,e)"}, "f");
  const CostModel tail = cost_model_of({{"c", 1}, {"e", 1}, {"f", 90}}, 1, 0.1, 10);
  Options options{.cost_model = &tail, .rewrite = false};
  EXPECT_EQ(
      compiled(two, options),
      "N[c] C[d] N[e] C[f]\nnone: RELU is not add or mul\ntake_all: 1 of the 2 ops of its partition is predicted to "
      "be faster on the CPU: 0.048 ms on 1 core, 0.090 ms on the NPU with copies");
  const CostModel far = cost_model_of({{"c", 1}, {"e", 1}, {"f", 1}}, 1, 9, 10);
  options.cost_model = &far;
  EXPECT_EQ(compiled(two, options).substr(0, 7), "C[cdef]");
  options.driver.tuning = npu::Tuning::recorded;
  EXPECT_EQ(compiled(two, options).substr(0, 17), "N[c] C[d] N[ef]\nn") << "as recorded";
  // A part without a predicted cost is decided by its work.
  const CostModel none = cost_model_of({}, 1, 9, 10);
  options = {.cost_model = &none, .rewrite = false};
  EXPECT_EQ(compiled(two, options).substr(0, 17), "N[c] C[d] N[ef]\nn");
  options.min_macs_per_byte = 4;
  EXPECT_EQ(compiled(two, options).substr(0, 7), "C[cdef]");
}

// e, f and g do not depend on d: they form one part with c, and the tensors that h, i and j read of them must be
// copied. Kept intermediates are copied, and named here in upper case.
class KeepingDriver : public NamingDriver {
 public:
  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override {
    auto program = NamingDriver::compile(chip, graph, options);
    if (options.keep_intermediates)
      for (npu::OperationInfo& one : program->operations) one.kind[0] = static_cast<char>(std::toupper(one.kind[0]));
    return program;
  }
};

TEST(Compile, WhatIsKeptOfAPartDoesNotDecideWhereItIs) {
  const KeepingDriver driver;
  const Letters chain("a", {"c=add(a,a)", "d=add(c,c)", "e=add(d,d)"}, "e");
  const CostModel cost_model =
      cost_model_of({{"c", 1}, {"d", 1}, {"e", 90}, {"C", 999}, {"D", 999}, {"E", 999}}, 1, 0.1, 10);
  for (const bool keep : {false, true}) {
    Options options{.cost_model = &cost_model, .rewrite = false};
    options.driver.keep_intermediates = keep;
    const auto got = compile(chain.graph, {&driver, {}}, options);
    ASSERT_TRUE(got.ok()) << got.error().message;
    ASSERT_EQ(got->parts.size(), 2U);
    EXPECT_EQ(got->parts[0].partition.op_map.size(), 2U);
    ASSERT_TRUE(got->parts[0].program);
    EXPECT_EQ(got->parts[0].program->operations[0].kind, keep ? "C" : "c");
    EXPECT_FALSE(got->parts[1].partition.on_npu);
  }
}

TEST(Compile, TakesADivisionBackThatBecameSlower) {
  Letters graph(
      "ab",
      {"c=add(a,a)", "d=add(c,c)", "e=add(a,b)", "f=add(a,b)", "g=add(b,b)", "h=add(d,e)", "i=add(h,f)", "j=add(i,g)"},
      "j");
  std::map<std::string, double> npu_us;
  for (const char* name : {"c", "e", "f", "g", "h", "i", "j"}) npu_us[name] = 1;
  const auto network = [&](double d_us) {
    npu_us["d"] = d_us;
    const CostModel cost_model = cost_model_of(npu_us, 0.5, 10 / kTensorBytes, 0);
    const auto got = compile(graph.graph, {&kDriver, {}}, {.cost_model = &cost_model, .rewrite = false});
    std::string out = compiled(graph, {.cost_model = &cost_model, .rewrite = false});
    out = out.substr(0, out.find('\n'));
    for (const NetworkTimes& one : got->network)
      out += fmt::format("; {}{}", one.is_chosen ? "->" : "", one.times.us());
    return out;
  };
  EXPECT_EQ(network(60), "N[cdefghij]; ->97; 192; 141");
  EXPECT_EQ(network(120), "N[cefg] C[d] N[hij]; 157; 192; ->141");
  graph.graph.ops[0].source_index = graph.graph.ops[1].source_index = 0;  // c and d are pieces of one op
  EXPECT_EQ(network(60), "C[cd] N[efghij]; 97; 192; ->94");
}

TEST(Compile, SaysWhatWasWeighed) {
  Letters chain("a", {"c=add(a,a)", "d=add(c,c)", "e=add(d,d)"}, "e");
  for (int32_t i = 0; i < 3; ++i) chain.graph.ops[static_cast<size_t>(i)].source_index = i + 4;  // the model file's
  const CostModel cost_model = cost_model_of({{"c", 1}, {"d", 90}, {"e", 2}}, 1, 0.125, 10);
  const auto got = compile(chain.graph, {&kDriver, {}}, {.cost_model = &cost_model, .rewrite = false});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(
      print(got->graph, got->network, got->choices),
      "the network, predicted:\n"
      "     0.107 ms = NPU 0.093 + starts 0.010 + copies 0.004 (32 B) + CPU 0.000: all that the chip takes on the "
      "NPU, NPU parts 1\n"
      "     0.144 ms = NPU 0.000 + starts 0.000 + copies 0.000 (0 B) + CPU 0.144: all on the CPU, NPU parts 0\n"
      "  -> 0.079 ms = NPU 0.003 + starts 0.020 + copies 0.008 (64 B) + CPU 0.048: divided, NPU parts 2\n"
      "3 ops from op 4 ADD to op 6 ADD, predicted:\n"
      "     0.107 ms = NPU 0.093 + starts 0.010 + copies 0.004 (32 B) + CPU 0.000: all on the NPU\n"
      "     0.144 ms = NPU 0.000 + starts 0.000 + copies 0.000 (0 B) + CPU 0.144: all on the CPU\n"
      "  -> 0.079 ms = NPU 0.003 + starts 0.020 + copies 0.008 (64 B) + CPU 0.048: ops 4, 6 on the NPU\n"
      "1 ops from op 4 ADD to op 4 ADD, predicted:\n"
      "  -> 0.015 ms = NPU 0.001 + starts 0.010 + copies 0.004 (32 B) + CPU 0.000: all on the NPU\n"
      "     0.048 ms = NPU 0.000 + starts 0.000 + copies 0.000 (0 B) + CPU 0.048: all on the CPU\n"
      "1 ops from op 6 ADD to op 6 ADD, predicted:\n"
      "  -> 0.016 ms = NPU 0.002 + starts 0.010 + copies 0.004 (32 B) + CPU 0.000: all on the NPU\n"
      "     0.048 ms = NPU 0.000 + starts 0.000 + copies 0.000 (0 B) + CPU 0.048: all on the CPU\n");
}

}  // namespace
}  // namespace skillet::compile
