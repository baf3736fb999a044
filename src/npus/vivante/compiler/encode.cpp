#include "npus/vivante/compiler/encode.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>

#include "base/int_math.h"
#include "npus/vivante/compiler/support.h"
#include "npus/vivante/compiler/tile.h"
#include "npus/vivante/compiler/weights.h"
#include "program/share_memory.h"

namespace skillet::npus::vivante {
namespace {

using npu::BufferId;
using npu::Program;
using npu::Relocation;

constexpr uint32_t kDescriptorSpacingBytes = 128;
constexpr uint64_t kPlaceAlign = 4096;    // as for buffers of the kernel
constexpr uint32_t kConstantAlign = 128;  // specification 10.4
constexpr int kLeadingZeroWords = 8, kTrailingZeroWords = 2;

struct Requant {
  uint32_t multiplier = 0, shift = 0;
};
// Truncates the mantissa: value = acc * (2^bits + multiplier) * 2^-(base + shift) (section 7.3). A shift that does not
// fit its 7 bits is not masked; packing refuses it.
Requant requant(const hw::Generation& generation, float scale) {
  const auto b = std::bit_cast<uint32_t>(scale);
  const uint32_t mask = (1U << generation.multiplier_bits) - 1;
  const auto origin = static_cast<uint32_t>(generation.shift_origin());
  return {(b >> (23 - generation.multiplier_bits)) & mask, origin - (b >> 23)};
}

hw::NnInstruction nn_instruction(const hw::ChipRow& chip, const NnOperation& op, const Tiling& t,
                                 const CacheWindows& cache, const KernelSplit& split) {
  const auto u = [](int32_t v) { return static_cast<uint32_t>(v); };
  const uint32_t doubled = op.first_pixel ? 2 : 1;
  const hw::Generation& generation = hw::generation_of(chip);
  const Requant scale = requant(generation, op.scale);
  return hw::NnInstruction{
      .no_z_offset = chip.has(hw::kNoZOffset),
      .kernel_x_size = u(op.kernels.width),
      .kernel_y_size = u(op.kernels.height),
      .kernel_z_size = u(op.kernels.input_channels),
      .kernels_per_core = u(split.kernels_per_superblock),
      .pooling = op.first_pixel ? hw::Pooling::first_pixel : hw::Pooling::none,
      .pooling_xy_size = op.first_pixel ? 0U : 1U,
      .nn_layer_flush = true,
      .in_x_size = u(op.in.width),
      .in_y_size = u(op.in.height),
      .in_x_offset = op.offset_x,
      .in_y_offset = op.offset_y,
      .relu = op.relu,
      .post_multiplier = scale.multiplier,
      .post_shift = scale.shift,
      .no_flush = generation.no_flush,
      .out_x_size = u(op.out.width) * doubled,
      .out_y_size = u(op.out.height) * doubled,
      .out_z_size = u(op.out.channels),
      .rounding_mode = 1,
      .out_tile_x_size = u(t.tile_x),
      .out_tile_y_size = u(t.tile_y),
      .image_caching_mode = cache.image_mode,
      .kernel_caching_mode = cache.kernel_mode,
      .kernel_pattern_msb = cache.pattern_msb,
      .out_y_stride = u(op.out.height),
      .kernel_pattern = cache.pattern,
      .kernel_cache_start = cache.kernel_start,
      .kernel_cache_end = cache.kernel_end,
      .image_cache_start = cache.image_start,
      .image_cache_end = cache.image_end,
      .in_border_const = op.input_zero_point,
      .in_x_stride = u(op.in.width),
      .in_y_stride = u(op.in.height),
      .out_x_stride = u(op.out.width),
      .out_circular_buf_end = hw::kCircularBufferOff,
      .in_circular_buf_end = hw::kCircularBufferOff,
      .coef_zero_point = op.kernels.zero_point,
      .out_zero_point = op.output_zero_point,
      .depthwise = op.depthwise,
      .constant_word_28 = hw::kNnConstantWord28,
      .float_clamp_upper = std::numeric_limits<float>::infinity(),
      .float_clamp_lower = -std::numeric_limits<float>::infinity(),
  };
}

class Encoder {
 public:
  Encoder(const hw::ChipRow& chip, const ir::Graph& graph, Lowered lowered, const EncodeOptions& options)
      : chip_(chip), graph_(graph), in_(std::move(lowered)), options_(options) {}

