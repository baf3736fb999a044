// A comparison of a device with the CPU detects each byte of each operation on each input that differs by more than the
// stated bound, and no other; for an unchanged program, each byte that differs at all.
#include "runtime/trial.h"

#include <fmt/ranges.h>

#include "base/bytes.h"
#include "graph/ref/all_bytes.h"
#include "runtime/toy_session.h"
#include "runtime/trust.h"
#include "runtime/trusted_driver.h"
#include "runtime/verify_again.h"

namespace skillet::runtime {
namespace {

using Outcome = Trial::Outcome;
constexpr int kJobs = 3;  // of a run: m, r, z
constexpr size_t kLast = kElems - 1;

class Trials : public ToySession {
 protected:
  // Operation of each job.
  static constexpr ir::OpId kOps[kJobs] = {0, 1, 3};

  Trial kept(int wrong_run, size_t wrong_byte, uint8_t wrong_by) {
    const auto session = open({.keep_intermediates = true});
    state_ = {.wrong_run = wrong_run, .wrong_byte = wrong_byte, .wrong_by = wrong_by};
    outputs_.clear();
    const auto trial = try_session(*session, target(), kKeptInputs, &outputs_);
    EXPECT_TRUE(trial.ok()) << trial.error().message;
    return trial.ok() ? *trial : Trial();
  }
  Trial real(int wrong_run, size_t wrong_byte) {
    const auto session = open();
    state_ = {.wrong_run = wrong_run, .wrong_byte = wrong_byte};
    const auto trial = try_real(*session, outputs_);
    EXPECT_TRUE(trial.ok()) << trial.error().message;
    return trial.ok() ? *trial : Trial();
  }

