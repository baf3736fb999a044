// Networks of layers over images, written as text, for tests: "b=conv(a) k=3 s=2 d=1 c=8 valid".
// Called by the tests of graph/passes/ and of devices with several cores.
// Must not know: real chips.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/rules.h"

namespace skillet::passes {

// One letter per tensor, `a` is the input. Kinds: conv and depthwise (k, s, d, c; valid), max and average (k, s;
// valid), pad (p: before and after rows and columns), add, join (along channels), halves (x=halves(a) makes x and its
// capital letter), relu. Numbers in tensors do not depend on the position in the text.
class Layers {
 public:
  Layers(ir::Shape image, const std::vector<std::string>& ops, std::string_view outputs, uint32_t seed = 1)
      : state_(seed * 2 + 1) {
    graph.name = "layers";
    graph.inputs = {image_tensor('a', std::move(image))};
    for (const std::string& op : ops) add(op);
    for (const char letter : outputs) graph.outputs.push_back(id(letter));
    if (const auto done = ir::infer_shapes(graph); !done.ok()) problem = done.error().message;
    if (const auto fine = ir::verify(graph); problem.empty() && !fine.ok()) problem = fine.error().message;
  }

  ir::TensorId id(char letter) const {
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
      if (graph.tensors[i].name == std::string(1, letter)) return static_cast<ir::TensorId>(i);
    }
    return ir::kNoTensor;
  }
  Bytes random_bytes(size_t count) {
    Bytes bytes(count);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((state_ = state_ * 1664525 + 1013904223) >> 24);
    return bytes;
  }

  ir::Graph graph;
  std::string problem;  // empty if there is none

 private:
  struct Words {
    int k = 1, s = 1, d = 1, c = 0, p = 0;
    bool valid = false;
  };
  static Words words_of(std::istringstream& text) {
    Words words;
    for (std::string word; text >> word;) {
      words.valid |= word == "valid";
      if (word[1] != '=') continue;
      const int value = std::stoi(word.substr(2));
      if (word[0] == 'k') words.k = value;
      if (word[0] == 's') words.s = value;
      if (word[0] == 'd') words.d = value;
      if (word[0] == 'c') words.c = value;
      if (word[0] == 'p') words.p = value;
    }
    return words;
  }

  ir::TensorId image_tensor(char letter, ir::Shape shape) {
    ir::Tensor tensor{.name = std::string(1, letter), .dtype = ir::DType::uint8, .shape = std::move(shape)};
    tensor.quant = {{0.05F}, {120}, 0};
    return graph.add_tensor(std::move(tensor));
  }
  ir::TensorId constant(ir::DType dtype, ir::Shape shape, ir::Quant quant, Bytes bytes) {
    ir::Tensor tensor{.name = "constant", .dtype = dtype, .shape = std::move(shape), .quant = std::move(quant)};
    ir::set_constant(tensor, std::move(bytes));
    return graph.add_tensor(std::move(tensor));
  }
  ir::TensorId integers(const std::vector<int32_t>& values, ir::Shape shape, ir::Quant quant = {}) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    return constant(ir::DType::int32, std::move(shape), std::move(quant), Bytes(bytes, bytes + values.size() * 4));
  }

  void add(const std::string& text) {
    const size_t open = text.find('('), close = text.find(')');
    const std::string kind = text.substr(2, open - 2);
    std::istringstream rest(text.substr(close + 1));
    const Words words = words_of(rest);
    ir::Op op;
    op.kind = kind_of(kind);
    op.source_index = static_cast<int32_t>(graph.ops.size());
    op.attrs = ir::default_attrs(op.kind);
    for (size_t i = open + 1; i < close; i += 2) op.inputs.push_back(id(text[i]));
    const ir::Shape in = graph.tensor(op.inputs[0]).shape;
    set(op, words, in);
    op.outputs.push_back(image_tensor(text[0], in));
    if (op.kind == ir::OpKind::split) op.outputs.push_back(image_tensor(static_cast<char>(text[0] - 'a' + 'A'), in));
    graph.add_op(std::move(op));
    if (const auto done = ir::infer_shapes(graph); !done.ok()) problem = text + ": " + done.error().message;
    if (problem.empty() && ir::has_empty_operand(graph, graph.ops.back())) problem = text + ": no elements";
  }

  static ir::OpKind kind_of(const std::string& kind) {
    if (kind == "conv") return ir::OpKind::conv_2d;
    if (kind == "depthwise") return ir::OpKind::depthwise_conv_2d;
    if (kind == "max") return ir::OpKind::max_pool_2d;
    if (kind == "average") return ir::OpKind::average_pool_2d;
    if (kind == "pad") return ir::OpKind::pad;
    if (kind == "add") return ir::OpKind::add;
    if (kind == "join") return ir::OpKind::concatenation;
    return kind == "halves" ? ir::OpKind::split : ir::OpKind::relu;
  }

  void set(ir::Op& op, const Words& words, const ir::Shape& in) {
    const ir::Padding padding = words.valid ? ir::Padding::valid : ir::Padding::same;
    if (auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs)) {
      conv->padding = padding;
      conv->stride_h = conv->stride_w = words.s;
      conv->dilation_h = conv->dilation_w = words.d;
      add_weights(op, words, in);
    } else if (auto* pool = std::get_if<ir::PoolAttrs>(&op.attrs)) {
      pool->padding = padding;
      pool->stride_h = pool->stride_w = words.s;
      pool->filter_h = pool->filter_w = words.k;
    } else if (op.kind == ir::OpKind::pad) {
      op.inputs.push_back(integers({0, 0, words.p, words.p, words.p, words.p, 0, 0}, {4, 2}));
    } else if (auto* join = std::get_if<ir::ConcatAttrs>(&op.attrs)) {
      join->axis = 3;
    } else if (auto* split = std::get_if<ir::SplitAttrs>(&op.attrs)) {
      split->count = 2;
      op.inputs.insert(op.inputs.begin(), integers({3}, {1}));
    }
  }

  void add_weights(ir::Op& op, const Words& words, const ir::Shape& in) {
    const bool depthwise = op.kind == ir::OpKind::depthwise_conv_2d;
    const int32_t channels = depthwise || words.c == 0 ? in[3] : words.c;
    const ir::Shape shape =
        depthwise ? ir::Shape{1, words.k, words.k, channels} : ir::Shape{channels, words.k, words.k, in[3]};
    const float scale = 0.3F / static_cast<float>(words.k * words.k * (depthwise ? 1 : in[3]));
    op.inputs.push_back(
        constant(ir::DType::uint8, shape, {{scale}, {128}, 0}, random_bytes(static_cast<size_t>(shape.elems()))));
    std::vector<int32_t> bias;
    for (const uint8_t byte : random_bytes(static_cast<size_t>(channels))) bias.push_back(byte - 128);
    op.inputs.push_back(integers(bias, {channels}, {{scale * 0.05F}, {0}, 0}));
  }

  uint32_t state_;
};

}  // namespace skillet::passes
