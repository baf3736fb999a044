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
  std::unique_ptr<LoadedProgram> loaded(new LoadedProgram(std::move(context), std::move(program), timeout));
  const driver::Program& own = loaded->program_;
  SK_TRY(loaded->bind(own.inputs, graph, loaded->inputs_));
  SK_TRY(loaded->bind(own.outputs, graph, loaded->outputs_));
  SK_TRY(loaded->bind(own.intermediates, graph, loaded->intermediates_));
  SK_TRY(loaded->allocate());
  for (driver::BufferId id = 0; id < own.buffers.size(); ++id) SK_TRY(loaded->fill(id));
  for (const driver::Job& job : own.jobs) {
    SK_TRY_ASSIGN(ReadyJob ready, loaded->prepare(job));
    loaded->jobs_.push_back(std::move(ready));
  }
  SK_TRY(loaded->run_init_jobs());
  SK_TRY(loaded->watch_outputs());
  for (driver::Buffer& buffer : loaded->program_.buffers) buffer.contents = {};
  return loaded;
}

LoadedProgram::~LoadedProgram() {
  for (const uapi::Handle handle : handles_) {
    if (auto freed = device().free(handle); !freed.ok()) log::warning("freeing a buffer: {}", freed.error().message);
  }
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

Result<void> LoadedProgram::bind(const std::vector<driver::TensorBinding>& bindings, const ir::Graph& graph,
                                 std::vector<Bound>& bound) {
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
    bound.push_back(one);
  }
  return {};
}

Result<LoadedProgram::ReadyJob> LoadedProgram::prepare(const driver::Job& job) {
  ReadyJob ready{.name = job.name, .stream = job.stream};
  const std::span<uint8_t> bytes{reinterpret_cast<uint8_t*>(ready.stream.data()), ready.stream.size() * 4};
  SK_TRY(apply(bytes, job.relocations, addresses_).with_context(fmt::format("job '{}'", job.name)));
  ready.buffers = list_buffers(job);
  return ready;
}

// Jobs without buffers set up the chip itself and run once per device file; others belong to this program.
Result<void> LoadedProgram::run_init_jobs() {
  for (const driver::Job& job : program_.init_jobs) {
    if (job.buffers.empty() && context_->init_done.contains(job.stream)) continue;
    SK_TRY_ASSIGN(const ReadyJob ready, prepare(job));
    SK_TRY(run_jobs({&ready, 1}));
    if (job.buffers.empty()) context_->init_done.insert(job.stream);
  }
  return {};
}

Result<void> LoadedProgram::run_jobs(std::span<const ReadyJob> jobs) {
  uapi::Fence last = 0;
  for (const ReadyJob& job : jobs) {
    auto fence = device().submit(job.stream, job.buffers);
    // The text is only made on failure: this runs at each inference.
    if (!fence.ok()) return std::move(fence).error().with_context(fmt::format("job '{}'", job.name));
    last = *fence;
  }
  if (jobs.empty()) return {};
  return device().wait(last, timeout_);
}

Result<void> LoadedProgram::run() {
  SK_TRY(run_jobs(jobs_));
  for (auto& [bound, check] : checks_) check.job_ran();
  return {};
}

Result<CpuAccess> LoadedProgram::open(const Bound& bound, bool write) {
  const driver::BufferId id = bound.binding.buffer;
  const Place& place = places_[id];
  return CpuAccess::begin(device(), place.handle, place.offset_bytes + program_.buffers[id].size_bytes, write);
}

std::span<uint8_t> LoadedProgram::tensor_bytes(const CpuAccess& access, const Bound& bound) const {
  const driver::TensorBinding& binding = bound.binding;
  return access.bytes().subspan(places_[binding.buffer].offset_bytes + binding.offset_bytes, binding.size_bytes);
}

Result<void> LoadedProgram::write_input(ir::TensorId tensor, std::span<const uint8_t> bytes) {
  bool found = false;
  for (const Bound& bound : inputs_) {
    if (bound.binding.tensor != tensor) continue;
    found = true;
    if (bytes.size() != bound.binding.size_bytes)
      return error(ErrorCode::invalid_argument, "{} bytes for an input of {}", bytes.size(), bound.binding.size_bytes);
    SK_TRY_ASSIGN(const bool in_place, place(bound, bytes));
    if (in_place) continue;
    copied_bytes_ += bytes.size();
    SK_TRY_ASSIGN(const CpuAccess access, open(bound, true));
    const auto target = tensor_bytes(access, bound);
    if (bound.binding.layout == driver::Layout::nchw_planar) {
      transpose(bytes, target, bound.images, bound.pixels, bound.channels, bound.elem_bytes, true);
      xor_bytes(target, bound.binding.xor_byte);
    } else {
      copy_xor(bytes, target, bound.binding.xor_byte);
    }
  }
  if (!found) return error(ErrorCode::internal, "the program has no input for tensor {}", tensor);
  return {};
}

