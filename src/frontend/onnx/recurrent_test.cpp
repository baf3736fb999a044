// Recurrent layers of ONNX files, beside the equations of the ONNX standard for one number after the other.
#include <gtest/gtest.h>

#include <cmath>

#include "frontend/onnx/testing/file.h"

namespace skillet::onnx {
namespace {

using Numbers = std::vector<float>;

struct Layer {
  std::string op;  // LSTM, GRU, RNN
  std::string direction = "forward";
  int steps = 3, batch = 2, features = 2, hidden = 2;
  bool has_bias = true, has_state = true, has_peepholes = false, resets_after = false, uses_relu = false;
  int opset = 14;

  int gates() const { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }
  int directions() const { return direction == "bidirectional" ? 2 : 1; }
};

std::string name_of(const Layer& one) {
  return fmt::format("{} {} {}x{}x{} hidden {} bias {} state {} peepholes {} after {} relu {}", one.op, one.direction,
                     one.steps, one.batch, one.features, one.hidden, one.has_bias, one.has_state, one.has_peepholes,
                     one.resets_after, one.uses_relu);
}

// Numbers from -1 to 1 without a pattern.
Numbers some(int count, int seed) {
  Numbers out;
  for (int i = 0; i < count; ++i) out.push_back(static_cast<float>((i * 37 + seed * 101 + i * i * 11) % 41 - 20) / 20);
  return out;
}

struct Weights {
  Numbers x, w, r, b, state, cell, peepholes;
};
Weights weights_of(const Layer& l) {
  const int d = l.directions(), rows = l.gates() * l.hidden;
  return {.x = some(l.steps * l.batch * l.features, 1),
          .w = some(d * rows * l.features, 2),
          .r = some(d * rows * l.hidden, 3),
          .b = l.has_bias ? some(d * 2 * rows, 4) : Numbers(static_cast<size_t>(d * 2 * rows)),
          .state = l.has_state ? some(d * l.batch * l.hidden, 5) : Numbers(static_cast<size_t>(d * l.batch * l.hidden)),
          .cell = l.has_state ? some(d * l.batch * l.hidden, 6) : Numbers(static_cast<size_t>(d * l.batch * l.hidden)),
          .peepholes = l.has_peepholes ? some(d * 3 * l.hidden, 7) : Numbers(static_cast<size_t>(d * 3 * l.hidden))};
}

struct Results {
  Numbers y, last, last_cell;
};

// One sequence of one direction.
class Reference {
 public:
  Reference(const Layer& layer, const Weights& weights, int d, int n) : l_(layer), w_(weights), d_(d), n_(n) {
    for (int j = 0; j < l_.hidden; ++j) {
      const auto at = static_cast<size_t>((d * l_.batch + n) * l_.hidden + j);
      h.push_back(w_.state[at]);
      c.push_back(w_.cell[at]);
    }
  }

  void step(int t) {
    const Numbers before = h, cells = c;
    for (int j = 0; j < l_.hidden; ++j) {
      const auto at = static_cast<size_t>(j);
      if (l_.op == "RNN") h[at] = second(input(t, 0, j) + state(before, 0, j));
      if (l_.op == "GRU") h[at] = gru(t, j, before);
      if (l_.op != "LSTM") continue;
      const auto gate = [&](int g) { return input(t, g, j) + state(before, g, j); };
      const float in = first(gate(0) + peephole(0, j) * cells[at]),
                  forget = first(gate(2) + peephole(2, j) * cells[at]);
      c[at] = forget * cells[at] + in * second(gate(3));
      h[at] = first(gate(1) + peephole(1, j) * c[at]) * std::tanh(c[at]);
    }
  }

  Numbers h, c;

