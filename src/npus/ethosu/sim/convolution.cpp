// Convolutions: sums of products, a bias and a scale for each channel (hardware specification, sections 7 and 8.1).
#include <algorithm>

#include "base/bytes.h"
#include "npus/ethosu/sim/operation.h"
#include "npus/ethosu/sim/weights_u85.h"

namespace skillet::sim::ethosu {
namespace {

constexpr uint64_t kRecordBytes = 10;

struct Channel {
  int64_t bias = 0;
  Scale scale;
};

// A core's streams, with every `cores`-th channel from `first` on.
struct Streams {
  uint32_t first = 0, cores = 1;
  uint64_t weight_base = 0, weight_bytes = 0, scale_base = 0, scale_bytes = 0;
};

class Convolution {
 public:
  Convolution(Context& context, Output output, bool is_depthwise)
      : context_(context), output_(std::move(output)), is_depthwise_(is_depthwise) {}

  Result<void> run() {
    SK_TRY(read_shape());
    const FeatureMap& output = output_.map();
    SK_TRY(check_room(output, context_));
    SK_TRY_ASSIGN(const std::vector<int32_t> values, load(input_, context_));
    SK_TRY(context_.work.spend(
        {output.height, output.width, windows_.taps(), is_depthwise_ ? 1 : output.depth, kRunWork + input_.depth}));
    SK_TRY(read_streams());
    SK_TRY(context_.quirks.hang_if(QuirkName::wide_sums_hang, is_wide()));
    SK_TRY(context_.quirks.hang_if(QuirkName::ones_hang, is_of_ones()));
    std::vector<int32_t> results(static_cast<size_t>(output.elems()));
    // With bytes and their zero points, sums of up to 2^14 products of 9 bits fit 32 bits.
    const bool is_small = input_.precision == hw::Precision::bits_8 && input_.zero_point >= -128 &&
                          input_.zero_point <= 255 && windows_.taps() * input_.depth < (1U << 14);
    if (is_small)
      SK_TRY((compute<int16_t, int32_t>(values, results)));
    else
      SK_TRY((compute<int32_t, int64_t>(values, results)));
    return store(output, results, context_);
  }

  Result<Weights> weights() {
    SK_TRY(read_shape());
    SK_TRY(context_.work.spend({windows_.taps(), output_.map().depth, inputs()}));
    SK_TRY(read_streams());
    const auto [least, most] = std::ranges::minmax(weights_);
    if (most - least > UINT8_MAX)
      return error(ErrorCode::unsupported, "weights from {} to {} are no bytes", least, most);
    const int raised = least >= INT8_MIN && most <= INT8_MAX ? -INT8_MIN : -std::min<int>(least, 0);
    Weights out{.kernels = output_.map().depth,
                .planes = inputs(),
                .height = windows_.height,
                .width = windows_.width,
                .depthwise = is_depthwise_,
                .zero_point = static_cast<uint8_t>(raised)};
    for (uint32_t o = 0; o < output_.map().depth; ++o) {
      int64_t sum = 0;
      for (uint32_t i = 0; i < inputs(); ++i) {
        for (uint64_t tap = 0; tap < windows_.taps(); ++tap) {
          const int16_t value = weights_[static_cast<size_t>((tap * output_.map().depth + o) * inputs() + i)];
          out.bytes.push_back(static_cast<uint8_t>(value + raised));
          sum += value;
        }
      }
      out.biases.push_back(static_cast<int32_t>(channels_[o].bias - sum * input_.zero_point));
    }
    return out;
  }

 private:
  bool is_wide() const { return input_.precision == hw::Precision::bits_16; }
  bool is_of_ones() const {
    return is_depthwise_ && windows_.taps() > 1 && std::ranges::count(weights_, 1) == std::ssize(weights_);
  }
  uint32_t inputs() const { return is_depthwise_ ? 1 : input_.depth; }