Result<bool> LoadedProgram::try_copy_out(const Bound& bound, std::span<uint8_t> bytes) {
  const auto check = checks_.find(&bound);
  SK_TRY_ASSIGN(const CpuAccess access, open(bound, check != checks_.end()));
  const auto source = tensor_bytes(access, bound);
  if (check != checks_.end() && !check->second.settle(source)) return false;
  if (is_in_place(bound, bytes)) return true;
  copied_bytes_ += bytes.size();
  if (bound.binding.layout == driver::Layout::nchw_planar) {
    transpose(source, bytes, bound.images, bound.pixels, bound.channels, bound.elem_bytes, false);
    xor_bytes(bytes, bound.binding.xor_byte);
  } else {
    copy_xor(source, bytes, bound.binding.xor_byte);
  }
  if (check != checks_.end()) check->second.mark(source);
  return true;
}

// A job that left no trace runs once more: it may have been thrown away when another program's job hung.
Result<void> LoadedProgram::copy_out(const Bound& bound, std::span<uint8_t> bytes) {
  if (bytes.size() != bound.binding.size_bytes)
    return error(ErrorCode::invalid_argument, "{} bytes for a tensor of {}", bytes.size(), bound.binding.size_bytes);
  SK_TRY_ASSIGN(bool written, try_copy_out(bound, bytes));
  if (written) return {};
  log::warning("{}: a job left its output untouched, as after a reset; running it once more", device().info().node);
  SK_TRY(run());
  SK_TRY_ASSIGN(written, try_copy_out(bound, bytes));
  if (written) return {};
  return error(ErrorCode::device,
               "{}: the job left its output untouched: the NPU hung and was reset (see dmesg for 'recover hung GPU')",
               device().info().node);
}

const LoadedProgram::Bound* LoadedProgram::find(ir::TensorId tensor) const {
  for (const auto* list : {&outputs_, &intermediates_, &inputs_}) {
    for (const Bound& bound : *list) {
      if (bound.binding.tensor == tensor) return &bound;
    }
  }
  return nullptr;
}

bool LoadedProgram::is_written_by_jobs(driver::BufferId buffer) const {
  return std::ranges::any_of(program_.jobs, [&](const driver::Job& job) {
    return std::ranges::any_of(job.buffers,
                               [&](const driver::BufferUse& use) { return use.buffer == buffer && use.write; });
  });
}

// No other tensor lies in the same bytes. The same tensor as an intermediate is read through the output.
bool LoadedProgram::is_only_an_output(const Bound& output) const {
  const auto overlaps = [&](const Bound& other) {
    const driver::TensorBinding &a = output.binding, &b = other.binding;
    return &other != &output && a.tensor != b.tensor && a.buffer == b.buffer &&
           a.offset_bytes < b.offset_bytes + b.size_bytes && b.offset_bytes < a.offset_bytes + a.size_bytes;
  };
  return std::ranges::none_of(inputs_, overlaps) && std::ranges::none_of(outputs_, overlaps) &&
         std::ranges::none_of(intermediates_, overlaps);
}

// Not when a job overwrites an input: then it could not run once more.
Result<void> LoadedProgram::watch_outputs() {
  if (!device().loses_jobs()) return {};
  for (const Bound& input : inputs_) {
    if (is_written_by_jobs(input.binding.buffer)) return {};
  }
  for (const Bound& output : outputs_) {
    if (!is_written_by_jobs(output.binding.buffer) || !is_only_an_output(output)) continue;
    SK_TRY(mark(output));
  }
  return {};
}

bool LoadedProgram::has(ir::TensorId tensor) const { return find(tensor) != nullptr; }

Result<void> LoadedProgram::read(ir::TensorId tensor, std::span<uint8_t> bytes) {
  const Bound* bound = find(tensor);
  if (bound == nullptr) return error(ErrorCode::unsupported, "the program keeps no bytes of tensor {}", tensor);
  return copy_out(*bound, bytes);
}

Result<void> LoadedProgram::read_output(ir::TensorId tensor, std::span<uint8_t> bytes) {
  for (const Bound& bound : outputs_) {
    if (bound.binding.tensor == tensor) return copy_out(bound, bytes);
  }
  return error(ErrorCode::internal, "the program has no output for tensor {}", tensor);
}

}  // namespace skillet::runtime
