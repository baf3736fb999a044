#include "page.h"

#include <algorithm>
#include <vector>

#include "compile/advice.h"
#include "compile/compile.h"
#include "probe.h"

namespace skillet::support {
namespace {

using ir::OpKind;

// ---- questions ----

struct Question {
  const char* title;
  OpKind kind;
  Form form;
};

const Question kQuestions[] = {
    {"CONV_2D 3x3", OpKind::conv_2d, {}},
    {"CONV_2D 1x1", OpKind::conv_2d, {.kernel = 1}},
    {"CONV_2D 3x3, stride 2", OpKind::conv_2d, {.stride = 2}},
    {"CONV_2D 3x3, dilation 2", OpKind::conv_2d, {.dilation = 2}},
    {"CONV_2D 3x3 of an image that is not square", OpKind::conv_2d, {.width = 24}},
    {"CONV_2D 3x5", OpKind::conv_2d, {.kernel_width = 5}},
    {"CONV_2D 3x3 and RELU", OpKind::conv_2d, {.activation = ir::Activation::relu}},
    {"CONV_2D 3x3 and RELU6", OpKind::conv_2d, {.activation = ir::Activation::relu6}},
    {"CONV_2D 3x3, batch 2", OpKind::conv_2d, {.batch = 2}},
    {"DEPTHWISE_CONV_2D 3x3", OpKind::depthwise_conv_2d, {}},
    {"DEPTHWISE_CONV_2D 3x3, stride 2", OpKind::depthwise_conv_2d, {.stride = 2}},
    {"DEPTHWISE_CONV_2D 3x3, dilation 2", OpKind::depthwise_conv_2d, {.dilation = 2}},
    {"DEPTHWISE_CONV_2D 3x3, 2 filters a channel", OpKind::depthwise_conv_2d, {.multiplier = 2}},
    {"DEPTHWISE_CONV_2D 3x3 of one channel", OpKind::depthwise_conv_2d, {.channels = 1, .multiplier = 8}},
    {"TRANSPOSE_CONV 3x3, stride 2", OpKind::transpose_conv, {.stride = 2}},
    {"FULLY_CONNECTED", OpKind::fully_connected, {}},
    {"FULLY_CONNECTED, 4 rows", OpKind::fully_connected, {.batch = 4}},
    {"ADD", OpKind::add, {}},
    {"ADD, RELU", OpKind::add, {.activation = ir::Activation::relu}},
    {"ADD of a number", OpKind::add, {.number = true}},
    {"ADD of a number for each channel", OpKind::add, {.constant = true}},
    {"SUB", OpKind::sub, {}},
    {"MUL", OpKind::mul, {}},
    {"MUL by a number", OpKind::mul, {.number = true}},
    {"MUL by a number for each channel", OpKind::mul, {.constant = true}},
    {"MAXIMUM", OpKind::maximum, {}},
    {"MINIMUM", OpKind::minimum, {}},
    {"SQUARED_DIFFERENCE", OpKind::squared_difference, {}},
    {"AVERAGE_POOL_2D 2x2", OpKind::average_pool_2d, {.kernel = 2, .stride = 2, .valid = true}},
    {"AVERAGE_POOL_2D 3x3 with padding", OpKind::average_pool_2d, {}},
    {"AVERAGE_POOL_2D of all of 7x7", OpKind::average_pool_2d, {.height = 7, .width = 7, .kernel = 7, .valid = true}},
    {"MAX_POOL_2D 2x2", OpKind::max_pool_2d, {.kernel = 2, .stride = 2, .valid = true}},
    {"MAX_POOL_2D 3x3 with padding", OpKind::max_pool_2d, {.stride = 2}},
    {"MEAN of rows and columns", OpKind::mean, {.height = 7, .width = 7, .other_scale = true, .list = {1, 2}}},
    {"MEAN of channels", OpKind::mean, {.list = {3}}},
    {"REDUCE_MAX of rows and columns", OpKind::reduce_max, {.list = {1, 2}}},
    {"CONCATENATION of channels", OpKind::concatenation, {}},
    {"CONCATENATION of rows", OpKind::concatenation, {.axis = 1}},
    {"CONCATENATION of columns", OpKind::concatenation, {.axis = 2}},
    {"SPLIT of channels", OpKind::split, {.channels = 32, .amount = 2}},
    {"SPLIT of rows", OpKind::split, {.amount = 2, .axis = 1}},
    {"SPLIT of columns", OpKind::split, {.amount = 2, .axis = 2}},
    {"SPLIT_V of channels", OpKind::split_v, {.channels = 32, .amount = 2}},
    {"PAD of rows and columns", OpKind::pad, {}},
    {"PAD of channels", OpKind::pad, {.axis = 0}},
    {"MIRROR_PAD of rows and columns", OpKind::mirror_pad, {}},
    {"RESHAPE that keeps channels", OpKind::reshape, {.list = {1, 1, 256, 16}}},
    {"RESHAPE that moves channels", OpKind::reshape, {.list = {1, 4096}}},
    {"SQUEEZE", OpKind::squeeze, {.height = 1, .list = {1}}},
    {"EXPAND_DIMS", OpKind::expand_dims, {.list = {0}}},
    {"TRANSPOSE, channels first", OpKind::transpose, {.list = {0, 3, 1, 2}}},
    {"TRANSPOSE, channels last", OpKind::transpose, {.list = {0, 2, 3, 1}}},
    {"TRANSPOSE of rows and columns", OpKind::transpose, {.list = {0, 2, 1, 3}}},
    {"SLICE", OpKind::slice, {}},
    {"STRIDED_SLICE", OpKind::strided_slice, {.stride = 2}},
    {"PACK", OpKind::pack, {}},
    {"UNPACK", OpKind::unpack, {.height = 2, .amount = 2, .axis = 1}},
    {"RELU", OpKind::relu, {}},
    {"RELU6", OpKind::relu6, {}},
    {"RELU_N1_TO_1", OpKind::relu_n1_to_1, {}},
    {"LEAKY_RELU", OpKind::leaky_relu, {}},
    {"PRELU", OpKind::prelu, {}},
    {"ABS", OpKind::abs, {}},
    {"LOGISTIC", OpKind::logistic, {}},
    {"TANH", OpKind::tanh, {}},
    {"HARD_SWISH", OpKind::hard_swish, {}},
    {"ELU", OpKind::elu, {}},
    {"EXP", OpKind::exp, {.other_scale = true}},
    {"SOFTMAX", OpKind::softmax, {}},
    {"L2_NORMALIZATION", OpKind::l2_normalization, {}},
    {"RESIZE_NEAREST_NEIGHBOR, twice", OpKind::resize_nearest_neighbor, {.amount = 2}},
    {"RESIZE_BILINEAR, twice", OpKind::resize_bilinear, {.amount = 2, .half_pixels = true}},
    {"SPACE_TO_DEPTH", OpKind::space_to_depth, {.amount = 2}},
    {"DEPTH_TO_SPACE", OpKind::depth_to_space, {.amount = 2}},
    {"SPACE_TO_BATCH_ND", OpKind::space_to_batch_nd, {}},
    {"BATCH_TO_SPACE_ND", OpKind::batch_to_space_nd, {.batch = 4}},
    {"QUANTIZE to another scale", OpKind::quantize, {.other_scale = true}},
    {"QUANTIZE from uint8 to int8 or back", OpKind::quantize, {.other_type = true}},
    {"DEQUANTIZE", OpKind::dequantize, {}},
    {"ARG_MAX", OpKind::arg_max, {}},
};

struct Limit {
  const char* title;
  OpKind kind;
  Form form;
  void (*set)(Form&, int);
  int most;  // up to 40: each value is tried; beyond: binary search for the largest
};

const Limit kLimits[] = {
    {"CONV_2D of 48x48: filter's width and height",
     OpKind::conv_2d,
     {.height = 48, .width = 48},
     [](Form& f, int v) { f.kernel = v; },
     40},
    {"CONV_2D 3x3 of 16x16: stride", OpKind::conv_2d, {}, [](Form& f, int v) { f.stride = v; }, 10},
    {"CONV_2D 3x3 of 96x96: dilation",
     OpKind::conv_2d,
     {.height = 96, .width = 96},
     [](Form& f, int v) { f.dilation = v; },
     40},
    {"CONV_2D 1x1 of 4x4: channels of the input",
     OpKind::conv_2d,
     {.height = 4, .width = 4, .kernel = 1},
     [](Form& f, int v) { f.channels = v; },
     40000},
    {"CONV_2D 3x3 of 4x4: channels of the input",
     OpKind::conv_2d,
     {.height = 4, .width = 4},
     [](Form& f, int v) { f.channels = v; },
     40000},
    {"CONV_2D 3x3 of 4x4: channels of the output",
     OpKind::conv_2d,
     {.height = 4, .width = 4},
     [](Form& f, int v) { f.outputs = v; },
     40000},
    {"CONV_2D 3x3, one channel: width and height of the image",
     OpKind::conv_2d,
     {.channels = 1, .outputs = 1},
     [](Form& f, int v) { f.width = f.height = v; },
     10000},
    {"DEPTHWISE_CONV_2D of 48x48: filter's width and height",
     OpKind::depthwise_conv_2d,
     {.height = 48, .width = 48},
     [](Form& f, int v) { f.kernel = v; },
     40},
    {"DEPTHWISE_CONV_2D 3x3 of 4x4: channels",
     OpKind::depthwise_conv_2d,
     {.height = 4, .width = 4},
     [](Form& f, int v) { f.channels = v; },
     40000},
    {"FULLY_CONNECTED: inputs", OpKind::fully_connected, {}, [](Form& f, int v) { f.channels = v; }, 40000},
    {"FULLY_CONNECTED: outputs", OpKind::fully_connected, {}, [](Form& f, int v) { f.outputs = v; }, 40000},
    {"ADD, one channel: width and height",
     OpKind::add,
     {.channels = 1},
     [](Form& f, int v) { f.width = f.height = v; },
     10000},
    {"AVERAGE_POOL_2D of 40x40: window",
     OpKind::average_pool_2d,
     {.height = 40, .width = 40, .valid = true},
     [](Form& f, int v) { f.kernel = f.stride = v; },
     40},
    {"MAX_POOL_2D of 16x16: window",
     OpKind::max_pool_2d,
     {.valid = true},
     [](Form& f, int v) { f.kernel = f.stride = v; },
     16},
    {"PAD of 16x16: rows and columns on each side", OpKind::pad, {}, [](Form& f, int v) { f.amount = v; }, 40},
    {"RESIZE_NEAREST_NEIGHBOR of 16x16: factor",
     OpKind::resize_nearest_neighbor,
     {},
     [](Form& f, int v) { f.amount = v; },
     40},
};

// ---- answers of the compilers ----

struct Column {
  const npu::Driver* driver;
  npu::Chip chip;
};

// Leaves out the toy, an example, and all Ethos-U accelerators but one: their answers are equal.
bool is_shown(const npu::Driver& driver, const npu::Chip& chip) {
  return driver.name() != "toy" && (driver.name() != "ethosu" || chip.name == "imx93");
}

std::vector<Column> columns(bool proven) {
  std::vector<Column> out;
  for (const npu::Driver* driver : npu::drivers()) {
    for (const npu::Chip& chip : driver->chips()) {
      if (chip.unproven.empty() == proven && is_shown(*driver, chip)) out.push_back({driver, chip});
    }
  }
  return out;
}

struct Answer {
  bool ok = true, unproven = false;
  bool image_by_image = false;  // the CPU divides the batch and joins it
  std::string reason;
  npu::Remedy remedy = npu::Remedy::none;
};

Answer answer_of(const compile::Compiled& compiled) {
  Answer out;
  const bool divided = std::ranges::any_of(
      compiled.rewrites, [](const passes::Rewrite& rewrite) { return rewrite.pass == "split_batches"; });
  for (size_t i = 0; i < compiled.ops.size(); ++i) {
    const compile::OpPlace& place = compiled.ops[i];
    const OpKind kind = compiled.graph.ops[i].kind;
    if (divided && !place.on_npu && (kind == OpKind::split || kind == OpKind::concatenation)) {
      out.image_by_image = true;
      continue;
    }
    out.ok &= place.on_npu;
    out.unproven |= place.unproven;
    if (!out.reason.empty()) continue;
    out.reason = compile::without_names(place.reason, compiled.graph, static_cast<ir::OpId>(i));
    out.remedy = place.remedy;
  }
  return out;
}

Result<Answer> ask(const Column& column, const ir::Graph& graph, npu::Tuning tuning, npu::Unproven unproven) {
  const compile::Options options{.driver = {.tuning = tuning, .unproven = unproven}};
  SK_TRY_ASSIGN(const compile::Compiled compiled, compile::compile(graph, {column.driver, column.chip}, options));
  return answer_of(compiled);
}

// ---- words ----

class Page {
 public:
  Result<std::string> run() {
    text_ = kHead;
    SK_TRY(add_operations());
    add_notes();
    text_ += kLimitsHead;
    SK_TRY(add_limits());
    add_others();
    return std::move(text_);
  }

