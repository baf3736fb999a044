// Sizes of the outputs of convolutions, pools and matrix products.
#include <algorithm>

#include "frontend/onnx/sizes.h"

namespace skillet::onnx {

// Output sizes of windows of size `kernel`: rows, columns and so on.
static Result<Outputs> windows(Sizes& s, const Dims& image, const Dims& kernel, int64_t channels) {
  if (s.unknown) return Outputs();
  if (image.size() < 3 || kernel.size() != image.size() - 2) return misfit("its windows do not fit its input");
  const size_t rank = kernel.size();
  Dims strides = ints_of(s.node, "strides"), dilations = ints_of(s.node, "dilations"), pads = ints_of(s.node, "pads");
  if (strides.empty()) strides.assign(rank, 1);
  if (dilations.empty()) dilations.assign(rank, 1);
  if (pads.empty()) pads.assign(2 * rank, 0);
  if (strides.size() != rank || dilations.size() != rank || pads.size() != 2 * rank)
    return misfit("it does not have one stride, dilation or pad per dimension");
  const std::string automatic = string_of(s.node, "auto_pad", "NOTSET");
  Dims out = {image[0], channels};
  for (size_t i = 0; i < rank; ++i) {
    const auto fits = [](int64_t v, int64_t least) { return v >= least && v < kMostSize; };
    if (!fits(strides[i], 1) || !fits(dilations[i], 1) || !fits(kernel[i], 1) || !fits(pads[i], 0) ||
        !fits(pads[i + rank], 0))
      return misfit("a window, stride, dilation or pad is not a size");
    const int64_t size = image[i + 2], extent = (kernel[i] - 1) * dilations[i] + 1;
    if (automatic.starts_with("SAME")) {
      out.push_back((size + strides[i] - 1) / strides[i]);
      continue;
    }
    const int64_t all = automatic == "VALID" ? size : size + pads[i] + pads[i + rank];
    if (all < extent) return misfit("its windows are larger than its input");
    int64_t count = (all - extent) / strides[i] + 1;
    const bool more = int_of(s.node, "ceil_mode", 0) != 0 && (all - extent) % strides[i] != 0;
    if (more && begins_in_image(count, strides[i], size, pads[i])) ++count;
    out.push_back(count);
  }
  return Outputs(s.node.outputs.size(), out);
}

static Result<Outputs> conv_with(Sizes& s, size_t weights) {
  const Dims &image = s.in(0), &filter = s.in(weights);
  if (s.unknown) return Outputs();
  if (filter.size() < 3) return misfit("its weights have less than 3 dimensions");
  return windows(s, image, Dims(filter.begin() + 2, filter.end()), filter[0]);
}
Result<Outputs> conv(Sizes& s) { return conv_with(s, 1); }
Result<Outputs> qlinear_conv(Sizes& s) { return conv_with(s, 3); }

Result<Outputs> conv_transpose(Sizes& s) {
  const Dims &image = s.in(0), &filter = s.in(1);
  if (s.unknown) return Outputs();
  const size_t rank = image.size() < 3 ? 0 : image.size() - 2;
  if (rank == 0 || filter.size() != image.size()) return misfit("its weights do not fit its input");
  Dims strides = ints_of(s.node, "strides"), pads = ints_of(s.node, "pads"), more = ints_of(s.node, "output_padding");
  if (strides.empty()) strides.assign(rank, 1);
  if (pads.empty()) pads.assign(2 * rank, 0);
  if (more.empty()) more.assign(rank, 0);
  const Dims given = ints_of(s.node, "output_shape");
  if (strides.size() != rank || pads.size() != 2 * rank || more.size() != rank ||
      (!given.empty() && given.size() != rank) || string_of(s.node, "auto_pad", "NOTSET") != "NOTSET" ||
      std::ranges::any_of(ints_of(s.node, "dilations"), [](int64_t d) { return d != 1; })) {
    s.unknown = true;
    return Outputs();
  }
  const int64_t groups = int_of(s.node, "group", 1);
  if (groups < 1 || groups > image[1]) return misfit("its groups do not fit its channels");
  Dims out = {image[0], filter[1] * groups};
  for (size_t i = 0; i < rank; ++i) {
    const auto fits = [](int64_t v) { return v >= 0 && v < 1 << 20; };
    if (!fits(strides[i]) || !fits(pads[i]) || !fits(pads[i + rank]) || !fits(more[i]) || !fits(image[i + 2]) ||
        !fits(filter[i + 2]) || (!given.empty() && !fits(given[i])))
      return misfit("a stride, pad or size is not a size");
    out.push_back(!given.empty()
                      ? given[i]
                      : (image[i + 2] - 1) * strides[i] + filter[i + 2] + more[i] - pads[i] - pads[i + rank]);
  }
  return Outputs{out};
}

Result<Outputs> pool(Sizes& s) {
  const Dims& image = s.in(0);
  if (s.unknown || image.size() < 2) return Outputs();
  return windows(s, image, ints_of(s.node, "kernel_shape"), image[1]);
}

Result<Outputs> global_pool(Sizes& s) {
  Dims out = s.in(0);
  for (size_t i = 2; i < out.size(); ++i) out[i] = 1;
  return Outputs{out};
}

static Result<Outputs> gemm_with(Sizes& s, size_t weights) {
  const Dims &a = s.in(0), &b = s.in(weights);
  if (s.unknown) return Outputs();
  if (a.size() != 2 || b.size() != 2) return misfit("its matrices have not 2 dimensions");
  return Outputs{{a[int_of(s.node, "transA", 0) != 0 ? 1 : 0], b[int_of(s.node, "transB", 0) != 0 ? 0 : 1]}};
}
Result<Outputs> gemm(Sizes& s) { return gemm_with(s, 1); }
Result<Outputs> qgemm(Sizes& s) { return gemm_with(s, 3); }

static Result<Outputs> matmul_with(Sizes& s, size_t weights) {
  Dims a = s.in(0), b = s.in(weights);
  if (s.unknown) return Outputs();
  if (a.empty() || b.empty()) return misfit("its matrices have no dimensions");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a.back() != b[b.size() - 2]) return misfit("its matrices do not fit");
  const auto batch = broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!batch) return misfit("its matrices do not fit");
  Dims out = *batch;
  if (!row) out.push_back(a[a.size() - 2]);
  if (!column) out.push_back(b.back());
  return Outputs{out};
}
Result<Outputs> matmul(Sizes& s) { return matmul_with(s, 1); }
Result<Outputs> qlinear_matmul(Sizes& s) { return matmul_with(s, 3); }

}  // namespace skillet::onnx
