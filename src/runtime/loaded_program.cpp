#include "runtime/loaded_program.h"

#include <algorithm>
#include <utility>

#include "base/caught.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "kernels/api/kernels.h"
#include "runtime/cpu_access.h"

namespace skillet::runtime {
namespace {

// Errors before or after a program's own jobs are not theirs: only jobs give `fault` and `timeout`.
template <typename T>
Result<T> outside_jobs(Result<T> result) {
  if (result.ok()) return result;
  Error failed = std::move(result).error();
  if (failed.code == ErrorCode::fault || failed.code == ErrorCode::timeout) failed.code = ErrorCode::device;
  return failed;
}

// Checks that the program binds the tensors of the graph.
Result<void> check_bindings(const npu::Program& program, const ir::Graph& graph) {
  for (const auto* list : {&program.inputs, &program.outputs, &program.intermediates}) {
    for (const npu::TensorBinding& one : *list) {
      if (static_cast<size_t>(one.tensor) >= graph.tensors.size())
        return error(ErrorCode::malformed, "program binds tensor {}; the graph has {}", one.tensor,
                     graph.tensors.size());
      const npu::ImageShape& s = one.shape;
      const npu::ImageShape whole = npu::image_shape(graph.tensor(one.tensor));
      if (s != whole && s != npu::in_blocks(whole))
        return error(ErrorCode::malformed, "program binds {} as {}x{}x{}x{}, {} bytes each",
                     ir::describe_tensor(graph, one.tensor), s.images, s.height, s.width, s.channels, s.elem_bytes);
    }
  }
  const auto same = [&](const std::vector<npu::TensorBinding>& list,
                        const std::vector<ir::TensorId>& wanted) -> Result<void> {
    for (const npu::TensorBinding& one : list) {
      if (std::ranges::find(wanted, one.tensor) == wanted.end())
        return error(ErrorCode::malformed, "program binds {}, which is neither an input nor an output of the graph",
                     ir::describe_tensor(graph, one.tensor));
    }
    for (const ir::TensorId id : wanted) {
      if (std::ranges::find(list, id, &npu::TensorBinding::tensor) == list.end())
        return error(ErrorCode::malformed, "program does not bind {}", ir::describe_tensor(graph, id));
    }
    return {};
  };
  SK_TRY(same(program.inputs, graph.inputs));
  return same(program.outputs, graph.outputs);
}

}  // namespace

Result<void> check_program(const npu::Program& program, std::string_view chip, const ir::Graph& graph) {
  SK_TRY(npu::verify(program));
  if (program.chip != chip)
    return error(ErrorCode::invalid_argument, "the program is for chip '{}', the device has '{}'", program.chip, chip);
  return check_bindings(program, graph);
}

Result<void> relocate(std::span<uint8_t> bytes, const npu::Relocation& relocation, uint64_t address) {
  const uint64_t target = address + relocation.target_offset_bytes;
  const uint64_t value = target >> relocation.shift;
  const uint64_t ones = relocation.width_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << relocation.width_bits) - 1;
  if (value << relocation.shift != target)
    return error(ErrorCode::out_of_range, "address {:#x} is not a multiple of {}", target, 1ULL << relocation.shift);
  if (value > ones)
    return error(ErrorCode::out_of_range, "address {:#x} >> {} does not fit {} bits", target, relocation.shift,
                 relocation.width_bits);
  const std::span<uint8_t> at = bytes.subspan(relocation.at_byte, relocation.bytes());
  uint64_t number = 0;
  std::memcpy(&number, at.data(), at.size());
  number = (number & ~(ones << relocation.lsb)) | (value << relocation.lsb);
  std::memcpy(at.data(), &number, at.size());
  return {};
}

Result<std::unique_ptr<LoadedProgram>> LoadedProgram::load(std::shared_ptr<DeviceContext> context, npu::Program program,
                                                           const ir::Graph& graph, std::chrono::nanoseconds timeout) {
  SK_TRY(context->check_process());
  SK_TRY(check_program(program, context->chip, graph));
  std::unique_ptr<LoadedProgram> loaded(new LoadedProgram(std::move(context), std::move(program), timeout));
  const npu::Program& own = loaded->program_;
  const std::lock_guard lock(loaded->context_->mutex);
  loaded->outputs_ = own.outputs;
  loaded->jobs_.resize(own.jobs.size(), kUnprepared);
  SK_TRY(outside_jobs(loaded->set_up()));
  loaded->watch_jobs();
  loaded->trace_ = ProgramTrace::of(own, graph, *loaded->context_);
  for (npu::Buffer& buffer : loaded->program_.buffers) buffer.contents = {};
  return loaded;
}

