#include "npus/rockchip/compiler/encode.h"

#include <xxhash.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/int_math.h"
#include "npus/rockchip/compiler/packing.h"
#include "npus/rockchip/compiler/placement.h"
#include "npus/rockchip/compiler/pointwise.h"
#include "npus/rockchip/compiler/registers.h"
#include "npus/rockchip/compiler/weights.h"
#include "program/share_memory.h"

namespace skillet::npus::rockchip {
namespace {

using npu::BufferId;
using npu::BufferRole;
using npu::Program;

constexpr uint64_t kPieceAlign = 64;        // of constants, commands and tensors within a buffer
constexpr uint64_t kOverReadBytes = 32768;  // the feature fetch may read a bank past its end (10.1)
constexpr double kJobMs = 100;              // the kernel ends a job after 500

class Encoder {
 public:
  Encoder(const hw::ChipRow& chip, const ir::Graph& graph, const Lowered& lowered, const Tuning& tuning, bool keep)
      : chip_(chip),
        graph_(graph),
        in_(lowered),
        tuning_(tuning),
        keep_(keep || !tuning.shared_memory),
        needed_(lowered.slots.size()) {}

  Result<Program> run() {
    program_.chip = std::string(chip_.name);
    if (tuning_.joined_jobs) program_.constant_align = static_cast<uint32_t>(kPieceAlign);
    add_buffers();
    reserve_constants();
    for (const Operation& operation : in_.operations) {
      const std::string name = fmt::format("{} ({})", ir::describe_op(graph_, operation.op), operation.kind);
      const auto* const conv = std::get_if<Conv>(&operation.work);
      const auto* const pool = std::get_if<Pool>(&operation.work);
      SK_TRY((conv != nullptr   ? encode_conv(operation, *conv)
              : pool != nullptr ? encode_pool(operation, *pool)
                                : encode_pointwise(operation))
                 .with_context(name));
      keep_open_ = operation.continued;
    }
    close_job();
    finish(constants_, constant_bytes_);
    finish(commands_, command_bytes_);
    bind(in_.inputs, program_.inputs);
    bind(in_.outputs, program_.outputs);
    if (keep_) bind(in_.intermediates, program_.intermediates);
    share();
    return std::move(program_);
  }

 private:
  // ---- buffers ----

  BufferId add_buffer(std::string name, BufferRole role, uint64_t size_bytes) {
    program_.buffers.push_back({std::move(name), role, size_bytes, {}, {}});
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }

  // Memory that the host writes or reads has buffers of its own; the rest shares one buffer, unless recorded.
  void add_buffers() {
    constants_ = add_buffer("constants", BufferRole::constant, 0);
    commands_ = add_buffer("commands", BufferRole::commands, 0);
    for (const Slot& slot : in_.slots)
      slots_.push_back(add_buffer(slot.name, slot.role, slot.size_bytes + (shares(slot) ? 0 : slack())));
  }
  bool shares(const Slot& slot) const { return tuning_.joined_jobs && slot.role == BufferRole::scratch; }
  uint64_t slack() const { return tuning_.counted_banks ? kOverReadBytes : 0; }

  bits::Address at(const Place& place) const { return {slots_[place.slot], place.offset_bytes}; }
  // Extends the slot's lifetime to the operation.
  void need(const Place& place, size_t operation) {
    std::optional<npu::Lifetime>& lifetime = needed_[place.slot];
    const auto step = static_cast<uint32_t>(operation);
    if (!lifetime) lifetime = {.first = step};
    lifetime->last = step;
  }
  void share() {
    std::vector<std::optional<npu::Lifetime>> lifetimes(program_.buffers.size());
    const npu::Lifetime always{.last = static_cast<uint32_t>(in_.operations.size())};
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (shares(in_.slots[i])) lifetimes[slots_[i]] = keep_ ? always : needed_[i].value_or(always);
    }
    npu::share_memory(program_, lifetimes, kPieceAlign, slack());
  }

