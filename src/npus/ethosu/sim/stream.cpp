#include "npus/ethosu/sim/stream.h"

#include <algorithm>

namespace skillet::sim::ethosu {
namespace {

constexpr uint64_t kTransferMax = uint64_t{1} << 32;  // per transfer: limits the host's work for a stream

Result<void> check_bits(const bits::Descriptor& command, std::array<uint32_t, 2> words) {
  for (int i = 0; i < command.words; ++i) {
    const uint32_t unknown = bits::unclaimed_bits(command, i, words[static_cast<size_t>(i)]);
    if (unknown != 0) return error(ErrorCode::fault, "unknown bits 0x{:08x} in word {}", unknown, i);
  }
  for (const bits::Row& row : command.rows) {
    const uint64_t value = bits::read_field(row, words).integer;
    if (row.codec.kind == bits::CodecKind::always && value != row.codec.argument)
      return error(ErrorCode::fault, "{} is 0x{:x}, not {}", row.name, value, row.codec.argument);
  }
  return {};
}

// True if an operation reads bytes that the previous one wrote.
bool reads_of(const std::vector<Range>& ranges, const std::vector<Range>& before) {
  return std::ranges::any_of(ranges, [&](const Range& ours) {
    return !ours.is_written && std::ranges::any_of(before, [&](const Range& one) { return one.conflicts(ours); });
  });
}

}  // namespace

Result<Command> command_at(std::span<const uint32_t> words, size_t at, hw::Generation generation) {
  const uint32_t code = hw::code_of(words[at]);
  Command out{.row = hw::find_command(code, generation), .count = hw::words_of_code(code)};
  if (out.row == nullptr || (words[at] & hw::kReservedMask) != 0)
    return error(ErrorCode::fault, "word {} of the stream: 0x{:08x} is no command that is known", at, words[at]);
  if (out.count > words.size() - at)
    return error(ErrorCode::fault, "word {} of the stream: {} ends with the stream", at, out.row->name);
  out.words = {words[at] & ~(hw::kCodeMask | hw::kReservedMask), out.count == 2 ? words[at + 1] : 0};
  return out;
}

Result<void> Stream::run(std::span<const uint32_t> words) {
  for (size_t at = 0; at < words.size();) {
    SK_TRY_ASSIGN(const Command command, command_at(words, at, chip_.generation()));
    const auto where = [&] { return fmt::format("word {} of the stream, {}", at, command.row->name); };
    if (auto done = check_bits(*command.row, command.words); !done.ok()) return std::move(done).with_context(where());
    if (command.row->address == hw::OpStop::kAddress) {
      if (at + 1 == words.size()) return {};
      return error(ErrorCode::fault, "word {} of the stream: op_stop before its end at {}", at, words.size());
    }
    if (auto done = step(*command.row, command.words, at); !done.ok()) return std::move(done).with_context(where());
    at += command.count;
  }
  return error(ErrorCode::fault, "the stream has no op_stop at its end");
}

Result<std::vector<std::optional<Weights>>> Stream::read_weights(std::span<const uint32_t> words) {
  std::vector<std::optional<Weights>> all;
  weights_ = &all;
  SK_TRY(run(words));
  return all;
}

Result<void> Stream::step(const bits::Descriptor& command, std::array<uint32_t, 2> words, size_t at) {
  if (!hw::starts(command.address)) {
    registers_.set(command, words);
    return {};
  }
  switch (hw::code_of(command.address)) {
    case hw::OpDmaWait::kAddress: order_.wait_for_transfers(bits::read<hw::OpDmaWait>(words).outstanding); return {};
    case hw::OpKernelWait::kAddress:
      order_.wait_for_operations(bits::read<hw::OpKernelWait>(words).outstanding);
      return {};
    case hw::OpPmuMask::kAddress: return {};
    case hw::OpDmaStart::kAddress: return transfer(at);
    default: return operate(hw::code_of(command.address), words, at);
  }
}

// An unset register explains a failure better than its consequence.
Result<void> Stream::check_registers(Result<void> done) {
  const char* const missing = registers_.take_missing();
  if (missing == nullptr) return done;
  return error(ErrorCode::fault, "register {} was never set", missing);
}

Result<void> Stream::operate(uint32_t code, std::array<uint32_t, 2> words, size_t at) {
  Context context{chip_, registers_, regions_, std::span(shram_).subspan(chip_.table_address),
                  work_, quirks_,    chains_,  {}};
  if (weights_ != nullptr) {
    std::optional<Weights>& one = weights_->emplace_back();
    if (code != hw::OpConv::kAddress && code != hw::OpDepthwise::kAddress) return {};
    auto read = weights_of(context, code == hw::OpDepthwise::kAddress);
    one = read.ok() ? std::move(read).value() : Weights{.problem = read.error().message};
    registers_.take_missing();
    return {};
  }
  const auto run = [&]() -> Result<void> {
    switch (code) {
      case hw::OpConv::kAddress: return convolve(context, false);
      case hw::OpDepthwise::kAddress: return convolve(context, true);
      case hw::OpPool::kAddress: return pool(context, bits::read<hw::OpPool>(words).mode);
      default: return combine(context, bits::read<hw::OpElementwise>(words).mode);
    }
  };
  SK_TRY(check_registers(run()));
  SK_TRY(quirks_.hang_if(QuirkName::dependent_operations_hang, reads_of(context.ranges, last_)));
  last_ = context.ranges;
  SK_TRY(keep_tables(context.ranges));
  return order_.start_operation(at, std::move(context.ranges));
}

Result<void> Stream::keep_tables(const std::vector<Range>& ranges) {
  if (chip_.table_kbytes != 0) return {};
  const bool uses_table = std::ranges::find(ranges, kTables, &Range::region) != ranges.end();
  if (uses_table && tables_are_lost_)
    return error(ErrorCode::fault, "its table is lost: an operation without a table ran since it was written");
  tables_are_lost_ |= !uses_table;
  return {};
}

Result<void> Stream::transfer(size_t at) {
  if (weights_ != nullptr) weights_->emplace_back();
  std::vector<Range> ranges;
  SK_TRY(check_registers(move_rows(ranges)));
  return order_.start_transfer(at, std::move(ranges));
}

Result<std::span<uint8_t>> Stream::row_of(bool internal, uint32_t region, int64_t offset, uint64_t size, bool writes,
                                          std::string_view what) {
  if (!internal) return regions_.at(region, offset, size, writes, what);
  if (offset < 0 || static_cast<uint64_t>(offset) > shram_.size() ||
      size > shram_.size() - static_cast<uint64_t>(offset))
    return error(ErrorCode::fault, "{}: {} bytes at 0x{:x} leave SHRAM of {} bytes", what, size,
                 static_cast<uint64_t>(offset), shram_.size());
  return std::span(shram_).subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
}

namespace {

// One side of a transfer: position of its next row.
struct Side {
  hw::StrideMode mode{};
  int64_t at = 0, skip0 = 0, skip1 = 0;
  Range touched;

