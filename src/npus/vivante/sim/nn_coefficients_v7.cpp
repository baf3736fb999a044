// Decoder of the V7 coefficient stream: docs/hw/vivante.md, hardware specification 6.2.
#include <algorithm>

#include "base/bytes.h"
#include "base/int_math.h"
#include "npus/vivante/sim/bit_reader.h"
#include "npus/vivante/sim/nn_coefficients.h"

namespace skillet::sim::vivante {
namespace {

using ::skillet::vivante::hw::ChipRow;

constexpr int64_t kStreamAlignBytes = 64;
constexpr int kPatchWidth = 3, kPatchHeight = 2;  // the natural unit of the MAC array
constexpr int64_t kPlanesPerGroup = 6;            // of the six_planes order

// Positions [row * width + column] of one plane in stream order.
std::vector<int> tap_order(const CoefficientShape& shape) {
  const bool wide = shape.order == StreamOrder::dense_wide;
  const bool patches = shape.order == StreamOrder::dense || wide;
  const int patch_height = patches ? kPatchHeight : 1;
  std::vector<int> order;
  for (int row0 = 0; row0 < shape.kernel_height; row0 += patch_height) {
    for (int column0 = 0, end = 0; column0 < shape.kernel_width; column0 = end) {
      const bool is_whole = !patches || (wide && column0 > 0);
      end = is_whole ? shape.kernel_width : std::min(column0 + kPatchWidth, shape.kernel_width);
      for (int row = row0; row < std::min(row0 + patch_height, shape.kernel_height); ++row)
        for (int column = column0; column < end; ++column) order.push_back(row * shape.kernel_width + column);
    }
  }
  return order;
}

int64_t planes_per_group(const CoefficientShape& shape) {
  switch (shape.order) {
    case StreamOrder::dense:
    case StreamOrder::dense_rows:
    case StreamOrder::dense_wide: return 1;
    case StreamOrder::six_planes: return kPlanesPerGroup;
    case StreamOrder::kernel_major: return shape.planes;
  }
  return 1;
}

class StreamDecoder {
 public:
  StreamDecoder(std::span<const uint8_t> stream, const CoefficientShape& shape)
      : stream_(stream), bits_(stream), shape_(shape), taps_(tap_order(shape)), plane_(taps_.size()) {}

  Result<std::vector<Kernel>> decode(int zrl_bits_max) {
    zrl_bits_ = static_cast<int>(bits_.get(8));
    const int64_t count = bits_.get(16);
    if (zrl_bits_ > zrl_bits_max)
      return error(ErrorCode::device, "zrl_bits = {}: at most {} on this chip", zrl_bits_, zrl_bits_max);
    if (count == 0) return error(ErrorCode::device, "kernel count = 0 in a stream that is there");
    SK_TRY(check_length(count));
    kernels_.resize(static_cast<size_t>(count));
    for (int64_t first = 0; first < count; first += shape_.kernels_per_core)
      SK_TRY(superblock(first, std::min(first + shape_.kernels_per_core, count)));
    SK_TRY(check_end());
    return std::move(kernels_);
  }

 private:
  // Refuses a stream before any allocation if even the longest runs could not contain all weights.
  Result<void> check_length(int64_t count) {
    const int64_t bits = static_cast<int64_t>(stream_.size()) * 8 - 24 - 64 * count;
    const int64_t weights_max = bits / (8 + zrl_bits_) * (int64_t{1} << zrl_bits_);
    const int64_t per_kernel = shape_.planes * shape_.taps();
    if (bits < 0 || per_kernel > weights_max / count)
      return error(ErrorCode::device,
                   "truncated coefficient stream: {} bytes cannot hold {} kernels of {} weights (zrl_bits {})",
                   stream_.size(), count, per_kernel, zrl_bits_);
    return {};
  }

  Result<void> superblock(int64_t first, int64_t end) {
    const int64_t group = planes_per_group(shape_);
    for (int64_t plane0 = 0; plane0 < shape_.planes; plane0 += group) {
      const int64_t plane_end = std::min(plane0 + group, shape_.planes);
      for (int64_t k = first; k < end; ++k) {
        for (int64_t plane = plane0; plane < plane_end; ++plane) SK_TRY(read_plane(k, plane));
      }
    }
    return {};
  }

