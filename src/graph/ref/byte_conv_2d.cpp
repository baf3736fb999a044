// CONV_2D of one group and FULLY_CONNECTED, 8-bit, for CPUs that multiply bytes: windows are gathered as unsigned
// bytes, and the zero points of both operands are subtracted from the sums instead of the elements.
#include <algorithm>
#include <cstring>

#include "base/int_math.h"
#include "graph/ref/weighted.h"
#include "graph/ref/window.h"
#include "simd/byte_gemm.h"

namespace skillet::ref {
namespace {

constexpr uint8_t kSignBit = 0x80;

struct ByteConvPlan {
  Window window;
  size_t channels_in = 0, channels_out = 0;
  uint8_t flip = 0;         // XOR mask that makes a stored value unsigned
  uint8_t input_zero = 0;   // as an unsigned value
  int32_t filter_zero = 0;  // as a signed value
  size_t depth = 0, depth_padded = 0;
  std::vector<int8_t> filters = {};
  OutputStage stage = {};
  size_t strip_px = 0;
  // Scratch, reused by every run; empty before the first.
  std::vector<uint8_t> rows = {};       // [strip_px][depth_padded], plus space for overlong copies
  std::vector<int32_t> row_start = {};  // [strip_px]
  std::vector<int32_t> sums = {};       // [strip_px][channels_out]
};

// Copies of short rows have this fixed size; the surplus is overwritten by the next copy.
constexpr size_t kCopyBytes = 16;

void copy_bytes(const uint8_t* from, const uint8_t* end, size_t count, uint8_t* to) {
  const bool may_run_over = count <= kCopyBytes && static_cast<size_t>(end - from) >= kCopyBytes;
  may_run_over ? std::memcpy(to, from, kCopyBytes) : std::memcpy(to, from, count);
}

// Writes the window of output pixel (y, x) in stored form; padding is the zero point.
void gather_window(const ByteConvPlan& plan, const uint8_t* image, size_t y, size_t x, uint8_t* row) {
  const Window& w = plan.window;
  const uint8_t* end = image + w.input_px() * plan.channels_in;
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    const int32_t in_y = w.input_row(y, ky);
    for (int32_t kx = 0; kx < w.kernel_w;) {
      const int32_t in_x = w.input_col(x, kx);
      const bool inside = w.has_row(in_y) && w.has_col(in_x);
      const int32_t take = inside && w.dilation_w == 1 ? std::min(w.kernel_w - kx, w.input_w - in_x) : 1;
      const size_t count = plan.channels_in * static_cast<size_t>(take);
      if (inside) {
        copy_bytes(image + w.input_index(in_y, in_x) * plan.channels_in, end, count, row);
      } else {
        std::memset(row, plan.input_zero ^ plan.flip, count);
      }
      row += count;
      kx += take;
    }
  }
}

void flip_bits(uint8_t* values, size_t count, uint8_t mask) {
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint8_t>(values[i] ^ mask);
}

// Gathers the windows of output pixels [first, first + count), unsigned; returns their address.
const uint8_t* gather_strip(ByteConvPlan& plan, const uint8_t* image, size_t first, size_t count) {
  const Window& w = plan.window;
  const bool as_stored = w.is_identity() && plan.depth == plan.depth_padded;
  if (as_stored && plan.flip == 0) return image + first * plan.depth;
  if (as_stored) {
    std::memcpy(plan.rows.data(), image + first * plan.depth, count * plan.depth);
  } else {
    const auto output_w = static_cast<size_t>(w.output_w);
    size_t y = first / output_w, x = first % output_w;
    for (size_t i = 0; i < count; ++i) {
      gather_window(plan, image, y, x, plan.rows.data() + i * plan.depth_padded);
      if (++x == output_w) ++y, x = 0;
    }
  }
  if (plan.flip != 0) flip_bits(plan.rows.data(), count * plan.depth_padded, plan.flip);
  return plan.rows.data();
}

template <typename T>
void run_image(ByteConvPlan& plan, const uint8_t* image, T* out) {
  const size_t pixels = plan.window.output_px();
  for (size_t first = 0; first < pixels; first += plan.strip_px) {
    const size_t count = std::min(plan.strip_px, pixels - first);
    const uint8_t* rows = gather_strip(plan, image, first, count);
    for (size_t i = 0; plan.filter_zero != 0 && i < count; ++i) {
      const auto sum = static_cast<uint32_t>(byte_gemm::sum(rows + i * plan.depth_padded, plan.depth));
      plan.row_start[i] = static_cast<int32_t>(0U - static_cast<uint32_t>(plan.filter_zero) * sum);  // modulo 2^32
    }
    byte_gemm::matmul(rows, count, plan.depth_padded, plan.filters, plan.channels_out, plan.depth,
                      plan.row_start.data(), plan.sums.data(), plan.channels_out);
    gemm::requantize(plan.sums.data(), count, plan.channels_out, plan.stage.from(0), out + first * plan.channels_out);
  }
}

// Converts filters to signed values, and adds to the bias the constant contributions of the zero points.
void take_filters(ByteConvPlan& plan, const ir::Tensor& filter) {
  std::vector<int8_t> values(filter.data.size());
  std::transform(filter.data.begin(), filter.data.end(), values.begin(),
                 [&](uint8_t raw) { return static_cast<int8_t>(raw ^ (plan.flip ^ kSignBit)); });
  plan.filters = byte_gemm::pack(values.data(), plan.channels_out, plan.depth);
  for (size_t n = 0; n < plan.channels_out; ++n) {
    auto sum = static_cast<int32_t>(0U - static_cast<uint32_t>(plan.filter_zero) * static_cast<uint32_t>(plan.depth));
    for (size_t k = 0; k < plan.depth; ++k) sum = wrapping_add(sum, values[n * plan.depth + k]);
    const auto constant = static_cast<int32_t>(static_cast<uint32_t>(sum) * plan.input_zero);
    plan.stage.bias[n] =
        static_cast<int32_t>(static_cast<uint32_t>(plan.stage.bias[n]) - static_cast<uint32_t>(constant));
  }
}

// At the first run: it takes longer than all else that a load does, and a kernel may never run.
void make_ready(ByteConvPlan& plan, const ir::Tensor& filter) {
  take_filters(plan, filter);
  // A strip of windows that fits in the second-level cache.
  constexpr size_t kStripBytes = 256 * 1024;
  plan.strip_px = std::clamp<size_t>(kStripBytes / plan.depth_padded, 12, 192);
  plan.rows.resize(plan.strip_px * plan.depth_padded + kCopyBytes);
  plan.row_start.resize(plan.strip_px);
  plan.sums.resize(plan.strip_px * plan.channels_out);
}

}  // namespace