 private:
  static constexpr std::string_view kHead =
      "# What each NPU takes\n\n"
      "Written by `./x support` from what the compilers answer; a test compares. Each row is a network of one "
      "operation (16 channels, 16x16, one scale a tensor where nothing else is said).\n\n"
      "- **recorded**: a driver whose jobs were recorded on silicon does this too\n"
      "- **proven**: made of jobs that are known to work on silicon. None of the RK3588: its jobs are put together of "
      "parts that were recorded, measured or documented one by one, but nobody has recorded one of these jobs as a "
      "whole, so all its operations count as unproven; the tuning `proven` has another meaning "
      "there ([devices.md](devices.md))\n"
      "- **unproven**: a device takes it once a session has compared it with the CPU there (`unproven=verify`)\n"
      "- **no**: it runs on the CPU\n\n"
      "Numbers refer to the reasons below the table, with what can be done about it where it is *no*. Floats and types "
      "wider than 8 bits are not for these NPUs. "
      "`skillet check MODEL` says the same of each operation of a model.\n\n";
  static constexpr std::string_view kLimitsHead =
      "\n## Limits\n\nOf `uint8` networks of one operation, with the sizes that stand there, and 16 channels where "
      "nothing else is said; small ones were tried to 40, windows to the image. Limits depend on the other sizes: what "
      "is beyond these runs on the CPU in that network, and may run on the NPU in one of other sizes "
      "(`skillet check`). What becomes of a model's constants for an NPU may take 64 MiB, and 64 times what they take "
      "in "
      "the model; an operation beyond that, as one with depthwise filters that are written out for all channels, runs "
      "on "
      "the CPU.\n\n";

