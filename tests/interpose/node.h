// Node: an open etnaviv node with raw ioctls that return errno, and a job recorded on silicon. Called by the tests of
// the preloaded libraries; built for other machines too. Must not know: whether the node is a real one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "capture/capture.h"
#include "kernels/etnaviv/abi.h"

namespace skillet::interpose_test {

namespace abi = ::skillet::kernels::etnaviv;
namespace drm = ::skillet::kernels::drm;

inline constexpr const char* kNode = "/dev/dri/renderD128";
inline constexpr int64_t kForeverSeconds = 1 << 20;

abi::Timespec deadline_in(int64_t milliseconds);

class Node {
 public:
  explicit Node(const char* path = kNode);
  ~Node();
  Node(const Node&) = delete;

  int fd() const { return fd_; }
  int open_error() const { return open_error_; }
  // Returns 0, or the errno.
  int call(unsigned long request, void* argument) const;
  template <typename Args>
  int call(unsigned long request, Args& args) const {
    return call(request, static_cast<void*>(&args));
  }

  int new_buffer(uint64_t size_bytes, uint32_t& handle) const;
  int map(uint32_t handle, uint64_t size_bytes, uint8_t*& bytes) const;
  int close_buffer(uint32_t handle) const;
  int submit(abi::GemSubmit& args, const std::vector<abi::SubmitBo>& buffers,
             const std::vector<uint32_t>& stream) const;
  int wait(uint32_t fence, int64_t milliseconds) const;
  int prepare(uint32_t handle, uint32_t op, int64_t milliseconds) const;

 private:
  int fd_ = -1;
  int open_error_ = 0;
};

// The recorded job: its buffers at their recorded addresses, its input filled in.
class RecordedJob {
 public:
  // `folder` contains capture.json, input_0.bin, output_0.bin.
  static Result<RecordedJob> load(const std::string& folder);

  // Returns the name of the first step that fails, or "".
  std::string allocate(const Node& node);
  // Returns the errno of the submission.
  int submit(const Node& node, uint32_t flags, uint32_t& fence, int* fence_fd = nullptr) const;
  // The graph's output as the device wrote it.
  std::vector<uint8_t> output() const;
  void clear_output() const;
  const std::vector<uint8_t>& expected() const { return expected_; }
  uint32_t output_handle() const { return handles_.at(kOutput); }
  uint32_t input_handle() const { return handles_.at(kInput); }
  const capture::Submission& recorded() const { return capture_.submissions.back(); }
  const std::vector<uint32_t>& stream() const { return recorded().jobs.at(0).commands.at(0).words; }
  std::vector<abi::SubmitBo> listed() const;

 private:
  static constexpr uint32_t kInput = 3, kOutput = 6;  // handles in the recording
  capture::Capture capture_;
  std::vector<uint8_t> input_, expected_;
  std::map<uint32_t, uint32_t> handles_;  // recorded -> ours
  std::map<uint32_t, uint8_t*> bytes_;    // by recorded handle
};

}  // namespace skillet::interpose_test