Result<KernelPtr> prepare_byte_layer(const Context& c) {
  const ir::Tensor &input = c.input(0), &filter = c.input(1);
  SK_TRY_ASSIGN(const Layer layer, Layer::of(c));
  ByteConvPlan plan{.window = layer.window, .channels_in = layer.channels_in, .channels_out = layer.channels_out};
  SK_TRY_ASSIGN(plan.stage, output_stage(layer.operands()));
  const bool is_signed = input.dtype == ir::DType::int8;
  plan.flip = is_signed ? kSignBit : 0;
  plan.input_zero = static_cast<uint8_t>(input.quant.zero_point() + (is_signed ? 128 : 0));
  plan.filter_zero = filter.quant.zero_point() - (is_signed ? 0 : 128);
  plan.depth = elem_count(filter) / plan.channels_out;
  plan.depth_padded = align_up(plan.depth, byte_gemm::kDepthAlign);
  return with_8bit(c.output().dtype, [&]<typename T>(T) {
    return make_kernel([plan = std::move(plan), batches = layer.batches, &filter, in = c.input_index(0),
                        out = c.output_index()](Tensors tensors) mutable {
      if (plan.rows.empty()) make_ready(plan, filter);
      for (size_t b = 0; b < batches; ++b) {
        run_image(plan, tensors[in].data() + b * plan.window.input_px() * plan.channels_in,
                  elements<T>(tensors[out]) + b * plan.window.output_px() * plan.channels_out);
      }
    });
  });
}

}  // namespace skillet::ref
