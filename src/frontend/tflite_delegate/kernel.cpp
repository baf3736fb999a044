#include "frontend/tflite_delegate/kernel.h"

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "compile/report.h"
#include "runtime/verify.h"

namespace skillet::delegate {
namespace {

// The host frees the array that this allocates.
Result<void> resize(TfLiteContext* context, int tensor, const ir::Shape& shape) {
  const auto rank = static_cast<size_t>(shape.rank());
  auto* array = static_cast<TfLiteIntArray*>(std::malloc(sizeof(TfLiteIntArray) + rank * sizeof(int)));
  if (array == nullptr) return error(ErrorCode::internal, "no memory");
  array->size = shape.rank();
  std::ranges::copy(shape.dims, array->data());
  if (context->ResizeTensor(context, &context->tensors[tensor], array) == kTfLiteOk) return {};
  return error(ErrorCode::internal, "the host refuses to resize tensor {} to {}", tensor, shape.to_string());
}

Result<std::span<uint8_t>> bytes_of(TfLiteContext* context, int id, int64_t size_bytes) {
  const TfLiteTensor& tensor = context->tensors[id];
  const auto expected = static_cast<size_t>(size_bytes);
  if (tensor.bytes != expected)
    return error(ErrorCode::invalid_argument, "tensor {} has {} bytes; it was prepared for {}", id, tensor.bytes,
                 expected);
  if (tensor.data == nullptr && expected != 0)
    return error(ErrorCode::invalid_argument, "tensor {} has no memory of the CPU", id);
  return std::span(static_cast<uint8_t*>(tensor.data), expected);
}

bool same_shape(const TfLiteContext* context, int id, const ir::Shape& shape) {
  return std::ranges::equal(elements(context->tensors[id].dims), shape.dims);
}

void tell_use(const runtime::Target& target, const use::Totals& use, std::string_view when) {
  log::info("{}: NPU ran {} jobs {}, busy {:.0f} ms", target.name, use.jobs, when,
            static_cast<double>(use.busy_ns) / 1e6);
}

runtime::SessionOptions session_for(const TfLiteContext& context, const Options& options) {
  return host::session_options(options_for(context, options));
}

}  // namespace

// Hosts write the number before they call delegates; some write -1 where nobody set it.
Options options_for(const TfLiteContext& context, const Options& options) {
  Options out = options;
  if (!options.host_threads_given) out.session.host_threads = std::max(context.recommended_num_threads, 1);
  return out;
}

State::~State() {
  const log::ScopedLevel level(options.log);
  if (target.context != nullptr && target.context->process.is_here())
    tell_use(target, runtime::use_of(target), "in all");
}

void State::tell_use_now_and_then() {
  constexpr int64_t kPauseNs = 60'000'000'000;
  const int64_t now_ns = trace::now_ns();
  int64_t then_ns = told_ns;
  if (now_ns - then_ns < kPauseNs || target.context == nullptr || !log::enabled(log::Level::info)) return;
  if (!told_ns.compare_exchange_strong(then_ns, now_ns)) return;  // another thread reports
  const std::lock_guard lock(mutex);
  const use::Totals now = runtime::use_of(target), before = std::exchange(told, now);
  tell_use(target, {now.jobs - before.jobs, now.busy_ns - before.busy_ns},
           fmt::format("in the last {} s", (now_ns - then_ns) / 1'000'000'000));
}

Result<std::unique_ptr<Kernel>> Kernel::create(TfLiteContext* context, std::shared_ptr<State> state,
                                               std::vector<HostNode> nodes, std::vector<int> outputs,
                                               std::vector<HostNode> shapes) {
  std::unique_ptr<Kernel> kernel(new Kernel(std::move(state), std::move(nodes), std::move(outputs), std::move(shapes)));
  SK_TRY(kernel->build(context, session_for(*context, kernel->state_->options), Use::handed_over));
  return kernel;
}

Result<std::unique_ptr<Kernel>> Kernel::propose(TfLiteContext* context, std::shared_ptr<State> state,
                                                std::vector<HostNode> nodes, std::vector<int> outputs,
                                                std::vector<HostNode> shapes, std::optional<compile::PartitionBy> by,
                                                const std::set<int>& for_cpu) {
  std::unique_ptr<Kernel> kernel(new Kernel(std::move(state), std::move(nodes), std::move(outputs), std::move(shapes)));
  runtime::SessionOptions options = session_for(*context, kernel->state_->options);
  options.partition = by;
  SK_TRY(kernel->build(context, options, Use::proposed, Contents::prepared, for_cpu));
  return kernel;
}

Kernel::~Kernel() {
  const log::ScopedLevel level(state_->options.log);
  const std::lock_guard lock(state_->mutex);
  session_.reset();
  // Releases all buffers: the other kernels import theirs again.
  if (state_->target.context != nullptr) state_->buffers.release(*state_->target.context);
}

Result<void> Kernel::build(TfLiteContext* context, const runtime::SessionOptions& options, Use use, Contents contents,
                           const std::set<int>& for_cpu) {
  const log::ScopedLevel level(state_->options.log);
  SK_TRY_ASSIGN(HostGraph built, build_graph(context, nodes_, host_outputs_, contents, shapes_));
  refusals_.clear();
  for (size_t i = 0; i < built.refusal.size(); ++i) {
    if (built.refusal[i].empty()) continue;
    if (use == Use::handed_over)
      return error(ErrorCode::unsupported, "{}: {}", ir::describe_op(built.graph, static_cast<ir::OpId>(i)),
                   built.refusal[i]);
    refusals_.push_back({built.graph.ops[i].source_index, built.refusal[i]});  // before others: the first is kept
  }
  own_memory_ = std::move(built.own_memory);
  inputs_.clear();
  outputs_.clear();
  for (const ir::TensorId id : built.graph.inputs) inputs_.push_back(built.host_tensor[static_cast<size_t>(id)]);
  settled_.clear();
  for (const int id : built.settled) {
    const auto* bytes = static_cast<const uint8_t*>(context->tensors[id].data);
    settled_.emplace_back(id, Bytes(bytes, bytes + context->tensors[id].bytes));
  }
  sized_.clear();
  for (const int id : built.sized) {
    const auto dims = elements(context->tensors[id].dims);
    sized_.emplace_back(id, ir::Shape{{dims.begin(), dims.end()}});
  }
  for (const ir::TensorId id : built.graph.outputs) outputs_.push_back(built.host_tensor[static_cast<size_t>(id)]);
  input_bytes_.resize(inputs_.size());
  output_bytes_.resize(outputs_.size());
  const std::lock_guard lock(state_->mutex);
  session_.reset();  // frees its buffers first
  SK_TRY_ASSIGN(compile::Compiled compiled, runtime::compile_verified(state_->target, std::move(built.graph), options));
  compared_ = compiled.verified;
  if (use == Use::handed_over) runtime::log_compared(state_->target, compared_);
  if (use == Use::proposed) {
    std::vector<int> nodes;
    for (const HostNode& node : nodes_) nodes.push_back(node.index);
    for (Refusal& refusal : host::refusals_of(compiled, nodes, for_cpu)) refusals_.push_back(std::move(refusal));
  }
  if (!refusals_.empty()) return {};
  SK_TRY_ASSIGN(session_, runtime::Session::create(std::move(compiled), state_->target, options));
  describe();
  return {};
}

void Kernel::describe() {
  uint64_t bytes = 0;
  size_t jobs = 0, unproven = 0;
  const runtime::Report& report = session_->report();
  for (size_t part = 0; part < report.parts.size(); ++part) {
    const std::string& fallback = report.parts[part].fallback;
    for (const ir::OpId op : report.parts[part].ops) {
      if (!fallback.empty()) refusals_.push_back({session_->graph().op(op).source_index, fallback});
      unproven += report.ops[static_cast<size_t>(op)].stands_on.empty() ? 0 : 1;
    }
    for (const npu::Program* program : session_->programs(part)) {
      jobs += program->jobs.size();
      for (const npu::Buffer& buffer : program->buffers) bytes += buffer.size_bytes;
    }
  }
  summary_ = fmt::format("{} ops, {} jobs, {} bytes", nodes_.size(), jobs, bytes);
  if (unproven != 0)
    summary_ += fmt::format(", {} unproven {} {}", unproven, unproven == 1 ? "op" : "ops",
                            runtime::verifies(state_->target, state_->options.session) ? "verified on this device"
                                                                                       : "not verified on this device");
  profile_.reset();
  if (state_->options.profile) profile_.emplace(*session_);
}

// True if the session was made for these shapes and contents.
bool Kernel::fits(const TfLiteContext* context, Contents contents) const {
  if (session_ == nullptr) return false;
  const ir::Graph& graph = session_->graph();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!same_shape(context, inputs_[i], graph.tensor(graph.inputs[i]).shape)) return false;
  }
  if (!std::ranges::all_of(sized_, [&](const auto& one) { return same_shape(context, one.first, one.second); }))
    return false;
  return std::ranges::all_of(settled_, [&](const auto& one) {
    const TfLiteTensor& now = context->tensors[one.first];
    return is_shape(now, contents) && now.bytes == one.second.size() &&
           std::equal(one.second.begin(), one.second.end(), static_cast<const uint8_t*>(now.data));
  });
}

// True if shapes among the inputs are known only while the host runs.
bool Kernel::waits_for_shapes(const TfLiteContext* context) const {
  return std::ranges::any_of(nodes_, [&](const HostNode& node) {
    return std::ranges::any_of(node.op.inputs, [&](int id) {
      if (id == ir::kNoTensor) return false;
      TfLiteTensor one = context->tensors[id];
      if (one.data == nullptr) one.data = &one;  // the data will exist then
      return is_shape(one, Contents::all) && !is_shape(one, Contents::prepared);
    });
  });
}

Result<void> Kernel::resize_outputs(TfLiteContext* context) const {
  const ir::Graph& graph = session_->graph();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const ir::Shape& shape = graph.tensor(graph.outputs[i]).shape;
    const bool dynamic = context->tensors[outputs_[i]].allocation_type == kTfLiteDynamic;
    if (dynamic || !same_shape(context, outputs_[i], shape)) SK_TRY(resize(context, outputs_[i], shape));
  }
  return {};
}