  std::map<size_t, std::vector<Bytes>> outputs_;
};

TEST_F(Trials, SeeEachByteThatIsOffByMoreThanIsStated) {
  constexpr uint8_t kStated = 1;  // Driver::tolerance()
  EXPECT_EQ(kept(-1, 0, 0).outcome, Outcome::right);
  for (int run = 0; run < static_cast<int>(std::size(kKeptInputs)) * kJobs; ++run) {
    for (const size_t byte : {size_t{0}, size_t{1}, kLast}) {
      SCOPED_TRACE(fmt::format("run {}, byte {}", run, byte));
      EXPECT_EQ(kept(run, byte, kStated).outcome, Outcome::right);
      const Trial off = kept(run, byte, kStated + 1);
      EXPECT_EQ(off.outcome, Outcome::wrong);
      EXPECT_EQ(off.wrong, std::vector{kOps[run % kJobs]});
      EXPECT_NE(off.what.find("1 of 24 values are off, by up to 2; 1 is allowed"), std::string::npos) << off.what;
    }
  }
}

TEST_F(Trials, ComparesAProgramAsItIsByteByByte) {
  ASSERT_EQ(kept(-1, 0, 0).outcome, Outcome::right);
  ASSERT_EQ(outputs_.size(), std::size(kKeptInputs));
  const Trial right = real(-1, 0);
  EXPECT_EQ(right.outcome, Outcome::right);
  EXPECT_EQ(right.outputs.size(), std::size(kRealInputs));
  for (int run = 0; run < static_cast<int>(std::size(kRealInputs)) * kJobs; ++run) {
    if (run % kJobs == 0) continue;  // RELU hides some differences
    for (const size_t byte : {size_t{0}, kLast}) {
      SCOPED_TRACE(fmt::format("run {}, byte {}", run, byte));
      const Trial off = real(run, byte);
      EXPECT_EQ(off.outcome, Outcome::wrong);
      EXPECT_EQ(off.outputs.size(), static_cast<size_t>(run / kJobs) + 1) << "no run after that";
    }
  }
}

// They must find faults: each value of the range, the zero point, the ends, and bytes left over from a run.
TEST(TrialInputs, AreOfTheWholeRange) {
  for (const ir::DType type : {ir::DType::uint8, ir::DType::int8}) {
    ir::Graph graph("g");
    ir::Tensor tensor{.name = "x", .dtype = type, .shape = {1, 16, 16, 16}};
    tensor.quant = {.scales = {0.5F}, .zero_points = {type == ir::DType::int8 ? -7 : 121}};
    graph.inputs = {graph.add_tensor(tensor), graph.add_tensor(tensor)};
    const auto values = [&](size_t index) {
      const Bytes bytes = trial_inputs(graph, index)[0];
      EXPECT_EQ(bytes.size(), 4096U);
      return std::set<uint8_t>(bytes.begin(), bytes.end());
    };
    const bool is_signed = type == ir::DType::int8;
    EXPECT_EQ(values(0).size(), 256U);
    EXPECT_EQ(values(1), std::set{static_cast<uint8_t>(is_signed ? -7 : 121)});
    EXPECT_EQ(values(2), is_signed ? (std::set<uint8_t>{0x7f, 0x80}) : (std::set<uint8_t>{0, 0xff}));
    EXPECT_EQ(values(3).size(), 256U);
    EXPECT_EQ(trial_inputs(graph, 0), trial_inputs(graph, kTrialInputs - 1));
    EXPECT_NE(trial_inputs(graph, 0)[0], trial_inputs(graph, 0)[1]);
  }
}

// Also for 16 bits.
TEST(TrialInputs, AreOfTheWholeRangeOfWords) {
  ir::Graph graph("g");
  ir::Tensor tensor{.name = "x", .dtype = ir::DType::int16, .shape = {1, 16, 16, 16}};
  tensor.quant = {.scales = {0.5F}, .zero_points = {0}};
  graph.inputs = {graph.add_tensor(tensor)};
  const auto values = [&](size_t index) {
    const Bytes bytes = trial_inputs(graph, index)[0];
    std::set<int16_t> out;
    for (size_t i = 0; i + 1 < bytes.size(); i += 2) out.insert(load_le<int16_t>(bytes.data() + i));
    return out;
  };
  EXPECT_GT(values(0).size(), 3000U);
  EXPECT_EQ(values(1), std::set<int16_t>{0});
  EXPECT_EQ(values(2), (std::set<int16_t>{INT16_MIN, INT16_MAX}));
  EXPECT_EQ(values(3).size(), 256U);
  EXPECT_LT(*values(3).begin(), -32000);
}

// When a run is compared on the user's inputs, the outputs of the unchanged program are compared, too.
TEST_F(Trials, LookAtEachByteOfTheUsersResults) {
  ir::Graph graph = chain();
  graph.ops.resize(2);
  graph.outputs = {kM, kR};
  compile::Compiled compiled = alone(graph);
  const passes::Partition& part = compiled.parts[0].partition;
  Target device;
  const auto said = [&](ir::TensorId wrong, size_t at, Trust** trust) {
    const Inputs inputs(5);
    std::map<ir::TensorId, Bytes> bytes = {
        {0, inputs.x}, {1, inputs.y}, {kM, inputs.expected_m()}, {kR, inputs.expected_at_least(100)}};
    if (wrong != ir::kNoTensor) bytes[wrong][at] ^= 1;
    device = open_target("sim:toy").value();
    device.trust = std::make_shared<Trust>(DeviceIdentity{.chip = "toy"}, "");
    *trust = device.trust.get();
    SessionOptions options;
    options.verify_every = 1;
    VerifyAgain again(device, options);
    Report report;
    report.ops = compiled.ops;
    return again.check(0, part, graph, report, [&](ir::TensorId id) { return std::span<const uint8_t>(bytes.at(id)); });
  };
  Trust* trust = nullptr;
  EXPECT_EQ(said(ir::kNoTensor, 0, &trust), "");
  EXPECT_TRUE(trust->file().entries.empty());
  for (const ir::TensorId wrong : {kM, kR}) {
    for (const size_t at : {size_t{0}, kLast}) {
      EXPECT_EQ(said(wrong, at, &trust), "results differ from those of one operation at a time") << wrong << " " << at;
      EXPECT_TRUE(trust->refutes(TrustKind::operation));
      EXPECT_EQ(trust->file().entries.size(), 2U) << "which of both, nobody knows";
    }
  }
  // The assumptions of each operation held when it ran alone.
  const npu::Assumption one{.name = "one"};
  for (compile::OpPlace& place : compiled.ops) place.stands_on = {&one};
  EXPECT_NE(said(kM, 0, &trust), "");
  EXPECT_TRUE(trust->refutes(TrustKind::operation));
  EXPECT_FALSE(trust->refutes(TrustKind::assumption));
}

// An operation that was seen wrong is not accepted as the table that passes make of it.
TEST(OperationKey, IsThatOfTheTable) {
  const std::string text =
      "graph \"\"\ntensor 0 \"a\" int8 1x4x4x8 scale=0.0625 zero=3\n"
      "tensor 1 \"b\" int8 1x4x4x8 scale=0.00390625 zero=-128\ninputs 0\noutputs 1\nop 0 LOGISTIC in=[0] out=[1]\n";
  const ir::Graph logistic = ir::parse(text).value();
  const Bytes values = ref::of_each_byte(logistic, logistic.ops, 0, 1).value();
  const auto table = [&](Bytes bytes) {
    ir::Graph graph = logistic;
    ir::Tensor constant{.name = "t", .dtype = ir::DType::int8, .shape = {256}};
    ir::set_constant(constant, std::move(bytes));
    graph.ops[0] = {.kind = ir::OpKind::byte_table, .attrs = ir::NoAttrs{}, .inputs = {0, 2}, .outputs = {1}};
    graph.add_tensor(std::move(constant));
    return operation_key(graph, 0);
  };
  EXPECT_EQ(table(values), operation_key(logistic, 0));
  Bytes other = values;
  other[7] ^= 1;
  EXPECT_NE(table(other), operation_key(logistic, 0));
}

// A device that fails gets a second try on a new file; the outcome is `hangs` only after two hangs.
TEST_F(Trials, TriesTwice) {
  const auto tried = [&](std::vector<ErrorCode> failures) {
    Target device = open_target("sim:toy").value();
    size_t tries = 0;
    const Trial trial = try_twice(device, [&](const Target&) -> Result<Trial> {
      if (tries++ < failures.size()) return error(failures[tries - 1], "it broke");
      return Trial();
    });
    return std::pair(trial.outcome, tries);
  };
  using enum ErrorCode;
  EXPECT_EQ(tried({}), std::pair(Outcome::right, size_t{1}));
  EXPECT_EQ(tried({timeout}), std::pair(Outcome::right, size_t{2}));
  EXPECT_EQ(tried({device}), std::pair(Outcome::right, size_t{2}));
  EXPECT_EQ(tried({timeout, fault}), std::pair(Outcome::hangs, size_t{2}));
  EXPECT_EQ(tried({timeout, device}), std::pair(Outcome::not_asked, size_t{2}));
  EXPECT_EQ(tried({device, timeout}), std::pair(Outcome::not_asked, size_t{2}));
  EXPECT_EQ(tried({io}), std::pair(Outcome::not_asked, size_t{1})) << "of this process, not of the device";
  EXPECT_EQ(tried({timeout, io}), std::pair(Outcome::not_asked, size_t{2}));
}

// A device that is late only once is not late.
TEST_F(Trials, OnlyWhatIsLateTwiceIsLate) {
  Target device = open_target("sim:toy").value();
  for (const int late_tries : {0, 1, 2}) {
    int tries = 0;
    const Trial trial = try_twice(device, [&](const Target&) -> Result<Trial> {
      const bool is_late = tries++ < late_tries;
      Trial out;
      out.is_late = is_late;
      out.outcome = is_late ? Outcome::hangs : Outcome::right;
      return out;
    });
    EXPECT_EQ(trial.is_late, late_tries == 2);
    EXPECT_EQ(trial.outcome, late_tries == 2 ? Outcome::hangs : Outcome::right);
    EXPECT_EQ(tries, std::min(late_tries + 1, 2));
  }
}

}  // namespace
}  // namespace skillet::runtime