 private:
  float first(float x) const { return 1 / (1 + std::exp(-x)); }
  float second(float x) const { return l_.uses_relu ? std::max(x, 0.0F) : std::tanh(x); }
  float peephole(int which, int j) const { return w_.peepholes[static_cast<size_t>((d_ * 3 + which) * l_.hidden + j)]; }
  size_t row(int gate, int j) const { return static_cast<size_t>((d_ * l_.gates() + gate) * l_.hidden + j); }
  float bias(int which, int gate, int j) const {
    return w_.b[static_cast<size_t>(((d_ * 2 + which) * l_.gates() + gate) * l_.hidden + j)];
  }
  float input(int t, int gate, int j) const {
    float sum = bias(0, gate, j);
    for (int i = 0; i < l_.features; ++i)
      sum += w_.x[static_cast<size_t>((t * l_.batch + n_) * l_.features + i)] *
             w_.w[row(gate, j) * static_cast<size_t>(l_.features) + static_cast<size_t>(i)];
    return sum;
  }
  float state(const Numbers& values, int gate, int j) const {
    float sum = bias(1, gate, j);
    for (size_t i = 0; i < values.size(); ++i) sum += values[i] * w_.r[row(gate, j) * values.size() + i];
    return sum;
  }
  float gru(int t, int j, const Numbers& before) const {
    const auto reset = [&](int i) { return first(input(t, 1, i) + state(before, 1, i)); };
    const float update = first(input(t, 0, j) + state(before, 0, j));
    Numbers kept = before;
    for (size_t i = 0; i < kept.size(); ++i) kept[i] *= reset(static_cast<int>(i));
    const float more = l_.resets_after ? reset(j) * state(before, 2, j) : state(kept, 2, j);
    return (1 - update) * second(input(t, 2, j) + more) + update * before[static_cast<size_t>(j)];
  }