  // Appends the bytes of `write`. `room`: size of the constant's own buffer, which ends with zeros.
  template <typename Write>
  bits::Address add_constant(const char* what, uint64_t room, Write write) {
    if (!tuning_.joined_jobs) {
      Bytes bytes;
      write(bytes);
      const uint64_t size = bytes.size();
      const BufferId buffer = add_buffer(fmt::format("{} {}", what, program_.operations.size() - 1),
                                         BufferRole::constant, std::max(size, room));
      program_.buffers[buffer].contents = std::move(bytes);
      note(buffer, 0, size, what);
      return {buffer, 0};
    }
    bits::Address address{constants_, constant_bytes_.size()};
    write(constant_bytes_);
    const size_t size = constant_bytes_.size() - address.offset;
    share_constant(address, size);
    note(constants_, address.offset, size, what);
    constant_bytes_.resize(align_up(constant_bytes_.size(), kPieceAlign));
    return address;
  }
  // Reuses equal bytes that were written before.
  void share_constant(bits::Address& address, size_t size) {
    constexpr size_t kWorthSharing = 4096;
    if (size < kWorthSharing) return;
    const auto text = [&](size_t at) {
      return std::string_view(reinterpret_cast<const char*>(constant_bytes_.data() + at), size);
    };
    const uint64_t hash = XXH3_64bits(constant_bytes_.data() + address.offset, size);
    const auto [first, last] = pieces_.equal_range(hash);
    const auto same = std::find_if(first, last, [&](const auto& one) {
      return one.second.second == size && text(one.second.first) == text(address.offset);
    });
    if (same == last) {
      pieces_.emplace(hash, std::pair(address.offset, size));
      return;
    }
    constant_bytes_.resize(address.offset);
    address.offset = same->second.first;
  }
  // Reserves memory so that the bytes are not moved while they grow.
  void reserve_constants() {
    if (!tuning_.joined_jobs) return;
    int64_t bytes = 0;
    std::set<std::pair<const uint8_t*, int64_t>> seen;
    for (const Operation& operation : in_.operations) {
      const auto* const conv = std::get_if<Conv>(&operation.work);
      if (conv == nullptr) continue;
      const Geometry g = geometry(*conv, tuning_);
      const int64_t operands = conv->multipliers.empty() ? 4 : 8;
      bytes += align_up(g.out_lanes * operands, kPieceAlign);
      if (seen.emplace(conv->weights.data(), g.weight_bytes()).second) bytes += align_up(g.weight_bytes(), kPieceAlign);
    }
    constant_bytes_.reserve(static_cast<size_t>(bytes));
  }

  void finish(BufferId id, Bytes& contents) {
    program_.buffers[id].size_bytes = std::max<uint64_t>(contents.size(), 1);
    program_.buffers[id].contents = std::move(contents);
  }

  void bind(const std::vector<PlacedTensor>& placed, std::vector<npu::TensorBinding>& bindings) const {
    for (const PlacedTensor& p : placed) {
      const ir::Tensor& tensor = graph_.tensor(p.tensor);
      const bits::Address address = at(p.place);
      bindings.push_back({p.tensor, address.symbol, address.offset, shape_at_place(tensor, p.form),
                          layout_of(tensor, p.form, tuning_)});
    }
  }

  void note(BufferId buffer, uint64_t offset, uint64_t size, const char* what) {
    program_.debug_map.push_back({buffer, static_cast<uint32_t>(offset), static_cast<uint32_t>(size), what,
                                  static_cast<int32_t>(program_.operations.size()) - 1});
  }

  // ---- jobs ----

  Result<void> encode_conv(const Operation& operation, const Conv& conv) {
    const Geometry g = geometry(conv, tuning_);
    SK_TRY_ASSIGN(const Split parts, split(chip_, conv, g, tuning_));
    need(conv.input, program_.operations.size());
    need(conv.output, program_.operations.size());
    if (conv.addition) need(conv.addition->second, program_.operations.size());
    const int64_t products = conv.depthwise ? 1 : conv.in.channels;
    program_.operations.push_back(
        {operation.op, operation.kind,
         static_cast<uint64_t>(conv.out.pixels() * conv.out.channels * conv.taps() * products)});
    TaskPlaces whole{.input = at(conv.input),
                     .output = at(conv.output),
                     .second = conv.addition ? at(conv.addition->second) : bits::Address{},
                     .weights = add_constant("weights", recorded_weights_room(conv),
                                             [&](Bytes& to) { pack_weights(conv, g, tuning_, to); }),
                     .operands = add_constant("operands", 0, [&](Bytes& to) { pack_operands(conv, g, tuning_, to); })};
    whole.shifts = whole.operands;
    if (tuning_.packing != nullptr) whole.shifts.offset += tuning_.packing->shifts_offset(conv, g);
    for (size_t i = 0; i < parts.tasks.size(); ++i) {
      Task task = parts.tasks[i];
      if (conv.table) SK_TRY(load_table(conv, whole, predicted_ms(conv, g, task), i == 0));
      // The weights of the task before are still loaded only within one job.
      if (!task.reuse_weights) {
        make_room(conv, g, parts, i);
      } else if (tuning_.joined_jobs && !keep_open_ && predicted_ms_ + predicted_ms(conv, g, task) > kJobMs) {
        close_job();
        task.reuse_weights = false;
      }
      SK_TRY(encode_task(conv, g, task, whole, parts.tasks.size() > 1, i + 1 < parts.tasks.size()));
      predicted_ms_ += predicted_ms(conv, g, task);
      if (!tuning_.joined_jobs && !parts.one_job) close_job();
    }
    if (!tuning_.joined_jobs) close_job();
    return {};
  }

