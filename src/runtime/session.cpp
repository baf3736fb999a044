#include "runtime/session.h"

#include <algorithm>
#include <filesystem>

#include "base/caught.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "runtime/bug_report.h"
#include "runtime/session_part.h"
#include "runtime/verify.h"
#include "runtime/verify_again.h"

namespace skillet::runtime {
namespace {

// Returns "model" for "model/part0": a part that is compared alone counts as its model.
std::string_view whole_name(std::string_view name) {
  constexpr std::string_view kPart = "/part";
  const size_t at = name.rfind(kPart);
  if (at == std::string_view::npos) return name;
  const std::string_view number = name.substr(at + kPart.size());
  return !number.empty() && number[0] >= '0' && number[0] <= '9' ? name.substr(0, at) : name;
}

constexpr std::chrono::hours kLongestWait{24 * 365};  // 292 years overflow nanoseconds

constexpr int64_t kMaxTensorBytes = int64_t{1} << 31;

size_t at(int32_t id) { return static_cast<size_t>(id); }

// The program may be at fault: the next session compiles it again.
void forget_file(const std::string& path) {
  std::error_code ignored;
  if (!path.empty()) std::filesystem::remove(path, ignored);
}

bool overlap(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

Session::Session(ir::Graph graph, const Target& target, const SessionOptions& options)
    : graph_(std::move(graph)),
      target_(target),
      options_(options),
      trace_(options.trace, target.driver != nullptr && !target.simulated) {}

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(ir::Graph graph, const Target& target, const SessionOptions& options) {
  const trace::Lease trace(options.trace);
  SK_TRY_ASSIGN(compile::Compiled compiled, compile_verified(target, std::move(graph), options));
  log_compared(target, compiled.verified);
  return create(std::move(compiled), target, options);
}

Result<std::unique_ptr<Session>> Session::create(compile::Compiled compiled, const Target& target,
                                                 const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session(std::move(compiled.graph), target, options));
  SK_TRY(session->prepare(std::move(compiled)));
  return session;
}

Result<void> Session::prepare(compile::Compiled compiled) {
  SK_TRY(check_process(target_));
  report_.passes_ms = compiled.passes_ms;
  report_.verified = compiled.verified;
  report_.ops = std::move(compiled.ops);
  report_.model_ops = compiled.model_ops;
  report_.rewrites = std::move(compiled.rewrites);
  report_.model_keys = std::move(compiled.model_keys);
  kept_in_ = std::move(compiled.kept_in);
  for (compile::Part& part : compiled.parts) {
    const passes::Partition& partition = part.partition;
    report_.parts.push_back({.on_npu = partition.on_npu,
                             .ops = partition.op_map,
                             .compile_ms = part.compile_ms,
                             .note = std::move(part.note)});
    parts_.push_back(std::make_unique<Part>());
    parts_.back()->partition = std::move(part.partition);
  }
  const auto unproven = std::ranges::count_if(report_.ops, &compile::OpPlace::unproven);
  if (unproven != 0 && options_.compile.unproven == npu::Unproven::take && target_.trust != nullptr)
    log::info("{}: {} ops were never seen on silicon; unproven=verify compares them with the CPU first", target_.name,
              unproven);
  if (VerifyAgain::can(target_, options_)) again_ = std::make_unique<VerifyAgain>(target_, options_);
  take_devices(compiled.parts);
  for (const auto& context : contexts_) {
    if (context == nullptr || context->use == nullptr) continue;
    const std::lock_guard lock(context->mutex);
    context->use->name_model(whole_name(graph_.name));
  }
  SK_TRY(prepare_tensors());
  for (size_t i = 0; i < parts_.size(); ++i) SK_TRY(prepare_part(i, std::move(compiled.parts[i])));
  return {};
}

void Session::take_devices(const std::vector<compile::Part>& parts) {
  size_t files = std::ranges::any_of(report_.parts, &PartReport::on_npu) ? 1 : 0;
  for (const compile::Part& part : parts) files = std::max(files, part.bands.size());
  if (target_.pool == nullptr || files == 0) {
    contexts_ = {target_.context};
    return;
  }
  contexts_ = files == 1 ? std::vector{target_.pool->take()} : target_.pool->take(files);
  target_.context = contexts_[0];
}

// The host keeps bytes of inputs, outputs, operands of CPU ops, and tensors that enter or leave NPU parts.
Result<void> Session::prepare_tensors() {
  storage_.resize(graph_.tensors.size());
  spans_.resize(graph_.tensors.size());
  for (size_t i = 0; i < graph_.tensors.size(); ++i) {
    const std::span<const uint8_t> data = graph_.tensors[i].data;
    // Kernels take one type of span for all operands; they write only outputs.
    spans_[i] = {const_cast<uint8_t*>(data.data()), data.size()};
  }
  for (const auto* list : {&graph_.inputs, &graph_.outputs}) {
    for (const ir::TensorId id : *list) SK_TRY(reserve(id));
  }
  prepare_outputs();
  for (const auto& part : parts_) {
    if (!part->partition.on_npu) continue;
    const ir::Graph& graph = part->partition.graph;
    for (const auto* list : {&graph.inputs, &graph.outputs}) {
      for (const ir::TensorId id : *list) SK_TRY(reserve(part->partition.tensor_map[at(id)]));
    }
  }
  return {};
}

// An op writes a tensor once, and a variable where it keeps its value. No op writes inputs or constants.
void Session::prepare_outputs() {
  const std::vector<ir::OpId> producers = ir::producers(graph_);
  kept_.resize(graph_.outputs.size());
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const ir::TensorId id = graph_.outputs[i];
    const auto before = std::span(graph_.outputs).first(i);
    is_copy_.push_back(producers[at(id)] < 0 || graph_.tensor(id).is_variable || std::ranges::count(before, id) != 0);
    if (std::ranges::count(graph_.inputs, id) != 0) kept_[i].resize(storage_[at(id)].size());
  }
}

Result<void> Session::reserve(ir::TensorId id) {
  if (id == ir::kNoTensor || graph_.tensor(id).is_constant() || !storage_[at(id)].empty()) return {};
  const int64_t bytes = graph_.tensor(id).bytes();
  if (bytes > kMaxTensorBytes)
    return error(ErrorCode::out_of_range, "{}: {} bytes are too many", ir::describe_tensor(graph_, id), bytes);
  storage_[at(id)] = ref::initial_bytes(graph_.tensor(id));
  spans_[at(id)] = storage_[at(id)];
  return {};
}

Result<void> Session::prepare_part(size_t index, compile::Part compiled) {
  Part& part = *parts_[index];
  PartReport& report = report_.parts[index];
  const Stopwatch watch;
  const trace::Slice slice(trace::kLoad);
  if (!compiled.program && compiled.bands.empty()) {
    SK_TRY_ASSIGN(part.kernels, prepare_cpu(part));
    report.compile_ms = watch.ms();
    return {};
  }
  auto loaded = caught([&] { return load(part, std::move(compiled)); });
  report.load_ms = watch.ms();
  return loaded.ok() ? Result<void>() : fall_back(index, loaded.error());
}

Result<void> Session::load(Part& part, compile::Part compiled) {
  if (target_.context == nullptr) return error(ErrorCode::invalid_argument, "{}: no device is open", target_.name);
  const auto timeout = std::min<std::chrono::milliseconds>(options_.timeout, kLongestWait);
  if (compiled.program) {
    SK_TRY_ASSIGN(part.loaded,
                  LoadedProgram::load(target_.context, std::move(*compiled.program), part.partition.graph, timeout));
  } else {
    for (const compile::Band& band : compiled.bands) {
      part.band_graphs.push_back(band.rows.graph);  // constants are shared
    }
    SK_TRY_ASSIGN(part.bands, BandGroup::load(contexts_, std::move(compiled.bands), timeout));
  }
  return {};
}

Error Session::runs_nowhere(ir::OpId op, Error cpu) const {
  const std::string& reason = report_.ops[at(op)].reason;
  if (target_.driver == nullptr) return error(cpu.code, "{}{}", cpu.message, npu::text_of(npu::made_for(graph_)));
  if (reason.empty()) return cpu;
  return error(cpu.code, "{}; {}: {}", cpu.message, target_.name, reason);
}

Result<Session::Kernels> Session::prepare_cpu(Part& part) {
  Kernels kernels;
  part.slices.clear();
  const bool is_traced = trace::on();  // another session may start a trace at any time
  for (const ir::OpId op : part.partition.op_map) {
    for (const auto* operands : {&graph_.op(op).inputs, &graph_.op(op).outputs}) {
      for (const ir::TensorId id : *operands) SK_TRY(reserve(id));
    }
    auto kernel = ref::prepare(graph_, op);
    if (!kernel.ok()) return runs_nowhere(op, std::move(kernel).error());
    kernels.push_back(std::move(*kernel));
    if (!is_traced) continue;
    part.slices.push_back({.name = trace::intern(trace::Category::cpu, ir::describe_op(graph_, op))});
    part.slices.push_back({.type = trace::EventType::end});
  }
  return kernels;
}

// Frees the program only after the CPU can run the part: a part with neither would silently do nothing.
Result<void> Session::fall_back(size_t index, const Error& cause) {
  SK_TRY(check_stop());  // which ends jobs of simulated chips: no failure of the device
  Part& part = *parts_[index];
  forget_file(kept_in_);
  const std::string where = fmt::format("{}: part {} ({} ops)", target_.name, index, report_.parts[index].ops.size());
  if (!options_.allow_fallback) return Error(cause).with_context(where);
  auto kernels = prepare_cpu(part);
  if (!kernels.ok()) {
    part.broken =
        error(cause.code, "{}: {}; the CPU cannot run it either: {}", where, cause.message, kernels.error().message);
    return *part.broken;
  }
  log::warning("{} runs on the CPU: {}", where, cause.message);
  report_.parts[index].fallback = cause.message;
  report_fallback(target_, options_, index,
                  part.band_graphs.empty() ? std::span(&part.partition.graph, 1) : std::span(part.band_graphs), cause);
  part.kernels = std::move(kernels).value();
  part.loaded.reset();
  part.bands.reset();
  return {};
}

std::vector<const npu::Program*> Session::programs(size_t part) const {
  if (part >= parts_.size()) return {};
  if (parts_[part]->bands) return parts_[part]->bands->programs();
  return parts_[part]->loaded ? std::vector{&parts_[part]->loaded->program()} : std::vector<const npu::Program*>();
}

Result<void> Session::set_input(size_t index, std::span<const uint8_t> bytes) {
  if (index >= graph_.inputs.size())
    return error(ErrorCode::invalid_argument, "no input {}; the model has {}", index, graph_.inputs.size());
  const ir::TensorId id = graph_.inputs[index];
  if (bytes.size() != storage_[at(id)].size())
    return wrong_size(id, bytes.size()).with_context(fmt::format("input {}", index));
  std::ranges::copy(bytes, storage_[at(id)].begin());
  return {};
}

Error Session::wrong_size(ir::TensorId id, size_t size_bytes) const {
  return error(ErrorCode::invalid_argument, "{} bytes given, {} takes {}", size_bytes, ir::describe_tensor(graph_, id),
               spans_[at(id)].size());
}

Result<void> Session::run() {
  SK_TRY(run_parts());
  for (size_t i = 0; i < kept_.size(); ++i) {
    const auto bytes = spans_[at(graph_.outputs[i])];
    if (!kept_[i].empty()) std::ranges::copy(bytes, kept_[i].begin());
  }
  results_ = Results::here;
  return {};
}

Result<void> Session::run_parts() {
  results_ = Results::failed;
  ++runs_;
  Result<void> ran;
  {
    const trace::Slice slice(trace::kRun);
    for (size_t i = 0; i < parts_.size() && ran.ok(); ++i) ran = run_part(i);
  }
  trace::write_now_and_then();
  return ran;
}

Result<void> Session::run_part(size_t index) {
  Part& part = *parts_[index];
  const Stopwatch watch;
  if (part.broken) return *part.broken;
  SK_TRY(check_stop());
  const trace::Slice slice(part.on_device() ? trace::kNpuPart : trace::kCpuPart);
  if (part.on_device()) {
    // Not a device failure: a forked child gets an error instead of a slow session.
    SK_TRY(target_.context->check_process());
    const uint64_t copied_before = part.copied_bytes();
    auto ran = caught([&] { return run_npu(part); });  // the CPU may need less memory
    report_.parts[index].copied_bytes = part.copied_bytes() - copied_before;
    if (ran.ok() && again_ != nullptr && runs_ % options_.verify_every == 0) ran = verify_again(index);
    if (!ran.ok()) SK_TRY(fall_back(index, ran.error()));
  }
  if (!part.on_device()) SK_TRY(run_cpu(part, report_.parts[index].op_ms));
  report_.parts[index].run_ms = watch.ms();
  return {};
}

Result<void> Session::run_npu(Part& part) {
  const std::vector<ir::TensorId>& map = part.partition.tensor_map;
  const auto bytes_of = [&](ir::TensorId id) { return spans_[at(map[at(id)])]; };
  return part.loaded ? part.loaded->run(bytes_of) : part.bands->run(bytes_of);
}

Result<void> Session::verify_again(size_t index) {
  const passes::Partition& part = parts_[index]->partition;
  const std::string wrong = again_->check(index, part, graph_, report_, [&](ir::TensorId id) {
    return std::span<const uint8_t>(spans_[at(part.tensor_map[at(id)])]);
  });
  return wrong.empty() ? Result<void>() : error(ErrorCode::fault, "verify_every: {}", wrong);
}

Result<void> Session::run_cpu(Part& part, std::vector<double>& op_ms) {
  op_ms.resize(part.kernels.size());
  int64_t begin_ns = trace::now_ns();
  for (size_t i = 0; i < part.kernels.size(); ++i) {
    SK_TRY(check_stop());
    SK_TRY(part.kernels[i]->run(spans_));  // its errors name the op
    const int64_t end_ns = trace::now_ns();
    op_ms[i] = static_cast<double>(end_ns - begin_ns) / 1e6;
    if (!part.slices.empty()) {
      part.slices[2 * i].at_ns = begin_ns;
      part.slices[2 * i + 1].at_ns = end_ns;
    }
    begin_ns = end_ns;
  }
  trace::add(part.slices);
  return {};
}

Result<void> Session::has_results() const {
  switch (results_) {
    case Results::none: return error(ErrorCode::invalid_argument, "nothing has run yet");
    case Results::failed: return error(ErrorCode::invalid_argument, "the last run failed");
    case Results::with_caller: return error(ErrorCode::invalid_argument, "the last run used the caller's memory");
    case Results::here: break;
  }
  return {};
}

Result<std::span<const uint8_t>> Session::output(size_t index) const {
  if (index >= graph_.outputs.size())
    return error(ErrorCode::invalid_argument, "no output {}; the model has {}", index, graph_.outputs.size());
  SK_TRY(has_results());
  return kept_[index].empty() ? std::span<const uint8_t>(spans_[at(graph_.outputs[index])]) : kept_[index];
}

Result<std::vector<Bytes>> Session::run(std::span<const std::span<const uint8_t>> inputs) {
  if (inputs.size() != graph_.inputs.size())
    return error(ErrorCode::invalid_argument, "{} inputs given, the model has {}", inputs.size(), graph_.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) SK_TRY(set_input(i, inputs[i]));
  SK_TRY(run());
  std::vector<Bytes> outputs;
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    SK_TRY_ASSIGN(const auto bytes, output(i));
    outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return outputs;
}

Result<void> Session::check_memory(std::span<const std::span<const uint8_t>> inputs,
                                   std::span<const std::span<uint8_t>> outputs) const {
  if (inputs.size() != graph_.inputs.size() || outputs.size() != graph_.outputs.size())
    return error(ErrorCode::invalid_argument, "{} inputs and {} outputs given, the model has {} and {}", inputs.size(),
                 outputs.size(), graph_.inputs.size(), graph_.outputs.size());
  const auto fits = [&](ir::TensorId id, size_t size_bytes) { return size_bytes == spans_[at(id)].size(); };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!fits(graph_.inputs[i], inputs[i].size())) return wrong_size(graph_.inputs[i], inputs[i].size());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!fits(graph_.outputs[i], outputs[i].size())) return wrong_size(graph_.outputs[i], outputs[i].size());
    for (size_t j = 0; j < i; ++j) {
      const bool same = graph_.outputs[i] == graph_.outputs[j] && outputs[i].data() == outputs[j].data();
      if (overlap(outputs[i], outputs[j]) && !same)
        return error(ErrorCode::invalid_argument, "the memory of outputs {} and {} overlaps", j, i);
    }
  }
  return {};
}

