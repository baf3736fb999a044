#include "npus/ethosu/hw/kernel_rules.h"

#include <algorithm>
#include <optional>

#include "npus/ethosu/hw/registers.h"

namespace skillet::ethosu::hw {
namespace {

constexpr uint32_t kBrick = 16;  // contiguous channels of nhcwb16
constexpr uint32_t kIrq = 1;     // a command without a row, as it must not be sent
constexpr uint32_t kReservedControl = 0x8000;

// The registers of each operand have the same members.
template <typename Region, typename Precision, typename Width0, typename Height0, typename Height1, typename StrideX,
          typename StrideY, typename StrideC, typename Base0, typename Base1, typename Base2, typename Base3>
struct Operand {
  // End of the highest element among the corners of [0, y] x [0, x] x [0, c], in bytes. Unsigned, like in the kernel: a
  // negative stride is a huge one.
  static Result<uint64_t> end_of(const Registers& registers, uint64_t y, uint64_t x, uint64_t c) {
    const auto precision = registers.get<Precision>();
    if (precision.format > Format::nhcwb16)
      return error(ErrorCode::malformed, "{}.format {} is unknown", Precision::descriptor().name,
                   static_cast<int>(precision.format));
    const uint64_t elem_bytes = uint64_t{1} << static_cast<uint32_t>(precision.precision);
    const bool is_plain = precision.format == Format::nhwc;
    const uint64_t stride_y = registers.get<StrideY>().value;
    const uint64_t stride_x = is_plain ? registers.get<StrideX>().value : kBrick * elem_bytes;
    const uint64_t channel =
        is_plain ? c * elem_bytes : c / kBrick * registers.get<StrideC>().value + c % kBrick * elem_bytes;
    const uint64_t width0 = registers.get<Width0>().value;
    const uint64_t height0 = registers.get<Height0>().value,
                   height1 = registers.get<Height1>().value;  // asked for both
    uint64_t end = 0;
    for (const uint64_t row : {uint64_t{0}, y}) {
      for (const uint64_t column : {uint64_t{0}, x}) {
        const bool is_right = column >= width0;
        const uint64_t height = is_right ? height1 : height0;
        const bool is_below = row >= height;
        const uint64_t base = is_right   ? is_below ? registers.get<Base3>().value : registers.get<Base1>().value
                              : is_below ? registers.get<Base2>().value
                                         : registers.get<Base0>().value;
        end = std::max(end, base + (is_below ? row - height : row) * stride_y +
                                (is_right ? column - width0 : column) * stride_x + channel + elem_bytes);
      }
    }
    return end;
  }
  static uint32_t region(const Registers& registers) { return registers.get<Region>().value; }
};
using Ifm = Operand<IfmRegion, IfmPrecision, IfmWidth0M1, IfmHeight0M1, IfmHeight1M1, IfmStrideX, IfmStrideY,
                    IfmStrideC, IfmBase0, IfmBase1, IfmBase2, IfmBase3>;
using Ifm2 = Operand<Ifm2Region, Ifm2Precision, Ifm2Width0M1, Ifm2Height0M1, Ifm2Height1M1, Ifm2StrideX, Ifm2StrideY,
                     Ifm2StrideC, Ifm2Base0, Ifm2Base1, Ifm2Base2, Ifm2Base3>;
using Ofm = Operand<OfmRegion, OfmPrecision, OfmWidth0M1, OfmHeight0M1, OfmHeight1M1, OfmStrideX, OfmStrideY,
                    OfmStrideC, OfmBase0, OfmBase1, OfmBase2, OfmBase3>;

constexpr bool has_one_operand(ElementwiseMode mode) {
  return mode == ElementwiseMode::lrelu || mode == ElementwiseMode::abs || mode == ElementwiseMode::clz;
}

class Checker {
 public:
  explicit Checker(Generation generation) : is_u85_(generation == Generation::u85), generation_(generation) {}

  Result<StreamNeeds> run(std::span<const uint32_t> stream) {
    for (size_t at = 0; at < stream.size();) {
      const uint32_t code = code_of(stream[at]), count = words_of_code(code);
      const bits::Descriptor* const command = find_command(code, generation_);
      const auto where = [&] {
        return fmt::format("word {}{}{}", at, command == nullptr ? "" : ", ", command == nullptr ? "" : command->name);
      };
      if (count > stream.size() - at) return error(ErrorCode::malformed, "{}: the stream ends within it", where());
      if ((code == OpStop::kAddress) != (at + count == stream.size()))
        return error(ErrorCode::malformed, "{}: op_stop must be the last command, and only that", where());
      SK_TRY_IN_CONTEXT(take(stream.subspan(at, count), command), where());
      at += count;
    }
    if (stream.empty()) return error(ErrorCode::malformed, "there are no commands");
    return needs_;
  }

