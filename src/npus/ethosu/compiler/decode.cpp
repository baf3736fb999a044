#include "npus/ethosu/compiler/decode.h"

#include <algorithm>

#include "npu/field_list.h"

namespace skillet::npus::ethosu {
namespace {

namespace hw = ::skillet::ethosu::hw;

class Decoder {
 public:
  Decoder(const capture::Submission& submission, npu::Detail detail) : submission_(submission), fields_(detail) {}

  Result<npu::Annotated> run() {
    SK_TRY_ASSIGN(const std::span<const uint32_t> list, capture::words_of(submission_));
    if (list.size() != hw::Launch::kWords)
      return error(ErrorCode::malformed, "{} words are no job of Ethos-U", list.size());
    launch_ = bits::read<hw::Launch>(list);
    in_call_ = true;
    add(hw::Launch::descriptor(), list, 0);
    in_call_ = false;
    SK_TRY_ASSIGN(const std::vector<uint32_t> stream, stream_words());
    for (size_t at = 0; at < stream.size();) at += add_command(stream, at);
    return std::move(out_);
  }

 private:
  // From the snapshot of the buffer that has it; bytes that it lacks are zeros.
  Result<std::vector<uint32_t>> stream_words() const {
    const uint64_t address = launch_.stream.offset, size = launch_.stream_bytes;
    for (const capture::BufferSnapshot& buffer : submission_.buffers) {
      if (buffer.address == 0 || address < buffer.address || address - buffer.address > buffer.size_bytes) continue;
      const uint64_t offset = address - buffer.address;
      if (buffer.size_bytes - offset < size) break;
      std::vector<uint32_t> words(size / 4);
      if (offset < buffer.bytes.size() && !words.empty())
        std::memcpy(words.data(), buffer.bytes.data() + offset,
                    std::min<uint64_t>(words.size() * 4, buffer.bytes.size() - offset));
      return words;
    }
    return error(ErrorCode::malformed, "no buffer has {} bytes of stream at 0x{:08x}", size, address);
  }

  // Returns how many words it has.
  size_t add_command(std::span<const uint32_t> list, size_t at) {
    const uint32_t code = hw::code_of(list[at]);
    const bits::Descriptor* const command = hw::find_command(code);
    const size_t count = std::min<size_t>(hw::words_of_code(code), list.size() - at);
    if (command == nullptr || (list[at] & hw::kReservedMask) != 0 || count < hw::words_of_code(code)) {
      fields_.refuse(fmt::format("word {}: 0x{:08x} is no command", at, list[at]));
      for (size_t i = at; i < at + count; ++i) add_unknown(fmt::format("word {}", i), list[i]);
      return count;
    }
    const std::array<uint32_t, 2> words = {list[at] & ~(hw::kCodeMask | hw::kReservedMask),
                                           count == 2 ? list[at + 1] : 0};
    add(*command, words, at);
    if (hw::starts(code)) out_.operations.emplace_back(command->name);
    return count;
  }

  void add(const bits::Descriptor& descriptor, std::span<const uint32_t> words, size_t at) {
    if (fields_.full()) out_.text += line_of(descriptor, words, at);
    for (const bits::Row& row : descriptor.rows) {
      const bits::Value value = bits::read_field(row, words);
      if (!npu::has_meaning(row, value))
        fields_.refuse(fmt::format("{}.{} = {}", descriptor.name, row.name, bits::print_value(row, value)));
      npu::FieldFacts facts;
      facts.descriptor = &descriptor;
      facts.row = &row;
      facts.place = npu::FieldPlace{
          .in_call = in_call_, .address = (in_call_ ? 0 : launch_.stream.offset) + at * 4, .first_bit = 0};
      if (in_call_ && bits::is_address(row.kind)) set_address(facts, row, value.integer);
      fields_.add(facts, value.integer, [&](npu::AnnotatedField& field) {
        field.name = fmt::format("{}.{}", descriptor.name, row.name);
        field.path = fmt::format("word {} {}", at, field.name);
        field.value = bits::print_value(row, value);
        field.raw = fmt::format("0x{:x}", value.integer);
      });
    }
    for (int word = 0; word < descriptor.words; ++word) {
      const uint32_t unknown = bits::unclaimed_bits(descriptor, word, words[static_cast<size_t>(word)]);
      if (unknown != 0) add_unknown(fmt::format("word {} {}.unknown {}", at, descriptor.name, word), unknown);
    }
  }

  // A command is one line: "  12 ifm_precision is_signed=true precision=bits_8".
  static std::string line_of(const bits::Descriptor& descriptor, std::span<const uint32_t> words, size_t at) {
    std::string line = fmt::format("{:>6} {}", at, descriptor.name);
    for (const bits::Row& row : descriptor.rows) {
      if (row.codec.kind == bits::CodecKind::always) continue;
      const std::string value = bits::print_value(row, bits::read_field(row, words));
      line +=
          std::string_view(row.name) == "value" ? fmt::format(" {}", value) : fmt::format(" {}={}", row.name, value);
    }
    return line + "\n";
  }

  // The chip reads and writes within the buffer of a region, and nowhere else.
  void set_address(npu::FieldFacts& facts, const bits::Row& row, uint64_t address) const {
    facts.kind = row.kind == bits::ValueKind::blob ? npu::FieldKind::commands : npu::FieldKind::memory;
    facts.address = address;
    facts.unused = address == 0;
    facts.output = std::string_view(row.name) == "status";
    facts.reach = npu::Reach{};
    if (facts.unused) return;
    for (const capture::BufferSnapshot& buffer : submission_.buffers) {
      if (address < buffer.address || address - buffer.address >= buffer.size_bytes) continue;
      facts.extent_bytes = buffer.size_bytes - (address - buffer.address);
      if (facts.output) facts.extent_bytes = hw::kStatusBytes;
      if (facts.kind == npu::FieldKind::commands) facts.extent_bytes = launch_.stream_bytes;
    }
    facts.reach->after = facts.extent_bytes;
  }

  void add_unknown(const std::string& path, uint32_t value) {
    fields_.add({.unknown = true}, value, [&](npu::AnnotatedField& field) {
      field.path = field.name = path;
      field.value = field.raw = fmt::format("0x{:08x}", value);
    });
  }

  const capture::Submission& submission_;
  npu::FieldList fields_;
  hw::Launch launch_;
  bool in_call_ = false;  // the words are of the job's list, not of the stream
  npu::Annotated& out_ = fields_.out();
};

}  // namespace

Result<npu::Annotated> decode(const capture::Submission& submission, npu::Detail detail) {
  return Decoder(submission, detail).run();
}

}  // namespace skillet::npus::ethosu