Result<void> LoadedProgram::set_up() {
  SK_TRY(allocate());
  for (npu::BufferId id = 0; id < program_.buffers.size(); ++id) SK_TRY(fill(id));
  SK_TRY(prepare_init_jobs());
  SK_TRY(prepare_jobs());
  return run_init_jobs();
}

LoadedProgram::~LoadedProgram() {
  if (!context_->process.is_here()) return;
  const std::lock_guard lock(context_->mutex);
  for (const InitJob& job : init_jobs_) {
    if (job.id != kUnprepared) device().release(job.id);
  }
  for (const kernels::JobId id : jobs_) {
    if (id != kUnprepared) device().release(id);
  }
  for (const Place& place : own_places_) {
    if (place.handle == 0 || is_shared(place)) continue;
    tidy("freeing a buffer", [&] { return device().free(place.handle); });
  }
  constants_.reset();  // while the device is ours
}

bool LoadedProgram::is_shared(const Place& place) const {
  return constants_ != nullptr && place.handle == constants_->handle();
}

// Puts constants without addresses into one block, which programs with equal constants share.
Result<void> LoadedProgram::place_constants() {
  const ConstantLayout layout = lay_out_constants(program_);
  if (layout.buffers.empty()) return {};
  SK_TRY_ASSIGN(constants_, context_->constants.take(device(), program_, layout).with_context("constants"));
  for (size_t i = 0; i < layout.buffers.size(); ++i) {
    const uint64_t offset = layout.offsets[i];
    const uint64_t address = constants_->address();
    own_places_[layout.buffers[i]] = {constants_->handle(), address == 0 ? 0 : address + offset, offset};
  }
  return {};
}

Result<void> LoadedProgram::allocate() {
  own_places_.resize(program_.buffers.size());
  SK_TRY(place_constants());
  for (npu::BufferId id = 0; id < program_.buffers.size(); ++id) {
    if (own_places_[id].handle != 0) continue;
    const npu::Buffer& buffer = program_.buffers[id];
    const bool is_commands = buffer.role == npu::BufferRole::commands;
    auto handle = is_commands ? device().alloc_commands(buffer.size_bytes) : device().alloc(buffer.size_bytes);
    if (!handle.ok()) return std::move(handle).error().with_context(buffer.name);
    own_places_[id].handle = *handle;
    SK_TRY_ASSIGN(own_places_[id].address, device().address(*handle).with_context(buffer.name));
  }
  places_ = own_places_;
  return {};
}

// Uploads the contents; the device zeroes new buffers. Gaps in tensors get their value here and keep it.
Result<void> LoadedProgram::fill(npu::BufferId id) {
  const npu::Buffer& buffer = program_.buffers[id];
  if (is_shared(own_places_[id])) return {};
  const auto has_gaps = [&](const Binding& input) {
    return input.buffer == id && input.layout.size_bytes != input.shape.bytes();
  };
  if (buffer.contents.empty() && buffer.relocations.empty() && std::ranges::none_of(program_.inputs, has_gaps))
    return {};
  SK_TRY_ASSIGN(CpuAccess access,
                CpuAccess::begin(device(), places_[id].handle, buffer.size_bytes, true).with_context(buffer.name));
  if (!buffer.contents.empty()) std::memcpy(access.bytes().data(), buffer.contents.data(), buffer.contents.size());
  for (const Binding& input : program_.inputs) {
    if (has_gaps(input)) npu::fill_padding(input.layout, input.shape, tensor_bytes(access, input));
  }
  SK_TRY(relocate_all(id, access.bytes()).with_context(buffer.name));
  return access.end().with_context(buffer.name);
}

Result<void> LoadedProgram::relocate_all(npu::BufferId where, std::span<uint8_t> bytes) const {
  for (const npu::Relocation& one : program_.buffers[where].relocations) {
    const uint64_t address = own_places_[one.target].address;
    if (address == 0)
      return error(ErrorCode::unsupported, "byte {}: '{}' has no address on {}", one.at_byte,
                   program_.buffers[one.target].name, device().info().node);
    if (auto done = relocate(bytes, one, address); !done.ok())
      return std::move(done).with_context(fmt::format("byte {}", one.at_byte)).error();
  }
  return {};
}

Result<kernels::JobId> LoadedProgram::prepare(const npu::Job& job) {
  kernels::Job to{.name = job.name, .commands = {}, .buffers = list_buffers(job), .sram_bytes = job.sram_bytes};
  for (const npu::ByteRange& range : job.commands)
    to.commands.push_back({places_[range.buffer].handle, range.offset_bytes, range.size_bytes});
  return device().prepare(to);
}