 private:
  Result<void> take(std::span<const uint32_t> words, const bits::Descriptor* command) {
    const uint32_t code = code_of(words[0]);
    if ((words[0] & (kReservedMask | kReservedControl)) != 0 || code == kIrq || (command == nullptr && starts(code)))
      return error(ErrorCode::malformed, "0x{:08x} is no command that may be sent", words[0]);
    if (command == nullptr) return {};  // a register that is not used here
    const std::array<uint32_t, 2> payload = {words[0] & ~(kCodeMask | kReservedMask), words.size() == 2 ? words[1] : 0};
    if (!starts(code)) {
      registers_.set(*command, payload);
      return {};
    }
    auto done = start(code, payload);
    const char* const missing = registers_.take_missing();
    if (missing != nullptr) return error(ErrorCode::malformed, "register {} was never set", missing);
    return done;
  }

  Result<void> start(uint32_t code, std::array<uint32_t, 2> words) {
    switch (code) {
      case OpConv::kAddress:
      case OpDepthwise::kAddress:
        if (code == OpConv::kAddress && (words[0] >> 16) > (is_u85_ ? 1 : 0))
          return error(ErrorCode::malformed, "its parameter is 0x{:x}, not 0", words[0] >> 16);
        use_weights();
        return window();
      case OpPool::kAddress: return window();
      case OpElementwise::kAddress: return elementwise(bits::read<OpElementwise>(words).mode);
      case OpDmaStart::kAddress: return transfer();
      case code_of(OpResize::kAddress): return error(ErrorCode::malformed, "Linux's driver takes no such command");
      default: return {};
    }
  }

  void use(uint32_t region, uint64_t end, bool writes) {
    needs_.bytes[region] = std::max(needs_.bytes[region], end);
    needs_.writes[region] |= writes;
  }

  template <typename Base, typename Length>
  void use_stream(uint32_t region) {
    use(region, registers_.get<Base>().value + registers_.get<Length>().value, false);
  }
  // For the second core's streams: both registers are set, or none.
  template <typename Base, typename Length>
  void use_second_stream(uint32_t region) {
    if (registers_.has<Base>() || registers_.has<Length>()) use_stream<Base, Length>(region);
  }
  void use_weights() {
    const uint32_t region = registers_.get<WeightRegion>().value;
    use_stream<WeightBase, WeightLength>(region);
    use_second_stream<Weight1Base, Weight1Length>(region);
    if (!is_u85_) return;
    use_second_stream<Weight2Base, Weight2Length>(region);
    use_second_stream<Weight3Base, Weight3Length>(region);
  }
  void use_scales() {
    if (registers_.get<OfmPrecision>().scale_mode == OutputScale::global) return;
    const uint32_t region = registers_.get<ScaleRegion>().value;
    use_stream<ScaleBase, ScaleLength>(region);
    if (!is_u85_) use_second_stream<Scale1Base, Scale1Length>(region);
  }

  // Assumption: the driver counts no memory for values that are chained, or that are not a map.
  template <typename PrecisionOfU85>
  bool has_memory() const {
    const Storage storage = is_u85_ ? registers_.get<PrecisionOfU85>().storage : Storage::tiles_2x2;
    return storage != Storage::chained && storage != Storage::none;
  }

  template <typename Map, typename PrecisionOfU85>
  Result<void> use_map(uint64_t y, uint64_t x, uint64_t c, bool writes) {
    if (!has_memory<PrecisionOfU85>()) return {};
    SK_TRY_ASSIGN(const uint64_t end, Map::end_of(registers_, y, x, c));
    use(Map::region(registers_), end, writes);
    return {};
  }
  Result<void> use_output() {
    if (const auto axes = is_u85_ ? registers_.get<OfmPrecisionU85>().transpose : Transpose::hwc;
        axes != Transpose::hwc)
      return error(ErrorCode::malformed, "ofm_precision.transpose is {}: Linux's driver takes 0 alone",
                   static_cast<int>(axes));
    return use_map<Ofm, OfmPrecisionU85>(registers_.get<OfmHeightM1>().value - 1,
                                         registers_.get<OfmWidthM1>().value - 1, registers_.get<OfmDepthM1>().value - 1,
                                         true);
  }

