// verify_every on silicon with quirks. The probe of each quirk's assumption runs without verification, so the first run
// is wrong. The compared run and all later ones give the CPU's results, and the trust refutes what was wrong.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/log.h"
#include "base/testing/in_tree.h"
#include "base/testing/own_folder.h"
#include "graph/import/import.h"
#include "runtime/prove.h"
#include "runtime/session.h"
#include "runtime/trusted_driver.h"
#include "runtime/verify.h"
#include "sim/sim.h"

namespace skillet::runtime {
namespace {

namespace fs = std::filesystem;

class VerifyAgain : public testing::TestWithParam<const char*> {
  log::ScopedLevel level_{log::Level::error};
};

std::vector<Bytes> run(Session& session, const std::vector<Bytes>& inputs) {
  const std::vector<Bytes> before = inputs;
  auto out = session.run(std::vector<std::span<const uint8_t>>(inputs.begin(), inputs.end()));
  EXPECT_TRUE(out.ok()) << out.error().message;
  EXPECT_EQ(inputs, before);
  return out.ok() ? *out : std::vector<Bytes>();
}

int largest_difference(const Bytes& one, const Bytes& other) {
  int most = 0;
  for (size_t i = 0; i < other.size(); ++i) most = std::max(most, std::abs(one.at(i) - other[i]));
  return most;
}

bool refutes(const Trust& trust) { return trust.refutes(TrustKind::assumption) || trust.refutes(TrustKind::operation); }

// The evidence is of the refuted operation, not of the first operation of the part.
void expect_own_evidence(const ir::Graph& graph, const TrustEntry& entry) {
  if (entry.kind != TrustKind::operation) return;
  std::string said;
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    const std::string name = ir::describe_op(graph, static_cast<ir::OpId>(op)) + ": ";
    if (operation_key(graph, static_cast<ir::OpId>(op)) == entry.name && entry.evidence.starts_with(name))
      said = entry.evidence.substr(name.size());
  }
  EXPECT_TRUE(!said.empty() && (std::isdigit(said[0]) || said.starts_with("results differ"))) << entry.evidence;
}

TEST_P(VerifyAgain, TheRunThatIsComparedIsRight) {
  size_t refuted = 0, unseen = 0, quirks = 0;
  for (const sim::Quirk& quirk : sim::quirks(GetParam())) {
    if (quirk.assumption.empty()) continue;
    const Target target = open_target(fmt::format("sim:{},quirk={}", GetParam(), quirk.name)).value();
    const auto rows = target.driver->assumptions(target.chip);
    const auto row = std::ranges::find(rows, quirk.assumption, &npu::Assumption::name);
    ASSERT_NE(row, rows.end()) << quirk.name;
    const ir::Graph graph = ir::parse(row->probe).value();
    const auto cpu = Session::create(graph, open_target("cpu").value()).value();
    const auto session =
        Session::create(graph, target, {.compile = {.unproven = npu::Unproven::take}, .verify_every = 2}).value();
    ++quirks;
    for (const size_t index : {0, 2, 3}) {
      const std::vector<Bytes> inputs = trial_inputs(graph, index);
      const bool known = refutes(*target.trust);
      const std::vector<Bytes> first = run(*session, inputs);
      EXPECT_EQ(refutes(*target.trust), known) << quirk.name << ": compared too early";
      const std::vector<Bytes> second = run(*session, inputs);
      if (!refutes(*target.trust)) continue;
      const std::vector<Bytes> right = run(*cpu, inputs);
      unseen += !known && first != right ? 1 : 0;
      EXPECT_EQ(second, right) << quirk.name;
    }
    refuted += refutes(*target.trust) ? 1 : 0;
    for (const TrustEntry& one : target.trust->file().entries) expect_own_evidence(session->graph(), one);
  }
  std::cout << GetParam() << ": " << refuted << " of " << quirks
            << " quirks are refuted by inputs; the first run was wrong in " << unseen << "\n";
  EXPECT_GE(refuted, quirks / 2);
  EXPECT_GE(unseen, quirks / 2);
}

TEST_P(VerifyAgain, NothingIsRefutedWithoutAQuirk) {
  const Target target = open_target(fmt::format("sim:{}", GetParam())).value();
  for (const npu::Assumption& row : target.driver->assumptions(target.chip)) {
    if (row.probe.empty()) continue;
    const ir::Graph graph = ir::parse(row.probe).value();
    const auto session =
        Session::create(graph, target, {.compile = {.unproven = npu::Unproven::take}, .verify_every = 1}).value();
    for (const size_t index : {0, 2}) run(*session, trial_inputs(graph, index));
    EXPECT_FALSE(refutes(*target.trust)) << row.name;
    for (const PartReport& part : session->report().parts) EXPECT_EQ(part.fallback, "") << row.name;
  }
}

// Writing the file takes as long as a probe: once for all confirmed probes, and once for the part.
TEST_P(VerifyAgain, TheStoreIsWrittenOnceForAllProbes) {
  const fs::path folder = own_path("trust");
  fs::remove_all(folder);
  fs::create_directories(folder);
  const int events = ::inotify_init1(IN_NONBLOCK);
  ASSERT_GE(::inotify_add_watch(events, folder.c_str(), IN_MOVED_FROM), 0);
  ASSERT_EQ(::setenv("SKILLET_TRUST_DIR", folder.c_str(), 1), 0);
  const Target target = open_target(fmt::format("sim:{}", GetParam())).value();
  const auto session = Session::create(tflite::import_file(in_tree("models/digits.tflite")).value(), target).value();
  ASSERT_EQ(::unsetenv("SKILLET_TRUST_DIR"), 0);
  alignas(inotify_event) char bytes[4096];
  const ssize_t size = ::read(events, bytes, sizeof bytes);
  ::close(events);
  int writes = 0;
  for (ssize_t at = 0; at < size; ++writes) {
    const auto* const event = reinterpret_cast<const inotify_event*>(bytes + at);
    at += static_cast<ssize_t>(sizeof *event + event->len);
  }
  EXPECT_EQ(writes, 2);
  fs::remove_all(folder);
}

// x * sigmoid(x) becomes one table; alone, its operations would be others. On a chip without the quirk nothing would
// refute them again.
TEST_P(VerifyAgain, WhatATableWasMadeOfDoesNotComeBack) {
  constexpr const char* kSilu =
      "graph \"\"\ntensor 0 \"x\" int8 1x4x4x16 scale=0.0625 zero=3\n"
      "tensor 1 \"s\" int8 1x4x4x16 scale=0.00390625 zero=-128\ntensor 2 \"y\" int8 1x4x4x16 scale=0.0625 zero=-100\n"
      "inputs 0\noutputs 2\nop 0 LOGISTIC in=[0] out=[1]\nop 1 MUL in=[0 1] out=[2]\n";
  const ir::Graph graph = ir::parse(kSilu).value();
  const std::string chip = GetParam();
  if (chip == "imx93") GTEST_SKIP() << "tables stand on nothing of their own there";
  const char* const quirk = chip == "rk3588"   ? "half_of_table"
                            : chip == "rk3576" ? "lookup_needs_operands"
                                               : "tables_without_sign";
  const Target differs = open_target(fmt::format("sim:{},quirk={}", chip, quirk)).value();
  const auto session =
      Session::create(graph, differs, {.compile = {.unproven = npu::Unproven::take}, .verify_every = 1}).value();
  ASSERT_EQ(session->graph().ops.size(), 1U);
  for (const size_t index : {0, 2}) run(*session, trial_inputs(graph, index));
  ASSERT_TRUE(refutes(*differs.trust));
  if (!differs.trust->refutes(TrustKind::operation)) return;  // no operation on the assumption returns to the NPU
  Target as_assumed = open_target("sim:" + chip).value();
  as_assumed.trust = differs.trust;
  const auto next = Session::create(graph, as_assumed).value();
  for (const compile::OpPlace& place : next->report().ops) EXPECT_FALSE(place.on_npu) << explain(*next);
}

// A proven operation that this device computes wrong, beside one that stands on an assumption: both leave the NPU, in
// every way of finding out. 4093 is a prime, so the sum is not one of square images.
TEST(ProvenOperation, ThatIsSeenWrongIsNotTakenAgain) {
  const ir::Graph graph = ir::parse(R"(graph "a long row"
tensor 0 "a" uint8 1x1x4093x2 scale=0.05 zero=128
tensor 1 "b" uint8 1x1x4093x2 scale=0.04 zero=120
tensor 2 "sum" uint8 1x1x4093x2 scale=0.08 zero=125
tensor 3 "filter" uint8 4x1x3x2 scale=0.02 zero=128 const=random:1
tensor 4 "bias" int32 4 scale=0.0016 zero=0 const=random:2
tensor 5 "out" uint8 1x1x4093x4 scale=0.5 zero=120
inputs 0 1
outputs 2 5
op 0 ADD in=[0 1] out=[2]
op 1 CONV_2D in=[2 3 4] out=[5] padding=same
)")
                              .value();
  const auto cpu = Session::create(graph, open_target("cpu").value()).value();
  for (const uint32_t verify_every : {0U, 1U}) {
    SCOPED_TRACE(verify_every);
    const Target target = open_target("sim:imx8mp,quirk=long_rows_wrap").value();
    const SessionOptions first = {
        .compile = {.unproven = verify_every == 0 ? npu::Unproven::verify : npu::Unproven::take},
        .verify_every = verify_every};
    for (const SessionOptions& options : {first, SessionOptions()}) {
      const auto session = Session::create(graph, target, options).value();
      for (const size_t index : {0, 2}) {
        const std::vector<Bytes> inputs = trial_inputs(graph, index);
        const std::vector<Bytes> sum = run(*session, inputs), right = run(*cpu, inputs);
        EXPECT_LE(largest_difference(sum[0], right[0]), 1) << explain(*session);
      }
    }
    size_t refuted = 0;  // the sum, not the operation beside it
    for (const TrustEntry& one : target.trust->file().entries) {
      refuted += one.confirmed ? 0 : 1;
      EXPECT_TRUE(one.confirmed || one.evidence.starts_with("op 0 ADD")) << one.evidence;
    }
    EXPECT_EQ(refuted, 1U);
  }
}

// The same for an operation that hangs.
TEST(ProvenOperation, ThatHangsIsNotTakenAgain) {
  const ir::Graph graph = ir::parse(R"(graph "a long vector"
tensor 0 "in" uint8 1x1x1x1500 scale=0.05 zero=128
tensor 1 "f" uint8 16x1x1x1500 scale=0.002 zero=128 const=random:1
tensor 2 "b" int32 16 scale=0.0001 zero=0 const=random:2
tensor 3 "mid" uint8 1x1x1x16 scale=0.05 zero=128
tensor 4 "g" uint8 4x1x3x16 scale=0.02 zero=128 const=random:3
tensor 5 "c" int32 4 scale=0.001 zero=0 const=random:4
tensor 6 "out" uint8 1x1x1x4 scale=0.05 zero=120
inputs 0
outputs 3 6
op 0 CONV_2D in=[0 1 2] out=[3] padding=same
op 1 CONV_2D in=[3 4 5] out=[6] padding=same
)")
                              .value();
  const Target target = open_target("sim:a311d,quirk=long_vectors_hang").value();
  const auto session = Session::create(graph, target).value();
  run(*session, trial_inputs(graph, 0));
  for (const PartReport& part : session->report().parts) EXPECT_EQ(part.fallback, "");
  EXPECT_FALSE(session->report().ops[0].on_npu) << explain(*session);
  EXPECT_TRUE(session->report().ops[1].on_npu) << explain(*session);
}

// A chip on which all probes are wrong is not a failing chip: its proven operations are right.
TEST(AllProbesAreWrong, AndEachNamesItsAssumption) {
  std::string quirks;
  for (const char* one : {"channels_dealt_in_turn", "wide_last_patch", "filters_turned", "images_by_columns",
                          "scale_stays", "relu_reads_six", "reads_from_the_start", "tables_without_sign",
                          "tiles_by_columns", "blocks_by_columns", "long_vectors_hang"})
    quirks += fmt::format("{}{}", quirks.empty() ? "" : "+", one);
  const ir::Graph graph = tflite::import_file(in_tree("models/digits.tflite")).value();
  const Target target = open_target("sim:a311d,quirk=" + quirks).value();
  const auto session = Session::create(graph, target).value();
  EXPECT_TRUE(target.trust->refutes(TrustKind::assumption)) << explain(*session);
  const auto cpu = Session::create(graph, open_target("cpu").value()).value();
  const std::vector<Bytes> inputs = trial_inputs(graph, 0);
  EXPECT_EQ(run(*session, inputs), run(*cpu, inputs));
  const size_t known = target.trust->file().entries.size();
  EXPECT_LT(Session::create(graph, target).value()->report().verified.ms, session->report().verified.ms / 2);
  EXPECT_EQ(target.trust->file().entries.size(), known) << "a later load compares nothing";
}

// The auto-tuner divides the filters, and each job then reads a part of another job's output, which no recording shows.
// The operation is proven.
constexpr const char* kWideDepthwise = R"(graph "wide depthwise"
tensor 0 "in" uint8 1x14x14x512 scale=0.05 zero=128
tensor 1 "filter" uint8 1x3x3x512 scale=0.02 zero=128 const=random:1
tensor 2 "bias" int32 512 scale=0.001 zero=0 const=random:2
tensor 3 "out" uint8 1x14x14x512 scale=0.25 zero=120
inputs 0
outputs 3
op 0 DEPTHWISE_CONV_2D in=[0 1 2] out=[3] padding=same
)";

