// Stream: runs the commands of one job, one after the other.
// Called by ethosu.cpp.
// Must not know: where a job comes from.
#pragma once

#include "npus/ethosu/sim/operation.h"
#include "npus/ethosu/sim/order.h"

namespace skillet::sim::ethosu {

struct Command {
  const bits::Descriptor* row = nullptr;
  std::array<uint32_t, 2> words{};  // payload
  uint32_t count = 0;               // words of the command
};
// Error: the command is unknown or incomplete; the message has the word.
Result<Command> command_at(std::span<const uint32_t> words, size_t at, hw::Generation generation);

class Stream {
 public:
  Stream(const hw::ChipRow& chip, Regions regions, std::vector<uint8_t>& shram, Work work, QuirkSet quirks = {})
      : chip_(chip),
        regions_(std::move(regions)),
        shram_(shram),
        order_(chip.transfers),
        work_(work),
        quirks_(quirks) {}

  // The error names the command.
  Result<void> run(std::span<const uint32_t> words);
  // Runs the transfers, and reads the weights of each operation; one entry for each transfer and operation.
  Result<std::vector<std::optional<Weights>>> read_weights(std::span<const uint32_t> words);

 private:
  Result<void> step(const bits::Descriptor& command, std::array<uint32_t, 2> words, size_t at);
  Result<void> operate(uint32_t code, std::array<uint32_t, 2> words, size_t at);
  Result<void> check_registers(Result<void> done);
  Result<void> transfer(size_t at);
  Result<void> move_rows(std::vector<Range>& ranges);
  Result<std::span<uint8_t>> row_of(bool internal, uint32_t region, int64_t offset, uint64_t size, bool writes,
                                    std::string_view what);
  Result<void> keep_tables(const std::vector<Range>& ranges);

  const hw::ChipRow& chip_;
  Regions regions_;
  std::vector<uint8_t>& shram_;
  Registers registers_;
  Order order_;
  Work work_;
  QuirkSet quirks_;
  Chains chains_;
  std::vector<std::optional<Weights>>* weights_ = nullptr;  // null: operations run
  std::vector<Range> last_;                                 // bytes of the previous operation
  bool tables_are_lost_ = false;                            // if operations without a table use its bytes too
};

}  // namespace skillet::sim::ethosu