  // The last row or column that is read. Kernel sizes are already dilated and are dilated again here, as the kernel
  // does.
  static Result<uint64_t> last(std::string_view what, uint32_t outputs, uint32_t stride, uint32_t kernel,
                               uint32_t dilation, uint32_t pads) {
    const int64_t at = (int64_t{outputs} - 1) * stride + (int64_t{kernel} - 1) * dilation - pads;
    if (at >= 0) return static_cast<uint64_t>(at);
    return error(ErrorCode::malformed, "the last {} that it reads is {}", what, at);
  }

  Result<void> window() {
    const auto stride = registers_.get<KernelStride>();
    use_scales();
    SK_TRY_ASSIGN(const uint64_t y,
                  last("row", registers_.get<OfmHeightM1>().value, stride.y, registers_.get<KernelHeightM1>().value,
                       stride.dilation_y, registers_.get<IfmPadTop>().value + registers_.get<IfmPadBottom>().value));
    SK_TRY_ASSIGN(const uint64_t x,
                  last("column", registers_.get<OfmWidthM1>().value, stride.x, registers_.get<KernelWidthM1>().value,
                       stride.dilation_x, registers_.get<IfmPadLeft>().value + registers_.get<IfmPadRight>().value));
    SK_TRY((use_map<Ifm, IfmPrecisionU85>(y, x, registers_.get<IfmDepthM1>().value - 1, false)));
    return use_output();
  }

  Result<void> elementwise(ElementwiseMode mode) {
    const uint64_t y = registers_.get<OfmHeightM1>().value - 1, x = registers_.get<OfmWidthM1>().value - 1,
                   c = registers_.get<OfmDepthM1>().value - 1;
    // Assumption: the first operand's broadcast counts like the second's.
    const auto first = is_u85_ ? registers_.get<IfmBroadcast>() : IfmBroadcast{};
    if (!first.scalar)
      SK_TRY((use_map<Ifm, IfmPrecisionU85>(first.height ? 0 : y, first.width ? 0 : x, first.depth ? 0 : c, false)));
    static_cast<void>(registers_.get<IfmDepthM1>());
    if (is_u85_ && mode != ElementwiseMode::bit_not && !has_one_operand(mode)) {
      const auto second = registers_.get<Ifm2BroadcastU85>();
      if (!second.scalar)
        SK_TRY((
            use_map<Ifm2, Ifm2PrecisionU85>(second.height ? 0 : y, second.width ? 0 : x, second.depth ? 0 : c, false)));
    } else if (!is_u85_ && !has_one_operand(mode)) {
      const auto broadcast = registers_.get<Ifm2Broadcast>();
      if (!broadcast.constant)
        SK_TRY((use_map<Ifm2, Ifm2PrecisionU85>(broadcast.height ? 0 : y, broadcast.width ? 0 : x,
                                                broadcast.depth ? 0 : c, false)));
    }
    return use_output();
  }

  Result<void> transfer() {
    const auto source = registers_.get<Dma0SrcRegion>();
    const auto destination = registers_.get<Dma0DstRegion>();
    SK_TRY_ASSIGN(const uint64_t read, extent(source.stride_mode));
    SK_TRY_ASSIGN(uint64_t written, extent(destination.stride_mode));
    written = std::max(written, read);  // Linux 7.2 counts both sides by the source's mode
    const uint64_t from = registers_.get<Dma0Src>().value, to = registers_.get<Dma0Dst>().value;
    if (!source.internal) use(source.region, from + std::min(read, UINT64_MAX - from), false);
    if (!destination.internal) use(destination.region, to + std::min(written, UINT64_MAX - to), true);
    return {};
  }

  Result<uint64_t> extent(StrideMode mode) const {
    unsigned __int128 bytes = registers_.get<Dma0Len>().value;
    if (mode > StrideMode::d3) return error(ErrorCode::malformed, "stride_mode 3 is unknown");
    if (mode != StrideMode::d1) {
      const uint32_t rows = registers_.get<Dma0Size0>().value;
      if (rows == 0) return error(ErrorCode::malformed, "dma0_size0 is 0");
      bytes = (bytes + registers_.get<Dma0Skip0>().value) * rows;
    }
    if (mode == StrideMode::d3) {
      const uint32_t planes = registers_.get<Dma0Size1>().value;
      if (planes == 0) return error(ErrorCode::malformed, "dma0_size1 is 0");
      bytes = (bytes + registers_.get<Dma0Skip1>().value) * planes;
    }
    return bytes > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(bytes);
  }

  bool is_u85_;
  Generation generation_;
  Registers registers_;
  StreamNeeds needs_;
};

}  // namespace

Result<StreamNeeds> needs_of(std::span<const uint32_t> stream, Generation generation) {
  return Checker(generation).run(stream);
}

}  // namespace skillet::ethosu::hw