  Result<Program> run() {
    program_.chip = std::string(chip_.name);
    if (options_.join_constants) program_.constant_align = kConstantAlign;
    add_buffers();
    for (size_t i = 0; i < in_.operations.size(); ++i) {
      const Operation& op = in_.operations[i];
      program_.operations.push_back({op.op, op.kind, macs(op)});
      if (stream_.empty()) open_job();
      const auto* nn = std::get_if<NnOperation>(&op.job);
      auto done = nn ? encode_nn(*nn) : encode_tp(std::get<TpOperation>(op.job));
      if (!done.ok()) return std::move(done).with_context(name_of(op)).error();
      if (stream_.size() > options_.job_words && !is_continued(i)) close_job();
    }
    if (!stream_.empty()) close_job();
    add_init_job();
    finish(descriptors_, descriptor_bytes_, descriptor_relocations_);
    finish(commands_, command_bytes_, command_relocations_);
    bind(in_.inputs, program_.inputs);
    bind(in_.outputs, program_.outputs);
    if (options_.share_memory)
      npu::share_memory(program_, needed_, kPlaceAlign);
    else
      bind(in_.intermediates, program_.intermediates);
    return std::move(program_);
  }

 private:
  std::string name_of(const Operation& op) const {
    return op.op < 0 ? op.kind : fmt::format("{} ({})", describe_op(graph_, op.op), op.kind);
  }
  static SlotId output_of(const Operation& op) {
    return std::visit([](const auto& job) { return job.output; }, op.job);
  }
  // Whether the next operation writes another piece of the same slot. Both belong to one job, which ends with the later
  // one.
  bool is_continued(size_t i) const {
    return i + 1 < in_.operations.size() && output_of(in_.operations[i]) == output_of(in_.operations[i + 1]);
  }
  static uint64_t macs(const Operation& op) {
    const auto* nn = std::get_if<NnOperation>(&op.job);
    if (nn == nullptr) return 0;
    return static_cast<uint64_t>(nn->out.bytes() * nn->kernels.band * nn->kernels.patch_elems());
  }

  // ---- buffers ----

  BufferId add_buffer(std::string name, npu::BufferRole role, uint64_t size_bytes, Bytes contents = {}) {
    program_.buffers.push_back({std::move(name), role, size_bytes, std::move(contents)});
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }

  // One buffer for all descriptors, one for all commands, one for each slot that is not inside another.
  void add_buffers() {
    descriptors_ = add_buffer("descriptors", npu::BufferRole::constant, 0);
    commands_ = add_buffer("commands", npu::BufferRole::commands, 0);
    buffer_of_.resize(in_.slots.size());
    for (size_t s = 0; s < in_.slots.size(); ++s) {
      const Slot& slot = in_.slots[s];
      if (slot.parent == kNoSlot) buffer_of_[s] = add_buffer(slot.name, slot.role, slot.size_bytes);
    }
    for (size_t s = 0; s < in_.slots.size(); ++s) {
      const Slot& slot = in_.slots[s];
      if (slot.parent == kNoSlot || slot.role == npu::BufferRole::scratch) continue;
      program_.buffers[buffer_of_[place_of(in_.slots, static_cast<SlotId>(s)).root]].role = slot.role;
    }
  }

  // The operation being written uses the buffer.
  void need(BufferId buffer) {
    if (program_.buffers[buffer].role != npu::BufferRole::scratch) return;
    const auto operation = static_cast<uint32_t>(program_.operations.size() - 1);
    needed_.resize(program_.buffers.size());
    if (!needed_[buffer]) needed_[buffer] = {.first = operation};
    needed_[buffer]->last = operation;
  }

  struct Target {
    BufferId buffer = 0;
    uint64_t offset_bytes = 0;
  };
  Target target_of(SlotId slot) const {
    const Place place = place_of(in_.slots, slot);
    return {buffer_of_[place.root], place.offset_bytes};
  }

  void bind(const std::vector<PlacedTensor>& placed, std::vector<npu::TensorBinding>& bindings) const {
    for (const PlacedTensor& p : placed) {
      const Target target = target_of(p.slot);
      const ir::Tensor& tensor = graph_.tensor(p.tensor);
      const npu::ImageShape shape = npu::image_shape(tensor);
      const auto layout = p.layout == Layout::nhwc ? npu::nhwc_layout : npu::planar_layout;
      bindings.push_back({p.tensor, target.buffer, target.offset_bytes, shape, layout(shape, xor_byte(tensor.dtype))});
    }
  }

