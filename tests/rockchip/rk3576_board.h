// A simulated RK3576 behind a fake kernel driver in this process, whose jobs fail as boards were seen to.
// Called by rk3576_graphs_test.cpp, rk3576_faults_test.cpp.
// Must not know: graphs.
#pragma once

#include <cstdlib>

#include "kernels/fake/in_process.h"
#include "kernels/rocket/fake/kernel.h"
#include "node_target.h"
#include "rk3576_graphs.h"

namespace skillet::rockchip_graphs {

// Sets an option of the simulated chip (an environment variable) for its lifetime.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (*name != 0) ::setenv(name, value, 1);
  }
  ~Environment() {
    if (*name_ != 0) ::unsetenv(name_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* const name_;
};

// A kernel driver that handles failed jobs as on a board: it resets the chip and reports nothing.
constexpr const char* kNode = "/dev/accel/accel130";
inline Result<kernels::SyscallsRef> calls_of_board(const char* faults, const char* quirks = "") {
  SK_TRY_ASSIGN(fake::FaultPlan plan, fake::FaultPlan::parse(faults));
  SK_TRY_ASSIGN(auto simulator, sim::create("rk3576", quirks));
  auto kernel =
      fake::rocket::create("rk3576", std::move(simulator), {.faults = std::move(plan), .is_own_process = true});
  return kernels::SyscallsRef(std::make_shared<fake::InProcess>(std::move(kernel), kNode));
}
inline Result<runtime::Target> board(const char* faults) {
  SK_TRY_ASSIGN(const kernels::SyscallsRef calls, calls_of_board(faults));
  return testing::target_at(kNode, calls);
}

}  // namespace skillet::rockchip_graphs