  Result<std::string> cell(const Column& column, const ir::Graph& graph) {
    const std::string_view kind = ir::op_name(graph.ops[0]);
    for (const auto tuning : {npu::Tuning::recorded, npu::Tuning::proven}) {
      SK_TRY_ASSIGN(const Answer answer, ask(column, graph, tuning, npu::Unproven::refuse));
      const std::string_view name = npu::tuning_name(tuning);
      if (answer.ok)
        return answer.image_by_image ? fmt::format("{} ({})", name, note(kImageByImage)) : std::string(name);
    }
    SK_TRY_ASSIGN(const Answer answer, ask(column, graph, npu::Tuning::proven, npu::Unproven::take));
    return fmt::format("{} ({})", answer.ok ? "unproven" : "no", note(answer, kind));
  }
  static constexpr const char* kImageByImage =
      "one image after the other: the CPU divides the batch, and joins it again";
  // Chips without such an operation share one note.
  size_t note(const Answer& answer, std::string_view kind) {
    std::string reason = answer.reason;
    if (const size_t at = reason.find(kind); at != std::string::npos) reason.replace(at, kind.size(), "such operation");
    if (!answer.ok) reason += fmt::format("; *remedy:* {}", npu::remedy_text(answer.remedy));
    return note(reason);
  }
  size_t note(const std::string& reason) {
    const auto known = std::ranges::find(notes_, reason);
    if (known != notes_.end()) return static_cast<size_t>(known - notes_.begin()) + 1;
    notes_.push_back(reason);
    return notes_.size();
  }

