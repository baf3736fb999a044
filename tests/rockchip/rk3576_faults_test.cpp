// Each kind of job of the RK3576 on a kernel that loses it. In the first inference and in a later one the error names
// the fault, and results of earlier inferences are never returned as new ones.
#include "base/log.h"
#include "base/log_sink.h"
#include "rk3576_board.h"

namespace skillet {
namespace {

using namespace rockchip_graphs;  // NOLINT: the text forms

std::string conv(const char* in, const char* filter, const char* out, const char* kind = "CONV_2D") {
  const std::string scales = std::string_view(kind) == "CONV_2D" ? "axis=0" : "axis=3";
  return tensor(0, in, 0.05F, 3, "int8") +
         fmt::format("tensor 1 \"f\" int8 {} scale=0.01 zero=0 {} const=random:3\n", filter, scales) +
         tensor(2, out, 0.5F, -4, "int8") + fmt::format("inputs 0\noutputs 2\nop 0 {} in=[0 1 -] out=[2]\n", kind);
}
std::string single(const char* kind, const char* in, const char* out, const char* more = "") {
  return tensor(0, in, 0.05F, 3, "int8") + tensor(1, out, 0.05F, 3, "int8") +
         fmt::format("inputs 0\noutputs 1\nop 0 {} in=[0] out=[1] {}\n", kind, more);
}

struct Kind {
  const char* what;
  std::string text;
  bool pools_last = false;
};
std::vector<Kind> kinds() {
  return {{"convolution", conv("1x8x8x16", "32x3x3x16", "1x8x8x32")},
          {"depthwise convolution", conv("1x8x8x48", "1x3x3x48", "1x8x8x48", "DEPTHWISE_CONV_2D")},
          {"fully connected", conv("1x1x1x64", "40x1x1x64", "1x1x1x40")},
          {"maximum",
           single("MAX_POOL_2D", "1x8x8x16", "1x4x4x16", "padding=valid stride_h=2 stride_w=2 filter_h=2 filter_w=2"),
           true},
          {"average", single("AVERAGE_POOL_2D", "1x8x8x16", "1x4x4x16",
                             "padding=valid stride_h=2 stride_w=2 filter_h=2 filter_w=2")},
          {"table", tensor(0, "1x8x8x16", 0.05F, 3, "int8") + tensor(1, "1x8x8x16", 1.0F / 256, -128, "int8") +
                        "inputs 0\noutputs 1\nop 0 LOGISTIC in=[0] out=[1]\n"},
          {"sum", sum("1x8x8x16", 0.02F, 0.03F, 0.04F)},
          {"concatenation", tensor(0, "1x4x4x16", 0.05F, 3, "int8") + tensor(1, "1x4x4x24", 0.05F, 3, "int8") +
                                tensor(2, "1x4x4x40", 0.05F, 3, "int8") +
                                "inputs 0 1\noutputs 2\nop 0 CONCATENATION in=[0 1] out=[2] axis=-1\n"},
          {"windows of rows", conv("1x100x64x64", "16x1x1x64", "1x100x64x16")},
          {"parts of the kernels", conv("1x1x1x64", "2945x1x1x64", "1x1x1x2945")}};
}

Result<std::vector<Bytes>> run_once(runtime::Session& session, uint32_t seed) {
  std::mt19937 random(seed);
  for (size_t i = 0; i < session.graph().inputs.size(); ++i) {
    Bytes bytes(static_cast<size_t>(session.graph().tensor(session.graph().inputs[i]).bytes()));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    SK_TRY(session.set_input(i, bytes));
  }
  SK_TRY(session.run());
  std::vector<Bytes> out;
  for (size_t i = 0; i < session.graph().outputs.size(); ++i) {
    SK_TRY_ASSIGN(const auto bytes, session.output(i));
    out.emplace_back(bytes.begin(), bytes.end());
  }
  return out;
}

Result<std::unique_ptr<runtime::Session>> open(const std::string& text, const runtime::Target& target) {
  SK_TRY_ASSIGN(ir::Graph graph, ir::parse("graph \"\"\n" + text));
  return runtime::Session::create(
      std::move(graph), target,
      {.compile = kUnseen, .allow_fallback = false, .partition = compile::PartitionBy::all, .cores = 1});
}

constexpr int kLate = 100;  // the inference where a later fault begins

struct Seen {
  std::string first_error, warned;
  int at = -1;  // the inference that failed first; -1: none
};

// Runs inferences with different inputs: each is right, or an error.
Seen infer(const Kind& kind, const char* variable, const char* value, const std::string& faults, int runs) {
  Seen seen;
  log::set_sink([&](log::Level, const char* line) { seen.warned += line; }, log::Level::warning);
  const auto right = open(kind.text, *runtime::open_target(kDevice));
  const Environment option(variable, value);
  const auto target = board(faults.c_str());
  const auto session = target.ok() ? open(kind.text, *target) : target.error();
  EXPECT_TRUE(right.ok() && session.ok());
  for (int i = 0; i < runs && right.ok() && session.ok(); ++i) {
    const auto expected = run_once(**right, static_cast<uint32_t>(i)),
               got = run_once(**session, static_cast<uint32_t>(i));
    EXPECT_TRUE(expected.ok());
    if (got.ok()) {
      EXPECT_EQ(*got, *expected) << "inference " << i;
    } else if (seen.at < 0) {
      seen.at = i, seen.first_error = got.error().message;
    }
  }
  log::set_sink({}, log::Level::warning);
  return seen;
}

size_t jobs_of(const Kind& kind) {
  const auto session = open(kind.text, *runtime::open_target(kDevice));
  EXPECT_TRUE(session.ok());
  size_t jobs = 0;
  for (const auto* const program : (*session)->programs(0)) jobs += program->jobs.size();
  return jobs;
}

TEST(Rk3576Faults, JobsThatWriteNothingAreNamed) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.what);
    const size_t jobs = jobs_of(kind);
    ASSERT_GT(jobs, 0U);
    for (const char* fault : {"reset", "drop"}) {
      for (const int late : {0, kLate}) {
        SCOPED_TRACE(fmt::format("{} {}", fault, late));
        const Seen seen =
            infer(kind, "", "", fmt::format("job:{}-*:{}", jobs * static_cast<size_t>(late) + 1, fault), late + 2);
        EXPECT_EQ(seen.at, late);
        EXPECT_NE(seen.first_error.find("did not write its output"), std::string::npos) << seen.first_error;
      }
    }
  }
}

// With the wrong TASK_CON only the first job after power-on computes.
TEST(Rk3576Faults, TheWrongTaskConIsNamed) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.what);
    const Seen seen = infer(kind, "SKILLET_SIM_TASK_CON", "0x7001", "", 3);
    EXPECT_EQ(seen.at, jobs_of(kind) == 1 ? 1 : 0);
    EXPECT_NE(seen.first_error.find("0x7001: 28673 tasks"), std::string::npos) << seen.first_error;
  }
}

// The kernel misses the end of jobs that use the pooling unit alone; they have written their output by then.
TEST(Rk3576Faults, PoolingThatIsNotHeardIsNamed) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.what);
    const Seen seen = infer(kind, "SKILLET_SIM_POOLING_DONE", "lost", "", 2);
    EXPECT_EQ(seen.at, -1) << seen.first_error;
    EXPECT_EQ(seen.warned.find("it ignores the pooling unit's interrupts") != std::string::npos, kind.pools_last)
        << seen.warned;
  }
}

}  // namespace
}  // namespace skillet
