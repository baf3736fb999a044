// A trust file, a report of `skillet prove` and a file of tunings, with an entry of each kind.
// Called by files_test.cpp and json_test.cpp.
// Must not know: what the tests change.
#pragma once

#include "compile/tuning_file.h"
#include "runtime/proof_report.h"
#include "runtime/trust.h"

namespace skillet::answers {

inline runtime::DeviceIdentity device_of_reports() {
  const capture::DeviceInfo info{
      .kernel_driver = "etnaviv", .node = "sim:a311d", .compatible = "", .facts = {{"model", 0x8000}}};
  return runtime::identity_of("a311d", info, true);
}

inline runtime::TrustFile trust_file() {
  return {.device = device_of_reports(),
          .entries = {{.kind = runtime::TrustKind::program,
                       .name = "n",
                       .confirmed = true,
                       .build = "b",
                       .date = "2026-11-24T13:37:00Z",
                       .evidence = "e",
                       .stands_on = {{"one"}}},
                      {.kind = runtime::TrustKind::cost,
                       .name = "clock_ghz",
                       .confirmed = true,
                       .build = "b",
                       .date = "2026-11-24T13:37:00Z",
                       .evidence = "e",
                       .value = 0.5}}};
}

inline runtime::ProofReport proof_report() {
  runtime::ProofReport report{.device = device_of_reports(),
                              .build = "b",
                              .date = "2026-11-24T13:37:00Z",
                              .facts = {{"board", "x"}},
                              .ended = "all",
                              .steps = {}};
  report.steps.push_back({.kind = runtime::ProofKind::assumption,
                          .name = "byte_tables",  // one of the chip's: other names are refused
                          .outcome = runtime::ProofOutcome::wrong,
                          .what = "w",
                          .outputs = {{4, "0123456789abcdef0123456789abcdef", "00ff"}}});
  report.steps.push_back({.kind = runtime::ProofKind::time,
                          .name = "two",
                          .outcome = runtime::ProofOutcome::right,
                          .what = "",
                          .outputs = {},
                          .ns = 5000,
                          .spread_ns = 20});
  return report;
}

inline compile::TuningFile tuning_file() {
  return {.chip = "a311d",
          .build = "b",
          .model = "m",
          .device = "d",
          .found = "f",
          .parts = {{"0123456789abcdef", {"one"}, {{.op = 1, .name = "n", .value = 2}}}},
          .path = ""};
}

}  // namespace skillet::answers
