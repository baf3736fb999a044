// The two ways in which a task can fail: the chip's behavior is not known, or the chip is known to wait for ever. And
// rules that a program can break. Called by the files of npus/rockchip/sim.
// Must not know: anything else.
#pragma once

#include "base/result.h"
#include "npus/rockchip/sim/options.h"

namespace skillet::sim::rockchip {

// Not modelled: the run stops with a report.
template <typename... Args>
Error not_modelled(fmt::format_string<Args...> format, Args&&... args) {
  return Error{ErrorCode::device, fmt::format(format, std::forward<Args>(args)...)};
}

// The chip stalls: Npu::run_task() turns this into TaskResult::stall.
template <typename... Args>
Error stall(fmt::format_string<Args...> format, Args&&... args) {
  return Error{ErrorCode::timeout, fmt::format(format, std::forward<Args>(args)...)};
}
inline bool is_stall(const Error& error) { return error.code == ErrorCode::timeout; }

// A program breaks the rule with this name in options.def: `error`, or a warning once per process, or nothing.
Result<void> broken(Enforce how, std::string_view rule, Error error);

}  // namespace skillet::sim::rockchip