  Result<void> read_shape() {
    const Registers& registers = context_.registers;
    SK_TRY_ASSIGN(windows_, windows_of(context_, output_.map()));
    input_ = input_of(registers, context_.chip);
    input_.height = windows_.input_height();
    input_.width = windows_.input_width();
    input_.depth = registers.get<hw::IfmDepthM1>().value;
    if (is_depthwise_ && input_.depth != output_.map().depth)
      return error(ErrorCode::fault, "ifm_depth_m1 {} is not ofm_depth_m1 {}", input_.depth, output_.map().depth);
    if (input_.precision == hw::Precision::bits_32)
      return error(ErrorCode::fault, "ifm_precision.precision: no convolution takes 32 bits");
    if (!output_.has_scale_per_channel())
      return error(ErrorCode::unsupported, "ofm_precision.scale_mode: a convolution with one scale is not modelled");
    return {};
  }

  Result<void> read_streams() {
    const Registers& registers = context_.registers;
    if (context_.chip.generation() == hw::Generation::u85) return read_streams_u85();
    const uint32_t outputs = output_.map().depth;
    channels_.resize(outputs);
    const bool is_dual =
        context_.chip.cores > 1 && registers.has<hw::ParallelMode>() && registers.get<hw::ParallelMode>().dual_core;
    Streams first{.first = 0,
                  .cores = is_dual ? 2U : 1U,
                  .weight_base = registers.get<hw::WeightBase>().value,
                  .weight_bytes = registers.get<hw::WeightLength>().value,
                  .scale_base = registers.get<hw::ScaleBase>().value,
                  .scale_bytes = registers.get<hw::ScaleLength>().value};
    SK_TRY(read(first));
    if (!is_dual || outputs < 2) return {};
    return read({.first = 1,
                 .cores = 2,
                 .weight_base = registers.get<hw::Weight1Base>().value,
                 .weight_bytes = registers.get<hw::Weight1Length>().value,
                 .scale_base = registers.get<hw::Scale1Base>().value,
                 .scale_bytes = registers.get<hw::Scale1Length>().value});
  }

  Result<std::span<uint8_t>> bytes_of(uint32_t region, uint64_t base, uint64_t size, std::string_view what) {
    SK_TRY_ASSIGN(const auto bytes, context_.regions.at(region, static_cast<int64_t>(base), size, false, what));
    context_.ranges.push_back({region, base, base + size, false});
    return bytes;
  }

  WeightOrder order_of(const Streams& streams) const {
    const Registers& registers = context_.registers;
    const uint32_t block = registers.get<hw::OfmBlkDepthM1>().value;
    const bool is_part = registers.get<hw::KernelStride>().part_kernel_first;
    return {.traversal = is_depthwise_ ? Traversal::depthwise
                         : is_part     ? Traversal::part_kernel
                                       : Traversal::depth_first,
            .output_depth = (output_.map().depth - streams.first + streams.cores - 1) / streams.cores,
            .input_depth = inputs(),
            .kernel_height = windows_.height,
            .kernel_width = windows_.width,
            .dilation_y = windows_.dilation_y,
            .dilation_x = windows_.dilation_x,
            .block_depth = std::max(1U, (block + streams.cores - 1 - streams.first) / streams.cores),
            .ublock_depth = context_.chip.ublock_depth,
            .is_16bit = is_wide() && !context_.quirks.has(QuirkName::wide_weights_as_bytes)};
  }

  Result<void> read(const Streams& streams) {
    const Registers& registers = context_.registers;
    const WeightOrder order = order_of(streams);
    const uint32_t outputs = order.output_depth, inputs_of_one = inputs();
    SK_TRY_ASSIGN(const auto stream, bytes_of(registers.get<hw::WeightRegion>().value, streams.weight_base,
                                              streams.weight_bytes, "weight_base"));
    const uint64_t count = count_of(order);
    SK_TRY(context_.work.spend({count + kRunWork * stream.size()}));
    SK_TRY_ASSIGN(const auto values, decode_weights(stream, count));
    SK_TRY_ASSIGN(const auto weights, ordered(values, order));
    weights_.resize(static_cast<size_t>(windows_.taps() * output_.map().depth * inputs_of_one));
    for (uint64_t tap = 0; tap < windows_.taps(); ++tap) {
      for (uint32_t o = 0; o < outputs; ++o) {
        const uint64_t to = tap * output_.map().depth + streams.first + uint64_t{o} * streams.cores;
        std::copy_n(weights.begin() + static_cast<int64_t>((tap * outputs + o) * inputs_of_one), inputs_of_one,
                    weights_.begin() + static_cast<int64_t>(to * inputs_of_one));
      }
    }
    if (streams.scale_bytes < kRecordBytes * outputs)
      return error(ErrorCode::fault, "scale_length {} is too short for {} channels", streams.scale_bytes, outputs);
    SK_TRY_ASSIGN(const auto records, bytes_of(registers.get<hw::ScaleRegion>().value, streams.scale_base,
                                               streams.scale_bytes, "scale_base"));
    for (uint32_t o = 0; o < outputs; ++o)
      channels_[streams.first + uint64_t{o} * streams.cores] = channel_of(records.subspan(kRecordBytes * o));
    return {};
  }

