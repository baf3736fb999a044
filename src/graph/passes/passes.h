// graph/passes/: everything that rewrites or divides a graph before a driver gets it; one line per pass.
// Called by compile/.
// Must not know: chips (the driver does), devices, file formats.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"
#include "npu/driver.h"

namespace skillet::passes {

class Rewriter;

// An op whose weights a pass replaced, and the error that this can cause.
struct WeightChange {
  ir::OpId op = -1;
  std::vector<ir::TensorId> inputs;  // the op's inputs before
  size_t scales_before = 0, scales = 0;
  // Difference between the CPU's result before and a chip's after, in output steps, for the same input: the largest for
  // any input, and the root mean square before rounding for inputs spread evenly over their range.
  int worst = 0;
  double expected = 0;

  // "96 weight scales become 4: up to 12 steps off, rms 0.40 expected"
  std::string text() const;
};

// A rewrite by a pass. The results are the same bit by bit, or within `off` steps.
struct Rewrite {
  std::string pass;
  int32_t source = -1;            // Op::source_index of the op that computes their results now
  std::vector<int32_t> absorbed;  // ops that were removed
  std::string text;               // "AVERAGE_POOL_2D becomes DEPTHWISE_CONV_2D 7x7"
  int off = 0;                    // largest error of a chip's result in output steps, for any input
  bool is_for_chip = false;       // no gain for the CPU
};

// A rewrite that a pass tried and the chip does not support.
struct Tried {
  std::vector<int32_t> sources;  // Op::source_index
  std::string why;               // "DEPTHWISE_CONV_2D: " and the reason why the chip does not support it
  bool seen_wrong = false;       // as in Support: the reason why the ops are on the CPU
};

// Describes the chip that a graph is prepared for, and the options.
struct Target {
  const npu::Driver* driver = nullptr;  // borrowed; null: everything runs on the CPU
  npu::Chip chip;
  npu::PerChannel per_channel = npu::PerChannel::exact;
  std::vector<WeightChange>* weight_changes = nullptr;  // borrowed; passes record changes of weights here
  bool takes_unproven = false;                          // unproven ops count as supported by the chip
  std::vector<Rewrite>* rewrites = nullptr;  // borrowed; passes record their rewrites here; null: no rewrites
  // Borrowed; passes record here what the chip would not support: tables of several ops, and ops that were seen wrong.
  std::vector<Tried>* tried = nullptr;
  std::set<int32_t> kept;               // by Op::source_index: ops that no pass rewrites for the chip
  bool for_files = false;               // ops use only what a model file can express
  uint64_t constants_max = UINT64_MAX;  // limit of constant bytes in the graph, including those that passes add
};

// Limit of constant bytes of a rewritten `graph`: a fixed amount, plus a multiple of the bytes that it has.
uint64_t constants_max(const ir::Graph& graph);
// Bytes of constants of all tensors; shared memory counts once.
uint64_t constant_bytes(const ir::Graph& graph);

// Passes of the pipeline, for one op (see Pass::match) or the whole graph. Tensors keep their ids; ops may get new ids
// (Op::source_index stays).
void remove_dead_ops(ir::Graph& graph, const Target& target);  // ops whose outputs are not read

// The same results with ops that the chip supports, or supports better: rewrite.h.
void fold_constants(Rewriter& rewriter, ir::OpId id);                     // ops of constants become constants
void merge_quantizes(Rewriter& rewriter, ir::OpId id);                    // QUANTIZE that undoes another; no-op
void merge_transposes(Rewriter& rewriter, ir::OpId id);                   // TRANSPOSE of TRANSPOSE, no-op TRANSPOSE
void merge_reshapes(Rewriter& rewriter, ir::OpId id);                     // RESHAPE of RESHAPE, SQUEEZE, EXPAND_DIMS
void lower_tile_as_resize(Rewriter& rewriter, ir::OpId id);               // rows and pixels repeated by TILE
void flatten_in_dense(Rewriter& rewriter, ir::OpId id);                   // RESHAPE before FULLY_CONNECTED
void fold_space_to_batch(Rewriter& rewriter, ir::OpId id);                // around a convolution: dilation
void fold_pads(Rewriter& rewriter, ir::OpId id);                          // PAD equal to padding `same`
void fold_channel_order(Rewriter& rewriter, ir::OpId id);                 // GATHER after a convolution
void fuse_activations(Rewriter& rewriter, ir::OpId id);                   // RELU and similar ops into the op before
void fuse_byte_functions(ir::Graph& graph, const Target& target);         // SiLU and other trees: one table
void remove_strides(Rewriter& rewriter, ir::OpId id);                     // strides of a single window
void lower_conv1d(Rewriter& rewriter, ir::OpId id);                       // strides of rows, long filters
void lower_uneven_stride(Rewriter& rewriter, ir::OpId id);                // strides of 2x1
void expand_dilation(Rewriter& rewriter, ir::OpId id);                    // larger filters with zeros
void lower_dilation_as_phases(Rewriter& rewriter, ir::OpId id);           // pixels side by side, no zeros
void lower_depthwise_as_conv(Rewriter& rewriter, ir::OpId id);            // several filters a channel
void lower_sequence_mean(Rewriter& rewriter, ir::OpId id);                // MEAN, SUM of sequences
void lower_average_as_depthwise(Rewriter& rewriter, ir::OpId id);         // AVERAGE_POOL_2D, MEAN, SUM
void average_in_steps(Rewriter& rewriter, ir::OpId id);                   // AVERAGE_POOL_2D side by side
void lower_average_as_pointwise(Rewriter& rewriter, ir::OpId id);         // of channels, or whole images
void lower_resize_as_conv(Rewriter& rewriter, ir::OpId id);               // RESIZE_*, PAD, MIRROR_PAD
void lower_slice_as_conv(Rewriter& rewriter, ir::OpId id);                // SLICE, SPACE_TO_DEPTH, GATHER, SPLIT
void lower_slice_as_box(Rewriter& rewriter, ir::OpId id);                 // STRIDED_SLICE, GATHER of one place
void lower_concat_axis(Rewriter& rewriter, ir::OpId id);                  // CONCATENATION, PACK, SPLIT, UNPACK of rows
void split_batches(ir::Graph& graph, const Target& target);               // ops of several images
void slice_before_transpose(Rewriter& rewriter, ir::OpId id);             // slices of TRANSPOSE, TRANSPOSE twice
void split_pad(Rewriter& rewriter, ir::OpId id);                          // PAD, padding by more than the chip does
void lower_leaky_relu_as_sum(Rewriter& rewriter, ir::OpId id);            // LEAKY_RELU, PRELU
void lower_max_pool_as_sums(Rewriter& rewriter, ir::OpId id);             // MAX_POOL_2D of small windows
void lower_sub_as_sum(Rewriter& rewriter, ir::OpId id);                   // SUB, MAXIMUM, MINIMUM
void lower_transpose_conv(Rewriter& rewriter, ir::OpId id);               // TRANSPOSE_CONV
void rescale_concat(Rewriter& rewriter, ir::OpId id);                     // CONCATENATION of different scales
void tighten_relu6(Rewriter& rewriter, ir::OpId id);                      // types that reach beyond 6
void fuse_affine_chains(ir::Graph& graph, const Target& target);          // a chain of MUL, ADD, RELU: one op
void lower_rescale_as_depthwise(ir::Graph& graph, const Target& target);  // QUANTIZE, RELU6, MUL by constants
void repeat_operands(Rewriter& rewriter, ir::OpId id);                    // ADD etc. of different shapes
void lower_dense_as_conv(Rewriter& rewriter, ir::OpId id);                // FULLY_CONNECTED of several rows
void copy_constants(Rewriter& rewriter, ir::OpId id);                     // ADD and similar ops with a constant image
void drop_unit_mul(Rewriter& rewriter, ir::OpId id);                      // MUL that changes no byte

// For chips whose channels share a shift: puts channels with similar scales next to each other.
void sort_channels(ir::Graph& graph, const Target& target);

// Reduces the number of weight scales to what the chip supports. Runs last, because it refers to ops by index.
void share_weight_scales(ir::Graph& graph, const Target& target);

// All passes that keep every bit of the results, by name and in order: for tests of each one.
struct Pass {
  std::string_view name;
  void (*match)(Rewriter& rewriter, ir::OpId op) = nullptr;  // called for each op, including those that it makes
  std::string_view elsewhere = {};  // how results may differ in a published runtime; empty: they do not
  bool for_files = true;            // its result can be written to a model file
  bool is_exact = true;             // false: within a step of the CPU kernels' results, not equal
  void (*whole)(ir::Graph& graph, const Target& target) = nullptr;  // replaces `match`, with its own order

