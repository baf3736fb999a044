// graph/passes/: everything that rewrites or divides a graph before a driver sees it; one line per pass.
// Called by compile/.
// Must not know: chips (it asks the driver), devices, file formats.
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

// An op whose weights a pass replaced, and what that can cost.
struct WeightChange {
  ir::OpId op = -1;
  std::vector<ir::TensorId> inputs;  // of the op before
  size_t scales_before = 0, scales = 0;
  // Output steps between the CPU's result before and a chip's after, given the same input: the most that any input can
  // cause; and the root mean square for inputs that are spread evenly over their range, before rounding.
  int worst = 0;
  double expected = 0;

  // "96 weight scales become 4: up to 12 steps off, rms 0.40 expected"
  std::string text() const;
};

// What a pass made of ops. The results are the same, bit by bit, or as near as `off` says.
struct Rewrite {
  std::string_view pass;
  int32_t source = -1;            // Op::source_index of what computes their results now
  std::vector<int32_t> absorbed;  // of ops that are gone
  std::string text;               // "AVERAGE_POOL_2D becomes DEPTHWISE_CONV_2D 7x7"
  int off = 0;                    // output steps that a chip's result may be off, whatever the input
  bool is_for_chip = false;       // the CPU has nothing of it
};

// What a pass would have made of ops, had the chip taken it.
struct Tried {
  std::vector<int32_t> sources;  // Op::source_index
  std::string why;               // "DEPTHWISE_CONV_2D: " and why the chip does not take it
  bool seen_wrong = false;       // as Support has it: it is the reason why the ops are on the CPU
};

// What a graph is made ready for.
struct Target {
  const npu::Driver* driver = nullptr;  // borrowed; null: everything runs on the CPU
  npu::Chip chip;
  npu::PerChannel per_channel = npu::PerChannel::exact;
  std::vector<WeightChange>* weight_changes = nullptr;  // borrowed; where passes write down what they did to weights
  bool takes_unproven = false;                          // what is unproven counts as taken by the chip
  std::vector<Rewrite>* rewrites = nullptr;  // borrowed; where passes write down what they rewrote; null: nothing is
  // Borrowed; where passes write down what the chip would not take: tables of several ops, and what was seen wrong.
  std::vector<Tried>* tried = nullptr;
  std::set<int32_t> kept;               // by Op::source_index: ops that no pass rewrites for the chip's sake
  bool for_files = false;               // ops have only what a model file can say
  uint64_t constants_max = UINT64_MAX;  // bytes of constants of the graph, those that passes make among them
};

// Bytes of constants that a model of `graph` may ask for, its own among them: so many at any rate, and more by what it
// has.
uint64_t constants_max(const ir::Graph& graph);
// Of all tensors; those that share their memory count once.
uint64_t constant_bytes(const ir::Graph& graph);

// Passes of the pipeline, for one op (see Pass::match) or the whole graph. Tensors keep their ids; ops may get new ones
// (Op::source_index stays).
Result<void> remove_dead_ops(ir::Graph& graph, const Target& target);  // ops whose outputs nobody reads