  Result<void> read_streams_u85() {
    const Registers& registers = context_.registers;
    if (const auto format = registers.get<hw::WeightFormat>(); format.fast || format.sparse)
      return error(ErrorCode::unsupported, "weight_format: fast {}, sparse {} are not modelled", format.fast,
                   format.sparse);
    const auto microblock = static_cast<size_t>(registers.get<hw::AccFormatU85>().microblock);
    constexpr uint32_t kPixels[] = {1, 2, 4, 4, 8, 16};
    constexpr uint32_t kInputs = 8;
    if (microblock >= std::size(kPixels))
      return error(ErrorCode::unsupported, "acc_format.microblock {} is not modelled", microblock);
    StreamedOrder order{.of_all = order_of({}),
                        .stride_y = windows_.stride_y,
                        .stride_x = windows_.stride_x,
                        .streams = context_.chip.cores,
                        .macs = context_.chip.macs};
    order.of_all.block_depth = registers.get<hw::OfmBlkDepthM1U85>().value;
    order.of_all.ublock_depth = context_.chip.macs / kInputs / kPixels[microblock];
    if (order.of_all.ublock_depth < 4 * order.streams)
      return error(ErrorCode::fault, "acc_format.microblock {}: {} has none of it", microblock, context_.chip.name);
    const uint64_t count = count_of(order);
    SK_TRY(context_.work.spend({count, order.streams}));
    const std::array bases = {registers.get<hw::WeightBase>().value,
                              order.streams > 1 ? registers.get<hw::Weight1Base>().value : 0,
                              order.streams > 2 ? registers.get<hw::Weight2Base>().value : 0,
                              order.streams > 2 ? registers.get<hw::Weight3Base>().value : 0};
    const std::array sizes = {registers.get<hw::WeightLength>().value,
                              order.streams > 1 ? registers.get<hw::Weight1Length>().value : 0,
                              order.streams > 2 ? registers.get<hw::Weight2Length>().value : 0,
                              order.streams > 2 ? registers.get<hw::Weight3Length>().value : 0};
    std::vector<std::vector<int16_t>> streams;
    for (uint32_t i = 0; i < order.streams; ++i) {
      SK_TRY_ASSIGN(const auto bytes,
                    bytes_of(registers.get<hw::WeightRegion>().value, bases[i], sizes[i], "weight_base"));
      SK_TRY(context_.work.spend({kRunWork, bytes.size()}));
      SK_TRY_ASSIGN(streams.emplace_back(), decode_weights(bytes, count));
    }
    SK_TRY_ASSIGN(weights_, ordered(streams, order));
    return read_records_u85();
  }

  // All streams share one list of records. For 32-bit sums a record has a 32-bit bias and a 31-bit scale, for others 48
  // and 15.
  Result<void> read_records_u85() {
    const Registers& registers = context_.registers;
    const uint32_t outputs = output_.map().depth;
    const uint64_t bytes = registers.get<hw::ScaleLength>().value;
    if (bytes < kRecordBytes * outputs)
      return error(ErrorCode::fault, "scale_length {} is too short for {} channels", bytes, outputs);
    SK_TRY_ASSIGN(const auto records, bytes_of(registers.get<hw::ScaleRegion>().value,
                                               registers.get<hw::ScaleBase>().value, bytes, "scale_base"));
    const bool is_wide = registers.get<hw::AccFormatU85>().format == hw::AccumulatorU85::int48;
    channels_.resize(outputs);
    for (uint32_t o = 0; o < outputs; ++o) {
      const uint8_t* const record = records.data() + kRecordBytes * o;
      const auto low = load_le<uint32_t>(record);
      const auto high = static_cast<int64_t>(load_le<int16_t>(record + 4));
      channels_[o].bias =
          is_wide ? static_cast<int64_t>(low) | high << 32 : static_cast<int64_t>(static_cast<int32_t>(low));
      channels_[o].scale = {is_wide ? load_le<uint16_t>(record + 6) : load_le<uint32_t>(record + 4), record[8] & 63U};
    }
    return {};
  }