TEST(TunedJobs, AreComparedAndGiveWayToProvenOnes) {
  const log::ScopedLevel level(log::Level::error);
  const ir::Graph graph = ir::parse(kWideDepthwise).value();
  const auto cpu = Session::create(graph, open_target("cpu").value()).value();
  for (const char* device : {"sim:a311d", "sim:a311d,quirk=reads_from_the_start"}) {
    for (const auto unproven : {npu::Unproven::verify, npu::Unproven::refuse, npu::Unproven::take}) {
      SCOPED_TRACE(fmt::format("{} {}", device, npu::unproven_name(unproven)));
      const Target target = open_target(device).value();
      const SessionOptions tuned = {.compile = {.tuning = npu::Tuning::tuned, .unproven = unproven}};
      for (const char* load : {"first", "second"}) {
        SCOPED_TRACE(load);
        compile::Compiled compiled = compile_verified(target, graph, tuned).value();
        ASSERT_TRUE(compiled.parts.size() == 1 && compiled.parts[0].program) << "the NPU takes it";
        const size_t jobs = compiled.parts[0].program->operations.size();
        const auto session = Session::create(std::move(compiled), target, tuned).value();
        const std::vector<Bytes> inputs = trial_inputs(graph, 0);
        const std::vector<Bytes> out = run(*session, inputs), right = run(*cpu, inputs);
        const int most = largest_difference(out[0], right[0]);
        const bool differs = std::string_view(device).find("quirk") != std::string_view::npos;
        const bool unseen = unproven == npu::Unproven::take;
        EXPECT_EQ(most > 1, differs && unseen) << most;
        EXPECT_EQ(jobs > 3, unseen || (!differs && unproven == npu::Unproven::verify)) << jobs;
      }
      EXPECT_FALSE(refutes(*target.trust)) << "a proven operation is blamed for a tuned job";
    }
  }
}

