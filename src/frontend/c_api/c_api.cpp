// include/skillet/skillet.h on top of Session. Nothing is thrown across: bad_alloc and its kind become INTERNAL.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <future>

#include "base/int_math.h"
#include "base/parse_bool.h"
#include "base/parse_cores.h"
#include "frontend/tflite/import.h"
#include "runtime/session.h"
#include "skillet/skillet.h"

struct skillet_device {
  skillet::runtime::Target target;
};

struct skillet_model {
  std::unique_ptr<skillet::runtime::Session> session;
  std::string explanation;
  skillet::runtime::HeldBuffers used;  // by the run on memory of the caller that was started last
  // Valid between skillet_start and skillet_wait; its end waits for the run, and so comes before all others.
  std::future<skillet::Result<void>> started;
};

namespace {

using skillet::Error;
using skillet::ErrorCode;
using skillet::Result;

thread_local std::string last_error;

skillet_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return SKILLET_INVALID_ARGUMENT;
    case ErrorCode::malformed: return SKILLET_MALFORMED;
    case ErrorCode::unsupported: return SKILLET_UNSUPPORTED;
    case ErrorCode::out_of_range: return SKILLET_OUT_OF_RANGE;
    case ErrorCode::io: return SKILLET_IO;
    case ErrorCode::device: return SKILLET_DEVICE;
    case ErrorCode::timeout: return SKILLET_TIMEOUT;
    case ErrorCode::internal: break;
  }
  return SKILLET_INTERNAL;
}

// Runs `body`, which returns Result<void>, and keeps the message of its error.
template <typename Body>
skillet_status guard(Body body) noexcept {
  try {
    const Result<void> result = body();
    if (result.ok()) return SKILLET_OK;
    last_error = result.error().message;
    return status_of(result.error().code);
  } catch (const std::exception& e) {
    try {
      last_error = e.what();
    } catch (const std::exception&) {
      last_error.clear();
    }
    return SKILLET_INTERNAL;
  } catch (...) {
    last_error.clear();
    return SKILLET_INTERNAL;
  }
}

Error null_argument(const char* name) { return skillet::error(ErrorCode::invalid_argument, "{} is null", name); }

// A model that can be used now.
Result<void> check_model(const skillet_model* model) {
  if (model == nullptr) return null_argument("model");
  if (model->started.valid())
    return skillet::error(ErrorCode::invalid_argument, "a run has been started: skillet_wait comes first");
  return {};
}

skillet_type type_of(skillet::ir::DType dtype) {
  using skillet::ir::DType;
  switch (dtype) {
    case DType::float32: return SKILLET_FLOAT32;
    case DType::float16: return SKILLET_FLOAT16;
    case DType::int8: return SKILLET_INT8;
    case DType::uint8: return SKILLET_UINT8;
    case DType::int16: return SKILLET_INT16;
    case DType::int32: return SKILLET_INT32;
    case DType::int64: return SKILLET_INT64;
    case DType::boolean: return SKILLET_BOOL;
    default: return SKILLET_OTHER_TYPE;
  }
}

Result<void> set_per_channel(const char* what, const char* text, skillet::runtime::SessionOptions& options) {
  const auto mode = skillet::driver::per_channel_from_name(text);
  if (!mode) return skillet::error(ErrorCode::invalid_argument, "{}={}: must be exact or approximate", what, text);
  options.compile.per_channel = *mode;
  return {};
}