  static Channel channel_of(std::span<const uint8_t> record) {
    const uint64_t low = load_le<uint32_t>(record.data());
    const auto bias = static_cast<int64_t>((low | uint64_t{record[4]} << 32) << 24) >> 24;
    return {bias, {load_le<uint32_t>(record.data() + 5), record[9] & 63U}};
  }

  template <typename Value, typename Sum>
  Result<void> compute(const std::vector<int32_t>& loaded, std::vector<int32_t>& results) const {
    const std::vector<Value> weights(weights_.begin(), weights_.end());
    std::vector<Value> values(loaded.size());
    for (size_t i = 0; i < loaded.size(); ++i) values[i] = static_cast<Value>(loaded[i] - input_.zero_point);
    const uint32_t outputs = output_.map().depth;
    const hw::Rounding rounding =
        context_.quirks.has(QuirkName::ones_round_down) && is_of_ones() ? hw::Rounding::truncate : output_.rounding();
    std::vector<Sum> sums(outputs);
    size_t at = 0;
    for (uint32_t y = 0; y < output_.map().height; ++y) {
      for (uint32_t x = 0; x < output_.map().width; ++x, at += outputs) {
        SK_TRY(check_stop());
        std::ranges::fill(sums, Sum{0});
        add_window<Value, Sum>(values, weights, y, x, sums);
        for (uint32_t o = 0; o < outputs; ++o)
          results[at + o] = output_.stored(rescale(int64_t{sums[o]} + channels_[o].bias, channels_[o].scale, rounding));
      }
    }
    return {};
  }

  template <typename Value, typename Sum>
  void add_window(const std::vector<Value>& values, const std::vector<Value>& weights, uint32_t y, uint32_t x,
                  std::vector<Sum>& sums) const {
    const uint32_t outputs = output_.map().depth, depth = input_.depth;
    for (uint32_t ky = 0; ky < windows_.height; ++ky) {
      const int64_t row = windows_.row(y, ky);
      if (row < 0) continue;
      for (uint32_t kx = 0; kx < windows_.width; ++kx) {
        const int64_t column = windows_.column(x, kx);
        if (column < 0) continue;
        const Value* const pixel =
            values.data() + (static_cast<size_t>(row) * input_.width + static_cast<size_t>(column)) * depth;
        const Value* weight = weights.data() + (size_t{ky} * windows_.width + kx) * outputs * inputs();
        if (is_depthwise_) {
          for (uint32_t o = 0; o < outputs; ++o) sums[o] += Sum{pixel[o]} * Sum{weight[o]};
          continue;
        }
        for (uint32_t o = 0; o < outputs; ++o, weight += depth) {
          Sum sum = 0;
          for (uint32_t i = 0; i < depth; ++i) sum += Sum{pixel[i]} * Sum{weight[i]};
          sums[o] += sum;
        }
      }
    }
  }

  Context& context_;
  Output output_;
  bool is_depthwise_;
  Windows windows_;
  FeatureMap input_;
  std::vector<int16_t> weights_;  // [row][column][output channel][input channel]
  std::vector<Channel> channels_;
};

}  // namespace

Result<void> convolve(Context& context, bool is_depthwise) {
  SK_TRY_ASSIGN(Output output, Output::of(context));
  return Convolution(context, std::move(output), is_depthwise).run();
}

Result<Weights> weights_of(Context& context, bool is_depthwise) {
  SK_TRY_ASSIGN(Output output, Output::of(context));
  return Convolution(context, std::move(output), is_depthwise).weights();
}

}  // namespace skillet::sim::ethosu
