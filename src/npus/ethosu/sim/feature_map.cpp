#include "npus/ethosu/sim/feature_map.h"

#include "base/bytes.h"

namespace skillet::sim::ethosu {
namespace {

constexpr uint32_t kBrick = 16;                    // contiguous channels of nhcwb16
constexpr uint64_t kChainMax = uint64_t{1} << 24;  // the same for a chained value
constexpr uint64_t kElemsMax = uint64_t{1} << 26;  // per operand: limits the host memory that a stream can claim

int64_t sign_extended(uint64_t value, uint32_t bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

int32_t zero_point_of(uint32_t value, bool is_signed) {
  return is_signed ? static_cast<int16_t>(value) : static_cast<int32_t>(value);
}

// The registers of each operand have the same members.
template <typename Base0, typename Base1, typename Base2, typename Base3, typename StrideX, typename StrideY,
          typename StrideC, typename Width0, typename Height0, typename Height1, typename Region, typename Precision,
          typename PrecisionU85, typename ZeroPoint>
FeatureMap map_of(const Registers& registers, const hw::ChipRow& chip, std::string_view name) {
  FeatureMap map{.name = name};
  const auto precision = registers.get<Precision>();
  map.is_signed = precision.is_signed;
  map.precision = precision.precision;
  map.format = precision.format;
  map.zero_point = zero_point_of(registers.get<ZeroPoint>().value, map.is_signed);
  if (chip.generation() == hw::Generation::u85) map.storage = registers.get<PrecisionU85>().storage;
  if (map.storage == hw::Storage::none) return map;
  map.region = registers.get<Region>().value;
  if (map.storage == hw::Storage::chained) return map;
  map.bases = {static_cast<int64_t>(registers.get<Base0>().value), static_cast<int64_t>(registers.get<Base1>().value),
               static_cast<int64_t>(registers.get<Base2>().value), static_cast<int64_t>(registers.get<Base3>().value)};
  map.stride_x = sign_extended(registers.get<StrideX>().value, chip.address_bits());
  map.stride_y = sign_extended(registers.get<StrideY>().value, chip.address_bits());
  map.stride_c = sign_extended(registers.get<StrideC>().value, chip.address_bits());
  map.width0 = registers.get<Width0>().value;
  map.height0 = registers.get<Height0>().value;
  map.height1 = registers.get<Height1>().value;
  return map;
}

int32_t load_elem(const uint8_t* at, const FeatureMap& map) {
  switch (map.precision) {
    case hw::Precision::bits_8: return map.is_signed ? static_cast<int8_t>(*at) : static_cast<int32_t>(*at);
    case hw::Precision::bits_16:
      return map.is_signed ? load_le<int16_t>(at) : static_cast<int32_t>(load_le<uint16_t>(at));
    case hw::Precision::bits_32: break;
  }
  return load_le<int32_t>(at);
}

void store_elem(uint8_t* at, const FeatureMap& map, int32_t value) {
  switch (map.precision) {
    case hw::Precision::bits_8: *at = static_cast<uint8_t>(value); return;
    case hw::Precision::bits_16: store_le(at, static_cast<uint16_t>(value)); return;
    case hw::Precision::bits_32: store_le(at, value); return;
  }
}

// Channels [c, c + returned) of (y, x) are contiguous.
uint32_t run_of(const FeatureMap& map, uint32_t c) {
  return map.format == hw::Format::nhwc ? map.depth : std::min(kBrick - c % kBrick, map.depth - c);
}

struct Place {
  size_t tile = 0;
  int64_t offset = 0;
};

Place place_of(const FeatureMap& map, uint32_t y, uint32_t x, uint32_t c) {
  const bool is_right = x >= map.width0;
  const uint32_t height = is_right ? map.height1 : map.height0;
  const bool is_below = y >= height;
  const size_t tile = (is_right ? 1U : 0U) + (is_below ? 2U : 0U);
  const int64_t row = is_below ? y - height : y, column = is_right ? x - map.width0 : x;
  const int64_t base = map.bases[tile] + row * map.stride_y;
  if (map.format == hw::Format::nhwc) return {tile, base + column * map.stride_x + int64_t{c} * map.elem_bytes()};
  return {tile, base + int64_t{c / kBrick} * map.stride_c + (column * kBrick + c % kBrick) * map.elem_bytes()};
}

// Checks the size first: elements of a tile do not overlap.
Result<void> begin(const FeatureMap& map, Context& context) {
  const uint64_t region_bytes = context.regions.bytes_of(map.region);
  if (region_bytes > 0 && map.elems() * map.elem_bytes() > region_bytes * map.bases.size())
    return error(ErrorCode::fault, "{} of {}x{}x{} elements has no place in region {} of {} bytes", map.name,
                 map.height, map.width, map.depth, map.region, region_bytes);
  const uint64_t runs = map.format == hw::Format::nhwc ? 1 : (map.depth + kBrick - 1) / kBrick;
  return context.work.spend({map.height, map.width, map.depth + kRunWork * runs});
}

// Calls `move(bytes, index of the first element, count)` for each run. Returns the accessed bytes by tile, as tiles may
// be far apart.
template <typename Move>
Result<std::vector<Range>> for_each_run(const FeatureMap& map, Context& context, bool writes, const Move& move) {
  SK_TRY(begin(map, context));
  std::vector<Range> touched(map.bases.size(), {map.region, UINT64_MAX, 0, writes});
  size_t index = 0;
  for (uint32_t y = 0; y < map.height; ++y) {
    SK_TRY(check_stop());
    for (uint32_t x = 0; x < map.width; ++x) {
      for (uint32_t c = 0, run = 0; c < map.depth; c += run) {
        run = run_of(map, c);
        const auto [tile, offset] = place_of(map, y, x, c);
        auto bytes = context.regions.at(map.region, offset, uint64_t{run} * map.elem_bytes(), writes, map.name);
        if (!bytes.ok())
          return std::move(bytes).error().with_context(fmt::format("row {} column {} channel {}", y, x, c));
        move(*bytes, index, run);
        index += run;
        Range& range = touched[tile];
        range.begin = std::min(range.begin, static_cast<uint64_t>(offset));
        range.end = std::max(range.end, static_cast<uint64_t>(offset) + bytes->size());
      }
    }
  }
  std::erase_if(touched, [](const Range& range) { return range.end == 0; });
  return touched;
}

// Values that the previous operation left in a chain.
Result<std::vector<int32_t>> chained(const FeatureMap& map, Context& context) {
  SK_TRY(context.work.spend({map.elems()}));
  const std::vector<int32_t>& values = context.chains[map.region];
  if (values.size() != map.elems())
    return error(ErrorCode::fault, "{} of {}x{}x{} elements: the chain {} holds {}", map.name, map.height, map.width,
                 map.depth, map.region, values.size());
  return values;
}

}  // namespace

FeatureMap input_of(const Registers& registers, const hw::ChipRow& chip) {
  return map_of<hw::IfmBase0, hw::IfmBase1, hw::IfmBase2, hw::IfmBase3, hw::IfmStrideX, hw::IfmStrideY, hw::IfmStrideC,
                hw::IfmWidth0M1, hw::IfmHeight0M1, hw::IfmHeight1M1, hw::IfmRegion, hw::IfmPrecision,
                hw::IfmPrecisionU85, hw::IfmZeroPoint>(registers, chip, "ifm");
}
FeatureMap input2_of(const Registers& registers, const hw::ChipRow& chip) {
  return map_of<hw::Ifm2Base0, hw::Ifm2Base1, hw::Ifm2Base2, hw::Ifm2Base3, hw::Ifm2StrideX, hw::Ifm2StrideY,
                hw::Ifm2StrideC, hw::Ifm2Width0M1, hw::Ifm2Height0M1, hw::Ifm2Height1M1, hw::Ifm2Region,
                hw::Ifm2Precision, hw::Ifm2PrecisionU85, hw::Ifm2ZeroPoint>(registers, chip, "ifm2");
}
FeatureMap output_of(const Registers& registers, const hw::ChipRow& chip) {
  FeatureMap map = map_of<hw::OfmBase0, hw::OfmBase1, hw::OfmBase2, hw::OfmBase3, hw::OfmStrideX, hw::OfmStrideY,
                          hw::OfmStrideC, hw::OfmWidth0M1, hw::OfmHeight0M1, hw::OfmHeight1M1, hw::OfmRegion,
                          hw::OfmPrecision, hw::OfmPrecisionU85, hw::OfmZeroPoint>(registers, chip, "ofm");
  map.height = registers.get<hw::OfmHeightM1>().value;
  map.width = registers.get<hw::OfmWidthM1>().value;
  map.depth = registers.get<hw::OfmDepthM1>().value;
  return map;
}

Result<void> check(const FeatureMap& map) {
  if (map.precision > hw::Precision::bits_32)
    return error(ErrorCode::fault, "{}_precision.precision {} is unknown", map.name, static_cast<int>(map.precision));
  if (map.format > hw::Format::nhcwb16)
    return error(ErrorCode::fault, "{}_precision.format {} is unknown", map.name, static_cast<int>(map.format));
  if (map.storage != hw::Storage::tiles_2x2 && map.storage != hw::Storage::chained)
    return error(ErrorCode::unsupported, "{}_precision.storage {} is not modelled", map.name,
                 static_cast<int>(map.storage));
  if (map.storage == hw::Storage::chained && map.elems() > kChainMax)
    return error(ErrorCode::fault, "{} of {} elements is larger than this simulator chains", map.name, map.elems());
  if (map.elems() > kElemsMax || uint64_t{map.height} * map.width > kElemsMax || map.elems() == 0)
    return error(ErrorCode::fault, "{} of {}x{}x{} elements is larger than this simulator takes", map.name, map.height,
                 map.width, map.depth);
  return {};
}

Result<std::vector<int32_t>> load(const FeatureMap& map, Context& context) {
  SK_TRY(check(map));
  if (map.storage == hw::Storage::chained) return chained(map, context);
  std::vector<int32_t> values;
  const auto take = [&](std::span<uint8_t> bytes, size_t index, uint32_t count) {
    if (values.empty()) values.resize(static_cast<size_t>(map.elems()));
    for (uint32_t i = 0; i < count; ++i) values[index + i] = load_elem(bytes.data() + i * map.elem_bytes(), map);
  };
  SK_TRY_ASSIGN(const std::vector<Range> touched, for_each_run(map, context, false, take));
  context.ranges.insert(context.ranges.end(), touched.begin(), touched.end());
  return values;
}

Result<void> store(const FeatureMap& map, const std::vector<int32_t>& values, Context& context) {
  if (map.storage == hw::Storage::chained) {
    context.chains[map.region] = values;
    return {};
  }
  const auto give = [&](std::span<uint8_t> bytes, size_t index, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) store_elem(bytes.data() + i * map.elem_bytes(), map, values[index + i]);
  };
  SK_TRY_ASSIGN(const std::vector<Range> touched, for_each_run(map, context, true, give));
  // Rows of a block are written in any order. Tiles side by side share lines of memory.
  const bool has_rows_alone = map.width <= map.width0 && touched.size() == 2;
  if (has_rows_alone && touched[0].begin < touched[1].end && touched[1].begin < touched[0].end)
    return error(ErrorCode::fault, "{}: its rows from {} on lie on earlier ones", map.name, map.height0);
  context.ranges.insert(context.ranges.end(), touched.begin(), touched.end());
  return {};
}

Result<void> check_room(const FeatureMap& map, Context& context) {
  if (map.storage == hw::Storage::chained) return {};
  const auto nothing = [](std::span<uint8_t>, size_t, uint32_t) {};
  SK_TRY(for_each_run(map, context, true, nothing));
  return {};
}

}  // namespace skillet::sim::ethosu
