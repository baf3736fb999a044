#include "npus/ethosu/compiler/register_use.h"

#include <algorithm>

namespace skillet::npus::ethosu {
namespace {

namespace hw = ::skillet::ethosu::hw;

constexpr unsigned kWindows = kConv | kDepthwise | kPool, kComputes = kWindows | kElementwise;

// By the prefix of a register's name; the first match counts.
struct Users {
  std::string_view beginning;
  unsigned operations;
};
constexpr Users kUsers[] = {
    {"dma0_", kTransfer},
    {"ifm2_", kElementwise},
    {"opa_", kElementwise},
    {"opb_", kElementwise},
    {"kernel_", kWindows},
    {"ifm_pad_", kWindows},
    {"weight", kConv | kDepthwise},
    {"scale", kConv | kDepthwise},
    {"ifm_scale", kElementwise},
    {"op_scalar", kElementwise},
    {"", kComputes},
};

constexpr uint32_t kBrick = 16;  // contiguous channels in nhcwb16

// Tile 1 is to the right of tile 0, 2 below it, 3 below 1.
bool has_tile(uint32_t tile, uint64_t height, uint64_t width, uint64_t width0, uint64_t height0, uint64_t height1) {
  const bool is_right = tile % 2 != 0, is_below = tile >= 2;
  return height != 0 && (!is_right || width > width0) && (!is_below || height > (is_right ? height1 : height0));
}

// Rows or columns that a kernel's windows cover, without padding.
uint64_t reached(uint64_t outputs, uint64_t stride, uint64_t kernel, uint64_t pads) {
  const uint64_t whole = (outputs - 1) * stride + kernel;
  return whole > pads ? whole - pads : 0;
}

}  // namespace

unsigned operation_of(uint32_t code) {
  switch (code) {
    case hw::OpConv::kAddress: return kConv;
    case hw::OpDepthwise::kAddress: return kDepthwise;
    case hw::OpPool::kAddress: return kPool;
    case hw::OpElementwise::kAddress: return kElementwise;
    case hw::OpDmaStart::kAddress: return kTransfer;
    default: return 0;
  }
}

unsigned operations_of(const bits::Descriptor& row) {
  const std::string_view name = row.name;
  return std::ranges::find_if(kUsers, [&](const Users& one) { return name.starts_with(one.beginning); })->operations;
}

RegisterUse::RegisterUse(const hw::Registers& registers, unsigned operation, std::span<const uint32_t> start)
    : registers_(registers), operation_(operation), start_(start[0]) {}

RegisterUse::Size RegisterUse::output() const {
  return {registers_.get<hw::OfmHeightM1>().value, registers_.get<hw::OfmWidthM1>().value,
          registers_.get<hw::OfmDepthM1>().value};
}

RegisterUse::Size RegisterUse::input() const {
  const Size out = output();
  if (operation_ == kElementwise) return out;
  const auto stride = registers_.get<hw::KernelStride>();
  Size in{.height = reached(out.height, stride.y, registers_.get<hw::KernelHeightM1>().value,
                            uint64_t{registers_.get<hw::IfmPadTop>().value} + registers_.get<hw::IfmPadBottom>().value),
          .width = reached(out.width, stride.x, registers_.get<hw::KernelWidthM1>().value,
                           uint64_t{registers_.get<hw::IfmPadLeft>().value} + registers_.get<hw::IfmPadRight>().value),
          .depth = registers_.get<hw::IfmDepthM1>().value};
  if (registers_.get<hw::IfmUpscale>().mode == hw::Upscale::none) return in;
  in.height = (in.height + 1) / 2;
  in.width = (in.width + 1) / 2;
  return in;
}

bool RegisterUse::has_input2() const {
  if (operation_ != kElementwise) return false;
  const uint32_t words[] = {start_, 0};
  const hw::ElementwiseMode mode = bits::read<hw::OpElementwise>(words).mode;
  const bool is_of_one =
      mode == hw::ElementwiseMode::lrelu || mode == hw::ElementwiseMode::abs || mode == hw::ElementwiseMode::clz;
  return !is_of_one && !registers_.get<hw::Ifm2Broadcast>().constant && !registers_.get<hw::Ifm2BroadcastU85>().scalar;
}

// 0x0x0: there is no second input.
RegisterUse::Size RegisterUse::input2() const {
  if (!has_input2()) return {};
  const auto broadcast = registers_.get<hw::Ifm2Broadcast>();
  const Size out = output();
  return {broadcast.height ? 1 : out.height, broadcast.width ? 1 : out.width, broadcast.depth ? 1 : out.depth};
}

// For a feature map: the register of tile 0 and the registers that divide the map into tiles.
template <typename Base0, typename Region, typename Width0, typename Height0, typename Height1>
std::optional<RegisterUse::Address> RegisterUse::tile_of(uint32_t code, Size (RegisterUse::*size_of)() const) const {
  constexpr uint32_t kTiles = 4;
  if (code < Base0::kAddress || code >= Base0::kAddress + kTiles) return std::nullopt;
  const Size size = (this->*size_of)();
  return Address{.region = registers_.get<Region>().value,
                 .is_unused = !has_tile(code - Base0::kAddress, size.height, size.width, registers_.get<Width0>().value,
                                        registers_.get<Height0>().value, registers_.get<Height1>().value)};
}

std::optional<RegisterUse::Address> RegisterUse::tile(uint32_t code) const {
  if (const auto at = tile_of<hw::IfmBase0, hw::IfmRegion, hw::IfmWidth0M1, hw::IfmHeight0M1, hw::IfmHeight1M1>(
          code, &RegisterUse::input))
    return at;
  if (const auto at = tile_of<hw::Ifm2Base0, hw::Ifm2Region, hw::Ifm2Width0M1, hw::Ifm2Height0M1, hw::Ifm2Height1M1>(
          code, &RegisterUse::input2))
    return at;
  auto at = tile_of<hw::OfmBase0, hw::OfmRegion, hw::OfmWidth0M1, hw::OfmHeight0M1, hw::OfmHeight1M1>(
      code, &RegisterUse::output);
  if (at) at->is_output = true;
  return at;
}

// An address in SHRAM is not an address of memory.
std::optional<RegisterUse::Address> RegisterUse::transfer(uint32_t code) const {
  const auto source = registers_.get<hw::Dma0SrcRegion>();
  const auto destination = registers_.get<hw::Dma0DstRegion>();
  if (code == hw::Dma0Src::kAddress && !source.internal) return Address{.region = source.region};
  if (code == hw::Dma0Dst::kAddress && !destination.internal)
    return Address{.region = destination.region, .is_output = true};
  return std::nullopt;
}

std::optional<RegisterUse::Address> RegisterUse::address(const bits::Descriptor& row) const {
  const uint32_t weights = registers_.get<hw::WeightRegion>().value, scales = registers_.get<hw::ScaleRegion>().value;
  const auto constant = [](uint32_t region, uint64_t bytes) {
    return Address{.region = region, .bytes = bytes, .is_constant = true};
  };
  switch (row.address) {
    case hw::WeightBase::kAddress: return constant(weights, registers_.get<hw::WeightLength>().value);
    case hw::Weight1Base::kAddress: return constant(weights, registers_.get<hw::Weight1Length>().value);
    case hw::ScaleBase::kAddress: return constant(scales, registers_.get<hw::ScaleLength>().value);
    case hw::Weight2Base::kAddress: return constant(weights, registers_.get<hw::Weight2Length>().value);
    case hw::Weight3Base::kAddress: return constant(weights, registers_.get<hw::Weight3Length>().value);
    case hw::Scale1Base::kAddress: return constant(scales, registers_.get<hw::Scale1Length>().value);
    case hw::Dma0Src::kAddress:
    case hw::Dma0Dst::kAddress: return transfer(row.address);
    default: return tile(row.address);
  }
}

std::string RegisterUse::shape() const {
  if (operation_ == kTransfer) return fmt::format("{} bytes", registers_.get<hw::Dma0Len>().value);
  const Size in = input(), out = output();
  std::string text =
      fmt::format("{}x{}x{} -> {}x{}x{}", in.height, in.width, in.depth, out.height, out.width, out.depth);
  if ((operation_ & kWindows) == 0) return text;
  return text + fmt::format(", kernel {}x{}", registers_.get<hw::KernelHeightM1>().value,
                            registers_.get<hw::KernelWidthM1>().value);
}

// Only for bytes in one tile, with no more channels than are contiguous.
npu::WrittenImage RegisterUse::image() const {
  const auto precision = registers_.get<hw::OfmPrecision>();
  const Size out = output();
  const bool is_plain = precision.format == hw::Format::nhwc;
  const uint64_t pixel = is_plain ? registers_.get<hw::OfmStrideX>().value : kBrick;
  const uint64_t row = registers_.get<hw::OfmStrideY>().value;
  const bool is_told = operation_ != kTransfer && precision.precision == hw::Precision::bits_8 && out.depth <= pixel &&
                       pixel <= UINT16_MAX && row <= UINT32_MAX && pixel * out.width <= row &&
                       out.width <= registers_.get<hw::OfmWidth0M1>().value &&
                       out.height <= registers_.get<hw::OfmHeight0M1>().value;
  if (!is_told) return {};
  return {.height = static_cast<uint32_t>(out.height),
          .width = static_cast<uint32_t>(out.width),
          .channels = static_cast<uint32_t>(out.depth),
          .pixel_bytes = static_cast<uint32_t>(pixel),
          .row_bytes = row,
          .plane_bytes = row * out.height,
          .is_signed = precision.is_signed};
}

}  // namespace skillet::npus::ethosu
