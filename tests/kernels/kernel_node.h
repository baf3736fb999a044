// KernelNode: a node of the emulated etnaviv kernel driver in this process, with what the tests of its client observe
// and disturb: calls are counted, and some answers can be changed.
// Called by the tests of kernels/etnaviv/client and of sessions on it.
// Must not know: how the device under test is written.
#pragma once

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernels/api/forwarding_calls.h"
#include "kernels/api/kernels.h"
#include "kernels/etnaviv/fake/kernel.h"
#include "kernels/fake/in_process.h"
#include "node_target.h"

namespace skillet::testing {

namespace abi = ::skillet::kernels::etnaviv;
namespace drm = ::skillet::kernels::drm;

// Changes the answer of a call before the client gets it.
using Edit = void (*)(void* argument);

class SpiedCalls final : public kernels::ForwardingCalls {
 public:
  using ForwardingCalls::ForwardingCalls;

  int ioctl(int fd, unsigned long request, void* argument) override {
    ++calls[request];
    const int result = below_->ioctl(fd, request, argument);
    if (result == 0) follow(request, argument);
    if (const auto edit = edits.find(request); edit != edits.end()) edit->second(argument);
    return result;
  }

  std::map<unsigned long, int> calls;
  std::map<unsigned long, Edit> edits;
  std::set<uint32_t> live;  // handles of buffers

 private:
  void follow(unsigned long request, const void* argument) {
    if (request == abi::kGemNew) live.insert(static_cast<const abi::GemNew*>(argument)->handle);
    if (request == drm::kPrimeFdToHandle) live.insert(static_cast<const drm::PrimeHandle*>(argument)->handle);
    if (request == drm::kGemClose) live.erase(static_cast<const drm::GemClose*>(argument)->handle);
  }
};

inline constexpr const char* kNode = "/dev/dri/renderD130";

class KernelNode {
 public:
  // `chips`: the node's cores in order, NPUs by their names, "gpu" for a core that takes no jobs; `faults` as for
  // fake::FaultPlan. Jobs that fault are reset, as on hardware.
  explicit KernelNode(const std::string& faults = "", const std::vector<std::string>& chips = {"a311d"}) {
    auto plan = fake::FaultPlan::parse(faults);
    fake::Options options{.faults = std::move(plan).value(), .is_own_process = true};
    std::vector<fake::etnaviv::Core> cores;
    for (const std::string& chip : chips) {
      if (chip == "gpu")
        cores.push_back({chip, {.ids = {0x7000, 0x6214}}, nullptr});
      else
        cores.push_back({chip, fake::etnaviv::identity_of(chip), sim::create(chip).value()});
    }
    auto kernel = std::make_unique<fake::etnaviv::Kernel>(std::move(cores), std::move(options));
    in_process_ = std::make_shared<fake::InProcess>(std::move(kernel), kNode);
    calls_ = std::make_shared<SpiedCalls>(in_process_);
  }

  fake::Kernel& kernel() { return in_process_->kernel(); }
  SpiedCalls& spy() { return *calls_; }
  kernels::SyscallsRef calls() const { return calls_; }
  Result<std::unique_ptr<kernels::Device>> open() const {
    SK_TRY_ASSIGN(const kernels::NodeReport report, kernels::ask_node(kNode, calls_));
    return kernels::open_core(report.cores.at(0), calls_);
  }
  Result<runtime::Target> target() const { return target_at(kNode, calls_); }

 private:
  std::shared_ptr<fake::InProcess> in_process_;
  std::shared_ptr<SpiedCalls> calls_;
};

}  // namespace skillet::testing
