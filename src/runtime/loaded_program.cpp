#include "runtime/loaded_program.h"

#include <algorithm>

#include "base/log.h"
#include "runtime/cpu_access.h"

namespace skillet::runtime {
namespace {

Result<void> apply(std::span<uint8_t> bytes, const std::vector<driver::Relocation>& relocations,
                   std::span<const uint64_t> addresses) {
  for (const driver::Relocation& one : relocations) {
    if (auto done = relocate(bytes, one, addresses[one.target]); !done.ok())
      return std::move(done).with_context(fmt::format("byte {}", one.at_byte)).error();
  }
  return {};
}

}  // namespace

Result<void> relocate(std::span<uint8_t> bytes, const driver::Relocation& relocation, uint64_t address) {
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

Result<std::unique_ptr<LoadedProgram>> LoadedProgram::load(std::shared_ptr<DeviceContext> context,
                                                           driver::Program program, const ir::Graph& graph,
                                                           std::chrono::nanoseconds timeout) {
  SK_TRY(driver::verify(program));
  if (program.chip != context->chip)
    return error(ErrorCode::invalid_argument, "the program is for chip '{}', the device has '{}'", program.chip,
                 context->chip);
  std::unique_ptr<LoadedProgram> loaded(new LoadedProgram(std::move(context), std::move(program), timeout));
  const driver::Program& own = loaded->program_;
  SK_TRY(loaded->bind_all(graph));
  SK_TRY(loaded->allocate());
  for (driver::BufferId id = 0; id < own.buffers.size(); ++id) SK_TRY(loaded->fill(id));
  for (const driver::Job& job : own.jobs) {
    SK_TRY_ASSIGN(ReadyJob ready, loaded->prepare(job));
    loaded->jobs_.push_back(std::move(ready));
  }
  SK_TRY(loaded->run_init_jobs());
  loaded->watch_jobs();
  for (driver::Buffer& buffer : loaded->program_.buffers) buffer.contents = {};
  return loaded;
}

LoadedProgram::~LoadedProgram() {
  for (const Place& place : own_places_) {
    if (place.handle == 0) continue;
    if (auto freed = device().free(place.handle); !freed.ok())
      log::warning("freeing a buffer: {}", freed.error().message);
  }
}

Result<void> LoadedProgram::bind_all(const ir::Graph& graph) {
  SK_TRY_ASSIGN(inputs_, bind(program_.inputs, graph));
  SK_TRY_ASSIGN(outputs_, bind(program_.outputs, graph));
  SK_TRY_ASSIGN(intermediates_, bind(program_.intermediates, graph));
  const auto same = [&](const std::vector<Bound>& bound, const std::vector<ir::TensorId>& wanted) -> Result<void> {
    for (const Bound& one : bound) {
      if (std::ranges::find(wanted, one.binding.tensor) == wanted.end())
        return error(ErrorCode::malformed, "program binds {}, which is no input or output of the graph",
                     ir::describe_tensor(graph, one.binding.tensor));
    }
    for (const ir::TensorId id : wanted) {
      if (std::ranges::none_of(bound, [&](const Bound& one) { return one.binding.tensor == id; }))
        return error(ErrorCode::malformed, "program does not bind {}", ir::describe_tensor(graph, id));
    }
    return {};
  };
  SK_TRY(same(inputs_, graph.inputs));
  return same(outputs_, graph.outputs);
}

Result<std::vector<LoadedProgram::Bound>> LoadedProgram::bind(const std::vector<driver::TensorBinding>& bindings,
                                                              const ir::Graph& graph) {
  std::vector<Bound> all;
  for (const driver::TensorBinding& binding : bindings) {
    if (static_cast<size_t>(binding.tensor) >= graph.tensors.size())
      return error(ErrorCode::malformed, "program binds tensor {}; the graph has {}", binding.tensor,
                   graph.tensors.size());
    const ir::Tensor& tensor = graph.tensor(binding.tensor);
    Bound one{.binding = binding, .shape = driver::image_shape(tensor)};
    if (one.shape.elem_bytes == 0 || one.shape.bytes() != static_cast<uint64_t>(tensor.bytes()))
      return error(ErrorCode::malformed, "program binds {}, which has no whole bytes per element",
                   ir::describe_tensor(graph, binding.tensor));
    SK_TRY(driver::check(binding.layout, one.shape)
               .with_context(fmt::format("program binds {}", ir::describe_tensor(graph, binding.tensor))));
    all.push_back(one);
  }
  return all;
}

// Commands stay with the host, which hands them over with each job.
Result<void> LoadedProgram::allocate() {
  for (const driver::Buffer& buffer : program_.buffers) {
    Place place;
    if (buffer.role != driver::BufferRole::commands) {
      SK_TRY_ASSIGN(place.handle, device().alloc(buffer.size_bytes).with_context(buffer.name));
      own_places_.push_back(place);
      SK_TRY_ASSIGN(own_places_.back().address, device().address(place.handle).with_context(buffer.name));
    } else {
      own_places_.push_back(place);
    }
    addresses_.push_back(own_places_.back().address);
  }
  places_ = own_places_;
  return {};
}

// Uploads the contents; buffers come zeroed from the device. Gaps in tensors get their value here, and keep it.
Result<void> LoadedProgram::fill(driver::BufferId id) {
  const driver::Buffer& buffer = program_.buffers[id];
  if (buffer.role == driver::BufferRole::commands) {
    commands_[id].assign(buffer.contents.begin(), buffer.contents.end());
    return apply(commands_[id], buffer.relocations, addresses_).with_context(buffer.name);
  }
  const auto has_gaps = [&](const Bound& input) {
    return input.binding.buffer == id && input.binding.layout.size_bytes != input.shape.bytes();
  };
  if (buffer.contents.empty() && buffer.relocations.empty() && std::ranges::none_of(inputs_, has_gaps)) return {};
  SK_TRY_ASSIGN(const CpuAccess access,
                CpuAccess::begin(device(), places_[id].handle, buffer.size_bytes, true).with_context(buffer.name));
  std::ranges::copy(buffer.contents, access.bytes().begin());
  for (const Bound& input : inputs_) {
    if (has_gaps(input)) driver::fill_padding(input.binding.layout, input.shape, tensor_bytes(access, input));
  }
  return apply(access.bytes(), buffer.relocations, addresses_).with_context(buffer.name);
}

Result<LoadedProgram::ReadyJob> LoadedProgram::prepare(const driver::Job& job) const {
  ReadyJob ready{.commands = {}, .buffers = list_buffers(job)};
  for (const driver::ByteRange& range : job.commands) {
    const auto bytes = std::span(commands_.at(range.buffer)).subspan(range.offset_bytes, range.size_bytes);
    if (bytes.size() % 4 != 0 || !ready.commands.empty())
      return error(ErrorCode::unsupported, "job '{}': {} takes one range of words", job.name, device().info().node);
    ready.commands.resize(bytes.size() / 4);
    std::memcpy(ready.commands.data(), bytes.data(), bytes.size());
  }
  return ready;
}

// What a chip has been told stays with it until it is reset.
Result<void> LoadedProgram::run_init_jobs() {
  for (const driver::Job& job : program_.init_jobs) {
    SK_TRY_ASSIGN(const ReadyJob ready, prepare(job));
    if (context_->init_done.contains(ready.commands)) continue;
    auto fence = device().submit(ready.commands, {});
    if (!fence.ok()) return std::move(fence).error().with_context(fmt::format("job '{}'", job.name));
    SK_TRY(device().wait(*fence, timeout_));
    context_->init_done.insert(ready.commands);
  }
  return {};
}

Result<void> LoadedProgram::run_jobs() {
  uapi::Fence last = 0;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    auto fence = device().submit(jobs_[i].commands, jobs_[i].buffers);
    // The text is only made on failure: this runs at each inference.
    if (!fence.ok()) return std::move(fence).error().with_context(fmt::format("job '{}'", program_.jobs[i].name));
    last = *fence;
  }
  if (jobs_.empty()) return {};
  return device().wait(last, timeout_);
}

Result<bool> LoadedProgram::try_run(const HostBytes& bytes_of) {
  for (const Bound& input : inputs_) SK_TRY(write_input(input, bytes_of(input.binding.tensor)));
  for (const Bound& output : outputs_) SK_TRY(place_output(output, bytes_of));
  SK_TRY(mark_all());
  SK_TRY(run_init_jobs());
  SK_TRY(run_jobs());
  for (Watch& watch : watches_) watch.check.job_ran();
  return fetch_outputs(bytes_of);
}

// A job that left no trace may have been thrown away when another program's job hung, so everything runs once more: the
// inputs too, which jobs may have overwritten, and the initialisation, which a reset undoes.
Result<void> LoadedProgram::run(const HostBytes& bytes_of) {
  has_results_ = false;
  for (const bool is_last : {false, true}) {
    const auto written = try_run(bytes_of);
    has_results_ = written.ok() && *written;
    if (has_results_) return {};
    context_->init_done.clear();
    if (!written.ok()) return written.error();
    if (!is_last)
      log::warning("{}: a job left its output untouched, as after a reset; running it once more", device().info().node);
  }
  return error(ErrorCode::device,
               "{}: the job left its output untouched: the NPU hung and was reset (see dmesg for 'recover hung GPU')",
               device().info().node);
}

Result<CpuAccess> LoadedProgram::open(driver::BufferId id, bool write) {
  const Place& place = places_[id];
  return CpuAccess::begin(device(), place.handle, place.offset_bytes + program_.buffers[id].size_bytes, write);
}

std::span<uint8_t> LoadedProgram::tensor_bytes(const CpuAccess& access, const Bound& bound) const {
  const driver::TensorBinding& binding = bound.binding;
  return access.bytes().subspan(places_[binding.buffer].offset_bytes + binding.offset_bytes, binding.layout.size_bytes);
}

Result<void> LoadedProgram::write_input(const Bound& input, std::span<const uint8_t> bytes) {
  if (bytes.size() != input.shape.bytes())
    return error(ErrorCode::invalid_argument, "{} bytes for an input of {}", bytes.size(), input.shape.bytes());
  SK_TRY(place(input, bytes));
  if (is_in_place(input, bytes)) return {};
  copied_bytes_ += bytes.size();
  SK_TRY_ASSIGN(const CpuAccess access, open(input.binding.buffer, true));
  driver::store(input.binding.layout, input.shape, bytes, tensor_bytes(access, input));
  return {};
}

// Looks at all witnesses before the first byte of an output leaves, and at all of them when one is untouched.
Result<bool> LoadedProgram::fetch_outputs(const HostBytes& bytes_of) {
  bool written = true;
  for (const driver::BufferId id : watched_) {
    if (!outputs_.empty() && id == outputs_[0].binding.buffer) continue;  // opened below anyway
    SK_TRY_ASSIGN(const CpuAccess access, open(id, true));
    written &= settle(id, access);
    if (!has_moved(id)) mark(id, access);
  }
  for (const Bound& output : outputs_) {
    const driver::BufferId id = output.binding.buffer;
    SK_TRY_ASSIGN(const CpuAccess access, open(id, is_watched(id)));
    written &= settle(id, access);
    if (!written) break;
    copy_out(access, output, bytes_of(output.binding.tensor));
  }
  return written;
}

// Marks the buffer for the next run while it is open.
void LoadedProgram::copy_out(const CpuAccess& access, const Bound& bound, std::span<uint8_t> bytes) {
  if (is_in_place(bound, bytes)) return;
  copied_bytes_ += bytes.size();
  driver::load(bound.binding.layout, bound.shape, tensor_bytes(access, bound), bytes);
  if (!has_moved(bound.binding.buffer)) mark(bound.binding.buffer, access);
}

const LoadedProgram::Bound* LoadedProgram::find(ir::TensorId tensor) const {
  for (const auto* list : {&outputs_, &intermediates_, &inputs_}) {
    for (const Bound& bound : *list) {
      if (bound.binding.tensor == tensor) return &bound;
    }
  }
  return nullptr;
}

bool LoadedProgram::has(ir::TensorId tensor) const { return find(tensor) != nullptr; }

Result<void> LoadedProgram::read(ir::TensorId tensor, std::span<uint8_t> bytes) {
  const Bound* bound = find(tensor);
  if (bound == nullptr) return error(ErrorCode::unsupported, "the program keeps no bytes of tensor {}", tensor);
  if (!has_results_) return error(ErrorCode::device, "tensor {}: the last run has failed", tensor);
  if (bytes.size() != bound->shape.bytes())
    return error(ErrorCode::invalid_argument, "{} bytes for a tensor of {}", bytes.size(), bound->shape.bytes());
  const driver::BufferId id = bound->binding.buffer;
  SK_TRY_ASSIGN(const CpuAccess access, open(id, is_watched(id)));
  settle(id, access);  // gives back what the mark covers: run() has looked at the witnesses
  copy_out(access, *bound, bytes);
  return {};
}

}  // namespace skillet::runtime
