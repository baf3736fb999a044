#include "npus/ethosu/compiler/decode.h"

#include <algorithm>

#include "npu/decoded_capture.h"
#include "npu/field_list.h"
#include "npus/ethosu/compiler/register_use.h"

namespace skillet::npus::ethosu {
namespace {

namespace hw = ::skillet::ethosu::hw;

// Addresses in a stream are offsets into the buffers of a job's regions. The kernel checks their range, so checks of
// programs do not treat them as addresses. In a capture they are positions in its buffers.
class Decoder {
 public:
  Decoder(const capture::Submission& submission, npu::Detail detail, hw::Generation generation)
      : submission_(submission), fields_(detail), generation_(generation), state_(hw::commands().registers.size()) {}

  Result<npu::Annotated> run() {
    SK_TRY_ASSIGN(const std::span<const uint32_t> stream, capture::words_of(submission_));
    for (size_t at = 0; at < stream.size();) at += add_command(stream, at);
    for (const Command& command : pending_) add(command, {}, false);
    return std::move(out_);
  }

 private:
  struct Command {
    const bits::Descriptor* row = nullptr;
    std::array<uint32_t, 2> words{};
    size_t at = 0;
  };

  // Returns the number of words.
  size_t add_command(std::span<const uint32_t> list, size_t at) {
    const uint32_t code = hw::code_of(list[at]);
    const bits::Descriptor* const row = hw::find_command(code, generation_);
    const size_t count = std::min<size_t>(hw::words_of_code(code), list.size() - at);
    if (row == nullptr || (list[at] & hw::kReservedMask) != 0 || count < hw::words_of_code(code)) {
      fields_.refuse(fmt::format("word {}: 0x{:08x} is not a command", at, list[at]));
      for (size_t i = at; i < at + count; ++i) add_unknown(fmt::format("word {}", i), list[i]);
      return count;
    }
    const Command command{row, {list[at] & ~(hw::kCodeMask | hw::kReservedMask), count == 2 ? list[at + 1] : 0}, at};
    if (fields_.full()) out_.text += line_of(*row, command.words, at);
    if (!hw::starts(code)) {
      registers_.set(*row, command.words);
      state_[hw::slot_of(*row)] = command;
      pending_.push_back(command);
    } else if (const unsigned operation = operation_of(code); operation != 0) {
      add_operation(command, operation);
    } else {
      add(command, {}, false);
    }
    return count;
  }

  // A register is a field of the operation for which it is in force. It is new if set since the previous operation,
  // else inherited.
  void add_operation(const Command& start, unsigned operation) {
    const RegisterUse use(registers_, operation, start.words);
    const auto is_used = [&](const Command& one) { return (operations_of(*one.row) & operation) != 0; };
    std::vector<bool> is_new(state_.size());
    for (const Command& one : pending_) {
      if (!is_used(one)) continue;
      add(one, use.address(*one.row), false);
      is_new[hw::slot_of(*one.row)] = true;
    }
    std::erase_if(pending_, is_used);
    add(start, {}, false);
    for (size_t i = 0; i < state_.size(); ++i) {
      if (state_[i].row != nullptr && !is_new[i] && is_used(state_[i]))
        add(state_[i], use.address(*state_[i].row), true);
    }
    out_.operations.emplace_back(start.row->name);
    out_.shapes.push_back(fields_.full() ? use.shape() : "");
    out_.images.push_back(use.image());
  }

  void add(const Command& command, const std::optional<RegisterUse::Address>& address, bool is_inherited) {
    for (const bits::Row& row : command.row->rows) add_field(command, row, address, is_inherited);
    for (int word = 0; !is_inherited && word < command.row->words; ++word) {
      const uint32_t unknown = bits::unclaimed_bits(*command.row, word, command.words[static_cast<size_t>(word)]);
      if (unknown != 0) add_unknown(fmt::format("word {} {}.unknown {}", command.at, command.row->name, word), unknown);
    }
  }

  void add_field(const Command& command, const bits::Row& row, const std::optional<RegisterUse::Address>& address,
                 bool is_inherited) {
    const bits::Value value = bits::read_field(row, command.words);
    if (!npu::has_meaning(row, value))
      fields_.refuse(fmt::format("{}.{} = {}", command.row->name, row.name, bits::print_value(row, value)));
    npu::FieldFacts facts;
    facts.descriptor = command.row;
    facts.row = &row;
    // Each word is a field of only one operation.
    if (!is_inherited) facts.place = npu::FieldPlace{.in_call = true, .address = command.at * 4, .first_bit = 0};
    if (address) place(facts, *address, value.integer);
    if (is_inherited && !fields_.full() && facts.kind == npu::FieldKind::value) return;
    fields_.add(facts, value.integer, [&](npu::AnnotatedField& field) {
      field.name = fmt::format("{}.{}", command.row->name, row.name);
      field.path = fmt::format("word {} {}", command.at, field.name);
      field.value = bits::print_value(row, value);
      field.raw = fmt::format("0x{:x}", value.integer);
    });
  }

  // An offset stays a value if the submission has no buffer for the region: on-chip memory, or in a program.
  void place(npu::FieldFacts& facts, const RegisterUse::Address& address, uint64_t offset) const {
    const uint64_t base = hw::region_address(address.region);
    const auto at = npu::find_place(submission_, base);
    if (!at || at->offset != 0 || offset >= at->room_bytes) return;
    facts.kind = address.is_constant ? npu::FieldKind::constant : npu::FieldKind::memory;
    facts.address = base + offset;
    facts.extent_bytes = address.bytes;
    facts.unused = address.is_unused;
    facts.output = address.is_output;
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
  hw::Generation generation_;
  npu::Annotated& out_ = fields_.out();
  hw::Registers registers_;
  std::vector<Command> state_;    // by register: the last command that set it
  std::vector<Command> pending_;  // set for later operations, in the order of the stream
};

}  // namespace

Result<npu::Annotated> decode(const capture::Submission& submission, npu::Detail detail, hw::Generation generation) {
  return Decoder(submission, detail, generation).run();
}

}  // namespace skillet::npus::ethosu