  // The lookups of a table and its loading must be in one job.
  Result<void> load_table(const Conv& conv, const TaskPlaces& places, double ms, bool first) {
    if (predicted_ms_ + ms > kJobMs)
      close_job();
    else if (!first)
      return {};
    SK_TRY_ASSIGN(const Commands commands, tuning_.packing->write_table(conv, places));
    add_task(commands);
    return {};
  }

  // A task reads the table that an earlier one of its job has loaded.
  Result<void> encode_pointwise(const Operation& operation) {
    const auto& work = std::get<Pointwise>(operation.work);
    const bool one = work.table != nullptr;
    need(work.input, program_.operations.size());
    if (!one) need(work.second, program_.operations.size());
    need(work.output, program_.operations.size());
    program_.operations.push_back({operation.op, operation.kind, static_cast<uint64_t>(work.atoms * kAtom)});
    bool loaded = false;
    for (int64_t first = 0; first < work.atoms; first += kPointwiseMax) {
      const int64_t atoms = std::min(kPointwiseMax, work.atoms - first);
      PointwisePlaces places{at(work.input), one ? bits::Address{} : at(work.second), at(work.output)};
      for (bits::Address* const address : {&places.input, &places.second, &places.output})
        address->offset += static_cast<uint64_t>(first * kAtom);
      const double ms = predicted_ms(atoms);
      if (predicted_ms_ + ms > kJobMs && !keep_open_) {
        close_job();
        loaded = false;
      }
      SK_TRY_ASSIGN(const Commands commands, write_pointwise(work, places, atoms, !loaded));
      loaded = true;
      add_task(commands);
      predicted_ms_ += ms;
      npu::add_use(job_.uses, {places.input.symbol, true, false});
      if (!one) npu::add_use(job_.uses, {places.second.symbol, true, false});
      npu::add_use(job_.uses, {places.output.symbol, false, true});
      job_.witness = {places.output.symbol, places.output.offset + static_cast<uint64_t>((atoms - 1) * kAtom),
                      npu::kWitnessBytes};
    }
    if (!tuning_.joined_jobs) close_job();
    return {};
  }

  Result<void> encode_pool(const Operation& operation, const Pool& pool) {
    need(pool.input, program_.operations.size());
    need(pool.output, program_.operations.size());
    program_.operations.push_back(
        {operation.op, operation.kind,
         static_cast<uint64_t>(pool.out.pixels() * pool.out.channels * pool.kernel_height * pool.kernel_width)});
    const PoolPlaces places{at(pool.input), at(pool.output)};
    SK_TRY_ASSIGN(const Commands commands, tuning_.packing->write_pool(pool, places));
    add_task(commands);
    predicted_ms_ += predicted_ms(pool.in.pixels() * ceil_div(pool.in.channels, kAtom));
    npu::add_use(job_.uses, {places.input.symbol, true, false});
    npu::add_use(job_.uses, {places.output.symbol, false, true});
    const int64_t last =
        (ceil_div(pool.out.channels, kAtom) - 1) * surface_pitch(pool.out, tuning_) + pool.out.pixels() - 1;
    job_.witness = {places.output.symbol, places.output.offset + static_cast<uint64_t>(last * kAtom),
                    npu::kWitnessBytes};
    if (!tuning_.joined_jobs) close_job();
    return {};
  }

  // Closes the job before tasks that belong together would make it too long.
  void make_room(const Conv& conv, const Geometry& g, const Split& parts, size_t first) {
    double ms = predicted_ms(conv, g, parts.tasks[first]);
    for (size_t i = first + 1; i < parts.tasks.size() && parts.tasks[i].reuse_weights; ++i)
      ms += predicted_ms(conv, g, parts.tasks[i]);
    if (predicted_ms_ + ms > kJobMs && !keep_open_) close_job();
  }