Result<skillet::runtime::SessionOptions> session_options(const skillet_options* options) {
  skillet::runtime::SessionOptions result;
  constexpr const char* kVariable = "SKILLET_ALLOW_UNPROVEN";
  if (const char* text = std::getenv(kVariable);
      text != nullptr && !skillet::parse_bool(text, result.compile.allow_unproven))
    return skillet::error(ErrorCode::invalid_argument, "{}={}: must be 1 or 0", kVariable, text);
  if (const char* text = std::getenv(skillet::kCoresVariable);
      text != nullptr && *text != '\0' && !skillet::parse_cores(text, result.cores))
    return skillet::error(ErrorCode::invalid_argument, "{}={}: must be auto or a number of cores",
                          skillet::kCoresVariable, text);
  if (const char* text = std::getenv("SKILLET_PER_CHANNEL"); text != nullptr && *text != '\0')
    SK_TRY(set_per_channel("SKILLET_PER_CHANNEL", text, result));
  if (options == nullptr) return result;
  const size_t bytes = options->struct_bytes;
  const bool old = bytes == offsetof(skillet_options, cache_dir);
  constexpr size_t kWithoutCores = skillet::align_up(offsetof(skillet_options, reserved), alignof(skillet_options));
  const bool older = old || bytes == kWithoutCores;
  const bool without_per_channel = older || bytes == offsetof(skillet_options, per_channel);
  if (!without_per_channel && bytes != sizeof *options)
    return skillet::error(ErrorCode::invalid_argument, "options: struct_bytes is {}, not {}", options->struct_bytes,
                          sizeof *options);
  if (!old && options->cache_dir != nullptr) result.cache_dir = options->cache_dir;
  if (!old && options->allow_unproven != 0) result.compile.allow_unproven = true;
  if (!older && options->cores < 0)
    return skillet::error(ErrorCode::invalid_argument, "options: cores is {}", options->cores);
  if (!older && options->cores != 0) result.cores = options->cores;
  if (!without_per_channel && options->per_channel != nullptr)
    SK_TRY(set_per_channel("options: per_channel", options->per_channel, result));
  if (options->tuned != 0) result.compile.tuning = skillet::driver::Tuning::tuned;
  result.allow_fallback = options->no_fallback == 0;
  if (options->timeout_ms != 0) result.timeout = std::chrono::milliseconds(options->timeout_ms);
  return result;
}

Result<void> load(const skillet_device& device, Result<skillet::ir::Graph> graph, const skillet_options* options,
                  skillet_model** out) {
  SK_TRY_ASSIGN(const auto session_opts, session_options(options));
  if (!graph.ok()) return std::move(graph).error();
  auto model = std::make_unique<skillet_model>();
  SK_TRY_ASSIGN(model->session,
                skillet::runtime::Session::create(std::move(graph).value(), device.target, session_opts));
  *out = model.release();
  return {};
}

Result<void> tensor_info(const skillet_model* model, const std::vector<skillet::ir::TensorId>* ids, size_t index,
                         skillet_tensor_info* out) {
  if (model == nullptr) return null_argument("model");
  if (out == nullptr) return null_argument("out");
  if (index >= ids->size())
    return skillet::error(ErrorCode::invalid_argument, "no tensor {}; there are {}", index, ids->size());
  const skillet::ir::Tensor& tensor = model->session->graph().tensor((*ids)[index]);
  if (tensor.shape.rank() > SKILLET_MAX_RANK)
    return skillet::error(ErrorCode::unsupported, "'{}' has {} dimensions", tensor.name, tensor.shape.rank());
  *out = {};
  out->name = tensor.name.c_str();
  out->type = type_of(tensor.dtype);
  out->rank = tensor.shape.rank();
  std::ranges::copy(tensor.shape.dims, out->dims);
  out->bytes = static_cast<size_t>(tensor.bytes());
  out->scale = tensor.quant.scale();
  out->zero_point = tensor.quant.zero_point();
  return {};
}

Result<void> get_output(const skillet_model* model, size_t index, void* data, size_t bytes) {
  SK_TRY(check_model(model));
  if (data == nullptr && bytes != 0) return null_argument("data");
  SK_TRY_ASSIGN(const std::span<const uint8_t> output, model->session->output(index));
  if (bytes != output.size())
    return skillet::error(ErrorCode::invalid_argument, "output {} has {} bytes, not {}", index, output.size(), bytes);
  if (bytes != 0) std::memcpy(data, output.data(), bytes);
  return {};
}

using Spans = std::vector<std::span<uint8_t>>;