void Kernel::leave_out_own_memory(TfLiteNode& host) const {
  if (host.inputs == nullptr) return;
  for (int& id : std::span(host.inputs->data(), static_cast<size_t>(std::max(host.inputs->size, 0)))) {
    if (std::ranges::find(own_memory_, id) != own_memory_.end()) id = kTfLiteOptionalTensor;
  }
}

Result<void> Kernel::prepare(TfLiteContext* context) {
  const log::ScopedLevel level(state_->options.log);
  deferred_ = false;
  if (!fits(context, Contents::prepared)) {
    auto built = build(context, session_for(*context, state_->options), Use::handed_over);
    deferred_ = !built.ok() && waits_for_shapes(context);
    if (!deferred_) SK_TRY(std::move(built));
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->buffers.find_library();
  }
  if (!deferred_) return resize_outputs(context);
  // Shapes are known in the first run; the host then prepares the nodes that follow.
  session_.reset();
  for (const int id : host_outputs_) {
    TfLiteTensor& output = context->tensors[id];
    if (output.allocation_type != kTfLiteDynamic) output.data = nullptr;
    output.allocation_type = kTfLiteDynamic;
  }
  return {};
}

Result<void> Kernel::settle(TfLiteContext* context) {
  if (!fits(context, Contents::all))
    SK_TRY(build(context, session_for(*context, state_->options), Use::handed_over, Contents::all));
  return resize_outputs(context);
}

