// Replaces ops by others that give the same results, bit by bit, or within a step if the user allows it, where the chip
// then supports more of them.
// Called by the passes that rewrite, one file each.
// Must not know: which pass does what.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/passes/passes.h"

namespace skillet::passes {

// How certain it is that the chip computes an op right.
enum class Level : uint8_t { refused, unproven, proven };

struct Replacement {
  std::vector<ir::OpId> ops;  // ops to remove, in order; the new ones go where the last of them was
  ir::OpId kept = -1;         // one of `ops`, whose place in the model file the new ones take
  std::vector<ir::Op> by;     // ops that compute the outputs of the last one
  std::string text;
  bool must_help = true;  // false: simpler ops, which the chip need not support better
  int off = 0;            // largest error of a chip's result in steps, for any input; 0: the CPU kernels give the same
  size_t on_cpu = 0;      // number of `by`, from the first, that run on the CPU
  size_t then_cpu = 0;    // the same up to the last
};

// Limit for a depthwise filter, written out for all channels as most chips read it.
constexpr int64_t kDenseBytesMax = 1 << 22;

class Rewriter {
 public:
  Rewriter(ir::Graph& graph, const Target& target, std::string_view pass);

  // Calls match(op) for each op, including those that it makes. Opaque ops stay as they are, and may lack any input.
  template <typename Match>
  void for_each_op(Match match) {
    if (target_.rewrites == nullptr || target_.driver == nullptr) return;
    for (at_ = 0; at_ < std::ssize(graph_.ops); ++at_) {
      if (graph_.ops[static_cast<size_t>(at_)].kind != ir::OpKind::opaque) match(static_cast<ir::OpId>(at_));
    }
  }

  const ir::Graph& graph() const { return graph_; }
  const ir::Op& op(ir::OpId id) const { return graph_.op(id); }
  const ir::Tensor& tensor(ir::TensorId id) const { return graph_.tensor(id); }
  bool for_files() const { return target_.for_files; }
  bool may_merge_scales() const { return target_.per_channel == npu::PerChannel::approximate; }
  bool may_be_off() const { return target_.per_channel != npu::PerChannel::strict; }  // by a step
  // Treats weights as if they had one scale: the merging of their scales is decided last.
  npu::Support support(ir::OpId op);
  Level level(ir::OpId op);
  Level level_of(const npu::Support& support) const;
  // Records that the device was seen to compute `op` wrong, which would have replaced the model's ops `sources`.
  void write_down(const npu::Support& support, const ir::Op& op, const std::vector<int32_t>& sources);

  // -1: none, or the tensor is used elsewhere too: by another reader, twice by the same op, or as output of the graph.
  ir::OpId only_producer(ir::TensorId tensor) const;
  ir::OpId only_reader(ir::TensorId tensor) const;
  bool is_output(ir::TensorId tensor) const;
  ir::OpId producer(ir::TensorId tensor) const { return producers_[static_cast<size_t>(tensor)]; }
  const std::vector<ir::OpId>& readers(ir::TensorId tensor) const { return consumers_[static_cast<size_t>(tensor)]; }
  // True if the chip supports the producer of `from` or a reader of `to`. Otherwise `op` would be alone on the NPU and
  // cost two transfers. Records neighbours that were seen wrong as the reason.
  bool has_neighbour(ir::OpId op, ir::TensorId from, ir::TensorId to);

  // Tensors for replacements; removed again if a replacement is not accepted.
  ir::TensorId add(ir::Tensor tensor);
  ir::TensorId add_like(ir::Tensor one, std::string_view suffix, ir::Shape shape);  // of the same type and meaning
  ir::TensorId add_constant(std::string name, ir::DType dtype, ir::Shape shape, Bytes bytes, ir::Quant quant = {});
  // int32; without a shape: a list.
  ir::TensorId add_ints(std::string name, const std::vector<int32_t>& values, ir::Shape shape = {},
                        ir::Quant quant = {});
  ir::Op reshape(ir::TensorId from, ir::TensorId to);
  ir::Op transpose(ir::TensorId from, ir::TensorId to, const std::vector<int32_t>& order);