  TaskPlaces places_of(const Conv& conv, const Geometry& g, const Task& task, TaskPlaces places) const {
    const auto surface = static_cast<uint64_t>(task.first_lane / kAtom);
    const uint64_t out = surface * static_cast<uint64_t>(g.out_surface) * kAtom +
                         static_cast<uint64_t>(task.out_top) * static_cast<uint64_t>(conv.out.width + conv.gap) * kAtom;
    const bool packed = g.packed && tuning_.packed_rows;
    const auto row = static_cast<uint64_t>(packed ? g.line_stride * conv.in.channels : conv.in.width * kAtom);
    if (!conv.repeated) places.input.offset += static_cast<uint64_t>(task.top) * row;
    if (conv.depthwise) places.input.offset += surface * static_cast<uint64_t>(in_pitch(conv)) * kAtom;
    places.output.offset += out;
    if (conv.addition) places.second.offset += out;
    places.weights.offset += weights_offset(conv, g, task, tuning_);
    places.operands.offset += operands_offset(conv, task, tuning_);
    return places;
  }

  Result<void> encode_task(const Conv& conv, const Geometry& g, const Task& task, const TaskPlaces& whole, bool several,
                           bool has_next) {
    const TaskPlaces places = places_of(conv, g, task, whole);
    const uint64_t offset = command_bytes_.size();
    const NextTask next{{commands_, offset + align_up(uint64_t{kCommandsPerTask} * hw::kCommandBytes, kPieceAlign)},
                        kCommandsPerTask};
    const bool chained = several && !tuning_.joined_jobs;
    SK_TRY_ASSIGN(const Commands commands,
                  write_commands(conv, g, task, places, tuning_, has_next ? &next : nullptr, chained));
    add_task(commands);
    npu::add_use(job_.uses, {places.weights.symbol, true, false});
    npu::add_use(job_.uses, {places.operands.symbol, true, false});
    npu::add_use(job_.uses, {places.input.symbol, true, false});
    if (conv.addition) npu::add_use(job_.uses, {places.second.symbol, true, false});
    npu::add_use(job_.uses, {places.output.symbol, false, true});
    set_witness(conv, g, task, places.output);
    return {};
  }

  void add_task(const Commands& commands) {
    const uint64_t offset = command_bytes_.size();
    command_bytes_.insert(command_bytes_.end(), commands.bytes.begin(), commands.bytes.end());
    command_bytes_.resize(align_up(command_bytes_.size(), kPieceAlign));
    for (npu::Relocation relocation : commands.relocations) {
      relocation.at_byte += offset;
      program_.buffers[commands_].relocations.push_back(relocation);
    }
    note(commands_, offset, commands.bytes.size(), "task");
    ++program_.operations.back().tasks;
    job_.commands.push_back({commands_, offset, commands.bytes.size()});
  }

  // The completion marker: the last pixel of the task's last surface that holds channels and is not shared.
  void set_witness(const Conv& conv, const Geometry& g, const Task& task, const bits::Address& output) {
    const int32_t channels = std::min(task.lanes, conv.out.channels - task.first_lane);
    const int64_t surface = conv.shares_last ? 0 : ceil_div(channels, kAtom) - 1;
    const int64_t rows = int64_t{task.out_rows - 1} * (conv.out.width + conv.gap);
    const int64_t pixel = surface * g.out_surface + rows + conv.out.width - 1;
    job_.witness = {output.symbol, output.offset + static_cast<uint64_t>(pixel) * kAtom, npu::kWitnessBytes};
  }

  void close_job() {
    if (job_.commands.empty()) return;
    job_.name = fmt::format("job {}", program_.jobs.size());
    program_.jobs.push_back(std::exchange(job_, {}));
    predicted_ms_ = 0;
  }

  const hw::ChipRow& chip_;
  const ir::Graph& graph_;
  const Lowered& in_;
  const Tuning& tuning_;
  Program program_;
  BufferId constants_ = 0, commands_ = 0;
  const bool keep_;
  std::vector<BufferId> slots_;                       // by slot
  std::vector<std::optional<npu::Lifetime>> needed_;  // by slot: from which operation to which
  Bytes constant_bytes_, command_bytes_;
  std::unordered_multimap<uint64_t, std::pair<uint64_t, size_t>> pieces_;  // of constants, by hash: place and size
  // the job being written
  npu::Job job_;
  double predicted_ms_ = 0;
  bool keep_open_ = false;
};

}  // namespace

Result<Program> encode(const hw::ChipRow& chip, const ir::Graph& graph, const Lowered& lowered, const Tuning& tuning,
                       bool keep) {
  return Encoder(chip, graph, lowered, tuning, keep).run();
}

}  // namespace skillet::npus::rockchip