  // ---- descriptors ----

  // Appends a descriptor; its addresses become relocations. `resolve` maps an address's symbol to a buffer.
  template <typename T, typename Resolve>
  Result<uint64_t> add_descriptor(const bits::Descriptor& descriptor, const T& fields, Resolve resolve) {
    std::vector<bits::AddressSlot> slots;
    std::array<uint32_t, kDescriptorSpacingBytes / 4> words{};
    SK_TRY(
        bits::pack_struct(descriptor, &fields, std::span(words).first(static_cast<size_t>(descriptor.words)), &slots));
    const uint64_t offset = descriptor_bytes_.size();
    const auto raw = as_bytes(words).first(4 * static_cast<size_t>(descriptor.words));
    descriptor_bytes_.insert(descriptor_bytes_.end(), raw.begin(), raw.end());
    descriptor_bytes_.resize(offset + kDescriptorSpacingBytes);
    for (const bits::AddressSlot& slot : slots) {
      const bits::Piece piece = slot.row->where.pieces[0];
      const Target target = resolve(slot.address.symbol);
      need(target.buffer);
      const auto shift =
          static_cast<uint8_t>(slot.row->codec.kind == bits::CodecKind::aligned ? slot.row->codec.argument : 0);
      descriptor_relocations_.push_back({offset + piece.word * 4U, target.buffer,
                                         target.offset_bytes + slot.address.offset, piece.lsb, piece.width, shift});
    }
    program_.debug_map.push_back({descriptors_, static_cast<uint32_t>(offset), static_cast<uint32_t>(raw.size()),
                                  descriptor.name, static_cast<int32_t>(program_.operations.size()) - 1});
    return offset;
  }

  void finish(BufferId id, Bytes& contents, std::vector<Relocation>& relocations) {
    npu::Buffer& buffer = program_.buffers[id];
    buffer.size_bytes = std::max<uint64_t>(contents.size(), 1);
    buffer.contents = std::move(contents);
    buffer.relocations = std::move(relocations);
  }

  BufferId add_constant(std::string_view what, Bytes bytes) {
    const auto operation = static_cast<int32_t>(program_.operations.size()) - 1;
    const auto size = static_cast<uint32_t>(bytes.size());
    const BufferId buffer =
        add_buffer(fmt::format("{} {}", what, operation), npu::BufferRole::constant, size, std::move(bytes));
    program_.debug_map.push_back({buffer, 0, size, std::string(what), operation});
    return buffer;
  }

  // ---- command stream ----

  void load(hw::State state, uint32_t value) {
    stream_.push_back(hw::load_state_word(state));
    stream_.push_back(value);
  }
  // Loads the address of a descriptor; the low bits carry the event id.
  void load_descriptor(hw::State state, uint64_t offset, uint32_t event) {
    load(state, event);
    const uint64_t at_byte = command_bytes_.size() + 4 * (stream_.size() - 1);
    command_relocations_.push_back({at_byte, descriptors_, offset, 6, 26, 6});
  }
  void use(BufferId buffer, bool read, bool write) { npu::add_use(uses_, {buffer, read, write}); }

  // Each slot is written by one job: the place of its completion marker, unless another slot is written later.
  void writes(SlotId output) {
    const Target target = target_of(output);
    use(target.buffer, false, true);
    const uint64_t size_bytes = in_.slots[output].size_bytes;
    const uint64_t kept_bytes = std::min(size_bytes, npu::kWitnessBytes);
    witness_ = {target.buffer, target.offset_bytes + size_bytes - kept_bytes, kept_bytes};
  }

  void open_job() { stream_.assign(kLeadingZeroWords, 0); }
  void close_job() {
    load(hw::State::flush_cache, hw::kFlushBatch);
    load(hw::State::flush_cache, hw::kFlushBatch);
    stream_.insert(stream_.end(), kTrailingZeroWords, 0);
    program_.jobs.push_back({.name = fmt::format("job {}", program_.jobs.size()),
                             .commands = {take_stream()},
                             .uses = std::exchange(uses_, {}),
                             .witness = witness_});
  }
  // Moves the words to the end of all commands.
  npu::ByteRange take_stream() {
    const auto raw = as_bytes(stream_);
    const npu::ByteRange range{commands_, command_bytes_.size(), raw.size()};
    command_bytes_.insert(command_bytes_.end(), raw.begin(), raw.end());
    stream_.clear();
    return range;
  }
  void add_init_job() {
    open_job();
    load(hw::State::pa_system_mode, hw::kPaSystemMode);
    load(hw::State::api_mode, hw::kApiModeCl);
    stream_.insert(stream_.end(), kTrailingZeroWords, 0);
    program_.init_jobs.push_back({.name = "init", .commands = {take_stream()}});
  }

