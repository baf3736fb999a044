#include "frontend/gstreamer/network.h"

#include <sys/stat.h>

#include "runtime/session_keys.h"
#include "tools/model/model.h"
#include "tools/run/scores.h"

namespace skillet::gstreamer {
namespace {

constexpr size_t kMostImports = 64;  // pools of cameras have fewer buffers

}  // namespace

Result<std::unique_ptr<Network>> Network::create(const NetworkOptions& options) {
  std::unique_ptr<Network> out(new Network(options));
  if (out->options_.float_pixels.empty()) out->options_.float_pixels = tools::kFloatPixels[0];
  SK_TRY_ASSIGN(ir::Graph graph, tools::import_model(options.model));
  if (graph.inputs.size() != 1)
    return error(ErrorCode::unsupported, "{}: has {} inputs, but frames fill only one", options.model,
                 graph.inputs.size());
  SK_TRY(tools::check_image_input(graph.tensor(graph.inputs[0])).with_context(options.model));
  out->task_ = options.task ? options.task : tools::recognise(graph);
  if (!options.labels.empty()) SK_TRY_INTO(out->find_.labels, tools::read_labels(options.labels));
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(runtime::device_meant(options.device)));
  runtime::SessionOptions session;
  SK_TRY(runtime::set_options_of_environment(session));
  SK_TRY_ASSIGN(out->session_, runtime::Session::create(std::move(graph), target, runtime::with_defaults(session)));
  for (const ir::TensorId id : out->graph().outputs)
    out->outputs_.emplace_back(static_cast<size_t>(out->graph().tensor(id).bytes()));
  // Finds outputs of another form before the first frame.
  if (options.task) SK_TRY(tools::find(*options.task, out->graph(), out->outputs_, out->find_));
  return out;
}

std::string Network::misfit_of_labels() const {
  if (options_.labels.empty()) return "";
  const std::string wrong = tools::misfit_of_labels(task_, graph(), find_.labels.size());
  return wrong.empty() ? "" : fmt::format("{}: {}", options_.labels, wrong);
}

Network::~Network() { forget_frames(); }

void Network::forget_frames() {
  not_shared_.clear();
  if (imported_.empty()) return;
  runtime::DeviceContext& context = *session_->context();
  const std::lock_guard lock(context.mutex);
  for (const auto& [inode, bytes] : imported_)
    static_cast<void>(context.shared.free(*context.device, bytes.data()));  // else it is freed with the device
  imported_.clear();
}

bool Network::takes(const FrameMemory& frame) const {
  const ir::Tensor& input = graph().tensor(graph().inputs[0]);
  const tools::ImageShape image = tools::image_shape(input.shape);
  const bool is_plain = input.dtype == ir::DType::uint8 && (!image.channels_second || image.channels == 1);
  return is_plain && frame.is_packed && frame.channels == image.channels && frame.width_px == image.width &&
         frame.height_px == image.height;
}

// The frame in a buffer of the device, if its memory is or becomes one; else empty.
std::span<const uint8_t> Network::shared(const FrameMemory& frame, size_t bytes) {
  struct stat file = {};
  if (frame.dmabuf < 0 || session_->context() == nullptr || !not_shared_.empty()) return {};
  if (fstat(frame.dmabuf, &file) != 0) return {};
  auto at = imported_.find(file.st_ino);
  if (at == imported_.end()) {
    if (imported_.size() == kMostImports) forget_frames();
    runtime::DeviceContext& context = *session_->context();
    const std::lock_guard lock(context.mutex);
    const auto buffer = context.shared.import(*context.device, frame.dmabuf);
    if (!buffer.ok()) {
      not_shared_ = buffer.error().message;
      return {};
    }
    at = imported_.emplace(file.st_ino, buffer->bytes).first;
  }
  if (frame.dmabuf_offset > at->second.size() || bytes > at->second.size() - frame.dmabuf_offset) return {};
  return at->second.subspan(frame.dmabuf_offset, bytes);
}

Result<void> Network::run(const FrameMemory& frame) {
  const auto bytes = static_cast<size_t>(graph().tensor(graph().inputs[0]).bytes());
  const std::span<const uint8_t> in_place = shared(frame, bytes);
  const bool is_shared = !in_place.empty();
  SK_TRY(run_on(is_shared ? in_place : std::span(frame.data, bytes)));
  uint64_t copied = 0;
  for (const runtime::PartReport& part : session_->report().parts) copied += part.copied_bytes;
  if (is_shared)
    how_ = fmt::format("frames are dma-bufs that the device reads; {} bytes of inputs and outputs are copied", copied);
  else if (frame.dmabuf >= 0)
    how_ = fmt::format("frames are copied once: their dma-buf is not shared with the device{}{}",
                       not_shared_.empty() ? "" : ": ", not_shared_);
  else
    how_ = "frames are copied once: their memory is not a dma-buf";
  return {};
}

Result<void> Network::run(const tools::Picture& frame) {
  const ir::Tensor& input = graph().tensor(graph().inputs[0]);
  const tools::ImageShape image = tools::image_shape(input.shape);
  SK_TRY_ASSIGN(const Bytes bytes,
                tools::to_tensor(tools::with_channels(frame, image.channels), input, options_.float_pixels));
  how_ = fmt::format("frames of {}x{} are converted to the input: {} {}", frame.width_px, frame.height_px,
                     ir::dtype_name(input.dtype), input.shape.to_string());
  return run_on(bytes);
}

Result<void> Network::run_on(std::span<const uint8_t> input) {
  const std::vector<std::span<uint8_t>> outputs(outputs_.begin(), outputs_.end());
  return session_->run_on({&input, 1}, outputs);
}

Result<std::optional<tools::Found>> Network::found(std::optional<double> threshold) const {
  if (!task_) return std::optional<tools::Found>();
  tools::FindOptions find = find_;
  find.threshold = threshold;
  SK_TRY_ASSIGN(tools::Found out, tools::find(*task_, graph(), outputs_, find));
  return std::optional(std::move(out));
}

std::string Network::news_of_copies() {
  if (how_ == told_) return {};
  return told_ = how_;
}

std::string Network::lost() {
  size_t count = 0;
  std::string last;
  for (const runtime::PartReport& part : session_->report().parts) {
    if (part.fallback.empty()) continue;
    ++count;
    last = part.fallback;
  }
  if (count <= lost_parts_) return {};
  lost_parts_ = count;
  return last;
}

}  // namespace skillet::gstreamer