// A confirmation applies to a program: the same assumptions with other sizes are compared again, once.
TEST_P(VerifyAgain, OtherSizesAreComparedAgain) {
  const Target target = open_target(fmt::format("sim:{}", GetParam())).value();
  size_t programs = 0;
  for (const int size : {9, 9, 21, 40}) {
    const std::string shape = fmt::format("1x{}x{}x16", size, size + 3);
    const auto tensor = [&](int id) {
      return fmt::format("tensor {} \"t{}\" uint8 {} scale=0.05 zero=128\n", id, id, shape);
    };
    const std::string text = "graph \"g\"\n" + tensor(0) +
                             "tensor 1 \"f\" uint8 16x3x5x16 scale=0.002 zero=128 const=random:1\n"
                             "tensor 2 \"b\" int32 16 scale=0.0001 zero=0 const=random:1\n" +
                             tensor(3) + tensor(4) +
                             "inputs 0\noutputs 4\nop 0 CONV_2D in=[0 1 2] out=[3] padding=same\n"
                             "op 1 CONV_2D in=[3 1 2] out=[4] padding=same\n";
    const ir::Graph graph = ir::parse(text).value();
    const auto session = Session::create(graph, target).value();
    ASSERT_TRUE(session->report().parts[0].on_npu) << explain(*session);
    ASSERT_FALSE(session->report().ops[1].stands_on.empty());
    const TrustFile file = target.trust->file();
    const auto is_program = [](const TrustEntry& one) { return one.kind == TrustKind::program && one.confirmed; };
    const size_t now = static_cast<size_t>(std::ranges::count_if(file.entries, is_program));
    const bool is_known = size == 9 && programs != 0;
    EXPECT_EQ(now, programs + (is_known ? 0 : 1));
    programs = now;
  }
}

