#include "runtime/loaded_program.h"

#include <algorithm>

#include "base/log.h"
#include "runtime/cpu_access.h"

namespace skillet::runtime {
namespace {

// Copies between [images][pixels][channels] and [images][channels][pixels] (`to_planar` or back).
void transpose(std::span<const uint8_t> from, std::span<uint8_t> to, int64_t images, int64_t pixels, int64_t channels,
               int64_t elem_bytes, bool to_planar) {
  const int64_t rows = to_planar ? pixels : channels, columns = to_planar ? channels : pixels;
  for (int64_t image = 0; image < images; ++image) {
    const int64_t base = image * pixels * channels;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t source = (base + row * columns + column) * elem_bytes;
        const int64_t target = (base + column * rows + row) * elem_bytes;
        std::memcpy(to.data() + target, from.data() + source, static_cast<size_t>(elem_bytes));
      }
    }
  }
}

// Reads nothing back of `to`: memory that a device shares may be slow to read.
void copy_xor(std::span<const uint8_t> from, std::span<uint8_t> to, uint8_t value) {
  if (value == 0) {
    std::ranges::copy(from, to.begin());
  } else {
    std::ranges::transform(from, to.begin(), [value](uint8_t byte) { return static_cast<uint8_t>(byte ^ value); });
  }
}

void xor_bytes(std::span<uint8_t> bytes, uint8_t value) {
  if (value == 0) return;
  for (uint8_t& byte : bytes) byte ^= value;
}

Result<void> apply(std::span<uint8_t> bytes, const std::vector<driver::Relocation>& relocations,
                   std::span<const uint64_t> addresses) {
  for (const driver::Relocation& one : relocations) {
    uint8_t* at = bytes.data() + one.word_offset_bytes;
    auto word = relocate(load_le<uint32_t>(at), one, addresses[one.target]);
    if (!word.ok()) return std::move(word).error().with_context(fmt::format("byte {}", one.word_offset_bytes));
    store_le(at, *word);
  }
  return {};
}

}  // namespace

Result<uint32_t> relocate(uint32_t word, const driver::Relocation& relocation, uint64_t address) {
  const uint64_t target = address + relocation.target_offset_bytes;
  const uint64_t value = target >> relocation.shift;
  if (value << relocation.shift != target)
    return error(ErrorCode::out_of_range, "address {:#x} is not a multiple of {}", target, 1ULL << relocation.shift);
  if (value >> relocation.width != 0)
    return error(ErrorCode::out_of_range, "address {:#x} >> {} does not fit {} bits", target, relocation.shift,
                 relocation.width);
  const uint64_t mask = ((1ULL << relocation.width) - 1) << relocation.lsb;
  return static_cast<uint32_t>((word & ~mask) | (value << relocation.lsb));
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
  for (const uapi::Handle handle : handles_) {
    if (auto freed = device().free(handle); !freed.ok()) log::warning("freeing a buffer: {}", freed.error().message);
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
    if (binding.size_bytes != static_cast<uint64_t>(tensor.bytes()))
      return error(ErrorCode::malformed, "program binds {} bytes for {}, which has {}", binding.size_bytes,
                   ir::describe_tensor(graph, binding.tensor), tensor.bytes());
    Bound one{.binding = binding, .channels = tensor.shape.back(0), .elem_bytes = ir::dtype_bytes(tensor.dtype)};
    one.images = tensor.shape.rank() == 4 ? tensor.shape[0] : 1;
    const int64_t rows = one.images * one.channels;
    one.pixels = rows == 0 ? 0 : tensor.shape.elems() / rows;
    if (one.elem_bytes == 0 && binding.layout != driver::Layout::nhwc)
      return error(ErrorCode::malformed, "program binds {} planar", ir::describe_tensor(graph, binding.tensor));
    all.push_back(one);
  }
  return all;
}

Result<void> LoadedProgram::allocate() {
  for (const driver::Buffer& buffer : program_.buffers) {
    SK_TRY_ASSIGN(const uapi::Handle handle, device().alloc(buffer.size_bytes).with_context(buffer.name));
    handles_.push_back(handle);
    SK_TRY_ASSIGN(const uint64_t address, device().address(handle).with_context(buffer.name));
    addresses_.push_back(address);
    places_.push_back({handle, address, 0});
  }
  return {};
}