  Result<void> encode_nn(const NnOperation& op) {
    const Tiling tiling = tile(chip_, op);
    const KernelSplit split = split_kernels(op.kernels.output_channels, chip_.nn_cores, tiling.superblocks);
    Coefficients coefficients = write_coefficients(chip_, op, split);
    const CacheWindows cache = plan_cache(chip_, op, tiling, coefficients.cache_bytes);
    hw::NnInstruction nn = nn_instruction(chip_, op, tiling, cache, split);
    constexpr uint32_t kCoefficientSymbol = 0xfffffffd;
    nn.kernel_address = {kCoefficientSymbol, 0};
    nn.in_address = {op.input, 0};
    nn.out_address = {op.output, 0};
    const BufferId constant = add_constant("weights", std::move(coefficients.bytes));
    SK_TRY_ASSIGN(const uint64_t descriptor, add_descriptor(hw::nn_instruction(chip_), nn, [&](uint32_t symbol) {
                    return symbol == kCoefficientSymbol ? Target{constant, 0} : target_of(symbol);
                  }));
    load(hw::State::ocb_remap_start, 0);
    load(hw::State::ocb_remap_end, 0);
    SK_TRY_ASSIGN(const auto config, bits::pack(hw::NnConfig{.small_batch = true}));
    load(hw::State::nn_config, config[0]);
    load_descriptor(hw::State::nn_instruction_address, descriptor, 0);
    program_.operations.back().tasks = 1;
    load(hw::State::wait_event, 0);
    use(descriptors_, true, false);
    use(constant, true, false);
    use(target_of(op.input).buffer, true, false);
    writes(op.output);
    return {};
  }

  Result<void> encode_tp(const TpOperation& op) {
    BufferId table = 0;
    if (!op.table.empty()) {
      const auto raw = as_bytes(op.table);
      table = add_constant("table", Bytes(raw.begin(), raw.end()));
      use(table, true, false);
    }
    const size_t n = op.instructions.size();
    program_.operations.back().tasks = static_cast<uint32_t>(n);
    for (size_t j = 0; j < n; ++j) {
      SK_TRY_ASSIGN(const uint64_t descriptor,
                    add_descriptor(hw::TpInstruction::descriptor(), op.instructions[j], [&](uint32_t symbol) {
                      return symbol == TpOperation::kTableSymbol ? Target{table, 0} : target_of(symbol);
                    }));
      const bool last = j + 1 == n;
      SK_TRY_ASSIGN(const auto flush, bits::pack(hw::VipFlushControl{.tp_no_flush = op.tp_no_flush_state && !last}));
      load(hw::State::ocb_remap_start, 0);
      load(hw::State::ocb_remap_end, 0);
      load(hw::State::tp_config, 0);
      load(hw::State::vip_flush_control, flush[0]);
      load_descriptor(hw::State::tp_instruction_address, descriptor, last ? 0 : 1);
    }
    load(hw::State::wait_event, 0);
    use(descriptors_, true, false);
    use(target_of(op.input).buffer, true, false);
    writes(op.output);
    return {};
  }

  const hw::ChipRow& chip_;
  const ir::Graph& graph_;
  Lowered in_;
  Program program_;
  BufferId descriptors_ = 0, commands_ = 0;
  std::vector<BufferId> buffer_of_;                   // by slot, roots only
  std::vector<std::optional<npu::Lifetime>> needed_;  // by buffer: from which operation to which
  Bytes descriptor_bytes_, command_bytes_;
  std::vector<Relocation> descriptor_relocations_, command_relocations_;
  // the job being written
  std::vector<uint32_t> stream_;
  std::vector<npu::BufferUse> uses_;
  npu::ByteRange witness_;
  EncodeOptions options_;
};

}  // namespace

Result<Program> encode(const hw::ChipRow& chip, const ir::Graph& graph, Lowered lowered, const EncodeOptions& options) {
  return Encoder(chip, graph, std::move(lowered), options).run();
}

}  // namespace skillet::npus::vivante