// The caller's memory of each tensor; inputs are only read.
Result<Spans> spans(const skillet::ir::Graph& graph, const std::vector<skillet::ir::TensorId>& ids,
                    const void* const* pointers, const char* name) {
  if (pointers == nullptr) return null_argument(name);
  Spans out;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto bytes = static_cast<size_t>(graph.tensor(ids[i]).bytes());
    if (pointers[i] == nullptr && bytes != 0)
      return skillet::error(ErrorCode::invalid_argument, "{}[{}] is null", name, i);
    out.emplace_back(static_cast<uint8_t*>(const_cast<void*>(pointers[i])), bytes);
  }
  return out;
}

struct CallersMemory {
  std::vector<std::span<const uint8_t>> inputs;
  Spans outputs;

  void hold(skillet::runtime::HeldBuffers& held) const {
    for (const auto bytes : inputs) held.add(bytes);
    for (const auto bytes : outputs) held.add(bytes);
  }
};

Result<CallersMemory> callers_memory(const skillet_model* model, const void* const* inputs, void* const* outputs) {
  SK_TRY(check_model(model));
  const skillet::ir::Graph& graph = model->session->graph();
  SK_TRY_ASSIGN(const Spans in, spans(graph, graph.inputs, inputs, "inputs"));
  SK_TRY_ASSIGN(Spans out, spans(graph, graph.outputs, outputs, "outputs"));
  return CallersMemory{{in.begin(), in.end()}, std::move(out)};
}

// `body` on a thread of its own; what it would throw is an error.
template <typename Body>
std::future<Result<void>> in_background(Body body) {
  return std::async(std::launch::async, [body = std::move(body)]() -> Result<void> {
    try {
      return body();
    } catch (const std::exception& e) {
      return skillet::error(ErrorCode::internal, "{}", e.what());
    }
  });
}

Result<skillet::runtime::DeviceContext*> context_of(const skillet_device* device) {
  if (device == nullptr) return null_argument("device");
  if (device->target.context == nullptr)
    return skillet::error(ErrorCode::unsupported, "device '{}' shares no buffers: any memory will do",
                          device->target.name);
  return device->target.context.get();
}

}  // namespace

skillet_status skillet_open(const char* device, skillet_device** out) {
  return guard([&]() -> Result<void> {
    if (device == nullptr) return null_argument("device");
    if (out == nullptr) return null_argument("out");
    *out = nullptr;
    SK_TRY_ASSIGN(skillet::runtime::Target target, skillet::runtime::open_target(device));
    *out = new skillet_device{std::move(target)};
    return {};
  });
}

void skillet_close(skillet_device* device) { delete device; }

skillet_status skillet_load_file(skillet_device* device, const char* path, const skillet_options* options,
                                 skillet_model** out) {
  return guard([&]() -> Result<void> {
    if (device == nullptr) return null_argument("device");
    if (path == nullptr) return null_argument("path");
    if (out == nullptr) return null_argument("out");
    *out = nullptr;
    return load(*device, skillet::tflite::import_file(path), options, out);
  });
}

skillet_status skillet_load_memory(skillet_device* device, const void* data, size_t bytes,
                                   const skillet_options* options, skillet_model** out) {
  return guard([&]() -> Result<void> {
    if (device == nullptr) return null_argument("device");
    if (data == nullptr) return null_argument("data");
    if (out == nullptr) return null_argument("out");
    *out = nullptr;
    return load(*device, skillet::tflite::import({static_cast<const uint8_t*>(data), bytes}, "model"), options, out);
  });
}

void skillet_close_model(skillet_model* model) { delete model; }

size_t skillet_input_count(const skillet_model* model) {
  return model == nullptr ? 0 : model->session->graph().inputs.size();
}

size_t skillet_output_count(const skillet_model* model) {
  return model == nullptr ? 0 : model->session->graph().outputs.size();
}

skillet_status skillet_input_info(const skillet_model* model, size_t index, skillet_tensor_info* out) {
  return guard([&] { return tensor_info(model, model ? &model->session->graph().inputs : nullptr, index, out); });
}

skillet_status skillet_output_info(const skillet_model* model, size_t index, skillet_tensor_info* out) {
  return guard([&] { return tensor_info(model, model ? &model->session->graph().outputs : nullptr, index, out); });
}

