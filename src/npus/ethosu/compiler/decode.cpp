#include "npus/ethosu/compiler/decode.h"

#include <algorithm>

#include "npu/field_list.h"

namespace skillet::npus::ethosu {
namespace {

namespace hw = ::skillet::ethosu::hw;

// Addresses in a stream are offsets into the buffers of a job's regions. The kernel checks that they stay there, so
// that none of them is an address for those who check programs.
class Decoder {
 public:
  Decoder(const capture::Submission& submission, npu::Detail detail) : submission_(submission), fields_(detail) {}

  Result<npu::Annotated> run() {
    SK_TRY_ASSIGN(const std::span<const uint32_t> stream, capture::words_of(submission_));
    for (size_t at = 0; at < stream.size();) at += add_command(stream, at);
    return std::move(out_);
  }

 private:
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
      facts.place = npu::FieldPlace{.in_call = true, .address = at * 4, .first_bit = 0};
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

  void add_unknown(const std::string& path, uint32_t value) {
    fields_.add({.unknown = true}, value, [&](npu::AnnotatedField& field) {
      field.path = field.name = path;
      field.value = field.raw = fmt::format("0x{:08x}", value);
    });
  }

  const capture::Submission& submission_;
  npu::FieldList fields_;
  npu::Annotated& out_ = fields_.out();
};

}  // namespace

Result<npu::Annotated> decode(const capture::Submission& submission, npu::Detail detail) {
  return Decoder(submission, detail).run();
}

}  // namespace skillet::npus::ethosu
