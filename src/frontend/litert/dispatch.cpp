#include "frontend/litert/dispatch.h"

#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/host/choice.h"
#include "frontend/host/element_types.h"
#include "frontend/host/target.h"
#include "runtime/program_cache.h"
#include "runtime/verify.h"

namespace skillet::litert {
namespace {

std::vector<Invocation::Port> ports(const ir::Graph& graph, const std::vector<ir::TensorId>& ids) {
  std::vector<Invocation::Port> out;
  for (const ir::TensorId id : ids) out.push_back({nullptr, static_cast<uint64_t>(graph.tensor(id).bytes())});
  return out;
}

// Keeps the host's buffers mapped during its lifetime.
class Locked {
 public:
  explicit Locked(const Table& host) : host_(host) {}
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() {
    for (; count_ > 0; --count_) host_.call(kUnlock, (*ports_)[count_ - 1].buffer);
  }
  Result<void> lock(const std::vector<Invocation::Port>& ports, int mode, auto& spans) {
    ports_ = &ports;
    for (const Invocation::Port& port : ports) {
      if (port.buffer == nullptr) return error(ErrorCode::invalid_argument, "buffer {} is not attached", count_);
      void* address = nullptr;
      const Status status = host_.call(kLock, port.buffer, &address, mode);
      if (status != kOk || address == nullptr)
        return error(ErrorCode::internal, "the host does not lock buffer {} (status {})", count_, status);
      spans[count_++] = {static_cast<uint8_t*>(address), static_cast<size_t>(port.bytes)};
    }
    return {};
  }

 private:
  const Table& host_;
  const std::vector<Invocation::Port>* ports_ = nullptr;
  size_t count_ = 0;
};

}  // namespace

Result<std::unique_ptr<Device>> make_device(const void* context) {
  auto made = std::make_unique<Device>();
  made->host = Table(context);
  made->options = host::parse_options({}, environment_variable);
  const log::ScopedLevel level(made->options.log);
  SK_TRY_ASSIGN(made->target, host::open_target(made->options));
  SK_TRY(host::tell_problems_once(made->options));
  return made;
}

Result<std::unique_ptr<Invocation>> make_invocation(Device& device, const MemBuffer& memory, std::string_view name,
                                                    int num_inputs, int num_outputs, bool& is_wrong) {
  const log::ScopedLevel level(device.options.log);
  is_wrong = true;
  if (memory.base == nullptr) return error(ErrorCode::malformed, "the compiled part has no bytes");
  const auto* first = static_cast<const uint8_t*>(memory.base) + memory.offset;
  SK_TRY_ASSIGN(runtime::CompiledModel part, runtime::read_compiled(Bytes(first, first + memory.size)));
  if (part.note != name)
    return error(ErrorCode::malformed, "the model's part '{}' contains the bytes of '{}': compile the model again",
                 name, part.note);
  if (part.graph.inputs.size() != static_cast<size_t>(num_inputs) ||
      part.graph.outputs.size() != static_cast<size_t>(num_outputs))
    return error(ErrorCode::malformed, "the compiled part has {} inputs and {} outputs, the model {} and {}",
                 part.graph.inputs.size(), part.graph.outputs.size(), num_inputs, num_outputs);
  is_wrong = false;
  runtime::say_what_differs(part, device.target);
  auto made = std::make_unique<Invocation>();
  made->device = &device;
  made->inputs = ports(part.graph, part.graph.inputs);
  made->outputs = ports(part.graph, part.graph.outputs);
  made->in.resize(made->inputs.size());
  made->out.resize(made->outputs.size());
  runtime::SessionOptions options = host::session_options(device.options);
  options.programs = std::make_shared<runtime::ProgramStore>(std::move(part.programs));
  SK_TRY_ASSIGN(compile::Compiled compiled, runtime::compile_verified(device.target, std::move(part.graph), options));
  runtime::log_compared(device.target, compiled.verified);
  SK_TRY_ASSIGN(made->session, runtime::Session::create(std::move(compiled), device.target, options));
  const std::string unused = runtime::what_is_unused(part, *options.programs, device.target, options);
  if (!unused.empty()) log::warning("the compiled part '{}': {}", printable(name), unused);
  size_t jobs = 0;
  for (size_t i = 0; i < made->session->report().parts.size(); ++i)
    for (const npu::Program* program : made->session->programs(i)) jobs += program->jobs.size();
  log::info("partition of {} ops, {} jobs, runs on {}, {} programs as stored", made->session->graph().ops.size(), jobs,
            device.target.name, options.programs->taken());
  return made;
}

Result<void> check_type(const Invocation& invocation, bool is_input, size_t index, const RankedType* type) {
  if (type == nullptr || type->rank > std::size(type->dims)) return {};
  const ir::Graph& graph = invocation.session->graph();
  const ir::Tensor& tensor = graph.tensor((is_input ? graph.inputs : graph.outputs)[index]);
  ir::Shape shape;
  shape.dims.assign(type->dims, type->dims + type->rank);
  for (size_t i = 0; i < shape.dims.size() && i < tensor.shape.dims.size(); ++i)
    if (shape.dims[i] < 0) shape.dims[i] = tensor.shape.dims[i];  // dynamic: the part was compiled for one size
  if (shape == tensor.shape && host::element_type(type->element_type) == tensor.dtype) return {};
  return error(
      ErrorCode::unsupported,
      "'{}' is {} {} in the compiled part, but another type or {} in the model: compile the model for that shape",
      tensor.name, ir::dtype_name(tensor.dtype), tensor.shape.to_string(), shape.to_string());
}

Result<void> attach(const Device& device, Invocation::Port& port, HostBuffer* buffer) {
  size_t size = 0;
  const Status status = device.host.call(kBufferSize, buffer, &size);
  if (status != kOk) return error(ErrorCode::internal, "the host does not report a buffer's size (status {})", status);
  if (size < port.bytes)
    return error(ErrorCode::invalid_argument, "a buffer has {} bytes, the tensor {}", size, port.bytes);
  port.buffer = buffer;
  return {};
}

Result<void> invoke(Invocation& invocation) {
  const log::ScopedLevel level(invocation.device->options.log);
  const std::lock_guard lock(invocation.mutex);
  Locked inputs(invocation.device->host), outputs(invocation.device->host);
  SK_TRY(inputs.lock(invocation.inputs, kLockRead, invocation.in));
  SK_TRY(outputs.lock(invocation.outputs, kLockWrite, invocation.out));
  return invocation.session->run_on(invocation.in, invocation.out);
}

}  // namespace skillet::litert
