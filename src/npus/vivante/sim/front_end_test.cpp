// The front end: streams of states become jobs, or faults that name the state.
#include "npus/vivante/sim/front_end.h"

#include <gtest/gtest.h>

#include "npus/vivante/sim/test_support.h"

namespace skillet::sim::vivante {
namespace {

using Words = std::vector<uint32_t>;

// Specification, appendix C: a TP job on four cores and an NN job.
const Words kAppendixC = {
    0x08010E4F, 0,     0x08010E50, 0,    0x08010E53, 0,    0x08010E54, 0,          0x0801042E, 0x00505001,  //
    0x08010E4F, 0,     0x08010E50, 0,    0x08010E53, 0,    0x08010E54, 0,          0x0801042E, 0x00506001,  //
    0x08010E4F, 0,     0x08010E50, 0,    0x08010E53, 0,    0x08010E54, 0,          0x0801042E, 0x00507001,  //
    0x08010E4F, 0,     0x08010E50, 0,    0x08010E53, 0,    0x08010E54, 0,          0x0801042E, 0x00508000,  //
    0x08010429, 0,                                                                                          //
    0x08010E4F, 0,     0x08010E50, 0,    0x08010E4C, 0x10, 0x08010428, 0x00504000, 0x08010429, 0,
    0x08010E03, 0xC23, 0x08010E03, 0xC23};

Result<std::vector<std::string>> jobs_of(const Words& stream) {
  std::vector<std::string> jobs;
  const auto note = [&jobs](const char* unit) {
    return [&jobs, unit](const StartedJob& job) -> Result<void> {
      jobs.push_back(fmt::format("{} {:x}{}", unit, job.address, job.event == 0 ? "" : ", a part"));
      return {};
    };
  };
  KeptStates kept;
  const auto wait = [&jobs](uint32_t event) -> Result<void> {
    jobs.push_back(fmt::format("wait {}", event));
    return {};
  };
  SK_TRY(run_stream(stream, {.run_nn = note("NN"), .run_tp = note("TP"), .wait = wait}, kept));
  return jobs;
}

TEST(FrontEnd, StreamOfTheSpecification) {
  const auto jobs = jobs_of(kAppendixC);
  ASSERT_TRUE(jobs.ok()) << jobs.error().message;
  EXPECT_EQ(*jobs, (std::vector<std::string>{"TP 505000, a part", "TP 506000, a part", "TP 507000, a part", "TP 508000",
                                             "wait 0", "NN 504000", "wait 0"}));
}

TEST(FrontEnd, SkipsAndEnds) {
  Words stream = {0, 0, 0x18000000, 0, 0x380000C8, 0, 0x48000000, 0x701, 0x0801028A, 0x11, 0x08010E13, 2};
  EXPECT_TRUE(jobs_of(stream)->empty());
  // Two values in one packet: TP at 0x10B8 has no neighbour that may be written, so use 0x393C and 0x3940.
  EXPECT_TRUE(jobs_of({0x08020E4F, 0, 0, 0, 0x08010428, 0x1000}).ok());
  EXPECT_EQ(jobs_of({0x08020E4F, 0, 0, 0, 0x08010428, 0x1000})->size(), 1u);
  EXPECT_TRUE(jobs_of({0x10000000, 0, 0x08010428, 0x1000})->empty());
}

// Both states of the one-time set-up (specification, section 3.3) must be written again.
TEST(FrontEnd, JobsStopAfterAResetUntilTheChipIsSetUpAgain) {
  const Units units{.run_nn = [](const StartedJob&) { return Result<void>(); },
                    .run_tp = [](const StartedJob&) { return Result<void>(); }};
  const Words job = {0x08010428, 0x1000}, first = {0x0801028A, 0x11}, second = {0x08010E13, 2};
  KeptStates kept;
  EXPECT_TRUE(run_stream(job, units, kept).ok()) << "a new chip is taken as set up";
  kept.reset();
  EXPECT_TRUE(run_stream(first, units, kept).ok());
  const auto stopped = run_stream(job, units, kept);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().message,
            "stream word 0: NN job after a reset: state api_mode (0x384c) has not been set again");
  EXPECT_TRUE(run_stream(second, units, kept).ok());
  EXPECT_TRUE(run_stream(job, units, kept).ok());
}

struct BadStream {
  Words stream;
  const char* fault;
};
TEST(FrontEnd, FaultsNameStateAndValue) {
  for (const BadStream& bad : {
           BadStream{{0x0801028B, 1}, "state 0x0a2c <- 0x00000001: unknown state"},
           BadStream{{0, 0, 0x08010E53, 7}, "stream word 2: state tp_config (0x394c) <- 0x00000007"},
           BadStream{{0x08010E4C, 0x110}, "nn_config.nn_core_count = 1"},
           BadStream{{0x08010E4C, 0x80}, "nn_config: word 0 has bits 0x00000080"},
           BadStream{{0x08010E54, 0x4}, "vip_flush_control: word 0"},
           BadStream{{0x08010428, 0x00504002}, "nn_instruction_address (0x10a0) <- 0x00504002"},
           BadStream{{0x0801042E, 0x00504020}, "descriptor is not 64-byte aligned"},
           BadStream{{0x08040E4F, 0, 0}, "the stream ends after 2"},
           BadStream{{0x08020E53, 0}, "2 values, but the stream ends after 1"},
           BadStream{{0x08010E53}, "1 values, but the stream ends after 0"},
           BadStream{{0x08010E4F, 0, 0x08020E53, 0}, "2 values, but the stream ends after 1"},
           BadStream{{0x08000E4F, 0}, "count 0"},
           BadStream{{0x0C010E4F, 0}, "fixed-point"},
           BadStream{{0x40000000, 0x1000}, "opcode 8"},
           BadStream{{0x00000001, 0}, "opcode 0"},
           BadStream{{0, 1}, "opcode 0"},
       }) {
    const auto jobs = jobs_of(bad.stream);
    ASSERT_FALSE(jobs.ok()) << bad.fault;
    EXPECT_NE(jobs.error().message.find(bad.fault), std::string::npos) << jobs.error().message;
  }
}

}  // namespace
}  // namespace skillet::sim::vivante
