// Models of the C interface, on top of Session.
#include <unistd.h>

#include <algorithm>
#include <future>
#include <system_error>

#include "base/caught.h"
#include "frontend/c_api/internal.h"
#include "graph/import/import.h"
#include "runtime/compiled_model.h"
#include "runtime/program_cache.h"

struct skillet_model {
  std::unique_ptr<skillet::runtime::Session> session;
  std::string explanation;
  std::vector<skillet::compile::OpRow> rows;  // empty: filled on the next request
  skillet::runtime::HeldBuffers used;         // by the last started run on the caller's memory
  // Valid between skillet_start and skillet_wait. Declared after the members that a run uses: its destructor waits for
  // the run.
  std::future<skillet::Result<void>> started;
  pid_t started_by = 0;

  // True in a child of fork(): the thread of the run, and its locks, exist only in the parent.
  bool is_lost() const { return started.valid() && started_by != ::getpid(); }
};

namespace {

using skillet::Error;
using skillet::ErrorCode;
using skillet::Result;
using skillet::c_api::guard;
using skillet::c_api::null_argument;
using skillet::runtime::CompiledModel;

Result<void> check_not_lost(const skillet_model& model) {
  if (!model.is_lost()) return {};
  return skillet::error(ErrorCode::invalid_argument,
                        "the run was started before a fork() and ends in the process that started it; this process can "
                        "only close the model");
}

// An error if the model cannot be used now.
Result<void> check_model(const skillet_model* model) {
  if (model == nullptr) return null_argument("model");
  SK_TRY(check_not_lost(*model));
  if (model->started.valid())
    return skillet::error(ErrorCode::invalid_argument, "a run is in progress: wait for its end first (skillet_wait)");
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

// `read`: a compiled model; without programs if it is a .tflite file.
Result<void> load(const skillet_device& device, Result<CompiledModel> read, const skillet_options* options,
                  skillet_model** out) {
  SK_TRY_ASSIGN(auto session_opts, skillet::c_api::session_options(options));
  if (!read.ok()) return std::move(read).error();
  if (!read->programs.empty()) {
    skillet::runtime::say_what_differs(*read, device.target);
    session_opts.programs = std::make_shared<skillet::runtime::ProgramStore>(std::move(read->programs));
  }
  auto model = std::make_unique<skillet_model>();
  SK_TRY_ASSIGN(model->session, skillet::runtime::Session::create(std::move(read->graph), device.target, session_opts));
  if (session_opts.programs != nullptr) {
    const std::string unused =
        skillet::runtime::what_is_unused(*read, *session_opts.programs, device.target, session_opts);
    if (!unused.empty()) skillet::log::warning("the compiled model: {}", unused);
  }
  *out = model.release();
  return {};
}

Result<CompiledModel> read_file(const std::string& path) {
  if (const auto is_compiled = skillet::runtime::is_compiled_model(path); is_compiled.ok() && *is_compiled) {
    SK_TRY_ASSIGN(skillet::Bytes bytes, skillet::read_file(path));
    return skillet::runtime::read_runnable(std::move(bytes)).with_context(path);
  }
  SK_TRY_ASSIGN(auto graph, skillet::tflite::import_file(path));
  return CompiledModel{.graph = std::move(graph), .note = {}, .programs = {}};
}

Result<CompiledModel> read_memory(std::span<const uint8_t> bytes) {
  if (skillet::runtime::is_compiled_model(bytes))
    return skillet::runtime::read_runnable(skillet::Bytes(bytes.begin(), bytes.end()));
  SK_TRY_ASSIGN(auto graph, skillet::tflite::import(bytes, "model"));
  return CompiledModel{.graph = std::move(graph), .note = {}, .programs = {}};
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

Result<void> output_maker(const skillet_model* model, size_t index, skillet_maker* out) {
  if (model == nullptr) return null_argument("model");
  SK_TRY(skillet::c_api::check_info(out));
  const skillet::ir::Graph& graph = model->session->graph();
  if (index >= graph.outputs.size())
    return skillet::error(ErrorCode::invalid_argument, "no output {}; there are {}", index, graph.outputs.size());
  *out = {.struct_bytes = sizeof *out, .kind = "", .place = 0};
  for (const skillet::ir::Op& op : graph.ops) {
    const auto made = std::ranges::find(op.outputs, graph.outputs[index]);
    if (made == op.outputs.end()) continue;
    out->kind = skillet::ir::op_name(op).data();  // null-terminated: a literal, or the operation's own string
    out->place = static_cast<size_t>(made - op.outputs.begin());
  }
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

// Time of operation `op` in the last run of its part; -1: not known.
double op_ms(const skillet::runtime::PartReport& part, skillet::ir::OpId op) {
  const auto place = static_cast<size_t>(std::ranges::find(part.ops, op) - part.ops.begin());
  return place < part.op_ms.size() ? part.op_ms[place] : -1;
}

Result<void> op_info(skillet_model* model, size_t index, skillet_op_info* out) {
  SK_TRY(check_model(model));
  SK_TRY(skillet::c_api::check_info(out));
  if (model->rows.empty()) model->rows = skillet::runtime::rows(*model->session);
  if (index >= model->rows.size())
    return skillet::error(ErrorCode::invalid_argument, "no operation {}; there are {}", index, model->rows.size());
  const skillet::compile::OpRow& row = model->rows[index];
  const skillet::runtime::PartReport& part = model->session->report().parts[row.part];
  *out = {.struct_bytes = sizeof *out,
          .kind = row.kind.c_str(),
          .output = row.output.c_str(),
          .why = row.why.c_str(),
          .note = row.note.c_str(),
          .part = static_cast<uint32_t>(row.part),
          .on_npu = row.on_npu,
          .unproven = row.unproven,
          .failed = part.on_npu && !part.fallback.empty(),
          .ms = row.on_npu ? -1 : op_ms(part, row.op),
          .part_ms = part.run_ms > 0 ? part.run_ms : -1};
  return {};
}

using Spans = std::vector<std::span<uint8_t>>;

// Memory of the caller for each tensor; inputs are only read.
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

// Runs `body` on a thread of its own; an exception in it becomes an error.
template <typename Body>
Result<void> start(skillet_model& model, Body body) {
  model.started_by = ::getpid();
  try {
    model.started =
        std::async(std::launch::async, [body = std::move(body)]() -> Result<void> { return skillet::caught(body); });
  } catch (const std::system_error& failure) {
    model.used.clear();
    return skillet::error(ErrorCode::io, "the thread of the run cannot be started: {}", failure.what());
  }
  return {};
}

}  // namespace

skillet_status skillet_load_file(skillet_device* device, const char* path, const skillet_options* options,
                                 skillet_model** out) {
  return guard([&]() -> Result<void> {
    if (device == nullptr) return null_argument("device");
    if (path == nullptr) return null_argument("path");
    if (out == nullptr) return null_argument("out");
    *out = nullptr;
    return load(*device, read_file(path), options, out);
  });
}

skillet_status skillet_load_memory(skillet_device* device, const void* data, size_t bytes,
                                   const skillet_options* options, skillet_model** out) {
  return guard([&]() -> Result<void> {
    if (device == nullptr) return null_argument("device");
    if (data == nullptr) return null_argument("data");
    if (out == nullptr) return null_argument("out");
    *out = nullptr;
    return load(*device, read_memory({static_cast<const uint8_t*>(data), bytes}), options, out);
  });
}

void skillet_close_model(skillet_model* model) {
  if (model == nullptr || model->is_lost()) return;  // a thread of the parent process holds its locks
  delete model;
}

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

skillet_status skillet_output_maker(const skillet_model* model, size_t index, skillet_maker* out) {
  return guard([&] { return output_maker(model, index, out); });
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
    model->rows.clear();
    return model->session->run();
  });
}

skillet_status skillet_start(skillet_model* model) {
  return guard([&]() -> Result<void> {
    SK_TRY(check_model(model));
    model->rows.clear();
    return start(*model, [session = model->session.get()] { return session->run(); });
  });
}

skillet_status skillet_wait(skillet_model* model) {
  return guard([&]() -> Result<void> {
    if (model == nullptr) return null_argument("model");
    if (!model->started.valid()) return skillet::error(ErrorCode::invalid_argument, "no run has been started");
    SK_TRY(check_not_lost(*model));
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
    model->rows.clear();
    return model->session->run_on(memory.inputs, memory.outputs);
  });
}

skillet_status skillet_start_on(skillet_model* model, const void* const* inputs, void* const* outputs) {
  return guard([&]() -> Result<void> {
    SK_TRY_ASSIGN(CallersMemory memory, callers_memory(model, inputs, outputs));
    model->rows.clear();
    model->used.clear();  // a run that failed to start may have left buffers
    memory.hold(model->used);
    return start(*model, [session = model->session.get(), own = std::move(memory)] {
      return session->run_on(own.inputs, own.outputs);
    });
  });
}

uint64_t skillet_copied_bytes(const skillet_model* model) {
  uint64_t sum = 0;
  if (!check_model(model).ok()) return sum;
  for (const skillet::runtime::PartReport& part : model->session->report().parts) sum += part.copied_bytes;
  return sum;
}

const char* skillet_explain(skillet_model* model) {
  if (model == nullptr) return "";
  guard([&]() -> Result<void> {
    SK_TRY(check_not_lost(*model));
    if (model->started.valid()) model->started.wait();
    model->explanation = skillet::runtime::explain(*model->session);
    return {};
  });
  return model->explanation.c_str();
}

size_t skillet_op_count(const skillet_model* model) {
  return model == nullptr ? 0 : model->session->report().ops.size();
}

skillet_status skillet_op(skillet_model* model, size_t index, skillet_op_info* out) {
  return guard([&] { return op_info(model, index, out); });
}

skillet_status skillet_get_use(const skillet_model* model, skillet_use* out) {
  return guard([&]() -> Result<void> {
    SK_TRY(check_model(model));
    SK_TRY(skillet::c_api::check_info(out));
    const skillet::compile::ModelUse use = skillet::runtime::model_use(*model->session);
    *out = {.struct_bytes = sizeof *out,
            .ops = use.ops,
            .npu_ops = use.npu_ops,
            .part_ops = use.part_ops,
            .folded_ops = use.folded_ops};
    return {};
  });
}

const char* skillet_last_error(void) { return skillet::c_api::last_error.c_str(); }

const char* skillet_version(void) { return SKILLET_VERSION; }