  void take(uint64_t size) {
    touched.begin = std::min(touched.begin, static_cast<uint64_t>(at));
    touched.end = std::max(touched.end, static_cast<uint64_t>(at) + size);
    at += static_cast<int64_t>(size) + (mode == hw::StrideMode::d1 ? 0 : skip0);
  }
  void end_plane() { at += mode == hw::StrideMode::d3 ? skip1 : 0; }
};

int64_t skip_of(uint64_t value) { return static_cast<int64_t>(value << 24) >> 24; }

}  // namespace

Result<void> Stream::move_rows(std::vector<Range>& ranges) {
  const auto source = registers_.get<hw::Dma0SrcRegion>();
  const auto destination = registers_.get<hw::Dma0DstRegion>();
  const uint64_t size = registers_.get<hw::Dma0Len>().value;
  const auto deepest = std::max(source.stride_mode, destination.stride_mode);
  if (deepest > hw::StrideMode::d3) return error(ErrorCode::fault, "stride_mode 3 is unknown");
  const bool has_rows = deepest != hw::StrideMode::d1, has_planes = deepest == hw::StrideMode::d3;
  if (has_rows && chip_.product == hw::ConfigProduct::u55)
    return error(ErrorCode::fault, "{} has transfers of one dimension only", chip_.name);
  if (has_rows && chip_.generation() == hw::Generation::u85)
    return error(ErrorCode::unsupported, "dma0_src_region, dma0_dst_region: stride_mode {} is not modelled for {}",
                 static_cast<int>(deepest), chip_.name);
  const uint32_t rows = has_rows ? registers_.get<hw::Dma0Size0>().value : 1;
  const uint32_t planes = has_planes ? registers_.get<hw::Dma0Size1>().value : 1;
  const int64_t skip0 = has_rows ? skip_of(registers_.get<hw::Dma0Skip0>().value) : 0;
  const int64_t skip1 = has_planes ? skip_of(registers_.get<hw::Dma0Skip1>().value) : 0;
  if (size > kTransferMax || size * rows > kTransferMax / std::max(planes, 1U))
    return error(ErrorCode::fault, "a transfer of {} x {} x {} bytes is larger than any buffer", planes, rows, size);
  SK_TRY(work_.spend({planes, rows, kRunWork + size / kRunWork}));
  Side from{source.stride_mode,
            static_cast<int64_t>(registers_.get<hw::Dma0Src>().value),
            skip0,
            skip1,
            {source.internal ? kTables : source.region, UINT64_MAX, 0, false}};
  Side to{destination.stride_mode,
          static_cast<int64_t>(registers_.get<hw::Dma0Dst>().value),
          skip0,
          skip1,
          {destination.internal ? kTables : destination.region, UINT64_MAX, 0, true}};
  for (uint32_t plane = 0; size > 0 && plane < planes; ++plane, from.end_plane(), to.end_plane()) {
    for (uint32_t row = 0; row < rows; ++row) {
      SK_TRY(check_stop());
      SK_TRY_ASSIGN(const auto in, row_of(source.internal, source.region, from.at, size, false, "dma0_src"));
      SK_TRY_ASSIGN(const auto out, row_of(destination.internal, destination.region, to.at, size, true, "dma0_dst"));
      std::memmove(out.data(), in.data(), in.size());
      from.take(size), to.take(size);
    }
  }
  if (destination.internal) tables_are_lost_ = false;
  if (from.touched.end != 0) ranges = {from.touched, to.touched};
  return {};
}

}  // namespace skillet::sim::ethosu
