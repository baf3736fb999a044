#include "drivers/vivante/decode.h"

#include "base/int_math.h"

namespace skillet::drivers::vivante {
namespace {

const capture::BufferSnapshot* buffer_at(const capture::Submission& submission, uint64_t address) {
  for (const capture::BufferSnapshot& buffer : submission.buffers) {
    if (buffer.address != 0 && address >= buffer.address && address - buffer.address < buffer.size_bytes)
      return &buffer;
  }
  return nullptr;
}

std::string place_text(const capture::Submission& submission, uint64_t address) {
  const capture::BufferSnapshot* buffer = buffer_at(submission, address);
  if (buffer == nullptr) return address == 0 ? "" : "  (no buffer)";
  return fmt::format("  (buffer {} + {})", buffer->handle, address - buffer->address);
}

class Decoder {
 public:
  Decoder(const hw::ChipRow& chip, const capture::Submission& submission) : chip_(chip), submission_(submission) {}

  Result<driver::Annotated> run() {
    SK_TRY_ASSIGN(const std::vector<StateLoad> loads, parse_stream(submission_.stream));
    for (const StateLoad& load : loads) SK_TRY(state(load).with_context(fmt::format("stream word {}", load.word)));
    return std::move(out_);
  }

 private:
  Result<void> state(const StateLoad& load) {
    const std::string_view known = hw::state_name(load.address);
    const std::string name = known.empty() ? fmt::format("state 0x{:04x}", load.address) : std::string(known);
    out_.text += fmt::format("{:5}  {} <- 0x{:08x}\n", load.word, name, load.value);
    out_.fields.push_back({fmt::format("word {} {}", load.word, name), fmt::format("0x{:08x}", load.value),
                           fmt::format("0x{:08x}", load.value), known.empty()});
    const uint32_t address = load.value & ~0x3fU;
    if (load.address == static_cast<uint32_t>(hw::State::nn_instruction_address))
      return descriptor(hw::nn_instruction(chip_), address, fmt::format("job {} ", jobs_++));
    if (load.address == static_cast<uint32_t>(hw::State::tp_instruction_address))
      return descriptor(bits::descriptor_of<hw::TpInstruction>(), address, fmt::format("job {} ", jobs_++));
    return {};
  }

  Result<void> descriptor(const bits::Descriptor& d, uint32_t address, const std::string& prefix) {
    SK_TRY_ASSIGN(const std::vector<uint32_t> words, read_words(submission_, address, static_cast<size_t>(d.words)));
    const bits::Unpacked unpacked = bits::unpack(d, words);
    out_.text += fmt::format("       {}{} at 0x{:08x}\n", prefix, d.name, address);
    for (size_t i = 0; i < d.rows.size(); ++i) field(d, i, unpacked, prefix);
    for (size_t w = 0; w < unpacked.unclaimed.size(); ++w) {
      if (unpacked.unclaimed[w] == 0) continue;
      const std::string raw = fmt::format("0x{:08x}", unpacked.unclaimed[w]);
      out_.text += fmt::format("         unknown bits, word {} = {}\n", w, raw);
      out_.fields.push_back({fmt::format("{}{}.unknown word {}", prefix, d.name, w), raw, raw, true});
    }
    return {};
  }

  void field(const bits::Descriptor& d, size_t i, const bits::Unpacked& unpacked, const std::string& prefix) {
    const bits::Row& row = d.rows[i];
    const bits::Value& value = unpacked.values[i];
    std::string text = bits::print_value(row, value);
    if (row.kind == bits::ValueKind::address) text += place_text(submission_, value.integer);
    if (value.integer != 0) out_.text += fmt::format("         {} = {}\n", row.name, text);
    out_.fields.push_back(
        {fmt::format("{}{}.{}", prefix, d.name, row.name), text, fmt::format("0x{:x}", value.integer), false});
    if (std::string_view(row.name) == "kernel_address") coefficients(value.integer);
  }

  void coefficients(uint64_t address) {
    const auto header = read_words(submission_, address, static_cast<size_t>(chip_.nn_cores));
    if (!header.ok() || chip_.generation != 7) return;
    out_.text += "           coefficient streams, bytes per core:";
    for (const uint32_t size : *header) out_.text += fmt::format(" {}", size);
    out_.text += "\n";
  }

  const hw::ChipRow& chip_;
  const capture::Submission& submission_;
  driver::Annotated out_;
  int jobs_ = 0;
};

}  // namespace

Result<std::vector<StateLoad>> parse_stream(std::span<const uint32_t> stream) {
  std::vector<StateLoad> loads;
  for (size_t at = 0; at < stream.size();) {
    const uint32_t word = stream[at];
    if (word == 0) {
      at += 2;
      continue;
    }
    const auto opcode = static_cast<hw::Opcode>(word >> 27);
    if (opcode == hw::Opcode::end) break;
    if (opcode == hw::Opcode::nop || opcode == hw::Opcode::wait || opcode == hw::Opcode::stall) {
      at += 2;
      continue;
    }
    if (opcode != hw::Opcode::load_state)
      return error(ErrorCode::malformed, "stream word {}: 0x{:08x} is not a packet that jobs use", at, word);
    const size_t count = (word >> 16) & 0x3ff;
    if (at + count >= stream.size())
      return error(ErrorCode::malformed, "stream word {}: the packet's {} values leave the stream", at, count);
    for (size_t i = 0; i < count; ++i)
      loads.push_back({static_cast<uint32_t>(((word & 0xffff) + i) * 4), stream[at + 1 + i], at + 1 + i});
    at = align_up(at + 1 + count, 2);
  }
  return loads;
}

Result<std::vector<uint32_t>> read_words(const capture::Submission& submission, uint64_t address, size_t words) {
  const capture::BufferSnapshot* buffer = buffer_at(submission, address);
  if (buffer == nullptr)
    return error(ErrorCode::malformed, "address 0x{:08x} is in no buffer of the submission", address);
  const uint64_t offset = address - buffer->address;
  if (offset + words * 4 > buffer->size_bytes)
    return error(ErrorCode::malformed, "{} words at 0x{:08x} leave buffer {}", words, address, buffer->handle);
  std::vector<uint32_t> out(words);
  if (offset < buffer->bytes.size())
    std::memcpy(out.data(), buffer->bytes.data() + offset,
                std::min<uint64_t>(words * 4, buffer->bytes.size() - offset));
  return out;
}

Result<driver::Annotated> decode(const hw::ChipRow& chip, const capture::Submission& submission) {
  return Decoder(chip, submission).run();
}

}  // namespace skillet::drivers::vivante
