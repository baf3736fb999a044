// Ops replaced by others that give the same results, bit by bit, or where the user allows it within a step, where the
// target's chip then takes more of them.
// Called by the passes that rewrite, one file each.
// Must not know: which pass does what.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/passes/passes.h"

namespace skillet::passes {

// How sure the chip is of an op.
enum class Level : uint8_t { refused, unproven, proven };

struct Replacement {
  std::vector<ir::OpId> ops;  // that go, in order; the new ones stand where the last of them stood
  ir::OpId kept = -1;         // of `ops`: whose place in the model file the new ones take
  std::vector<ir::Op> by;     // what computes the outputs of the last one
  std::string text;
  bool must_help = true;  // false: it is simpler, and need not be taken better
  int off = 0;            // steps by which a chip's result may be off, for any input; 0: the CPU kernels make the same
  size_t on_cpu = 0;      // so many of `by`, the first ones, are the CPU's
};

// Of a depthwise filter, written out for all channels as most chips read it.
constexpr int64_t kDenseBytesMax = 1 << 22;

class Rewriter {
 public:
  Rewriter(ir::Graph& graph, const Target& target, std::string_view pass);

  // Calls match(op) for each op, those that it makes too, which says whether it changed the graph.
  template <typename Match>
  void for_each_op(Match match) {
    if (target_.rewrites == nullptr || target_.driver == nullptr) return;
    for (at_ = 0; at_ < std::ssize(graph_.ops); ++at_) match(static_cast<ir::OpId>(at_));
  }

  const ir::Graph& graph() const { return graph_; }
  const ir::Op& op(ir::OpId id) const { return graph_.op(id); }
  const ir::Tensor& tensor(ir::TensorId id) const { return graph_.tensor(id); }
  bool for_files() const { return target_.for_files; }
  bool may_merge_scales() const { return target_.per_channel == npu::PerChannel::approximate; }
  bool may_be_off() const { return target_.per_channel != npu::PerChannel::strict; }  // by a step
  // As if weights had one scale: how their scales are merged is decided last.
  npu::Support support(ir::OpId op);
  Level level(ir::OpId op);
  Level level_of(const npu::Support& support) const;
  // Where its device was seen to compute `op` wrong: ops of the model would have become it.
  void write_down(const npu::Support& support, const ir::Op& op, const std::vector<int32_t>& sources);

  // -1: none, or it is no op's alone: others read it too, or the op in two places, or the graph returns it.
  ir::OpId only_producer(ir::TensorId tensor) const;
  ir::OpId only_reader(ir::TensorId tensor) const;
  bool is_output(ir::TensorId tensor) const;
  ir::OpId producer(ir::TensorId tensor) const { return producers_[static_cast<size_t>(tensor)]; }
  const std::vector<ir::OpId>& readers(ir::TensorId tensor) const { return consumers_[static_cast<size_t>(tensor)]; }
  // The chip takes what makes `from` or reads `to`: alone there, `op`, which is between, would cost two crossings. A
  // neighbour that was seen wrong is why it is.
  bool has_neighbour(ir::OpId op, ir::TensorId from, ir::TensorId to);

  // For replacements; dropped again where one is not taken.
  ir::TensorId add(ir::Tensor tensor);
  ir::TensorId add_like(ir::Tensor one, std::string_view suffix, ir::Shape shape);  // of the same type and meaning
  ir::TensorId add_constant(std::string name, ir::DType dtype, ir::Shape shape, Bytes bytes, ir::Quant quant = {});
  ir::TensorId add_ints(std::string name, const std::vector<int32_t>& values);
  ir::Op reshape(ir::TensorId from, ir::TensorId to);

  // The CPU kernels make the same of every byte (of every pair of bytes) of `from` by both, which end in `to`.
  bool same_bytes(const std::vector<ir::Op>& one, const std::vector<ir::Op>& other, ir::TensorId from,
                  ir::TensorId to) const;
  bool keeps_bytes(const std::vector<ir::Op>& ops, ir::TensorId from, ir::TensorId to) const;  // each of them as it is
  bool same_pairs(const std::vector<ir::Op>& one, const std::vector<ir::Op>& other, ir::TensorId a, ir::TensorId b,
                  ir::TensorId to) const;

  void drop();  // what was added since the last replacement

  // False: the chip takes them no better, or a tensor or op would not be sound (a scale that leaves floats): the graph
  // is as it was.
  bool replace(Replacement replacement);
  // Readers of what `ops` end in read `instead`; the ops are gone. Not for what the graph returns.
  bool bypass(const std::vector<ir::OpId>& ops, ir::TensorId instead, std::string text);

 private:
  void refresh();
  void forget(const std::vector<int32_t>& sources);  // what was written down of them: they became something else
  bool may_keep_constants() const;
  bool adds_sound_tensors() const;
  bool helps(const Replacement& replacement, const std::vector<int32_t>& sources, size_t first, Level before);

  ir::Graph& graph_;
  const Target& target_;
  std::string_view pass_;
  // By hash, what add_constant() made: equal ones are there once.
  std::unordered_multimap<uint64_t, std::pair<std::weak_ptr<const void>, std::span<const uint8_t>>> made_;
  size_t tensors_ = 0;  // before what add() added since the last replacement
  std::ptrdiff_t at_ = 0;
  std::vector<ir::OpId> producers_;
  std::vector<std::vector<ir::OpId>> consumers_;
};

// Same type and quantization: a byte of one means the same in the other.
bool same_meaning(const ir::Tensor& a, const ir::Tensor& b);
bool is_computed_byte(const ir::Tensor& tensor);  // 8-bit, quantized with one scale, not constant
// Padding `same` before an image and behind it, along one dimension.
struct SamePads {
  int32_t before = 0, after = 0, outputs = 0;
};
SamePads same_pads(int32_t size, int32_t kernel, int32_t stride, int32_t dilation);
// So many pixels as an image: a square, of which most is known, or else a column.
ir::Shape as_image(int32_t pixels, int32_t channels);
// Of each channel, `times` one after the other; one for all channels stays one.
ir::Quant repeated(ir::Quant quant, int32_t times);
// How sums of a convolution become its output: as the CPU kernels compute it.
double conv_multiplier(const ir::Tensor& input, float filter_scale, const ir::Tensor& output);
// A result before it is rounded is so near to the byte that is wanted that a chip's rounding, half a step and what a
// short multiplier adds, leaves less than two steps.
bool rounds_within_a_step(double real, double wanted);
// The same of each channel and each byte of `from`: `wanted` is what ops make of them, as ref::of_all_bytes() has them;
// real(channel, the byte less its zero point): before it is rounded.
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