  void run(ir::Graph& graph, const Target& target) const;
};
std::span<const Pass> exact_passes();  // in order; without those that are not exact

// Runs all passes in order and verifies the graph before the first and after each one.
Result<void> run_pipeline(ir::Graph& graph, const Target& target);

// A part of a graph that runs in one place.
struct Partition {
  bool on_npu = false;
  std::vector<ir::OpId> op_map;  // ops of the original graph, in order; position = op id in `graph`
  // on_npu only: the ops as a separate graph. Inputs: computed tensors from outside, in order of first use. Outputs:
  // tensors that other parts read or the original graph returns, in order of production.
  ir::Graph graph;
  std::vector<ir::TensorId> tensor_map;  // tensor of `graph` -> tensor of the original graph
};

// True if the op accesses a variable: its order relative to other such ops must stay.
bool touches_variable(const ir::Graph& graph, const ir::Op& op);

// The answer of the target's driver for an op, and for each op.
npu::Support support_of(const ir::Graph& graph, const Target& target, ir::OpId op);
std::vector<npu::Support> supports(const ir::Graph& graph, const Target& target);

// Groups the supported ops into as few convex parts as the data flow allows, in execution order: every part needs only
// results of earlier parts.
std::vector<Partition> partition(const ir::Graph& graph, std::span<const npu::Support> support);
// Makes `graph` and `tensor_map` of the parts on the NPU from their `op_map`. Each op of `graph` is in one part.
void build_graphs(const ir::Graph& graph, std::vector<Partition>& parts);

// Splits `part` of `graph` into the ops `head` of its graph, which need none of the others, and the rest, if any.
std::vector<Partition> cut(const ir::Graph& graph, const Partition& part, std::span<const ir::OpId> head);

}  // namespace skillet::passes
