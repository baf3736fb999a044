// ForwardingCalls: forwards all system calls to others; a subclass overrides some.
// Called by the recorder and by tests of clients.
// Must not know: any single kernel driver.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/api/syscalls.h"

namespace skillet::kernels {

class ForwardingCalls : public Syscalls {
 public:
  explicit ForwardingCalls(SyscallsRef below) : below_(std::move(below)) {}

  int open(const std::string& path) override { return below_->open(path); }
  int close(int fd) override { return below_->close(fd); }
  int ioctl(int fd, unsigned long request, void* argument) override { return below_->ioctl(fd, request, argument); }
  int mmap(int fd, uint64_t size_bytes, uint64_t offset, uint8_t*& bytes) override {
    return below_->mmap(fd, size_bytes, offset, bytes);
  }
  int munmap(uint8_t* bytes, uint64_t size_bytes) override { return below_->munmap(bytes, size_bytes); }
  std::string compatible(int fd) override { return below_->compatible(fd); }
  std::vector<std::string> driven_devices(std::string_view driver) override { return below_->driven_devices(driver); }
  std::string reason() const override { return below_->reason(); }
  void pause(std::chrono::nanoseconds time) override { below_->pause(time); }
  std::chrono::nanoseconds now() override { return below_->now(); }
  std::chrono::nanoseconds clock() override { return below_->clock(); }
  int take_turn(int fd) override { return below_->take_turn(fd); }
  int end_turn(int fd) override { return below_->end_turn(fd); }
  bool loses_jobs() const override { return below_->loses_jobs(); }

 protected:
  const SyscallsRef below_;
};

}  // namespace skillet::kernels
