// Recurrent layers of files, in float: each step becomes the operations of the layer's equations.
#include <algorithm>
#include <array>

#include "frontend/onnx/file_ops.h"

namespace skillet::onnx {

using ir::OpKind;
using ir::TensorId;

namespace {

constexpr int32_t kStepsMax = 1000;

struct Kind {
  int32_t gates;
  std::string_view activations;  // the default ones of one direction
};

Result<OpKind> activation_from(std::string_view name) {
  if (name == "Sigmoid") return OpKind::logistic;
  if (name == "Tanh") return OpKind::tanh;
  if (name == "Relu") return OpKind::relu;
  return error(ErrorCode::unsupported, "its activation is '{}'", name);
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// One layer: input [steps, batch, features], weights [directions, gates * hidden, features or hidden].
class Layer {
 public:
  Layer(Lowering& l, Kind kind) : l_(l), kind_(kind) {}

  Result<void> run() {
    SK_TRY(needs_float(l_));
    SK_TRY(read_attributes());
    SK_TRY(read_sizes());
    SK_TRY_ASSIGN(const TensorId input, l_.read(0, Layout::plain));
    std::vector<TensorId> states(static_cast<size_t>(steps_ * directions_)), last, last_cells;
    for (int32_t d = 0; d < directions_; ++d) {
      SK_TRY(read_direction(d));
      SK_TRY_ASSIGN(const auto products, products_of(input));
      for (int32_t i = 0; i < steps_; ++i) {
        const int32_t at = d == 1 || is_reverse_ ? steps_ - 1 - i : i;
        SK_TRY(step(products[static_cast<size_t>(at)]));
        states[static_cast<size_t>(at * directions_ + d)] = state_;
      }
      last.push_back(state_);
      last_cells.push_back(cell_);
    }
    SK_TRY(write_all(states));
    SK_TRY(write_last(1, last));
    return write_last(2, last_cells);
  }

 private:
  Result<void> read_attributes() {
    const Node& node = l_.node();
    for (const char* name : {"clip", "activation_alpha", "activation_beta"})
      if (node.attributes.contains(name)) return error(ErrorCode::unsupported, "it has the attribute {}", name);
    if (int_of(node, "layout", 0) != 0) return error(ErrorCode::unsupported, "its batch comes first (layout=1)");
    if (int_of(node, "input_forget", 0) != 0)
      return error(ErrorCode::unsupported, "its input and forget gates are coupled");
    const std::string direction = string_of(node, "direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      return error(ErrorCode::malformed, "its direction is '{}'", direction);
    directions_ = direction == "bidirectional" ? 2 : 1;
    is_reverse_ = direction == "reverse";
    resets_after_ = int_of(node, "linear_before_reset", 0) != 0;
    const std::vector<std::string> usual = words_of(kind_.activations);
    const std::string given = string_of(node, "activations", "");
    std::vector<std::string> names = given.empty() ? usual : words_of(given);
    if (given.empty() && directions_ == 2) names.insert(names.end(), usual.begin(), usual.end());
    if (names.size() != usual.size() * static_cast<size_t>(directions_))
      return error(ErrorCode::malformed, "it has {} activations", names.size());
    for (const std::string& name : names) {
      SK_TRY_ASSIGN(const OpKind kind, activation_from(name));
      activations_.push_back(kind);
    }
    return {};
  }

  Result<void> read_sizes() {
    SK_TRY_ASSIGN(const auto input, l_.input_dims(0));
    SK_TRY_ASSIGN(const auto recurrent, l_.input_dims(2));
    if (input.size() != 3 || recurrent.size() != 3)
      return error(ErrorCode::malformed, "its input and its weights do not have three dimensions");
    steps_ = input[0], batch_ = input[1], features_ = input[2], hidden_ = recurrent[2];
    if (steps_ > kStepsMax) return error(ErrorCode::unsupported, "it has {} steps, more than {}", steps_, kStepsMax);
    if (int_of(l_.node(), "hidden_size", hidden_) != hidden_)
      return error(ErrorCode::malformed, "its hidden_size is not that of its weights, {}", hidden_);
    if (hidden_ > (1 << 20) || features_ > (1 << 20)) return error(ErrorCode::unsupported, "it is too large");
    const int32_t rows = kind_.gates * hidden_;
    const std::array<std::vector<int32_t>, 8> wanted = {
        input,    {directions_, rows, features_}, {directions_, rows, hidden_},   {directions_, 2 * rows},
        {batch_}, {directions_, batch_, hidden_}, {directions_, batch_, hidden_}, {directions_, 3 * hidden_}};
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (l_.input(i) == nullptr) continue;
      SK_TRY_ASSIGN(const auto given, l_.input_dims(i));
      if (given != wanted[i])
        return error(ErrorCode::malformed, "its input {} is {}, not {}", i, fmt::join(given, "x"),
                     fmt::join(wanted[i], "x"));
    }
    SK_TRY_ASSIGN(const auto lengths, l_.list(4));
    if (lengths && std::ranges::count(*lengths, steps_) != batch_)
      return error(ErrorCode::unsupported, "its sequences differ in length");
    return {};
  }

  // `rows` rows from `first` on of the current direction of constant `i`; zeros if it is left out.
  Result<std::vector<float>> rows_of(size_t i, int32_t first, int32_t rows, int32_t columns) {
    if (l_.input(i) == nullptr) return std::vector<float>(static_cast<size_t>(rows * columns));
    const Value& value = l_.model().value(l_.input(i)->value);
    if (!value.is_constant || value.dtype != ir::DType::float32)
      return error(ErrorCode::unsupported, "its input {} is not a constant of float32", i);
    const size_t all = value.data.size() / 4 / static_cast<size_t>(directions_);
    std::vector<float> out(static_cast<size_t>(rows * columns));
    const size_t from = static_cast<size_t>(direction_) * all + static_cast<size_t>(first * columns);
    if (from + out.size() > value.data.size() / 4)
      return error(ErrorCode::malformed, "its input {} has {} bytes", i, value.data.size());
    std::memcpy(out.data(), value.data.data() + 4 * from, 4 * out.size());
    return out;
  }

  // Reads the weights of direction `d`, and the state that it starts with. The last gate of a GRU has weights of its
  // own: they multiply the state after another gate.
  Result<void> read_direction(int32_t d) {
    direction_ = d;
    const int32_t rows = kind_.gates * hidden_, joined = kind_.gates == 3 ? rows - hidden_ : rows;
    SK_TRY_ASSIGN(const auto weights, rows_of(1, 0, rows, features_));
    SK_TRY_ASSIGN(const auto recurrent, rows_of(2, 0, joined, hidden_));
    SK_TRY_ASSIGN(auto bias, rows_of(3, 0, rows, 1));
    SK_TRY_ASSIGN(const auto more, rows_of(3, rows, joined, 1));
    for (size_t i = 0; i < more.size(); ++i) bias[i] += more[i];
    weights_ = floats(l_, weights, {rows, features_});
    recurrent_ = floats(l_, recurrent, {joined, hidden_});
    bias_ = floats(l_, bias, {rows});
    if (kind_.gates == 3) {
      SK_TRY_ASSIGN(const auto last, rows_of(2, joined, hidden_, hidden_));
      SK_TRY_ASSIGN(const auto last_bias, rows_of(3, rows + joined, hidden_, 1));
      reset_weights_ = floats(l_, last, {hidden_, hidden_});
      reset_bias_ = floats(l_, last_bias, {hidden_});
    }
    SK_TRY_INTO(state_, first_of(5));
    if (kind_.gates == 4) SK_TRY_INTO(cell_, first_of(6));
    peepholes_.clear();
    for (int32_t i = 0; kind_.gates == 4 && l_.input(7) != nullptr && i < 3; ++i) {
      SK_TRY_ASSIGN(const auto one, rows_of(7, i * hidden_, hidden_, 1));
      peepholes_.push_back(floats(l_, one, {hidden_}));
    }
    return {};
  }

  // The state [batch, hidden] before the first step of the current direction.
  Result<TensorId> first_of(size_t input) {
    if (l_.input(input) == nullptr)
      return floats(l_, std::vector<float>(static_cast<size_t>(batch_ * hidden_)), {batch_, hidden_});
    SK_TRY_ASSIGN(const TensorId all, l_.read(input, Layout::plain));
    const TensorId out = state();
    const TensorId one = directions_ == 1 ? all : l_.temporary({1, batch_, hidden_}, {});
    if (directions_ != 1)
      l_.emit(OpKind::slice, ir::NoAttrs{}, {all, l_.ints({direction_, 0, 0}), l_.ints({1, batch_, hidden_})}, one);
    l_.reshape(one, out);
    return out;
  }

  TensorId state() { return l_.temporary({batch_, hidden_}, {}); }
  TensorId binary(OpKind kind, TensorId a, TensorId b) { return arithmetic(l_, kind, a, b, like(l_, a)); }
  TensorId function(size_t which, TensorId from) {
    const size_t per_direction = activations_.size() / static_cast<size_t>(directions_);
    const TensorId to = like(l_, from);
    l_.emit(activations_[which + static_cast<size_t>(direction_) * per_direction], ir::NoAttrs{}, {from}, to);
    return to;
  }
  TensorId product(TensorId from, TensorId weights, TensorId bias, int32_t rows, int32_t columns) {
    const TensorId to = l_.temporary({rows, columns}, {});
    l_.emit(OpKind::fully_connected, ir::FullyConnectedAttrs{}, {from, weights, bias}, to);
    return to;
  }
  std::vector<TensorId> split(TensorId from, int32_t axis, int32_t count) {
    if (count == 1) return {from};
    std::vector<int32_t> dims = l_.graph.tensor(from).shape.dims;
    dims[static_cast<size_t>(axis)] /= count;
    std::vector<TensorId> to;
    for (int32_t i = 0; i < count; ++i) to.push_back(l_.temporary(std::vector(dims), {}));
    l_.emit(OpKind::split, ir::SplitAttrs{.count = count}, {l_.ints({axis}), from}, to);
    return to;
  }

  // The products of the input with the weights, [batch, gates * hidden] for each step.
  Result<std::vector<TensorId>> products_of(TensorId input) {
    const int32_t rows = kind_.gates * hidden_;
    const TensorId flat = l_.temporary({steps_ * batch_, features_}, {});
    l_.reshape(input, flat);
    return split(product(flat, weights_, bias_, steps_ * batch_, rows), 0, steps_);
  }

  // Updates the state by the equations of the ONNX standard.
  Result<void> step(TensorId x) {
    if (kind_.gates == 3) {
      reset_step(x);
      return {};
    }
    const int32_t rows = kind_.gates * hidden_;
    const TensorId sums = binary(OpKind::add, product(state_, recurrent_, ir::kNoTensor, batch_, rows), x);
    if (kind_.gates == 1) {
      state_ = function(0, sums);
      return {};
    }
    std::vector<TensorId> gates = split(sums, 1, 4);  // input, output, forget, cell
    const auto look = [&](size_t gate, size_t which) {
      if (!peepholes_.empty())
        gates[gate] = binary(OpKind::add, gates[gate], binary(OpKind::mul, cell_, peepholes_[which]));
    };
    look(0, 0);
    look(2, 2);
    const TensorId fresh = binary(OpKind::mul, function(0, gates[0]), function(1, gates[3]));
    cell_ = binary(OpKind::add, binary(OpKind::mul, function(0, gates[2]), cell_), fresh);
    look(1, 1);
    state_ = binary(OpKind::mul, function(0, gates[1]), function(2, cell_));
    return {};
  }

  void reset_step(TensorId x) {
    const std::vector<TensorId> from = split(x, 1, 3);  // update, reset, hidden
    const std::vector<TensorId> to = split(product(state_, recurrent_, ir::kNoTensor, batch_, 2 * hidden_), 1, 2);
    const TensorId update = function(0, binary(OpKind::add, from[0], to[0]));
    const TensorId reset = function(0, binary(OpKind::add, from[1], to[1]));
    const auto weighted = [&](TensorId value) { return product(value, reset_weights_, reset_bias_, batch_, hidden_); };
    const TensorId kept =
        resets_after_ ? binary(OpKind::mul, reset, weighted(state_)) : weighted(binary(OpKind::mul, reset, state_));
    const TensorId fresh = function(1, binary(OpKind::add, from[2], kept));
    // (1 - update) * fresh + update * state
    const TensorId change = binary(OpKind::mul, update, binary(OpKind::sub, state_, fresh));
    state_ = binary(OpKind::add, fresh, change);
  }

  // Output `i` of the node, if it has it.
  Result<std::optional<TensorId>> output(size_t i) {
    const std::vector<int>& all = l_.node().outputs;
    if (i >= all.size() || all[i] == kNone) return std::optional<TensorId>();
    const auto before = std::count_if(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i),
                                      [](int value) { return value != kNone; });
    SK_TRY_ASSIGN(const TensorId id, l_.write(static_cast<size_t>(before), Layout::plain));
    return std::optional(id);
  }
  TensorId packed(const std::vector<TensorId>& all) {
    const auto count = static_cast<int32_t>(all.size());
    const TensorId to = l_.temporary({count, batch_, hidden_}, {});
    l_.emit(OpKind::pack, ir::PackAttrs{.axis = 0, .count = count}, all, to);
    return to;
  }
  Result<void> write_all(const std::vector<TensorId>& states) {
    SK_TRY_ASSIGN(const auto to, output(0));
    if (to) l_.reshape(packed(states), *to);
    return {};
  }
  Result<void> write_last(size_t i, const std::vector<TensorId>& last) {
    SK_TRY_ASSIGN(const auto to, output(i));
    if (to) l_.reshape(packed(last), *to);
    return {};
  }

  Lowering& l_;
  const Kind kind_;
  int32_t directions_ = 1, steps_ = 0, batch_ = 0, features_ = 0, hidden_ = 0;
  bool is_reverse_ = false, resets_after_ = false;
  std::vector<OpKind> activations_;  // for each direction
  // Of the current direction.
  int32_t direction_ = 0;
  TensorId weights_ = ir::kNoTensor, recurrent_ = ir::kNoTensor, bias_ = ir::kNoTensor;
  TensorId reset_weights_ = ir::kNoTensor, reset_bias_ = ir::kNoTensor;
  std::vector<TensorId> peepholes_;  // input, output, forget; may be empty
  TensorId state_ = ir::kNoTensor, cell_ = ir::kNoTensor;
};

Result<void> lstm(Lowering& l) { return Layer(l, {4, "Sigmoid Tanh Tanh"}).run(); }
Result<void> gru(Lowering& l) { return Layer(l, {3, "Sigmoid Tanh"}).run(); }
Result<void> rnn(Lowering& l) { return Layer(l, {1, "Tanh"}).run(); }

constexpr std::array kRows = {LowerRow{"LSTM", lstm}, LowerRow{"GRU", gru}, LowerRow{"RNN", rnn}};

}  // namespace

std::span<const LowerRow> recurrent_ops() { return kRows; }

}  // namespace skillet::onnx