Result<void> Kernel::invoke(TfLiteContext* context) {
  const log::ScopedLevel level(state_->options.log);
  if (deferred_) SK_TRY(settle(context));
  if (session_ == nullptr) return error(ErrorCode::internal, "invoked without being prepared");
  const ir::Graph& graph = session_->graph();
  for (size_t i = 0; i < inputs_.size(); ++i)
    SK_TRY_INTO(input_bytes_[i], bytes_of(context, inputs_[i], graph.tensor(graph.inputs[i]).bytes()));
  for (size_t i = 0; i < outputs_.size(); ++i)
    SK_TRY_INTO(output_bytes_[i], bytes_of(context, outputs_[i], graph.tensor(graph.outputs[i]).bytes()));
  import_buffers();
  SK_TRY(session_->run_on(input_bytes_, output_bytes_));
  log_copies();
  state_->tell_use_now_and_then();
  if (profile_) profile_->tell(*session_, context->profiler);
  return {};
}

// Buffers have addresses on one file only: a session on another core's file copies.
void Kernel::import_buffers() {
  const std::shared_ptr<runtime::DeviceContext>& own = state_->target.context;
  const std::lock_guard lock(state_->mutex);
  state_->buffers.drop_freed(*own);
  if (session_->context().get() != own.get()) return;
  for (const auto bytes : input_bytes_) state_->buffers.import(*own, bytes);
  for (const auto bytes : output_bytes_) state_->buffers.import(*own, bytes);
}

// Logs each change: hosts may exchange the memory of tensors from run to run.
void Kernel::log_copies() {
  uint64_t copied = 0;
  for (const runtime::PartReport& part : session_->report().parts) copied += part.copied_bytes;
  if (copied_bytes_ == copied) return;
  copied_bytes_ = copied;
  log::debug("partition of {}: copies {} bytes between host and NPU", summary_, copied);
}

}  // namespace skillet::delegate
