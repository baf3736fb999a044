#include "npus/vivante/compiler/decode.h"

#include <numeric>

#include "base/int_math.h"
#include "npu/decoded_capture.h"
#include "npu/field_list.h"
#include "npus/vivante/compiler/program_check.h"
#include "npus/vivante/compiler/stream_check.h"

namespace skillet::npus::vivante {
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
  Decoder(const hw::ChipRow& chip, const capture::Submission& submission, npu::Detail detail)
      : chip_(chip), submission_(submission), fields_(detail) {}

  Result<npu::Annotated> run() {
    SK_TRY_ASSIGN(stream_, capture::words_of(submission_));
    SK_TRY_ASSIGN(const std::vector<StateLoad> loads, parse_stream(stream_));
    if (fields_.judges()) refuse(refused_packet(stream_), "");
    size_t next = 0;
    for (const StateLoad& load : loads) {
      other_words(next, load.word);
      next = load.word + 1;
      if (auto done = state(load); !done.ok())
        return std::move(done).with_context(fmt::format("stream word {}", load.word)).error();
    }
    other_words(next, stream_.size());
    if (parts_open_ > 0) refuse("tp_instruction.no_flush = true: no job after it flushes", "");
    return std::move(out_);
  }

 private:
  using Field = npu::AnnotatedField;

  void refuse(const std::string& what, const std::string& where) {
    if (!what.empty()) fields_.refuse(where + what);
  }
  void refuse_job(const std::string& what) {
    if (!what.empty()) fields_.refuse(prefix() + what);
  }

  // Packets and padding: words that are not values of states.
  void other_words(size_t from, size_t to) {
    for (size_t word = from; word < to; ++word) {
      fields_.add({}, stream_[word], [&](Field& field) {
        field.path = fmt::format("word {} packet", word);
        field.name = "packet";
        field.raw = fmt::format("0x{:08x}", stream_[word]);
        field.value = field.raw + (word % 2 == 0 ? header_text(stream_[word]) : "");
      });
    }
  }

  // Describes the header of a packet; packets begin at even words.
  static std::string header_text(uint32_t word) {
    switch (static_cast<hw::Opcode>(word >> 27)) {
      case hw::Opcode::end: return " (end)";
      case hw::Opcode::nop: return " (nop)";
      case hw::Opcode::wait: return " (wait)";
      case hw::Opcode::link: return " (link)";
      case hw::Opcode::stall: return " (stall)";
      case hw::Opcode::load_state: {
        const uint32_t count = (word >> 16) & 0x3ff;
        return fmt::format(" (load {} from state 0x{:04x} on)", count, (word & 0xffff) * 4);
      }
      default: return "";
    }
  }

  static std::string state_text(const StateLoad& load) {
    const std::string_view known = hw::state_name(load.address);
    return known.empty() ? fmt::format("state 0x{:04x}", load.address) : std::string(known);
  }
  static std::string state_path(const StateLoad& load) {
    return fmt::format("word {} {}", load.word, state_text(load));
  }

  Result<void> state(const StateLoad& load) {
    if (fields_.full()) out_.text += fmt::format("{:5}  {} <- 0x{:08x}\n", load.word, state_text(load), load.value);
    if (load.address == static_cast<uint32_t>(hw::State::nn_instruction_address))
      return operation<hw::NnInstruction>(load, "NN", hw::nn_instruction(chip_));
    if (load.address == static_cast<uint32_t>(hw::State::tp_instruction_address))
      return operation<hw::TpInstruction>(load, "TP", bits::descriptor_of<hw::TpInstruction>());
    if (fields_.judges()) refuse(refused_state(load.address, load.value), "");
    npu::FieldFacts facts{.unknown = hw::state_name(load.address).empty()};
    facts.place = {.in_call = true, .address = load.word * uint64_t{4}, .first_bit = 0};
    fields_.add(facts, uint64_t{load.address} << 32 | load.value, [&](Field& field) {
      field.path = state_path(load);
      field.name = state_text(load);
      field.value = field.raw = fmt::format("0x{:08x}", load.value);
    });
    return {};
  }

