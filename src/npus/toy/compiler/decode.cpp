#include "npus/toy/compiler/decode.h"

#include <algorithm>

#include "base/bytes.h"
#include "npu/field_list.h"
#include "npus/toy/hw/toy.h"

namespace skillet::npus::toy {
namespace {

namespace hw = ::skillet::toy::hw;

// The words at a device address, from the snapshot of the buffer that contains it.
Result<bits::Words<hw::Descriptor>> read_descriptor(const capture::Submission& submission, uint64_t address) {
  bits::Words<hw::Descriptor> words{};
  for (const capture::BufferSnapshot& buffer : submission.buffers) {
    if (buffer.address == 0 || address < buffer.address || address - buffer.address >= buffer.size_bytes) continue;
    const uint64_t offset = address - buffer.address;
    if (buffer.size_bytes - offset < sizeof words) break;
    if (offset < buffer.bytes.size())
      std::memcpy(words.data(), buffer.bytes.data() + offset,
                  std::min<uint64_t>(sizeof words, buffer.bytes.size() - offset));
    return words;
  }
  return error(ErrorCode::malformed, "no buffer has a descriptor at address 0x{:08x}", address);
}

class Decoder {
 public:
  Decoder(const capture::Submission& submission, npu::Detail detail) : submission_(submission), fields_(detail) {}

  Result<npu::Annotated> run() {
    SK_TRY_ASSIGN(const std::span<const uint32_t> stream, capture::words_of(submission_));
    if (stream.size() != hw::Command::kWords)
      return error(ErrorCode::malformed, "{} words are not a command of the toy", stream.size());
    const auto command = bits::read<hw::Command>(stream);
    add_fields(hw::Command::descriptor(), stream, {.in_call = true, .address = 0, .first_bit = 0}, 0,
               command.opcode != hw::Opcode::run);
    if (command.opcode != hw::Opcode::run) return std::move(out_);
    SK_TRY_ASSIGN(const auto words, read_descriptor(submission_, command.job_address.offset));
    const npu::FieldPlace place{.in_call = false, .address = command.job_address.offset, .first_bit = 0};
    add_fields(hw::Descriptor::descriptor(), words, place, bits::read<hw::Descriptor>(words).bytes, false);
    out_.operations.push_back("MAX");
    return std::move(out_);
  }

 private:
  // `extent_bytes`: size of the memory at its addresses; `unused`: it uses no address.
  void add_fields(const bits::Descriptor& descriptor, std::span<const uint32_t> words, npu::FieldPlace place,
                  uint64_t extent_bytes, bool unused) {
    if (fields_.full())
      out_.text += fmt::format("{}\n{}", descriptor.name, bits::print(descriptor, bits::unpack(descriptor, words)));
    for (const bits::Row& row : descriptor.rows) {
      const bits::Value value = bits::read_field(row, words);
      if (!npu::has_meaning(row, value))
        fields_.refuse(fmt::format("{}.{} = {}", descriptor.name, row.name, bits::print_value(row, value)));
      npu::FieldFacts facts;
      facts.descriptor = &descriptor;
      facts.row = &row;
      facts.place = place;
      if (bits::is_address(row.kind)) {
        const bool is_commands = row.kind == bits::ValueKind::blob;
        facts.kind = is_commands ? npu::FieldKind::commands : npu::FieldKind::memory;
        facts.address = value.integer;
        facts.unused = unused;
        facts.output = std::string_view(row.name) == "result";
        facts.extent_bytes = is_commands ? hw::Descriptor::kWords * uint64_t{4} : extent_bytes;
        facts.reach = {.before = 0, .after = facts.unused ? 0 : facts.extent_bytes};
      }
      fields_.add(facts, value.integer, [&](npu::AnnotatedField& field) {
        describe(field, descriptor, row.name, bits::print_value(row, value), value.integer);
      });
    }
    for (int word = 0; word < descriptor.words; ++word) {
      const uint32_t unknown = bits::unclaimed_bits(descriptor, word, words[static_cast<size_t>(word)]);
      if (unknown == 0) continue;
      fields_.add({.unknown = true}, unknown, [&](npu::AnnotatedField& field) {
        describe(field, descriptor, fmt::format("unknown word {}", word), fmt::format("0x{:08x}", unknown), unknown);
      });
    }
  }

  static void describe(npu::AnnotatedField& field, const bits::Descriptor& descriptor, std::string_view what,
                       std::string value, uint64_t raw) {
    field.path = field.name = fmt::format("{}.{}", descriptor.name, what);
    field.value = std::move(value);
    field.raw = fmt::format("0x{:x}", raw);
  }

  const capture::Submission& submission_;
  npu::FieldList fields_;
  npu::Annotated& out_ = fields_.out();
};

}  // namespace

Result<npu::Annotated> decode(const capture::Submission& submission, npu::Detail detail) {
  return Decoder(submission, detail).run();
}

}  // namespace skillet::npus::toy