  // The weights of one plane of kernel `k`; the bias follows the kernel's first weight, the offset its last.
  Result<void> read_plane(int64_t k, int64_t plane) {
    Kernel& kernel = kernels_[static_cast<size_t>(k)];
    for (size_t i = 0; i < taps_.size(); ++i) {
      plane_[static_cast<size_t>(taps_[i])] = static_cast<int16_t>(next_weight() - shape_.zero_point);
      if (plane == 0 && i == 0) {
        SK_TRY(expect_no_run(k, "bias"));
        kernel.bias = static_cast<int32_t>(bits_.get(32));
      }
    }
    if (plane == shape_.planes - 1) {
      SK_TRY(expect_no_run(k, "output offset"));
      kernel.output_offset = bits_.get(32);
    }
    if (bits_.truncated())
      return error(ErrorCode::device, "truncated coefficient stream: it ends in kernel {}, plane {}", k, plane);
    kernel.add_plane(plane, plane_);
    return {};
  }

  uint8_t next_weight() {
    if (run_ > 0) {
      --run_;
      return shape_.zero_point;
    }
    if (has_value_) {
      has_value_ = false;
      return value_;
    }
    run_ = zrl_bits_ > 0 ? bits_.get(zrl_bits_) : 0;
    value_ = static_cast<uint8_t>(bits_.get(8));
    has_value_ = true;
    return next_weight();
  }

  Result<void> expect_no_run(int64_t k, std::string_view what) const {
    if (run_ == 0 && !has_value_) return {};
    return error(ErrorCode::device, "kernel {}: a run of {} zero weights reaches over the {} at bit {}", k,
                 run_ + (has_value_ ? 1 : 0), what, bits_.position());
  }

  // Zero bits up to a multiple of 32, then zero bytes up to a multiple of 64 bytes, and no more.
  Result<void> check_end() {
    const int64_t used_bytes = align_up(align_up(bits_.position(), 32) / 8, kStreamAlignBytes);
    if (used_bytes != static_cast<int64_t>(stream_.size()))
      return error(ErrorCode::device, "stream size {} bytes, but {} bits of data make {} bytes", stream_.size(),
                   bits_.position(), used_bytes);
    while (bits_.position() < used_bytes * 8) {
      const int64_t at = bits_.position();
      if (bits_.get(static_cast<int>(8 - at % 8)) != 0)
        return error(ErrorCode::device, "padding after the last weight is not 0 at bit {}", at);
    }
    return {};
  }

  std::span<const uint8_t> stream_;
  BitReader bits_;
  const CoefficientShape& shape_;
  std::vector<int> taps_;
  std::vector<int16_t> plane_;
  std::vector<Kernel> kernels_;
  int zrl_bits_ = 0;
  uint32_t run_ = 0;
  uint8_t value_ = 0;
  bool has_value_ = false;
};

int64_t header_bytes(const ChipRow& chip) { return align_up(int64_t{4} * chip.nn_cores, kStreamAlignBytes); }

Result<int64_t> buffer_bytes(std::span<const uint8_t> header, const ChipRow& chip, const CoefficientShape&) {
  int64_t total = header_bytes(chip);
  bool ended = false;
  for (int core = 0; core < chip.nn_cores; ++core) {
    const auto size = load_le<uint32_t>(header.data() + core * 4);
    if (size % kStreamAlignBytes != 0)
      return error(ErrorCode::device, "stream size of core {} = {}: must be a multiple of {}", core, size,
                   kStreamAlignBytes);
    if (size != 0 && ended)
      return error(ErrorCode::device, "core {} has a stream but core {} has none", core, core - 1);
    ended = size == 0;
    total += size;
  }
  if (total == header_bytes(chip)) return error(ErrorCode::device, "no core has a coefficient stream");
  return total;
}

Result<Coefficients> decode(std::span<const uint8_t> buffer, const ChipRow& chip, const CoefficientShape& shape) {
  Coefficients all{.order = shape.order};
  int64_t longest_stream_bytes = 0;
  auto at = static_cast<size_t>(header_bytes(chip));
  for (int core = 0; core < chip.nn_cores; ++core) {
    const auto size = load_le<uint32_t>(buffer.data() + core * 4);
    if (size == 0) break;
    auto decoded = StreamDecoder(buffer.subspan(at, size), shape).decode(chip.zrl_bits_max);
    if (!decoded.ok())
      return std::move(decoded).error().with_context(fmt::format("coefficient stream of core {}", core));
    at += size;
    const auto count = static_cast<int64_t>(decoded->size());
    if (core > 0 && count != all.kernels_per_core)
      return error(ErrorCode::device, "coefficient stream of core {}: {} kernels, core 0 has {}", core, count,
                   all.kernels_per_core);
    all.kernels_per_core = count;
    all.cores = core + 1;
    longest_stream_bytes = std::max<int64_t>(longest_stream_bytes, size);
    std::move(decoded->begin(), decoded->end(), std::back_inserter(all.kernels));
  }
  all.cache_bytes = longest_stream_bytes * all.cores;
  return all;
}

}  // namespace

const CoefficientFormat kCoefficientFormatV7{7, header_bytes, buffer_bytes, decode};

}  // namespace skillet::sim::vivante