  const Layer& l_;
  const Weights& w_;
  const int d_, n_;
};

Results expected(const Layer& l, const Weights& w) {
  Results out;
  out.y.resize(static_cast<size_t>(l.steps * l.directions() * l.batch * l.hidden));
  for (int d = 0; d < l.directions(); ++d) {
    for (int n = 0; n < l.batch; ++n) {
      Reference one(l, w, d, n);
      for (int i = 0; i < l.steps; ++i) {
        const int t = d == 1 || l.direction == "reverse" ? l.steps - 1 - i : i;
        one.step(t);
        std::ranges::copy(one.h, out.y.begin() + ((t * l.directions() + d) * l.batch + n) * l.hidden);
      }
      out.last.insert(out.last.end(), one.h.begin(), one.h.end());
      out.last_cell.insert(out.last_cell.end(), one.c.begin(), one.c.end());
    }
  }
  return out;
}

std::string floats_of(const std::string& name, const Dims& dims, const Numbers& values) {
  std::string raw(values.size() * 4, '\0');
  if (!raw.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return tensor(name, kFloat, dims, raw);
}
std::string words(const std::string& name, const std::vector<std::string>& all) {
  return message([&](pbf_writer& w) {
    w.add_string(1, name);
    for (const std::string& one : all) w.add_bytes(9, one);
  });
}

Parts parts_of(const Layer& l, std::vector<std::string> outputs, std::vector<std::string> more = {}) {
  const Weights w = weights_of(l);
  const int64_t d = l.directions(), rows = l.gates() * l.hidden, batch = l.batch, hidden = l.hidden;
  Parts parts{.nodes = {},
              .constants = {floats_of("w", {d, rows, l.features}, w.w), floats_of("r", {d, rows, hidden}, w.r)},
              .inputs = {value("x", {l.steps, batch, l.features})},
              .outputs = {},
              .opset = l.opset};
  std::vector<std::string> inputs = {"x", "w", "r", "", "", "", "", ""}, attributes = std::move(more);
  const auto give = [&](size_t i, const char* name, const Dims& dims, const Numbers& values) {
    inputs[i] = name;
    parts.constants.push_back(floats_of(name, dims, values));
  };
  if (l.has_bias) give(3, "b", {d, 2 * rows}, w.b);
  if (l.has_state) give(5, "h", {d, batch, hidden}, w.state);
  if (l.has_state && l.op == "LSTM") give(6, "c", {d, batch, hidden}, w.cell);
  if (l.has_peepholes) give(7, "p", {d, 3 * hidden}, w.peepholes);
  attributes.push_back(number("hidden_size", hidden));
  attributes.push_back(word("direction", l.direction));
  if (l.resets_after) attributes.push_back(number("linear_before_reset", 1));
  if (l.uses_relu) {
    std::vector<std::string> names;
    for (int i = 0; i < l.directions(); ++i)
      for (const char* one : {"Sigmoid", "Relu", "Tanh"})
        if (one[0] == 'R' || (one[0] == 'S' && l.op != "RNN") || l.op == "LSTM") names.emplace_back(one);
    attributes.push_back(words("activations", names));
  }
  for (std::string& one : outputs) {
    if (one.empty()) continue;
    parts.outputs.push_back(value(one + "_out", {}));
    parts.nodes.push_back(node("Identity", {one}, {one + "_out"}));
  }
  parts.nodes.insert(parts.nodes.begin(), node(l.op, inputs, outputs, attributes));
  return parts;
}

void expect_near(const Numbers& got, const Numbers& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-6) << i;
}

// Runs the layer and returns the outputs one after the other.
std::vector<Numbers> results_of(const Parts& parts, const Numbers& x) {
  const auto graph = import(file(parts), "m", {});
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  auto runs = ref::Interpreter::create(*graph);
  EXPECT_TRUE(runs.ok()) << runs.error().message;
  if (!runs.ok()) return {};
  std::memcpy(runs->tensor(graph->inputs[0]).data(), x.data(), x.size() * 4);
  EXPECT_TRUE(runs->run().ok());
  std::vector<Numbers> out;
  for (const ir::TensorId id : graph->outputs) {
    const auto bytes = runs->tensor(id);
    std::memcpy(out.emplace_back(bytes.size() / 4).data(), bytes.data(), bytes.size());
  }
  return out;
}

std::vector<Layer> layers() {
  std::vector<Layer> out;
  for (const char* op : {"LSTM", "GRU", "RNN"}) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      const Layer usual{.op = op, .direction = direction};
      out.push_back(usual);
      for (const bool yes : {false, true}) {
        out.push_back(usual), out.back().has_bias = yes, out.back().has_state = !yes;
        out.push_back(usual), out.back().uses_relu = true, out.back().steps = yes ? 1 : 4;
        out.push_back(usual), out.back().batch = 1, out.back().features = yes ? 1 : 3, out.back().hidden = yes ? 3 : 1;
        if (std::string_view(op) == "GRU")
          out.push_back(usual), out.back().resets_after = true, out.back().has_bias = yes;
        if (std::string_view(op) == "LSTM")
          out.push_back(usual), out.back().has_peepholes = true, out.back().has_state = yes;
      }
    }
  }
  return out;
}

TEST(Recurrent, AllLayersFollowTheEquations) {
  for (const Layer& layer : layers()) {
    SCOPED_TRACE(name_of(layer));
    const Weights weights = weights_of(layer);
    const Results want = expected(layer, weights);
    std::vector<std::string> outputs = {"y", "last"};
    if (layer.op == "LSTM") outputs.emplace_back("cell");
    const auto got = results_of(parts_of(layer, outputs), weights.x);
    ASSERT_EQ(got.size(), outputs.size());
    expect_near(got[0], want.y);
    expect_near(got[1], want.last);
    if (layer.op == "LSTM") expect_near(got[2], want.last_cell);
  }
}

