// Network: runs a model on a device, picture by picture, and reads results from its outputs.
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
  std::optional<tools::Task> task;  // none: chosen by the outputs
};

// A frame in foreign memory: interleaved RGB or grey, or another format.
struct FrameMemory {
  const uint8_t* data = nullptr;
  int width_px = 0, height_px = 0, channels = 0;
  bool is_packed = false;  // interleaved channels in order, rows without gaps
  int dmabuf = -1;         // the dma-buf that contains the memory; -1: none
  size_t dmabuf_offset = 0;
};

class Network {
 public:
  static Result<std::unique_ptr<Network>> create(const NetworkOptions& options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // True if this frame can be the input as it is; otherwise pass a Picture.
  bool takes(const FrameMemory& frame) const;
  Result<void> run(const FrameMemory& frame);
  Result<void> run(const tools::Picture& frame);
  // Results of the last run; nothing if the outputs are of no known form. Error: they do not fit the task.
  Result<std::optional<tools::Found>> found(std::optional<double> threshold) const;

  const ir::Graph& graph() const { return session_->graph(); }
  std::optional<tools::Task> task() const { return task_; }
  // The problem with the labels; empty: none.
  std::string misfit_of_labels() const;
  const std::vector<Bytes>& outputs() const { return outputs_; }
  // Reports how frames reach the device, once for each new way; else empty.
  std::string news_of_copies();
  // Reports why the CPU has replaced the NPU since the last call; empty: it has not.
  std::string lost();
  // Frees the imports of frames.
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
  std::map<uint64_t, std::span<uint8_t>> imported_;  // by the dma-buf's inode, which exists while it is mapped
  std::string how_, told_;
  std::string not_shared_;  // why the device cannot import memory; then no more is offered
  size_t lost_parts_ = 0;
};

}  // namespace skillet::gstreamer