// Until the end kernels and NPU parts use the caller's bytes, except those that would be overwritten while still
// needed.
Result<void> Session::run_on(std::span<const std::span<const uint8_t>> inputs,
                             std::span<const std::span<uint8_t>> outputs) {
  SK_TRY(check_memory(inputs, outputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::TensorId id = graph_.inputs[i];
    const auto overwritten = [&](std::span<const uint8_t> output) { return overlap(inputs[i], output); };
    if (std::ranges::any_of(outputs, overwritten)) {
      std::ranges::copy(inputs[i], storage_[at(id)].begin());
    } else {
      spans_[at(id)] = {const_cast<uint8_t*>(inputs[i].data()), inputs[i].size()};  // only read
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_copy_[i]) spans_[at(graph_.outputs[i])] = outputs[i];
  }
  auto done = run_parts();
  for (size_t i = 0; i < outputs.size() && done.ok(); ++i) {
    const std::span<const uint8_t> bytes = spans_[at(graph_.outputs[i])];
    // A host may pass a constant's own memory, which cannot be written.
    if (is_copy_[i] && bytes.data() != outputs[i].data()) std::ranges::copy(bytes, outputs[i].begin());
  }
  give_back();
  if (done.ok()) results_ = Results::with_caller;
  return done;
}

// After run_on(): makes kernels and NPU parts use the session's own bytes again.
void Session::give_back() {
  for (const auto* list : {&graph_.inputs, &graph_.outputs}) {
    for (const ir::TensorId id : *list) {
      if (!graph_.tensor(id).is_constant()) spans_[at(id)] = storage_[at(id)];
    }
  }
}

Result<Bytes> Session::tensor(ir::TensorId id) {
  if (id < 0 || at(id) >= graph_.tensors.size())
    return error(ErrorCode::invalid_argument, "no tensor {}; the model has {}", id, graph_.tensors.size());
  const auto is_callers = [&](const std::vector<ir::TensorId>& list) { return std::ranges::count(list, id) != 0; };
  if (results_ != Results::with_caller || is_callers(graph_.inputs) || is_callers(graph_.outputs))
    SK_TRY(has_results());
  if (!spans_[at(id)].empty()) return Bytes(spans_[at(id)].begin(), spans_[at(id)].end());
  for (const auto& part : parts_) {
    const auto& map = part->partition.tensor_map;
    const auto found = std::ranges::find(map, id);
    if (!part->loaded || found == map.end()) continue;
    Bytes bytes(static_cast<size_t>(graph_.tensor(id).bytes()));
    SK_TRY(part->loaded->read(static_cast<ir::TensorId>(found - map.begin()), bytes)
               .with_context(ir::describe_tensor(graph_, id)));
    return bytes;
  }
  return error(ErrorCode::unsupported, "{} is not computed", ir::describe_tensor(graph_, id));
}

}  // namespace skillet::runtime