// The same results by ops that the chip takes, or takes better: rewrite.h.
void fold_constants(Rewriter& rewriter, ir::OpId id);                      // ops of constants become constants
void merge_quantizes(Rewriter& rewriter, ir::OpId id);                     // QUANTIZE that undoes another, or nothing
void merge_transposes(Rewriter& rewriter, ir::OpId id);                    // TRANSPOSE of TRANSPOSE, and of ones
void merge_reshapes(Rewriter& rewriter, ir::OpId id);                      // RESHAPE of RESHAPE, SQUEEZE, EXPAND_DIMS
void lower_tile_as_resize(Rewriter& rewriter, ir::OpId id);                // rows and pixels repeated by TILE
void flatten_in_dense(Rewriter& rewriter, ir::OpId id);                    // RESHAPE before FULLY_CONNECTED
void fold_space_to_batch(Rewriter& rewriter, ir::OpId id);                 // around a convolution: dilation
void fold_pads(Rewriter& rewriter, ir::OpId id);                           // PAD that is padding `same`
void fold_channel_order(Rewriter& rewriter, ir::OpId id);                  // GATHER behind a convolution
void fuse_activations(Rewriter& rewriter, ir::OpId id);                    // RELU and the like into what is before
Result<void> fuse_byte_functions(ir::Graph& graph, const Target& target);  // SiLU and other trees: one table
void remove_strides(Rewriter& rewriter, ir::OpId id);                      // strides of a single window
void lower_conv1d(Rewriter& rewriter, ir::OpId id);                        // strides of rows, long filters
void lower_uneven_stride(Rewriter& rewriter, ir::OpId id);                 // strides of 2x1
void expand_dilation(Rewriter& rewriter, ir::OpId id);                     // larger filters with zeros
void lower_depthwise_as_conv(Rewriter& rewriter, ir::OpId id);             // several filters a channel
void lower_sequence_mean(Rewriter& rewriter, ir::OpId id);                 // MEAN, SUM of sequences
void lower_average_as_depthwise(Rewriter& rewriter, ir::OpId id);          // AVERAGE_POOL_2D, MEAN, SUM
void lower_average_as_pointwise(Rewriter& rewriter, ir::OpId id);          // of channels, or whole images
void lower_resize_as_conv(Rewriter& rewriter, ir::OpId id);                // RESIZE_*, PAD, MIRROR_PAD
void lower_slice_as_conv(Rewriter& rewriter, ir::OpId id);                 // SLICE, SPACE_TO_DEPTH, GATHER, SPLIT
void lower_slice_as_box(Rewriter& rewriter, ir::OpId id);                  // STRIDED_SLICE, GATHER of one place
void lower_concat_axis(Rewriter& rewriter, ir::OpId id);                   // CONCATENATION, PACK, SPLIT, UNPACK of rows
Result<void> split_batches(ir::Graph& graph, const Target& target);        // ops of several images
void split_pad(Rewriter& rewriter, ir::OpId id);                           // PAD, padding by more than the chip does
void lower_leaky_relu_as_sum(Rewriter& rewriter, ir::OpId id);             // LEAKY_RELU, PRELU
void lower_max_pool_as_sums(Rewriter& rewriter, ir::OpId id);              // MAX_POOL_2D of small windows
void lower_sub_as_sum(Rewriter& rewriter, ir::OpId id);                    // SUB, MAXIMUM, MINIMUM
void lower_transpose_conv(Rewriter& rewriter, ir::OpId id);                // TRANSPOSE_CONV
void rescale_concat(Rewriter& rewriter, ir::OpId id);                      // CONCATENATION of other scales
void tighten_relu6(Rewriter& rewriter, ir::OpId id);                       // of types beyond 6
Result<void> fuse_affine_chains(ir::Graph& graph, const Target& target);   // MUL, ADD, RELU in a row: one
Result<void> lower_rescale_as_depthwise(ir::Graph& graph, const Target& target);  // QUANTIZE, RELU6, MUL by constants
void repeat_operands(Rewriter& rewriter, ir::OpId id);                            // ADD and the like of other shapes
void lower_dense_as_conv(Rewriter& rewriter, ir::OpId id);                        // FULLY_CONNECTED of several rows
void copy_constants(Rewriter& rewriter, ir::OpId id);  // ADD and the like of a constant image

// For chips whose channels share a shift: those of like scales side by side.
Result<void> sort_channels(ir::Graph& graph, const Target& target);

// Weights that have more scales than the chip takes get fewer; last, since it names ops by their places.
Result<void> share_weight_scales(ir::Graph& graph, const Target& target);

// All that keep each bit of the results, by name and in order: for tests of each one alone.
struct Pass {
  std::string_view name;
  void (*match)(Rewriter& rewriter, ir::OpId op) = nullptr;  // of each op, those that it makes too
  std::string_view elsewhere = {};  // how results may move in a published runtime; empty: they do not
  bool for_files = true;            // what it makes can be written to a model file
  bool is_exact = true;             // false: within a step of, not the same as, what the CPU kernels make
  Result<void> (*whole)(ir::Graph& graph, const Target& target) = nullptr;  // in place of `match`, in its own order

  Result<void> run(ir::Graph& graph, const Target& target) const;
};
std::span<const Pass> exact_passes();  // in order; without those that are not

// Runs all passes in order and verifies the graph before the first and after each one.
Result<void> run_pipeline(ir::Graph& graph, const Target& target);

// A part of a graph that runs in one place.
struct Partition {
  bool on_npu = false;
  std::vector<ir::OpId> op_map;  // ops of the original graph, in order; position = op id in `graph`
  // on_npu only: the ops as a graph of their own. Inputs: computed tensors from outside, in order of first use.
  // Outputs: tensors that other parts read or the original graph returns, in order of production.
  ir::Graph graph;
  std::vector<ir::TensorId> tensor_map;  // tensor of `graph` -> tensor of the original graph
};

// It has an order of its own with others that do.
bool touches_variable(const ir::Graph& graph, const ir::Op& op);

// What the target's driver says of an op; of each op.
npu::Support support_of(const ir::Graph& graph, const Target& target, ir::OpId op);
std::vector<npu::Support> supports(const ir::Graph& graph, const Target& target);

// Groups the ops that are supported into as few convex parts as the data flow allows, in execution order: every part
// only needs what earlier parts computed.
std::vector<Partition> partition(const ir::Graph& graph, std::span<const npu::Support> support);

// `part` of `graph` as those ops of its graph, which need none of the others, and the rest where there is one.
std::vector<Partition> cut(const ir::Graph& graph, const Partition& part, std::span<const ir::OpId> head);

}  // namespace skillet::passes
