// FeatureMap: the places of an operand's elements (hardware specification, section 5), and their values.
// Called by the operations of npus/ethosu/sim.
// Must not know: what is computed.
#pragma once

#include "npus/ethosu/sim/context.h"

namespace skillet::sim::ethosu {

struct FeatureMap {
  std::string_view name;
  uint32_t region = 0;
  std::array<int64_t, 4> bases{};
  int64_t stride_x = 0, stride_y = 0, stride_c = 0;
  uint32_t width0 = 1, height0 = 1, height1 = 1;
  uint32_t height = 1, width = 1, depth = 1;  // size that the operation reads or writes
  bool is_signed = false;
  hw::Precision precision = hw::Precision::bits_8;
  hw::Format format = hw::Format::nhwc;
  hw::Storage storage = hw::Storage::tiles_2x2;  // U55 and U65 have only this one
  int32_t zero_point = 0;

  uint32_t elem_bytes() const { return 1U << static_cast<uint32_t>(precision); }
  uint64_t elems() const { return uint64_t{height} * width * depth; }
};

// From the registers, without the size. A chained map is a value between operations, identified by its region number.
FeatureMap input_of(const Registers& registers, const hw::ChipRow& chip);
FeatureMap input2_of(const Registers& registers, const hw::ChipRow& chip);
FeatureMap output_of(const Registers& registers, const hw::ChipRow& chip);
// Error: a field has an unknown value.
Result<void> check(const FeatureMap& map);

// The raw elements: row by row, column by column, all channels. Accessed bytes are added to the context's ranges.
Result<std::vector<int32_t>> load(const FeatureMap& map, Context& context);
Result<void> store(const FeatureMap& map, const std::vector<int32_t>& values, Context& context);
// Error: store() would fail.
Result<void> check_room(const FeatureMap& map, Context& context);

}  // namespace skillet::sim::ethosu