skillet_status skillet_set_input(skillet_model* model, size_t index, const void* data, size_t bytes) {
  return guard([&]() -> Result<void> {
    SK_TRY(check_model(model));
    if (data == nullptr && bytes != 0) return null_argument("data");
    return model->session->set_input(index, {static_cast<const uint8_t*>(data), bytes});
  });
}

skillet_status skillet_run(skillet_model* model) {
  return guard([&]() -> Result<void> {
    SK_TRY(check_model(model));
    return model->session->run();
  });
}

skillet_status skillet_start(skillet_model* model) {
  return guard([&]() -> Result<void> {
    SK_TRY(check_model(model));
    model->started = in_background([session = model->session.get()] { return session->run(); });
    return {};
  });
}

skillet_status skillet_wait(skillet_model* model) {
  return guard([&]() -> Result<void> {
    if (model == nullptr) return null_argument("model");
    if (!model->started.valid()) return skillet::error(ErrorCode::invalid_argument, "no run has been started");
    auto done = model->started.get();
    model->used.clear();
    return done;
  });
}

skillet_status skillet_get_output(const skillet_model* model, size_t index, void* data, size_t bytes) {
  return guard([&] { return get_output(model, index, data, bytes); });
}

skillet_status skillet_run_on(skillet_model* model, const void* const* inputs, void* const* outputs) {
  return guard([&]() -> Result<void> {
    SK_TRY_ASSIGN(const CallersMemory memory, callers_memory(model, inputs, outputs));
    return model->session->run_on(memory.inputs, memory.outputs);
  });
}

skillet_status skillet_start_on(skillet_model* model, const void* const* inputs, void* const* outputs) {
  return guard([&]() -> Result<void> {
    SK_TRY_ASSIGN(CallersMemory memory, callers_memory(model, inputs, outputs));
    model->used.clear();  // a run that could not start has left some
    memory.hold(model->used);
    model->started = in_background(
        [session = model->session.get(), own = std::move(memory)] { return session->run_on(own.inputs, own.outputs); });
    return {};
  });
}

uint64_t skillet_copied_bytes(const skillet_model* model) {
  uint64_t sum = 0;
  if (!check_model(model).ok()) return sum;
  for (const skillet::runtime::PartReport& part : model->session->report().parts) sum += part.copied_bytes;
  return sum;
}

skillet_status skillet_buffer_alloc(skillet_device* device, size_t bytes, void** data, int* dmabuf_fd) {
  return guard([&]() -> Result<void> {
    if (data == nullptr) return null_argument("data");
    *data = nullptr;
    SK_TRY_ASSIGN(auto* context, context_of(device));
    const std::lock_guard lock(context->mutex);
    SK_TRY_ASSIGN(const auto buffer, context->shared.alloc(*context->device, bytes));
    *data = buffer.bytes.data();
    if (dmabuf_fd != nullptr) *dmabuf_fd = buffer.dmabuf;
    return {};
  });
}

skillet_status skillet_buffer_free(skillet_device* device, void* data) {
  return guard([&]() -> Result<void> {
    SK_TRY_ASSIGN(auto* context, context_of(device));
    const std::lock_guard lock(context->mutex);
    return context->shared.free(*context->device, static_cast<const uint8_t*>(data));
  });
}

int skillet_buffer_find(const void* data, size_t bytes, skillet_buffer_info* out) {
  if (data == nullptr || out == nullptr || out->struct_bytes != sizeof *out) return 0;
  const auto found = skillet::runtime::SharedBuffers::find_anywhere({static_cast<const uint8_t*>(data), bytes});
  if (!found) return 0;
  out->data = found->bytes.data();
  out->bytes = found->bytes.size();
  out->dmabuf_fd = found->dmabuf;
  out->serial = found->serial;
  return 1;
}

const char* skillet_explain(skillet_model* model) {
  if (model == nullptr) return "";
  guard([&]() -> Result<void> {
    if (model->started.valid()) model->started.wait();
    model->explanation = skillet::runtime::explain(*model->session);
    return {};
  });
  return model->explanation.c_str();
}

const char* skillet_last_error(void) { return last_error.c_str(); }

const char* skillet_version(void) { return SKILLET_VERSION; }