Result<void> LoadedProgram::prepare_init_jobs() {
  for (const npu::Job& job : program_.init_jobs) {
    InitJob& ready = init_jobs_.emplace_back();
    for (const npu::ByteRange& range : job.commands) {
      const auto bytes = npu::bytes_of(program_, range);
      ready.commands.insert(ready.commands.end(), bytes.begin(), bytes.end());
    }
    SK_TRY_ASSIGN(ready.id, prepare(job));
  }
  return {};
}

// Prepares the jobs that are new or had a buffer moved.
Result<void> LoadedProgram::prepare_jobs() {
  for (size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i] != kUnprepared) continue;
    SK_TRY_ASSIGN(jobs_[i], prepare(program_.jobs[i]));
  }
  return {};
}

// The chip keeps this state until it is reset.
Result<void> LoadedProgram::run_init_jobs() {
  for (const InitJob& job : init_jobs_) {
    if (context_->init_done.contains(job.commands)) continue;
    SK_TRY_ASSIGN(const kernels::Fence fence, device().submit({&job.id, 1}));
    if (auto waited = wait(fence); !waited.ok()) {
      context_->init_done.clear();
      return waited;
    }
    context_->init_done.insert(job.commands);
  }
  return {};
}

Result<void> LoadedProgram::submit_jobs() {
  if (jobs_.empty()) return {};
  if (trace_ != nullptr) trace_->begin();
  const trace::Slice slice(trace::kSubmit);
  auto submitted = device().submit(jobs_);
  if (!submitted.ok() && submitted.error().code == ErrorCode::timeout)
    return outside_jobs(std::move(submitted)).error();
  SK_TRY_ASSIGN(fence_, std::move(submitted));
  return {};
}

Result<void> LoadedProgram::wait(kernels::Fence fence) {
  const trace::Slice slice(trace::kWait);
  const Stopwatch clock;
  auto waited = device().wait(fence, std::max<std::chrono::nanoseconds>(timeout_ - waited_, {}));
  waited_ += std::chrono::milliseconds(static_cast<int64_t>(clock.ms()));
  const bool is_overdue = !waited.ok() && waited.error().code == ErrorCode::timeout;
  context_->overdue = is_overdue ? std::optional(fence) : std::nullopt;
  return waited;
}

Result<void> LoadedProgram::begin(const HostBytes& bytes_of) {
  // Access to a buffer waits for its jobs too, but without our time limit.
  if (context_->overdue) SK_TRY(wait(*context_->overdue));
  SK_TRY(outside_jobs(make_ready(bytes_of)));
  return submit_jobs();
}

Result<void> LoadedProgram::make_ready(const HostBytes& bytes_of) {
  {
    const trace::Slice slice(trace::kCopyIn);
    for (const Binding& input : program_.inputs) SK_TRY(write_input(input, bytes_of(input.tensor)));
  }
  for (const Binding& output : outputs_) SK_TRY(place_output(output, bytes_of));
  SK_TRY(mark_all());
  SK_TRY(run_init_jobs());
  return prepare_jobs();
}

Result<bool> LoadedProgram::end(const HostBytes& bytes_of) {
  if (const auto fence = std::exchange(fence_, std::nullopt)) {
    if (auto waited = wait(*fence); !waited.ok()) {
      if (trace_ != nullptr) trace_->lose(trace::now_ns());
      return waited.error();
    }
  }
  const int64_t ended_ns = trace_ != nullptr ? trace::now_ns() : 0;
  for (Watch& watch : watches_) watch.check.job_ran();
  auto written = outside_jobs(fetch_outputs(bytes_of));
  if (trace_ != nullptr && written.ok() && !*written)
    trace_->lose(ended_ns);
  else if (trace_ != nullptr)
    trace_->end(ended_ns);
  return written;
}

Result<void> LoadedProgram::run(const HostBytes& bytes_of) {
  SK_TRY(context_->check_process());
  const std::lock_guard lock(context_->mutex);
  SK_TRY(start(bytes_of));
  return finish(bytes_of);
}

Result<void> LoadedProgram::start(const HostBytes& bytes_of) {
  waited_ = {};
  return restart(bytes_of);
}

// Within the remaining time of the run.
Result<void> LoadedProgram::restart(const HostBytes& bytes_of) {
  has_results_ = false;
  auto begun = begin(bytes_of);
  if (!begun.ok()) forget_all();
  return begun;
}