  // The low bits of the state's value are the event id. T: the struct that `d` describes.
  template <typename T>
  Result<void> operation(const StateLoad& load, const char* unit, const bits::Descriptor& d) {
    const uint32_t address = load.value & ~0x3fU, event = load.value & 0x3fU;
    fields_.add({}, event, [&](Field& field) {
      field.path = state_path(load) + " event";
      field.name = state_text(load) + " event";
      field.value = fmt::format("{}", event);
      field.raw = fmt::format("0x{:x}", event);
    });
    npu::FieldFacts at{.kind = npu::FieldKind::commands, .address = address};
    at.extent_bytes = static_cast<uint64_t>(d.words) * 4;
    at.reach = {.before = 0, .after = at.extent_bytes};
    if (event > event_max<T>()) refuse(fmt::format("{} = event {}: no program has that", state_text(load), event), "");
    fields_.add(at, 0, [&](Field& field) {
      field.path = state_path(load);
      field.name = state_text(load);
      field.value = field.raw = fmt::format("0x{:08x}", address);
    });
    SK_TRY_ASSIGN(const std::vector<uint32_t> words, read_words(submission_, address, static_cast<size_t>(d.words)));
    T fields;
    bits::read_struct(d, words, &fields);
    if (fields_.full()) out_.text += fmt::format("       {}{} at 0x{:08x}\n", prefix(), d.name, address);
    descriptor(d, words, address, fields);
    parts(fields);
    out_.operations.push_back(unit);
    out_.shapes.push_back(fields_.full() ? shape_of(fields) : "");
    out_.images.push_back(image_of(fields));
    return {};
  }

  // 1: another core of the same operation follows.
  template <typename T>
  static constexpr uint32_t event_max() {
    return std::is_same_v<T, hw::TpInstruction> ? 1 : 0;
  }
  // Jobs of one operation on several cores: only the last one flushes.
  void parts(const hw::NnInstruction& /*nn*/) {}
  void parts(const hw::TpInstruction& tp) {
    parts_open_ = tp.no_flush ? parts_open_ + 1 : 0;
    if (parts_open_ >= chip_.tp_cores) refuse("tp_instruction.no_flush = true: more jobs than cores", prefix());
  }

  std::string prefix() const { return fmt::format("job {} ", out_.operations.size()); }

  // Checks the job and returns its coefficients.
  template <typename T>
  std::span<const uint8_t> judged(const bits::Descriptor& d, const bits::Unpacked& unpacked, const T& fields) {
    if (!fields_.judges()) return {};
    refuse_job(refused_field(d, unpacked.values));
    refuse_job(refused_job(chip_, fields));
    return coefficients_of(fields);
  }

  template <typename T>
  void descriptor(const bits::Descriptor& d, std::span<const uint32_t> words, uint32_t address, const T& fields) {
    const bits::Unpacked unpacked = bits::unpack(d, words);
    const std::span<const uint8_t> coefficients = judged(d, unpacked, fields);
    for (size_t i = 0; i < d.rows.size(); ++i) {
      npu::FieldFacts facts = facts_of(d, d.rows[i], unpacked.values[i]);
      facts.place = {.in_call = false, .address = address, .first_bit = 0};
      facts.extent_bytes = extent_of(fields, d.rows[i].name);
      if (std::string_view(d.rows[i].name) == "kernel_address")
        facts.extent_bytes = coefficient_bytes(unpacked.values[i].integer);
      facts.unused = is_unused(fields, d.rows[i].name);
      if (facts.kind != npu::FieldKind::value && fields_.judges())
        facts.reach = reach_of(chip_, fields, d.rows[i].name, coefficients);
      fields_.add(facts, unpacked.values[i].integer,
                  [&](Field& field) { describe(field, d, d.rows[i], unpacked.values[i]); });
    }
    for (size_t w = 0; w < unpacked.unclaimed.size(); ++w) {
      const uint32_t bits = unpacked.unclaimed[w];
      if (bits == 0) continue;
      fields_.add({.unknown = true}, bits, [&](Field& field) {
        field.value = field.raw = fmt::format("0x{:08x}", bits);
        out_.text += fmt::format("         unknown bits, word {} = {}\n", w, field.raw);
        field.name = fmt::format("{}.unknown word {}", d.name, w);
        field.path = prefix() + field.name;
      });
    }
  }

  static npu::FieldFacts facts_of(const bits::Descriptor& d, const bits::Row& row, const bits::Value& value) {
    npu::FieldFacts facts;
    facts.descriptor = &d;
    facts.row = &row;
    if (row.kind != bits::ValueKind::address) return facts;
    facts.kind = is_constant(row.name) ? npu::FieldKind::constant : npu::FieldKind::memory;
    facts.address = value.integer;
    facts.output = is_output(row.name);
    return facts;
  }