// Uploads the contents; buffers come zeroed from the device.
Result<void> LoadedProgram::fill(driver::BufferId id) {
  const driver::Buffer& buffer = program_.buffers[id];
  std::vector<const driver::BufferRelocations*> lists;
  for (const driver::BufferRelocations& list : program_.buffer_relocations) {
    if (list.buffer == id) lists.push_back(&list);
  }
  if (buffer.contents.empty() && lists.empty()) return {};
  SK_TRY_ASSIGN(const CpuAccess access,
                CpuAccess::begin(device(), handles_[id], buffer.size_bytes, true).with_context(buffer.name));
  std::ranges::copy(buffer.contents, access.bytes().begin());
  for (const auto* list : lists) SK_TRY(apply(access.bytes(), list->relocations, addresses_).with_context(buffer.name));
  return {};
}

Result<LoadedProgram::ReadyJob> LoadedProgram::prepare(const driver::Job& job) {
  ReadyJob ready{.stream = job.stream, .buffers = {}};
  const std::span<uint8_t> bytes{reinterpret_cast<uint8_t*>(ready.stream.data()), ready.stream.size() * 4};
  SK_TRY(apply(bytes, job.relocations, addresses_).with_context(fmt::format("job '{}'", job.name)));
  ready.buffers = list_buffers(job);
  return ready;
}

// What a chip has been told stays with it until it is reset.
Result<void> LoadedProgram::run_init_jobs() {
  for (const driver::Job& job : program_.init_jobs) {
    if (context_->init_done.contains(job.stream)) continue;
    auto fence = device().submit(job.stream, {});
    if (!fence.ok()) return std::move(fence).error().with_context(fmt::format("job '{}'", job.name));
    SK_TRY(device().wait(*fence, timeout_));
    context_->init_done.insert(job.stream);
  }
  return {};
}

Result<void> LoadedProgram::run_jobs() {
  uapi::Fence last = 0;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    auto fence = device().submit(jobs_[i].stream, jobs_[i].buffers);
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
  return access.bytes().subspan(places_[binding.buffer].offset_bytes + binding.offset_bytes, binding.size_bytes);
}

Result<void> LoadedProgram::write_input(const Bound& input, std::span<const uint8_t> bytes) {
  if (bytes.size() != input.binding.size_bytes)
    return error(ErrorCode::invalid_argument, "{} bytes for an input of {}", bytes.size(), input.binding.size_bytes);
  SK_TRY(place(input, bytes));
  if (is_in_place(input, bytes)) return {};
  copied_bytes_ += bytes.size();
  SK_TRY_ASSIGN(const CpuAccess access, open(input.binding.buffer, true));
  const auto target = tensor_bytes(access, input);
  if (input.binding.layout == driver::Layout::nchw_planar) {
    transpose(bytes, target, input.images, input.pixels, input.channels, input.elem_bytes, true);
    xor_bytes(target, input.binding.xor_byte);
  } else {
    copy_xor(bytes, target, input.binding.xor_byte);
  }
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
  const auto source = tensor_bytes(access, bound);
  copied_bytes_ += bytes.size();
  if (bound.binding.layout == driver::Layout::nchw_planar) {
    transpose(source, bytes, bound.images, bound.pixels, bound.channels, bound.elem_bytes, false);
    xor_bytes(bytes, bound.binding.xor_byte);
  } else {
    copy_xor(source, bytes, bound.binding.xor_byte);
  }
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
  if (bytes.size() != bound->binding.size_bytes)
    return error(ErrorCode::invalid_argument, "{} bytes for a tensor of {}", bytes.size(), bound->binding.size_bytes);
  const driver::BufferId id = bound->binding.buffer;
  SK_TRY_ASSIGN(const CpuAccess access, open(id, is_watched(id)));
  settle(id, access);  // gives back what the mark covers: run() has looked at the witnesses
  copy_out(access, *bound, bytes);
  return {};
}

}  // namespace skillet::runtime