  void add_header(std::vector<std::string> words) {
    for (const Column& column : columns_) words.push_back(column.chip.name);
    add_row(words);
    add_row(std::vector<std::string>(words.size(), "---"));
  }
  void add_row(const std::vector<std::string>& words) {
    for (const std::string& word : words) text_ += "| " + word + " ";
    text_ += "|\n";
  }

  Result<void> add_operations() {
    add_header({"operation", "type"});
    for (const Question& question : kQuestions) SK_TRY(add_operation(question).with_context(question.title));
    return {};
  }
  // Types with equal answers share a row.
  Result<void> add_operation(const Question& question) {
    std::vector<std::string> types;
    std::vector<std::vector<std::string>> rows;
    for (const Type type : {Type::uint8, Type::int8, Type::int8_per_channel}) {
      if (type == Type::int8_per_channel && !has_weights(question.kind)) continue;
      SK_TRY_ASSIGN(const ir::Graph graph, network(question.kind, question.form, type));
      std::vector<std::string> row;
      for (const Column& column : columns_) {
        SK_TRY_ASSIGN(row.emplace_back(), cell(column, graph));
      }
      const std::string name(kTypeNames[static_cast<size_t>(type)]);
      const auto alike = std::ranges::find(rows, row);
      if (alike != rows.end()) {
        types[static_cast<size_t>(alike - rows.begin())] += "; " + name;
      } else {
        types.push_back(name);
        rows.push_back(std::move(row));
      }
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].insert(rows[i].begin(), {question.title, types[i]});
      add_row(rows[i]);
    }
    return {};
  }
  void add_notes() {
    text_ += "\n";
    for (size_t i = 0; i < notes_.size(); ++i) text_ += fmt::format("{}. {}\n", i + 1, notes_[i]);
  }