TEST(Recurrent, OutputsMayBeLeftOut) {
  const Layer layer{.op = "LSTM"};
  const Weights weights = weights_of(layer);
  const Results want = expected(layer, weights);
  const std::vector<std::pair<std::vector<std::string>, Numbers>> rows = {
      {{"y"}, want.y}, {{"", "last"}, want.last}, {{"", "", "cell"}, want.last_cell}};
  for (const auto& [outputs, numbers] : rows) {
    const auto got = results_of(parts_of(layer, outputs), weights.x);
    ASSERT_EQ(got.size(), 1U);
    expect_near(got[0], numbers);
  }
}

// Why the layer is left alone; empty: it is read.
std::string left_of(const Parts& parts) {
  std::vector<std::string> left;
  const auto graph = import(file(parts), "m", {.left = &left});
  if (!graph.ok()) return graph.error().message;
  const std::string prefix = "node 'n' ";
  return left.empty() ? "" : left[0].starts_with(prefix) ? left[0].substr(prefix.size()) : left[0];
}

TEST(Recurrent, WhatIsNotSupportedIsLeftWithTheReason) {
  const std::vector<std::string> y = {"y"};
  const std::vector<std::pair<std::string, std::string>> rows = {
      {real("clip", 1), "it has the attribute clip"},
      {words("activations", {"Sigmoid", "Tanh"}), "it has 2 activations"},
      {words("activations", {"Sigmoid", "Tanh", "Affine"}), "its activation is 'Affine'"},
      {number("input_forget", 1), "its input and forget gates are coupled"},
      {number("layout", 1), "its batch comes first (layout=1)"}};
  for (const auto& [attribute, reason] : rows)
    EXPECT_EQ(left_of(parts_of({.op = "LSTM"}, y, {attribute})), "LSTM: " + reason);
  EXPECT_EQ(left_of(parts_of({.op = "GRU", .direction = "sideways"}, y)), "GRU: its direction is 'sideways'");
  EXPECT_EQ(left_of(parts_of({.op = "GRU", .steps = 1001, .batch = 1}, y)), "GRU: it has 1001 steps, more than 1000");
  EXPECT_EQ(left_of(parts_of({.op = "GRU", .steps = 1000, .batch = 1}, y)), "");
}

// The same layer with one constant of other sizes, or without it.
TEST(Recurrent, WeightsThatDoNotFitAreErrors) {
  const Layer layer{.op = "LSTM", .has_peepholes = true};
  const Parts parts = parts_of(layer, {"y"});
  const std::vector<std::string> names = {"w", "r", "b", "h", "c", "p"};
  ASSERT_EQ(parts.constants.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    for (const Dims& dims : std::vector<Dims>{{}, {1}, {1, 8}, {1, 8, 1}, {2, 8, 2}, {1, 0, 2}, {1, 8, 2, 1}}) {
      Parts other = parts;
      int64_t elems = 1;
      for (const int64_t dim : dims) elems *= dim;
      other.constants[i] = floats_of(names[i], dims, some(static_cast<int>(elems), 1));
      const bool fits = names[i] == "w" || names[i] == "r" ? dims == Dims{1, 8, 2} : false;
      EXPECT_EQ(left_of(other).empty(), fits) << names[i] << " " << fmt::format("{}", fmt::join(dims, "x"));
    }
    Parts computed = parts;
    computed.constants.erase(computed.constants.begin() + static_cast<std::ptrdiff_t>(i));
    computed.inputs.push_back(value(names[i], {1, 2, 2}));
    EXPECT_EQ(left_of(computed).empty(), names[i] == "h" || names[i] == "c") << names[i];
    Parts without = parts;
    without.constants.erase(without.constants.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(left_of(without), "") << names[i];
  }
  for (const size_t count : {0, 1, 2}) {
    Parts few = parts;
    std::vector<std::string> inputs = {"x", "w", "r"};
    inputs.resize(count);
    few.nodes[0] = node("LSTM", inputs, {"y"});
    EXPECT_NE(left_of(few), "") << count;
  }
}

}  // namespace
}  // namespace skillet::onnx
