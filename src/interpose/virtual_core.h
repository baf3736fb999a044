// VirtualCore: the one simulated core behind all open files of a process.
// Called by VirtualFile and the registry of open files.
// Must not know: handles, ioctls.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <span>

#include "base/log.h"
#include "interpose/jobs.h"
#include "interpose/virtual_options.h"
#include "sim/sim.h"

namespace skillet::interpose {

class VirtualCore {
 public:
  // The error of sim::create() when there is no simulator of the chip.
  static Result<std::unique_ptr<VirtualCore>> create(VirtualOptions options);

  const VirtualOptions& options() const { return options_; }
  Jobs& jobs() { return jobs_; }
  // Held from the check of a submission to its end: jobs run one by one, in the order of their ids.
  std::mutex& order() { return order_; }
  Result<void> execute(std::span<const uint32_t> stream, const sim::Memory& memory) {
    return chip_->execute(stream, memory);
  }
  void reset() { chip_->reset(); }

  template <typename... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) const {
    if (options_.traces) write_trace(fmt::format(format, std::forward<Args>(args)...));
  }
  // Traces why a call fails; gives the kernel's return value.
  template <typename... Args>
  int refuse(int number, fmt::format_string<Args...> format, Args&&... args) const {
    if (options_.traces || log::enabled(log::Level::debug))
      write_refusal(number, fmt::format(format, std::forward<Args>(args)...));
    return -number;
  }

 private:
  explicit VirtualCore(VirtualOptions options) : options_(std::move(options)) {}
  void write_trace(const std::string& text) const;
  void write_refusal(int number, const std::string& text) const;

  VirtualOptions options_;
  std::unique_ptr<sim::Device> chip_;
  Jobs jobs_;
  std::mutex order_;
};

}  // namespace skillet::interpose
