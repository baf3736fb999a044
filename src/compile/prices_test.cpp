// Whether a part, or which run of its ops, goes to the NPU by predicted time: against every run of ops counted anew, in
// random graphs; and what compile() makes of it.
#include "compile/prices.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "compile/compile.h"
#include "passes/testing/letters.h"

namespace skillet::compile {
namespace {

using passes::Letters;

constexpr double kTensorBytes = 16;  // of Letters

// An operation for each op, named as the op's result.
class NamingDriver : public passes::AddMulDriver {
 public:
  Result<driver::Program> compile(const driver::Chip&, const ir::Graph& graph,
                                  const driver::CompileOptions&) const override {
    driver::Program program;
    for (size_t i = 0; i < graph.ops.size(); ++i)
      program.operations.push_back({static_cast<ir::OpId>(i), graph.tensor(graph.ops[i].outputs[0]).name, 0, 1});
    return program;
  }
};
const NamingDriver kDriver;

// Microseconds by the letter of an op; the CPU takes `cpu_bytes_us` for each byte of its operands.
Prices prices_of(std::map<std::string, double> npu_us, double cpu_byte_us, double way_byte_us, double submit_us,
                 double doubt = 0) {
  Prices out;
  out.judge = [npu_us = std::move(npu_us)](const driver::Program& program) -> Result<std::vector<OperationCost>> {
    std::vector<OperationCost> costs;
    for (const driver::OperationInfo& one : program.operations) {
      const auto at = npu_us.find(one.kind);
      if (at == npu_us.end()) return error(ErrorCode::unsupported, "no price of {}", one.kind);
      costs.push_back({.device_us = at->second, .tasks = 1});
    }
    return costs;
  };
  out.cpu = {.macs_per_us = 1, .bytes_per_us = 1 / cpu_byte_us};
  out.in_bytes_per_us = out.out_bytes_per_us = 1 / way_byte_us;
  out.submit_us = submit_us;
  out.doubt = doubt;
  return out;
}

Weighing weighed(const Letters& letters, const Prices& prices) {
  const auto program = kDriver.compile({}, letters.graph, {});
  auto out = weigh(letters.graph, *program, prices);
  EXPECT_TRUE(out.ok()) << out.error().message;
  return std::move(out).value();
}

TEST(Weigh, ChoosesWhatIsFasterBeyondDoubt) {
  const Letters chain("a", {"c=add(a,a)", "d=add(c,c)", "e=add(d,d)"}, "e");
  const struct {
    const char* what;
    std::map<std::string, double> npu_us;
    double cpu_byte_us, way_byte_us, submit_us, doubt;
    size_t first, last;
  } kRows[] = {
      // An op has 48 bytes of operands.
      {"fast on the NPU", {{"c", 1}, {"d", 1}, {"e", 1}}, 1, 0.1, 10, 0, 0, 3},
      {"the submission costs more than all", {{"c", 1}, {"d", 1}, {"e", 1}}, 1, 0.1, 200, 0, 0, 0},
      {"so does the way", {{"c", 1}, {"d", 1}, {"e", 1}}, 1, 5, 10, 0, 0, 0},
      {"the last op is slow there", {{"c", 1}, {"d", 1}, {"e", 90}}, 1, 0.1, 10, 0, 0, 2},
      {"so is the first", {{"c", 90}, {"d", 1}, {"e", 1}}, 1, 0.1, 10, 0, 1, 3},
      {"one in the middle stays: the way would be twice as long", {{"c", 1}, {"d", 60}, {"e", 1}}, 1, 0.1, 10, 0, 0, 3},
      {"a little slower is in doubt", {{"c", 1}, {"d", 1}, {"e", 55}}, 1, 0.1, 10, 0.2, 0, 3},
      {"without doubt it is not", {{"c", 1}, {"d", 1}, {"e", 55}}, 1, 0.1, 10, 0, 0, 2},
  };
  for (const auto& row : kRows) {
    const Weighing got =
        weighed(chain, prices_of(row.npu_us, row.cpu_byte_us, row.way_byte_us, row.submit_us, row.doubt));
    const Alternative& chosen = got.alternatives[got.chosen];
    EXPECT_EQ(chosen.first, row.first) << row.what;
    EXPECT_EQ(chosen.last, row.last) << row.what;
  }
}

// Tensors that enter and leave a run of ops, counted without memory.
double way_bytes(const ir::Graph& graph, size_t first, size_t last) {
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

TEST(Weigh, CountsAsOneWouldInRandomGraphs) {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    std::vector<std::string> lines;
    std::map<std::string, double> npu_us;
    const size_t count = 1 + random() % 9;
    for (size_t i = 0; i < count; ++i) {
      const auto any = [&] { return random() % 8 == 0 ? 'K' : static_cast<char>('a' + random() % (2 + i)); };
      const char to = static_cast<char>('c' + i);
      lines.push_back(fmt::format("{}=add({},{})", to, any(), any()));
      npu_us[std::string(1, to)] = static_cast<double>(random() % 64);
    }
    std::string outputs(1, static_cast<char>('c' + count - 1));
    if (random() % 2 == 0) outputs += static_cast<char>('c' + random() % count);
    const Letters letters("ab", {lines.begin(), lines.end()}, outputs);
    const double way_us = static_cast<double>(random() % 20) / 8, submit_us = static_cast<double>(random() % 64);
    const Prices prices = prices_of(npu_us, 0.5, way_us, submit_us);
    const Weighing got = weighed(letters, prices);

    const auto total = [&](size_t first, size_t last) {
      double us = first == last ? 0 : submit_us + way_us * way_bytes(letters.graph, first, last);
      for (size_t i = 0; i < count; ++i) {
        const std::string name = letters.graph.tensor(letters.graph.ops[i].outputs[0]).name;
        us += i >= first && i < last ? npu_us[name] : prices.cpu.us(letters.graph, static_cast<ir::OpId>(i));
      }
      return us;
    };
    double best = total(0, count);
    for (size_t first = 0; first < count; ++first)
      for (size_t last = first; last <= count; ++last) best = std::min(best, total(first, last));
    const Alternative& chosen = got.alternatives[got.chosen];
    EXPECT_DOUBLE_EQ(chosen.us(), total(chosen.first, chosen.last)) << round;
    EXPECT_DOUBLE_EQ(chosen.us(), best) << round;
    EXPECT_DOUBLE_EQ(got.alternatives[0].us(), total(0, count)) << round;
    EXPECT_DOUBLE_EQ(got.alternatives[1].us(), total(0, 0)) << round;
  }
}

// "N[cd] C[e]", reasons without their times, and what was weighed.
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
    if (!op.on_npu) out += fmt::format("\n{}: {}", driver::remedy_name(op.remedy), op.reason);
  return out;
}

TEST(Compile, DividesByPredictedTime) {
  const Letters two("a", {"c=add(a,a)", "d=relu(c)", "e=add(d,d)", "f=add(e,e)"}, "f");
  const Prices tail = prices_of({{"c", 1}, {"e", 1}, {"f", 90}}, 1, 0.1, 10);
  Options options{.prices = &tail, .rewrite = false};
  EXPECT_EQ(
      compiled(two, options),
      "N[c] C[d] N[e] C[f]\nnone: RELU is not add or mul\ntake_all: 1 of the 2 ops of its partition are predicted to "
      "be faster on the CPU: 0.048 ms there, 0.090 ms on the NPU and on the way");
  const Prices far = prices_of({{"c", 1}, {"e", 1}, {"f", 1}}, 1, 9, 10);
  options.prices = &far;
  EXPECT_EQ(compiled(two, options).substr(0, 7), "C[cdef]");
  options.driver.tuning = driver::Tuning::recorded;
  EXPECT_EQ(compiled(two, options).substr(0, 17), "N[c] C[d] N[ef]\nn") << "as recorded";
  // What cannot be priced is judged by its work.
  const Prices none = prices_of({}, 1, 9, 10);
  options = {.prices = &none, .rewrite = false};
  EXPECT_EQ(compiled(two, options).substr(0, 17), "N[c] C[d] N[ef]\nn");
  options.min_macs_per_byte = 4;
  EXPECT_EQ(compiled(two, options).substr(0, 7), "C[cdef]");
}

TEST(Compile, SaysWhatWasWeighed) {
  const Letters chain("a", {"c=add(a,a)", "d=add(c,c)"}, "d");
  const Prices prices = prices_of({{"c", 1}, {"d", 90}}, 1, 0.125, 10);
  const auto got = compile(chain.graph, {&kDriver, {}}, {.prices = &prices, .rewrite = false});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(print(got->graph, got->weighings),
            "2 ops from op 0 ADD -> 'c' to op 1 ADD -> 'd', predicted:\n"
            "     0.105 ms = NPU 0.101 + way 0.004 + CPU 0.000: all on the NPU\n"
            "     0.096 ms = NPU 0.000 + way 0.000 + CPU 0.096: all on the CPU\n"
            "  -> 0.063 ms = NPU 0.011 + way 0.004 + CPU 0.048: ops 0 to 0 on the NPU\n"
            "1 ops from op 0 ADD -> 'c' to op 0 ADD -> 'c', predicted:\n"
            "  -> 0.015 ms = NPU 0.011 + way 0.004 + CPU 0.000: all on the NPU\n"
            "     0.048 ms = NPU 0.000 + way 0.000 + CPU 0.048: all on the CPU\n");
}

}  // namespace
}  // namespace skillet::compile
