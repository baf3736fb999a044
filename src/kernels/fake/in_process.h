// InProcess: the system calls of a client, implemented by an emulated kernel driver in this process as plain function
// calls. In a child of fork() they fail with ENODEV, and the kernel's state is not touched: its threads do not exist
// there, but their locks may be held. Called by open_simulated() and by tests of clients. Must not know: any single
// kernel driver.
#pragma once

#include <map>
#include <mutex>

#include "base/own_process.h"
#include "kernels/api/syscalls.h"
#include "kernels/fake/kernel.h"

namespace skillet::fake {

class InProcess final : public kernels::Syscalls {
 public:
  // `kernel` (made with Options::is_own_process) is reached by the name `node`, in any format; its minor number is that
  // of the last node of its place.
  InProcess(std::unique_ptr<Kernel> kernel, std::string node);
  ~InProcess() override;

  int open(const std::string& path) override;
  int close(int fd) override;
  int ioctl(int fd, unsigned long request, void* argument) override;
  // The buffer itself: all mappings share the same bytes, until its handle is closed.
  int mmap(int fd, uint64_t size_bytes, uint64_t offset, uint8_t*& bytes) override;
  int munmap(uint8_t* bytes, uint64_t size_bytes) override;
  int take_turn(int fd) override;
  int end_turn(int fd) override;
  std::string compatible(int fd) override;
  std::vector<std::string> driven_devices(std::string_view driver) override;
  std::string reason() const override { return process_.is_here() ? kernel_->reason() : ""; }
  void pause(std::chrono::nanoseconds time) override { kernel_->let_pass(time); }
  std::chrono::nanoseconds now() override { return kernel_->now().time_since_epoch(); }
  std::chrono::nanoseconds clock() override;
  bool loses_jobs() const override {
    return kernel_->options().on_fault == OnFault::reset || kernel_->options().loses_jobs;
  }

  Kernel& kernel() { return *kernel_; }
  // Call around a fork() whose child uses the kernel too, as in Kernel.
  void lock_all();
  void unlock_all();

 private:
  std::shared_ptr<File> find(int fd);
  int no_file() const;

  struct OpenFiles {
    std::mutex mutex;
    std::map<int, std::shared_ptr<File>> by_fd;
    int turn = 0;  // descriptor that has the turn; 0: none
  };
  std::unique_ptr<Kernel> kernel_;
  std::string node_;
  unsigned minor_ = 0;
  std::unique_ptr<OpenFiles> files_;
  int last_fd_ = 0;  // not a descriptor of the process
  OwnProcess process_;
};

}  // namespace skillet::fake
