// Network: a model on a device that is given pictures and says what it found in each.
// Called by element.cpp.
// Must not know: GStreamer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/session.h"
#include "tools/run/found.h"
#include "tools/tensors/picture.h"

namespace skillet::gstreamer {

struct NetworkOptions {
  std::string model, device, labels, float_pixels;
  std::optional<tools::Task> task;  // none: by the outputs
};

// A frame in memory of others: interleaved RGB or grey, or not.
struct FrameMemory {
  const uint8_t* data = nullptr;
  int width_px = 0, height_px = 0, channels = 0;
  bool is_packed = false;  // pixels of the channels in order, rows without gaps
  int dmabuf = -1;         // that the memory is of; -1: of none
  size_t dmabuf_offset = 0;
};

class Network {
 public:
  static Result<std::unique_ptr<Network>> create(const NetworkOptions& options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Whether this frame can be the input as it is; else it must come as a picture.
  bool takes(const FrameMemory& frame) const;
  Result<void> run(const FrameMemory& frame);
  Result<void> run(const tools::Picture& frame);
  // Of the last run; nothing where the outputs are none that we know. Error: they are not of the task.
  Result<std::optional<tools::Found>> found(std::optional<double> threshold) const;

  const ir::Graph& graph() const { return session_->graph(); }
  std::optional<tools::Task> task() const { return task_; }
  // What is wrong with the labels; empty: nothing.
  std::string misfit_of_labels() const;
  const std::vector<Bytes>& outputs() const { return outputs_; }
  // How frames reach the device, once for each way that is new; else empty.
  std::string news_of_copies();
  // Why the CPU took over from the NPU since this was asked last; empty: it did not.
  std::string lost();
  // Memory of frames that was shared with the device is given back.
  void forget_frames();

 private:
  explicit Network(const NetworkOptions& options) : options_(options) {}
  std::span<const uint8_t> shared(const FrameMemory& frame, size_t bytes);
  Result<void> run_on(std::span<const uint8_t> input);

  NetworkOptions options_;
  std::unique_ptr<runtime::Session> session_;
  std::optional<tools::Task> task_;
  tools::FindOptions find_;
  std::vector<Bytes> outputs_;
  std::map<uint64_t, std::span<uint8_t>> imported_;  // by the inode of the dma-buf, which lives as long as we map it
  std::string how_, told_;
  std::string not_shared_;  // why the device takes no memory of others; no more is offered then
  size_t lost_parts_ = 0;
};

}  // namespace skillet::gstreamer
