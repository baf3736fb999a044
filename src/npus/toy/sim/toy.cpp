// Simulator of the toy NPU: input is a command and its descriptor, output is bytes in memory. sim::create() finds it
// through cmake/vendors.cmake. Of the driver it includes only npus/toy/hw.
#include "npus/toy/hw/toy.h"

#include <algorithm>

#include "sim/sim.h"

namespace skillet::sim::toy {
namespace {

namespace hw = ::skillet::toy::hw;

// Bits outside all rows, and constants with another value, are errors with the field's name.
Result<void> check(const bits::Descriptor& descriptor, std::span<const uint32_t> words) {
  for (int word = 0; word < descriptor.words; ++word) {
    const uint32_t unknown = bits::unclaimed_bits(descriptor, word, words[static_cast<size_t>(word)]);
    if (unknown != 0)
      return error(ErrorCode::malformed, "{}: unknown bits 0x{:08x} in word {}", descriptor.name, unknown, word);
  }
  for (const bits::Row& row : descriptor.rows) {
    const uint64_t value = bits::read_field(row, words).integer;
    if (row.codec.kind == bits::CodecKind::always && value != row.codec.argument)
      return error(ErrorCode::malformed, "{}.{} is {}, not {}", descriptor.name, row.name, value, row.codec.argument);
  }
  return {};
}

class Toy final : public Device {
 public:
  Result<void> run(const Job& job, const Memory& memory) override {
    SK_TRY_ASSIGN(const auto stream, words_of(job));
    if (stream.size() != hw::Command::kWords)
      return error(ErrorCode::malformed, "{} words are no command", stream.size());
    SK_TRY(check(hw::Command::descriptor(), stream));
    const auto command = bits::read<hw::Command>(stream);
    switch (command.opcode) {
      case hw::Opcode::init: is_set_up_ = true; return {};
      case hw::Opcode::run: return take_maximum(command.job_address.offset, memory);
    }
    return error(ErrorCode::malformed, "command.opcode 0x{:x} is unknown", static_cast<unsigned>(command.opcode));
  }

  void reset(uint32_t /*core*/) override { is_set_up_ = false; }

 private:
  Result<void> take_maximum(uint64_t address, const Memory& memory) const {
    if (!is_set_up_) return error(ErrorCode::device, "the chip is not set up");
    bits::Words<hw::Descriptor> words;
    SK_TRY_ASSIGN(const auto bytes, memory.at(address, sizeof words, "descriptor"));
    std::memcpy(words.data(), bytes.data(), sizeof words);
    SK_TRY(check(hw::Descriptor::descriptor(), words));
    const auto fields = bits::read<hw::Descriptor>(words);
    SK_TRY_ASSIGN(const auto first, memory.at(fields.first.offset, fields.bytes, "first"));
    SK_TRY_ASSIGN(const auto second, memory.at(fields.second.offset, fields.bytes, "second"));
    SK_TRY_ASSIGN(const auto result, memory.at(fields.result.offset, fields.bytes, "result"));
    for (size_t i = 0; i < result.size(); ++i) {
      const uint32_t larger = std::max<uint32_t>(first[i] ^ hw::kXor, second[i] ^ hw::kXor);
      result[i] = static_cast<uint8_t>(std::max(larger, fields.least) ^ hw::kXor);
    }
    return {};
  }

  bool is_set_up_ = false;
};

}  // namespace

// The driver makes no assumption that could be wrong for a chip of this kind.
std::vector<Quirk> quirks(std::string_view /*chip*/) { return {}; }

Result<std::unique_ptr<Device>> simulator_of(std::string_view chip, std::span<const std::string_view> /*quirks*/) {
  if (hw::find_chip(chip) == nullptr) return error(ErrorCode::invalid_argument, "no toy chip '{}'", chip);
  return std::unique_ptr<Device>(std::make_unique<Toy>());
}

}  // namespace skillet::sim::toy