  // True if the CPU kernels give the same result for every byte (every pair of bytes) of `from` with both lists, which
  // end in `to`.
  bool same_bytes(const std::vector<ir::Op>& one, const std::vector<ir::Op>& other, ir::TensorId from,
                  ir::TensorId to) const;
  bool keeps_bytes(const std::vector<ir::Op>& ops, ir::TensorId from, ir::TensorId to) const;  // bytes stay the same
  bool same_pairs(const std::vector<ir::Op>& one, const std::vector<ir::Op>& other, ir::TensorId a, ir::TensorId b,
                  ir::TensorId to) const;

  void drop();  // removes the tensors added since the last replacement

  // Returns false and leaves the graph unchanged if the chip supports the new ops no better, or a tensor or op is not
  // valid (a scale that does not fit a float).
  bool replace(Replacement replacement);
  // The same for one op.
  bool replace(ir::OpId op, std::vector<ir::Op> by, std::string text, int off = 0) {
    return replace({.ops = {op}, .kept = op, .by = std::move(by), .text = std::move(text), .off = off});
  }
  // Readers of the result of `ops` read `instead`; the ops are removed. Not for outputs of the graph.
  bool bypass(const std::vector<ir::OpId>& ops, ir::TensorId instead, std::string text);

 private:
  void refresh();
  void forget(const std::vector<int32_t>& sources);  // removes the records of ops that were replaced
  bool may_keep_constants() const;
  bool adds_sound_tensors() const;
  bool helps(const Replacement& replacement, const std::vector<int32_t>& sources, size_t first, Level before);

  ir::Graph& graph_;
  const Target& target_;
  std::string_view pass_;
  // Results of add_constant() by hash: equal constants are stored once.
  std::unordered_multimap<uint64_t, std::pair<std::weak_ptr<const void>, std::span<const uint8_t>>> made_;
  size_t tensors_ = 0;  // number of tensors before those that add() added since the last replacement
  std::ptrdiff_t at_ = 0;
  std::vector<ir::OpId> producers_;
  std::vector<std::vector<ir::OpId>> consumers_;
};

// Same type and quantization: equal bytes mean equal values.
bool same_meaning(const ir::Tensor& a, const ir::Tensor& b);
bool is_computed_byte(const ir::Tensor& tensor);  // 8-bit, quantized with one scale, not constant
// Axes of a TRANSPOSE with a constant order, from 0; nothing for other ops.
std::optional<std::vector<int32_t>> transpose_order(const Rewriter& rewriter, const ir::Op& op);
// True if the dimensions with more than one element stay in order.
bool keeps_order(const ir::Shape& shape, const std::vector<int32_t>& order);
// Padding `same` before and after an image, along one dimension.
struct SamePads {
  int32_t before = 0, after = 0, outputs = 0;
};
SamePads same_pads(int32_t size, int32_t kernel, int32_t stride, int32_t dilation);
// This number of pixels as an image: a square, which chips support best, or else a column.
ir::Shape as_image(int32_t pixels, int32_t channels);
// Repeats the values of all channels `times` times; a single value for all channels stays one.
ir::Quant repeated(ir::Quant quant, int32_t times);
// The factor from a convolution's sums to its output, as the CPU kernels compute it.
double conv_multiplier(const ir::Tensor& input, float filter_scale, const ir::Tensor& output);
// True if an unrounded result is so near to the wanted byte that a chip's rounding, half a step plus the error of a
// short multiplier, leaves less than two steps.
bool rounds_within_a_step(double real, double wanted);
// The same for each channel and each byte of `from`: `wanted` are the results of ops, in the order of
// ref::of_all_bytes(); real(channel, byte minus its zero point) is the unrounded result.
template <typename Real>
bool all_round_within_a_step(const Bytes& wanted, const ir::Tensor& from, Real real) {
  const auto value = [is_signed = from.dtype == ir::DType::int8](size_t byte) {
    return is_signed ? int{static_cast<int8_t>(byte)} : static_cast<int>(byte);
  };
  const size_t channels = wanted.size() / 256;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!rounds_within_a_step(real(i % channels, value(i / channels) - from.quant.zero_point()), value(wanted[i])))
      return false;
  }
  return true;
}

}  // namespace skillet::passes
