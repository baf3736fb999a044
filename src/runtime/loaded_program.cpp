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
  SK_TRY(loaded->check_bindings(graph));
  loaded->outputs_ = own.outputs;
  SK_TRY(loaded->allocate());
  for (driver::BufferId id = 0; id < own.buffers.size(); ++id) SK_TRY(loaded->fill(id));
  SK_TRY_ASSIGN(loaded->init_jobs_, loaded->prepare(own.init_jobs));
  SK_TRY_ASSIGN(loaded->jobs_, loaded->prepare(own.jobs));
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

// The tensors of the graph, as the program binds them.
Result<void> LoadedProgram::check_bindings(const ir::Graph& graph) const {
  for (const auto* list : {&program_.inputs, &program_.outputs, &program_.intermediates}) {
    for (const Binding& one : *list) {
      if (static_cast<size_t>(one.tensor) >= graph.tensors.size())
        return error(ErrorCode::malformed, "program binds tensor {}; the graph has {}", one.tensor,
                     graph.tensors.size());
      const driver::ImageShape& s = one.shape;
      if (s != driver::image_shape(graph.tensor(one.tensor)))
        return error(ErrorCode::malformed, "program binds {} as {}x{}x{}x{}, {} bytes each",
                     ir::describe_tensor(graph, one.tensor), s.images, s.height, s.width, s.channels, s.elem_bytes);
    }
  }
  const auto same = [&](const std::vector<Binding>& list, const std::vector<ir::TensorId>& wanted) -> Result<void> {
    for (const Binding& one : list) {
      if (std::ranges::find(wanted, one.tensor) == wanted.end())
        return error(ErrorCode::malformed, "program binds {}, which is no input or output of the graph",
                     ir::describe_tensor(graph, one.tensor));
    }
    for (const ir::TensorId id : wanted) {
      if (std::ranges::find(list, id, &Binding::tensor) == list.end())
        return error(ErrorCode::malformed, "program does not bind {}", ir::describe_tensor(graph, id));
    }
    return {};
  };
  SK_TRY(same(program_.inputs, graph.inputs));
  return same(program_.outputs, graph.outputs);
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
  const auto has_gaps = [&](const Binding& input) {
    return input.buffer == id && input.layout.size_bytes != input.shape.bytes();
  };
  if (buffer.contents.empty() && buffer.relocations.empty() && std::ranges::none_of(program_.inputs, has_gaps))
    return {};
  SK_TRY_ASSIGN(const CpuAccess access,
                CpuAccess::begin(device(), places_[id].handle, buffer.size_bytes, true).with_context(buffer.name));
  if (!buffer.contents.empty()) std::memcpy(access.bytes().data(), buffer.contents.data(), buffer.contents.size());
  for (const Binding& input : program_.inputs) {
    if (has_gaps(input)) driver::fill_padding(input.layout, input.shape, tensor_bytes(access, input));
  }
  return apply(access.bytes(), buffer.relocations, addresses_).with_context(buffer.name);
}

Result<std::vector<LoadedProgram::ReadyJob>> LoadedProgram::prepare(const std::vector<driver::Job>& jobs) const {
  std::vector<ReadyJob> all;
  for (const driver::Job& job : jobs) {
    const driver::ByteRange& range = job.commands[0];
    if (job.commands.size() != 1 || range.size_bytes % 4 != 0)
      return error(ErrorCode::unsupported, "job '{}': {} takes one range of words", job.name, device().info().node);
    const auto bytes = std::span(commands_.at(range.buffer)).subspan(range.offset_bytes, range.size_bytes);
    ReadyJob ready{.commands = std::vector<uint32_t>(bytes.size() / 4), .buffers = list_buffers(job)};
    std::memcpy(ready.commands.data(), bytes.data(), bytes.size());
    all.push_back(std::move(ready));
  }
  return all;
}

// What a chip has been told stays with it until it is reset.
Result<void> LoadedProgram::run_init_jobs() {
  for (const ReadyJob& job : init_jobs_) {
    if (context_->init_done.contains(job.commands)) continue;
    SK_TRY_ASSIGN(const uapi::Fence fence, device().submit(job.commands, {}).with_context("initialisation"));
    if (auto waited = device().wait(fence, timeout_); !waited.ok()) {
      context_->init_done.clear();
      return waited;
    }
    context_->init_done.insert(job.commands);
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
  for (const Binding& input : program_.inputs) SK_TRY(write_input(input, bytes_of(input.tensor)));
  for (const Binding& output : outputs_) SK_TRY(place_output(output, bytes_of));
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
    forget_all();
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

std::span<uint8_t> LoadedProgram::tensor_bytes(const CpuAccess& access, const Binding& binding) const {
  return access.bytes().subspan(places_[binding.buffer].offset_bytes + binding.offset_bytes, binding.layout.size_bytes);
}

Result<void> LoadedProgram::write_input(const Binding& input, std::span<const uint8_t> bytes) {
  if (bytes.size() != input.shape.bytes())
    return error(ErrorCode::invalid_argument, "{} bytes for an input of {}", bytes.size(), input.shape.bytes());
  SK_TRY(place(input, bytes));
  if (is_in_place(input, bytes)) return {};
  copied_bytes_ += bytes.size();
  SK_TRY_ASSIGN(const CpuAccess access, open(input.buffer, true));
  driver::store(input.layout, input.shape, bytes, tensor_bytes(access, input));
  return {};
}

// Looks at all witnesses before the first byte of an output leaves, and at all of them when one is untouched.
Result<bool> LoadedProgram::fetch_outputs(const HostBytes& bytes_of) {
  bool written = true;
  for (const driver::BufferId id : watched_) {
    if (!outputs_.empty() && id == outputs_[0].buffer) continue;  // opened below anyway
    SK_TRY_ASSIGN(const CpuAccess access, open(id, true));
    written &= settle(id, access);
    if (!has_moved(id)) mark(id, access);
  }
  for (const Binding& output : outputs_) {
    const driver::BufferId id = output.buffer;
    SK_TRY_ASSIGN(const CpuAccess access, open(id, is_watched(id)));
    written &= settle(id, access);
    if (!written) break;
    copy_out(access, output, bytes_of(output.tensor));
  }
  return written;
}

// Marks the buffer for the next run while it is open.
void LoadedProgram::copy_out(const CpuAccess& access, const Binding& binding, std::span<uint8_t> bytes) {
  if (is_in_place(binding, bytes)) return;
  copied_bytes_ += bytes.size();
  driver::load(binding.layout, binding.shape, tensor_bytes(access, binding), bytes);
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
  if (binding == nullptr) return error(ErrorCode::unsupported, "the program keeps no bytes of tensor {}", tensor);
  if (!has_results_) return error(ErrorCode::device, "tensor {}: the last run has failed", tensor);
  if (bytes.size() != binding->shape.bytes())
    return error(ErrorCode::invalid_argument, "{} bytes for a tensor of {}", bytes.size(), binding->shape.bytes());
  const driver::BufferId id = binding->buffer;
  SK_TRY_ASSIGN(const CpuAccess access, open(id, is_watched(id)));
  settle(id, access);  // gives back what the mark covers: run() has looked at the witnesses
  copy_out(access, *binding, bytes);
  return {};
}

}  // namespace skillet::runtime