  // Returns the level of one value: 0 no, 1 unproven, 2 proven.
  static Result<int> level(const Column& column, const Limit& limit, int value) {
    Form form = limit.form;
    limit.set(form, value);
    SK_TRY_ASSIGN(ir::Graph graph, network(limit.kind, form, Type::uint8));
    const compile::Options options{.driver = {.unproven = npu::Unproven::take}};
    SK_TRY_ASSIGN(const auto compiled, compile::plan(std::move(graph), {column.driver, column.chip}, options));
    const Answer answer = answer_of(compiled);
    return !answer.ok ? 0 : answer.unproven ? 1 : 2;
  }
  // Returns the values of a level, like "1-5, 7".
  static Result<std::string> ranges(const Column& column, const Limit& limit, int wanted) {
    std::string out;
    int first = 0;
    for (int value = 1; value <= limit.most + 1; ++value) {
      int is = 0;
      if (value <= limit.most) {
        SK_TRY_ASSIGN(is, level(column, limit, value));
      }
      if (is == wanted && first == 0) first = value;
      if (is == wanted || first == 0) continue;
      out += (out.empty() ? "" : ", ") +
             (first == value - 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, value - 1));
      first = 0;
    }
    return out;
  }
  // Returns the largest value whose level is at least `wanted`; 0 if none is.
  static Result<int> largest(const Column& column, const Limit& limit, int wanted) {
    int good = 0, bad = limit.most + 1;
    while (bad - good > 1) {
      const int middle = good + (bad - good) / 2;
      SK_TRY_ASSIGN(const int is, level(column, limit, middle));
      (is >= wanted ? good : bad) = middle;
    }
    return good;
  }
  static Result<std::string> reach(const Column& column, const Limit& limit) {
    SK_TRY_ASSIGN(const int proven, largest(column, limit, 2));
    SK_TRY_ASSIGN(const int any, largest(column, limit, 1));
    if (any <= proven) return proven == 0 ? std::string("none") : fmt::format("{}", proven);
    return proven == 0 ? fmt::format("unproven to {}", any) : fmt::format("{}; unproven to {}", proven, any);
  }
  static Result<std::string> limit_cell(const Column& column, const Limit& limit) {
    if (limit.most > 40) return reach(column, limit);
    SK_TRY_ASSIGN(const std::string proven, ranges(column, limit, 2));
    SK_TRY_ASSIGN(const std::string unproven, ranges(column, limit, 1));
    const std::string more = unproven.empty() ? "" : "unproven " + unproven;
    if (proven.empty()) return more.empty() ? std::string("none") : more;
    return proven + (more.empty() ? "" : "; " + more);
  }
  Result<void> add_limits() {
    add_header({"limit"});
    for (const Limit& limit : kLimits) {
      std::vector<std::string> row = {limit.title};
      for (const Column& column : columns_) {
        auto one = limit_cell(column, limit).with_context(limit.title);
        if (!one.ok()) return std::move(one).error();
        row.push_back(std::move(one).value());
      }
      add_row(row);
    }
    return {};
  }

  void add_others() {
    text_ += "\n## Chips of which nothing is proven\n\nAll that they take is unproven:\n\n";
    for (const Column& column : columns(false))
      text_ += fmt::format("- `{}`, {}: {}\n", column.chip.name, column.chip.title, column.chip.unproven);
  }

  const std::vector<Column> columns_ = columns(true);
  std::vector<std::string> notes_;
  std::string text_;
};

}  // namespace

Result<std::vector<ir::Graph>> networks() {
  std::vector<ir::Graph> out;
  for (const Question& question : kQuestions) {
    for (const Type type : {Type::uint8, Type::int8, Type::int8_per_channel}) {
      if (type == Type::int8_per_channel && !has_weights(question.kind)) continue;
      SK_TRY_ASSIGN(out.emplace_back(), network(question.kind, question.form, type));
    }
  }
  return out;
}

Result<std::string> page() { return Page().run(); }

}  // namespace skillet::support
