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
    SK_TRY_ASSIGN(stream_, capture::words_of(submission_));
    SK_TRY_ASSIGN(const std::vector<StateLoad> loads, parse_stream(stream_));
    size_t next = 0;
    for (const StateLoad& load : loads) {
      other_words(next, load.word);
      next = load.word + 1;
      SK_TRY(state(load).with_context(fmt::format("stream word {}", load.word)));
    }
    other_words(next, stream_.size());
    return std::move(out_);
  }

 private:
  driver::AnnotatedField& add(std::string path, std::string name, std::string value, std::string raw) {
    driver::AnnotatedField& field = out_.fields.emplace_back();
    field.path = std::move(path);
    field.name = std::move(name);
    field.value = std::move(value);
    field.raw = std::move(raw);
    field.operation = out_.operations.size();
    return field;
  }

  // Packets and padding: the words that are no values of states.
  void other_words(size_t from, size_t to) {
    for (size_t word = from; word < to; ++word) {
      const std::string value = fmt::format("0x{:08x}", stream_[word]);
      add(fmt::format("word {} packet", word), "packet", value, value);
    }
  }

  Result<void> state(const StateLoad& load) {
    const std::string_view known = hw::state_name(load.address);
    const std::string name = known.empty() ? fmt::format("state 0x{:04x}", load.address) : std::string(known);
    const std::string value = fmt::format("0x{:08x}", load.value);
    out_.text += fmt::format("{:5}  {} <- {}\n", load.word, name, value);
    const std::string path = fmt::format("word {} {}", load.word, name);
    if (load.address == static_cast<uint32_t>(hw::State::nn_instruction_address))
      return operation<hw::NnInstruction>(load, "NN", hw::nn_instruction(chip_), path, name);
    if (load.address == static_cast<uint32_t>(hw::State::tp_instruction_address))
      return operation<hw::TpInstruction>(load, "TP", bits::descriptor_of<hw::TpInstruction>(), path, name);
    driver::AnnotatedField& field = add(path, name, value, value);
    field.unknown = known.empty();
    field.place = in_stream(load);
    return {};
  }

  static driver::FieldPlace in_stream(const StateLoad& load) {
    return {.in_call = true, .address = load.word * uint64_t{4}, .first_bit = 0};
  }

  // The low bits of the state's value are the event id. T: the struct that `d` describes.
  template <typename T>
  Result<void> operation(const StateLoad& load, const char* unit, const bits::Descriptor& d, const std::string& path,
                         const std::string& name) {
    const uint32_t address = load.value & ~0x3fU, event = load.value & 0x3fU;
    add(path + " event", name + " event", fmt::format("{}", event), fmt::format("0x{:x}", event));
    driver::AnnotatedField& at = add(path, name, fmt::format("0x{:08x}", address), fmt::format("0x{:08x}", address));
    at.kind = driver::FieldKind::commands;
    at.address = address;
    at.extent_bytes = static_cast<uint64_t>(d.words) * 4;
    SK_TRY(descriptor<T>(d, address, fmt::format("job {} ", out_.operations.size())));
    out_.operations.push_back(unit);
    SK_TRY_ASSIGN(const auto words, read_words(submission_, address, static_cast<size_t>(d.words)));
    T fields;
    bits::read_struct(d, words, &fields);
    out_.shapes.push_back(shape_of(fields));
    return {};
  }

  template <typename T>
  Result<void> descriptor(const bits::Descriptor& d, uint32_t address, const std::string& prefix) {
    SK_TRY_ASSIGN(const std::vector<uint32_t> words, read_words(submission_, address, static_cast<size_t>(d.words)));
    const bits::Unpacked unpacked = bits::unpack(d, words);
    out_.text += fmt::format("       {}{} at 0x{:08x}\n", prefix, d.name, address);
    T fields;
    bits::read_struct(d, words, &fields);
    for (size_t i = 0; i < d.rows.size(); ++i) {
      driver::AnnotatedField& added = field(d, i, unpacked, prefix);
      added.place = {.in_call = false, .address = address, .first_bit = 0};
      added.extent_bytes = extent_of(fields, d.rows[i].name);
      added.unused = is_unused(fields, d.rows[i].name);
    }
    for (size_t w = 0; w < unpacked.unclaimed.size(); ++w) {
      if (unpacked.unclaimed[w] == 0) continue;
      const std::string raw = fmt::format("0x{:08x}", unpacked.unclaimed[w]);
      const std::string name = fmt::format("{}.unknown word {}", d.name, w);
      out_.text += fmt::format("         unknown bits, word {} = {}\n", w, raw);
      add(prefix + name, name, raw, raw).unknown = true;
    }
    return {};
  }

  driver::AnnotatedField& field(const bits::Descriptor& d, size_t i, const bits::Unpacked& unpacked,
                                const std::string& prefix) {
    const bits::Row& row = d.rows[i];
    const bits::Value& value = unpacked.values[i];
    std::string text = bits::print_value(row, value);
    if (row.kind == bits::ValueKind::address) text += place_text(submission_, value.integer);
    if (value.integer != 0) out_.text += fmt::format("         {} = {}\n", row.name, text);
    const std::string name = fmt::format("{}.{}", d.name, row.name);
    driver::AnnotatedField& field = add(prefix + name, name, text, fmt::format("0x{:x}", value.integer));
    field.descriptor = &d;
    field.row = &row;
    if (row.kind != bits::ValueKind::address) return field;
    field.kind = is_constant(row.name) ? driver::FieldKind::constant : driver::FieldKind::memory;
    field.address = value.integer;
    if (std::string_view(row.name) == "kernel_address") coefficients(value.integer);
    return field;
  }

  static bool is_constant(std::string_view row) {
    return row == "kernel_address" || row == "pwl_lut_address" || row == "in_tile_list_address";
  }

  static std::string shape_of(const hw::NnInstruction& nn) {
    return fmt::format("{}x{}x{} -> {}x{}x{}, kernel {}x{}", nn.in_y_size, nn.in_x_size, nn.kernel_z_size,
                       nn.out_y_size, nn.out_x_size, nn.out_z_size, nn.kernel_y_size, nn.kernel_x_size);
  }
  static std::string shape_of(const hw::TpInstruction& tp) {
    return fmt::format("{}x{}x{}", tp.in_y_size, tp.in_x_size, tp.in_z_size);
  }

  // How many bytes from an address on a job touches; 0: not known.
  static uint64_t extent_of(const hw::NnInstruction& nn, std::string_view row) {
    if (row == "in_address") return uint64_t{nn.in_x_stride} * nn.in_y_stride * nn.kernel_z_size;
    if (row == "out_address") return uint64_t{nn.out_x_stride} * nn.out_y_stride * nn.out_z_size;
    return 0;
  }
  static uint64_t extent_of(const hw::TpInstruction& tp, std::string_view row) {
    if (row == "pwl_lut_address") return uint64_t{hw::kPwlEntries} * 4;
    if (row != "in_base_address" || tp.in_z_size == 0 || tp.in_y_size == 0) return 0;
    return (tp.in_z_size - uint64_t{1}) * tp.in_slice + (tp.in_y_size - uint64_t{1}) * tp.in_stride + tp.in_x_size;
  }

  // Addresses of what only some operations have.
  static bool is_unused(const hw::NnInstruction& /*nn*/, std::string_view /*row*/) { return false; }
  static bool is_unused(const hw::TpInstruction& tp, std::string_view row) {
    if (row == "in_tile_list_address") return !tp.in_tile_global_mem;
    return row == "pwl_lut_address" && !tp.pwl_enable && !tp.load_pwl_lut;
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
  std::span<const uint32_t> stream_;
  driver::Annotated out_;
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