// A job that wrote nothing may have been dropped when another program's job hung. So everything runs once more: also
// the inputs, which jobs may have overwritten, and the initialisation, which a reset undoes.
Result<void> LoadedProgram::finish(const HostBytes& bytes_of) {
  for (const bool is_last : {false, true}) {
    const auto written = end(bytes_of);
    has_results_ = written.ok() && *written;
    if (has_results_) return {};
    forget_all();
    if (!written.ok()) return written.error();
    if (is_last) break;
    log::warning("{}: a job{} did not write its output, as after a reset; running it again", device().info().node,
                 untouched_jobs());
    SK_TRY(restart(bytes_of));
  }
  const std::string_view advice = kernels::notes_of(device().info()).lost_jobs;
  return error(ErrorCode::fault, "{}: the job{} did not write its output: the NPU hung and was reset (see dmesg){}{}",
               device().info().node, untouched_jobs(), advice.empty() ? "" : "; ", advice);
}

Result<CpuAccess> LoadedProgram::open(npu::BufferId id, bool write) {
  const Place& place = places_[id];
  return CpuAccess::begin(device(), place.handle, place.offset_bytes + program_.buffers[id].size_bytes, write);
}

std::span<uint8_t> LoadedProgram::tensor_bytes(const CpuAccess& access, const Binding& binding) const {
  return access.bytes().subspan(places_[binding.buffer].offset_bytes + binding.offset_bytes, binding.layout.size_bytes);
}

Result<void> LoadedProgram::write_input(const Binding& input, std::span<const uint8_t> bytes) {
  if (bytes.size() != input.shape.bytes())
    return error(ErrorCode::invalid_argument, "{} bytes for an input of {}", bytes.size(), input.shape.bytes());
  SK_TRY(place(input, bytes));
  if (is_in_place(input, bytes)) return {};
  copied_bytes_ += bytes.size();
  SK_TRY_ASSIGN(CpuAccess access, open(input.buffer, true));
  npu::store(input.layout, input.shape, bytes, tensor_bytes(access, input));
  return access.end();
}

// Checks all witnesses before the first output byte is copied, and checks all even if one is untouched.
Result<bool> LoadedProgram::fetch_outputs(const HostBytes& bytes_of) {
  const trace::Slice slice(trace::kCopyOut);
  bool written = true;
  for (const npu::BufferId id : watched_) {
    if (!outputs_.empty() && id == outputs_[0].buffer) continue;  // opened below anyway
    SK_TRY_ASSIGN(CpuAccess access, open(id, true));
    written &= settle(id, access);
    if (!has_moved(id)) mark(id, access);
    SK_TRY(access.end());
  }
  for (const Binding& output : outputs_) {
    const npu::BufferId id = output.buffer;
    SK_TRY_ASSIGN(CpuAccess access, open(id, is_watched(id)));
    written &= settle(id, access);
    if (written) copy_out(access, output, bytes_of(output.tensor));
    SK_TRY(access.end());
    if (!written) break;
  }
  return written;
}

// Also marks the buffer for the next run while it is open.
void LoadedProgram::copy_out(const CpuAccess& access, const Binding& binding, std::span<uint8_t> bytes) {
  if (is_in_place(binding, bytes)) return;
  copied_bytes_ += bytes.size();
  npu::load(binding.layout, binding.shape, tensor_bytes(access, binding), bytes);
  if (!has_moved(binding.buffer)) mark(binding.buffer, access);
}

const LoadedProgram::Binding* LoadedProgram::find(ir::TensorId tensor) const {
  for (const auto* list : {&outputs_, &program_.intermediates, &program_.inputs}) {
    for (const Binding& binding : *list) {
      if (binding.tensor == tensor) return &binding;
    }
  }
  return nullptr;
}

bool LoadedProgram::has(ir::TensorId tensor) const { return find(tensor) != nullptr; }

Result<void> LoadedProgram::read(ir::TensorId tensor, std::span<uint8_t> bytes) {
  const Binding* binding = find(tensor);
  if (binding == nullptr) return error(ErrorCode::unsupported, "the program does not keep tensor {}", tensor);
  if (!has_results_) return error(ErrorCode::device, "tensor {}: the last run failed", tensor);
  if (bytes.size() != binding->shape.bytes())
    return error(ErrorCode::invalid_argument, "{} bytes for a tensor of {}", bytes.size(), binding->shape.bytes());
  const npu::BufferId id = binding->buffer;
  SK_TRY(context_->check_process());
  const std::lock_guard lock(context_->mutex);
  SK_TRY_ASSIGN(const CpuAccess access, open(id, is_watched(id)));
  settle(id, access);  // restores the bytes under the mark; run() has checked the witnesses
  copy_out(access, *binding, bytes);
  return {};
}

}  // namespace skillet::runtime