constexpr const char* kFourHang = "sim:imx93,quirk=words_hang+wide_sums_hang+enlarging_hangs+ones_hang";

// Each hang takes a job's timeout, and a chip with so many hangs is not as assumed: the fourth assumption is not tried.
TEST(VerifyHangs, ThreeDifferentJobsThatHangAreEnough) {
  const log::ScopedLevel quiet{log::Level::error};
  const ir::Graph graph = ir::parse(R"(graph "four assumptions"
tensor 0 "a" int8 1x4x5x12 scale=0.1 zero=3
tensor 1 "softmax" int8 1x4x5x12 scale=0.00390625 zero=-128
tensor 2 "b" int16 1x7x7x20 scale=0.001 zero=0
tensor 3 "filter" int8 24x3x3x20 scale=0.01 zero=0 const=random:1
tensor 4 "wide" int16 1x7x7x24 scale=0.01 zero=0
tensor 5 "size" int32 2 const=[8 10]
tensor 6 "enlarged" int8 1x8x10x12 scale=0.1 zero=3
tensor 7 "axes" int32 2 const=[1 2]
tensor 8 "mean" int8 1x1x1x12 scale=0.04 zero=-5
inputs 0 2
outputs 1 4 6 8
op 0 SOFTMAX in=[0] out=[1] beta=1
op 1 CONV_2D in=[2 3] out=[4] padding=same
op 2 RESIZE_BILINEAR in=[0 5] out=[6]
op 3 MEAN in=[0 7] out=[8] keep_dims=true
)")
                              .value();
  const Target target = open_target(kFourHang).value();
  const auto session = Session::create(graph, target).value();
  std::vector<std::string> refuted;
  for (const TrustEntry& one : target.trust->file().entries)
    if (one.kind == TrustKind::assumption && !one.confirmed) refuted.push_back(one.name);
  std::ranges::sort(refuted);
  EXPECT_EQ(refuted, (std::vector<std::string>{"enlarged", "wide", "words"}));
  for (const PartReport& part : session->report().parts) EXPECT_FALSE(part.on_npu) << explain(*session);
}

TEST(VerifyHangs, AProofEndsAfterThreeStepsThatHang) {
  const log::ScopedLevel quiet{log::Level::error};
  ProofReport report;
  const auto proved =
      prove({.device = kFourHang, .risky = true, .keep = [](const ProofReport&) { return Result<void>(); }}, report);
  ASSERT_TRUE(proved.ok()) << proved.error().message;
  EXPECT_EQ(report.ended, "3 steps hung or failed");
  EXPECT_EQ(std::ranges::count(report.steps, ProofOutcome::hangs, &ProofStep::outcome), 3);
  EXPECT_EQ(report.find(ProofKind::assumption, "ones"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Chips, VerifyAgain, testing::Values("a311d", "imx8mp", "rk3588", "rk3576", "imx93"),
                         [](const auto& chip) { return std::string(chip.param); });

}  // namespace
}  // namespace skillet::runtime
