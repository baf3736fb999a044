#include "npus/vivante/sim/front_end.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "npus/vivante/hw/vivante.h"
#include "npus/vivante/sim/field_check.h"

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;
using hw::Opcode;
using hw::State;

struct StateValue {
  State state;
  uint32_t value;
};
constexpr std::array kStateValues = {
#define STATE_VALUE(name, value) StateValue{State::name, value},
#include "npus/vivante/sim/state_values.def"
#undef STATE_VALUE
};

// Descriptor address in bits 31:6, event id in bits 4:0.
constexpr uint32_t kAddressMask = ~uint32_t{hw::kDescriptorAlignBytes - 1};
constexpr uint32_t kNnEventMax = 0;
constexpr uint32_t kTpEventMax = 1;  // 1: another core of the same operation follows

std::string state_text(uint32_t address) {
  const std::string_view name = hw::state_name(address);
  return name.empty() ? fmt::format("state 0x{:04x}", address) : fmt::format("state {} (0x{:04x})", name, address);
}

class StreamRunner {
 public:
  StreamRunner(std::span<const uint32_t> stream, const Units& units, KeptStates& kept)
      : stream_(stream), units_(units), kept_(kept) {}

  Result<void> run() {
    while (at_ < stream_.size() && !ended_) {
      const size_t start = at_;
      if (auto step = packet(); !step.ok())
        return std::move(step).error().with_context(fmt::format("stream word {}", start));
      if (waits_for_) SK_TRY(units_.wait(*std::exchange(waits_for_, {})));
    }
    return {};
  }

 private:
  uint32_t word(size_t index) const { return index < stream_.size() ? stream_[index] : 0; }

  Result<void> packet() {
    const uint32_t head = word(at_);
    // The front end ignores an all-zero 64-bit word.
    if (head == 0 && word(at_ + 1) == 0) return skip();
    switch (static_cast<Opcode>(head >> 27)) {
      case Opcode::load_state: return load_state(head);
      case Opcode::end: ended_ = true; return {};
      case Opcode::nop:
      case Opcode::wait:
      case Opcode::stall: return skip();
      case Opcode::link: break;  // only the kernel's own ring has these
    }
    return error(ErrorCode::device, "packet 0x{:08x} with opcode {} is not modelled", head, head >> 27);
  }

  Result<void> skip() {
    at_ += 2;
    return {};
  }

  Result<void> load_state(uint32_t head) {
    const uint32_t count = head >> 16 & 0x3ff;
    const uint32_t first = (head & 0xffff) * 4;
    if (head >> 26 & 1)
      return error(ErrorCode::device, "load_state 0x{:08x}: fixed-point conversion is not modelled", head);
    if (count == 0) return error(ErrorCode::device, "load_state 0x{:08x}: count 0 is not modelled", head);
    if (count > stream_.size() - at_ - 1)
      return error(ErrorCode::device, "load_state of {}: {} values, but the stream ends after {}", state_text(first),
                   count, stream_.size() - at_ - 1);
    for (uint32_t i = 0; i < count; ++i) SK_TRY(write_state(first + i * 4, stream_[at_ + 1 + i]));
    at_ += 1 + count;
    at_ += at_ % 2;  // packets start on 8-byte boundaries
    return {};
  }

  Result<void> write_state(uint32_t address, uint32_t value) {
    if (hw::state_name(address).empty())
      return error(ErrorCode::device, "{} <- 0x{:08x}: unknown state", state_text(address), value);
    SK_TRY(units_.check_state(address));
    switch (static_cast<State>(address)) {
      case State::nn_instruction_address: return start("NN", address, value, kNnEventMax, units_.run_nn);
      case State::tp_instruction_address: return start("TP", address, value, kTpEventMax, units_.run_tp);
      case State::nn_config: return set_config(value);
      case State::vip_flush_control: return flush_control(value);
      default: break;
    }
    if (address == static_cast<uint32_t>(State::flush_cache) && value == hw::kFlushBatch) units_.flush_all();
    for (const StateValue& row : kStateValues) {
      if (static_cast<uint32_t>(row.state) != address || row.value != value) continue;
      kept_.set(address);
      if (row.state == State::wait_event) waits_for_ = value;
      return {};
    }
    return error(ErrorCode::device, "{} <- 0x{:08x}: this value is not modelled", state_text(address), value);
  }

  Result<void> flush_control(uint32_t value) {
    SK_TRY(check_bits<hw::VipFlushControl>(value));
    const hw::VipFlushControl fields = bits::unpack<hw::VipFlushControl>(std::span(&value, 1)).fields;
    units_.set_flush_control(fields.nn_no_flush, fields.tp_no_flush);
    return {};
  }

  Result<void> set_config(uint32_t value) {
    SK_TRY(check_bits<hw::NnConfig>(value));
    units_.set_small_batch(bits::unpack<hw::NnConfig>(std::span(&value, 1)).fields.small_batch);
    return {};
  }

  template <typename T>
  Result<void> check_bits(uint32_t value) {
    return check_fields(bits::descriptor_of<T>(), bits::unpack(bits::descriptor_of<T>(), std::span(&value, 1)));
  }

  Result<void> start(std::string_view unit, uint32_t state, uint32_t value, uint32_t event_max,
                     const std::function<Result<void>(const StartedJob&)>& run) {
    const uint32_t event = value & ~kAddressMask;
    if (event > event_max)
      return error(ErrorCode::device,
                   "{} <- 0x{:08x}: event {} is not modelled, or the descriptor is not {}-byte aligned",
                   state_text(state), value, event, hw::kDescriptorAlignBytes);
    if (!kept_.lost().empty())
      return error(ErrorCode::device, "{} job after a reset: {} has not been set again", unit,
                   state_text(*kept_.lost().begin()));
    const uint32_t address = value & kAddressMask;
    const StartedJob job{address, event, fmt::format("job {} ({} descriptor 0x{:08x})", job_++, unit, address), at_};
    if (log::debug_flag("sim")) log::write(log::Level::info, job.name);
    return run(job).with_context(job.name);
  }

  std::span<const uint32_t> stream_;
  const Units& units_;
  KeptStates& kept_;
  size_t at_ = 0;
  int job_ = 0;
  std::optional<uint32_t> waits_for_;  // the packet has set wait_event
  bool ended_ = false;
};

}  // namespace

void KeptStates::reset() {
  lost_ = {static_cast<uint32_t>(State::pa_system_mode), static_cast<uint32_t>(State::api_mode)};
}

Result<void> run_stream(std::span<const uint32_t> stream, const Units& units, KeptStates& kept) {
  return StreamRunner(stream, units, kept).run();
}

}  // namespace skillet::sim::vivante
