// FaultPlan: calls of an emulated kernel driver that fail, and how: "submit:3:EIO,gem_new:1-4:ENOMEM,submit:*:hang".
// Called by the emulated kernel drivers (take) and by `skillet virtual` (checks the text before it runs anything).
// Must not know: what the calls do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace skillet::fake {

enum class FaultKind : uint8_t {
  none,
  number,        // the call fails with an errno
  hang,          // submit: the job never finishes
  reset,         // submit: the job is dropped and counts as finished, as after a reset of the core
  reset_before,  // submit: the core has been reset since the job before, as when a job of another process hung
  drop,          // job: it is silently dropped before it is queued
  late,          // submit: the kernel driver does not see the job's end, and ends it by its time limit
};

// The time limit of the kernel drivers.
constexpr std::chrono::milliseconds kJobTimeout{500};

struct Fault {
  FaultKind kind = FaultKind::none;
  int number = 0;
};

class FaultPlan {
 public:
  // Comma-separated list of CALL:N:WHAT. N counts the calls of that name from 1: a number, a range 2-5 or 2-*, or * for
  // all. WHAT is an errno's name, or for submit `hang`, `reset`, `reset_before` or `late`. One job of several in a
  // submission is "job:5:reset", which also accepts `drop`. The error names the wrong part and what is allowed. Checks
  // names of calls against the kernel driver of `chip`; "": of any kernel driver.
  static Result<FaultPlan> parse(std::string_view text, const std::string& chip = "");

  bool empty() const { return rows_.empty(); }
  // Counts one call and returns its fault, if any.
  Fault next(std::string_view call) const;

 private:
  struct Row {
    std::string call;
    uint64_t first = 1, last = UINT64_MAX;
    Fault fault;
    std::unique_ptr<std::atomic<uint64_t>> count;
  };
  static Result<Row> parse_row(std::string_view text, const std::string& chip);
  std::vector<Row> rows_;
};

}  // namespace skillet::fake