  void describe(Field& field, const bits::Descriptor& d, const bits::Row& row, const bits::Value& value) {
    field.value = bits::print_value(row, value);
    if (row.kind == bits::ValueKind::address) field.value += place_text(submission_, value.integer);
    if (value.integer != 0) out_.text += fmt::format("         {} = {}\n", row.name, field.value);
    field.name = fmt::format("{}.{}", d.name, row.name);
    field.path = prefix() + field.name;
    field.raw = fmt::format("0x{:x}", value.integer);
    if (std::string_view(row.name) == "kernel_address") coefficients(value.integer);
  }

  static bool is_constant(std::string_view row) {
    return row == "kernel_address" || row == "pwl_lut_address" || row == "in_tile_list_address";
  }

  static bool is_output(std::string_view row) { return row == "out_address" || row == "out_base_address"; }

  static std::string shape_of(const hw::NnInstruction& nn) {
    return fmt::format("{}x{}x{} -> {}x{}x{}, kernel {}x{}", nn.in_y_size, nn.in_x_size, nn.kernel_z_size,
                       nn.out_y_size, nn.out_x_size, nn.out_z_size, nn.kernel_y_size, nn.kernel_x_size);
  }
  static std::string shape_of(const hw::TpInstruction& tp) {
    return fmt::format("{}x{}x{}", tp.in_y_size, tp.in_x_size, tp.in_z_size);
  }

  static npu::WrittenImage image_of(const hw::NnInstruction& nn) {
    return {.height = nn.out_y_stride,
            .width = nn.out_x_stride,
            .channels = nn.out_z_size,
            .row_bytes = nn.out_x_stride,
            .plane_bytes = uint64_t{nn.out_x_stride} * nn.out_y_stride};
  }
  static npu::WrittenImage image_of(const hw::TpInstruction& /*tp*/) { return {}; }

  // Number of bytes from an address on that a job touches; 0: not known.
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

  // Whether the job does not use this address.
  static bool is_unused(const hw::NnInstruction& /*nn*/, std::string_view /*row*/) { return false; }
  static bool is_unused(const hw::TpInstruction& tp, std::string_view row) {
    if (row == "in_tile_list_address") return !tp.in_tile_global_mem;
    return row == "pwl_lut_address" && !tp.pwl_enable && !tp.load_pwl_lut;
  }

  // All stored bytes from there to the end of the buffer.
  std::span<const uint8_t> coefficients_of(const hw::NnInstruction& nn) {
    const auto place = npu::find_place(submission_, nn.kernel_address.offset);
    if (!place || place->offset >= place->buffer->bytes.size()) return {};
    const std::span<const uint8_t> bytes = std::span<const uint8_t>(place->buffer->bytes).subspan(place->offset);
    if (out_.refused.empty()) refuse_job(refused_coefficients(chip_, nn, bytes));
    return bytes;
  }
  static std::span<const uint8_t> coefficients_of(const hw::TpInstruction& /*tp*/) { return {}; }

  // Stream size of each core, from the header; empty: not known.
  std::vector<uint32_t> stream_bytes(uint64_t address) const {
    if (chip_.generation != 7) return {};
    auto header = read_words(submission_, address, static_cast<size_t>(chip_.nn_cores));
    return header.ok() ? std::move(header).value() : std::vector<uint32_t>{};
  }
  // Header and streams; 0: not known.
  uint64_t coefficient_bytes(uint64_t address) const {
    const std::vector<uint32_t> sizes = stream_bytes(address);
    if (sizes.empty()) return 0;
    return std::accumulate(sizes.begin(), sizes.end(), align_up(sizes.size() * uint64_t{4}, uint64_t{64}));
  }
  void coefficients(uint64_t address) {
    const std::vector<uint32_t> sizes = stream_bytes(address);
    if (sizes.empty()) return;
    out_.text += "           coefficient streams, bytes per core:";
    for (const uint32_t size : sizes) out_.text += fmt::format(" {}", size);
    out_.text += "\n";
  }

  const hw::ChipRow& chip_;
  const capture::Submission& submission_;
  std::span<const uint32_t> stream_;
  npu::FieldList fields_;
  npu::Annotated& out_ = fields_.out();
  int parts_open_ = 0;  // TP jobs since the last one that flushes
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

Result<npu::Annotated> decode(const hw::ChipRow& chip, const capture::Submission& submission, npu::Detail detail) {
  return Decoder(chip, submission, detail).run();
}

}  // namespace skillet::npus::vivante
