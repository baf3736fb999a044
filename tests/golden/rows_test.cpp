// A case that is expected to differ from the recorded jobs names a row of the hardware specification's list of faults
// (11.4), or a section. Rows with a rule here are checked: the model has the property of the row, and the differences
// are of the kind that the fault causes. The author of a line checks the other rows.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include "base/bytes.h"
#include "base/testing/in_tree.h"
#include "captures.h"
#include "golden_case.h"
#include "graph/import/import.h"
#include "tflite_schema_generated.h"

namespace skillet::golden {
namespace {

using ir::Graph;
using ir::Op;
using ir::OpKind;

bool any_op(const Graph& graph, const std::function<bool(const Op&)>& has) {
  return std::ranges::any_of(graph.ops, has);
}
bool any_of_kind(const Graph& graph, OpKind kind) {
  return any_op(graph, [&](const Op& op) { return op.kind == kind; });
}
bool is_convolution(const Op& op) { return op.kind == OpKind::conv_2d || op.kind == OpKind::depthwise_conv_2d; }

// Input of a rule on convolutions.
struct Window {
  bool depthwise;
  int64_t in_h, in_w, in_c, filter_h, filter_w, stride_h, stride_w;
};
bool any_window(const Graph& graph, const std::function<bool(const Window&)>& has) {
  return any_op(graph, [&](const Op& op) {
    if (!is_convolution(op)) return false;
    const ir::Shape &in = graph.tensor(op.inputs[0]).shape, &filter = graph.tensor(op.inputs[1]).shape;
    const auto& attrs = op.as<ir::ConvAttrs>();
    return has({op.kind == OpKind::depthwise_conv_2d, in[1], in[2], in[3], filter[1], filter[2], attrs.stride_h,
                attrs.stride_w});
  });
}

bool any_activation(const Graph& graph) {
  return any_op(graph, [](const Op& op) {
    if (op.kind == OpKind::fully_connected) return op.as<ir::FullyConnectedAttrs>().activation != ir::Activation::none;
    if (op.kind == OpKind::add || op.kind == OpKind::sub)
      return op.as<ir::ActivationAttrs>().activation != ir::Activation::none;
    return is_convolution(op) && op.as<ir::ConvAttrs>().activation == ir::Activation::relu_n1_to_1;
  });
}
// A graph input, or the result of an elementwise operation on one.
bool is_input(const Graph& graph, ir::TensorId id) {
  for (const Op& op : graph.ops) {
    if (op.outputs[0] == id) return op.inputs.size() == 1 && std::ranges::count(graph.inputs, op.inputs[0]) != 0;
  }
  return std::ranges::count(graph.inputs, id) != 0;
}
bool adds_an_input_to_a_result(const Graph& graph) {
  return any_op(graph, [&](const Op& op) {
    return op.kind == OpKind::add && is_input(graph, op.inputs[0]) != is_input(graph, op.inputs[1]);
  });
}
bool concatenates_other_scales(const Graph& graph) {
  return any_op(graph, [&](const Op& op) {
    const auto& out = graph.tensor(op.outputs[0]).quant;
    return op.kind == OpKind::concatenation &&
           std::ranges::any_of(op.inputs, [&](ir::TensorId id) { return !(graph.tensor(id).quant == out); });
  });
}
bool has_output_that_is_used(const Graph& graph) {
  return any_op(graph, [&](const Op& op) {
    return std::ranges::any_of(op.inputs, [&](ir::TensorId id) { return std::ranges::count(graph.outputs, id) != 0; });
  });
}
// A row of an image exceeds the fields of a job, in pixels or bytes.
bool is_beyond_fields(const Graph& graph) {
  constexpr int64_t kMostPx = 8191, kMostRowBytes = 65535;
  return std::ranges::any_of(graph.tensors, [](const ir::Tensor& one) {
    return one.shape.rank() == 4 &&
           (one.shape[1] > kMostPx || one.shape[2] > kMostPx || one.shape[2] * one.shape[3] > kMostRowBytes);
  });
}
bool has_row_images(const Graph& graph) {
  return any_op(graph, [&](const Op& op) {
    const ir::Shape& out = graph.tensor(op.outputs[0]).shape;
    return op.kind == OpKind::reshape || op.kind == OpKind::split || (out.rank() == 4 && (out[1] == 1 || out[2] == 1));
  });
}
bool pads_few_rows(const Graph& graph) {
  constexpr int64_t kMostCores = 8;
  return any_op(graph, [&](const Op& op) {
    return op.kind == OpKind::pad && graph.tensor(op.inputs[0]).shape.back(2) < kMostCores;
  });
}

// The multiplier of sums (7.3), for additions with the weights of 7.7; in binary32 and in this order.
float requantization(const Graph& graph, const Op& op) {
  const auto scale = [&](size_t i) { return graph.tensor(op.inputs[i]).quant.scale(); };
  const float out = graph.tensor(op.outputs[0]).quant.scale();
  if (op.kind != OpKind::add) return scale(0) * scale(1) / out;
  const auto weight = static_cast<float>(std::max(double{scale(1) / scale(0)}, 1.0) / 255);
  return scale(0) * weight / out;
}
bool any_requantization(const Graph& graph, const std::function<bool(float)>& has) {
  return any_op(graph, [&](const Op& op) {
    return (is_convolution(op) || op.kind == OpKind::add) && has(requantization(graph, op));
  });
}
// Half a step of the smaller operand's weight exceeds a step of the sum (7.7).
bool adds_with_coarse_weights(const Graph& graph) {
  return any_op(graph, [&](const Op& op) {
    const auto scale = [&](ir::TensorId id) { return graph.tensor(id).quant.scale(); };
    return op.kind == OpKind::add && std::max(scale(op.inputs[0]), scale(op.inputs[1])) > 2 * scale(op.outputs[0]);
  });
}
// A model as the rules use it.
struct Model {
  Graph graph;
  bool declares_other_shapes = false;  // the file declares other sizes than the operations give
};
std::optional<Model> model_of(const std::string& path) {
  auto graph = tflite::import_file(path);
  const auto bytes = read_file(path);
  if (!graph.ok() || !bytes.ok()) return std::nullopt;
  Model out{.graph = std::move(graph).value()};
  const auto* const tensors = tflite::schema::GetModel(bytes->data())->subgraphs()->Get(0)->tensors();
  for (size_t i = 0; i < std::min<size_t>(tensors->size(), out.graph.tensors.size()); ++i) {
    const auto* const shape = tensors->Get(static_cast<flatbuffers::uoffset_t>(i))->shape();
    const ir::Shape& given = out.graph.tensors[i].shape;
    if (shape != nullptr && shape->size() > 0) out.declares_other_shapes |= !std::ranges::equal(*shape, given.dims);
  }
  return out;
}

struct Counts {
  int jobs = 0, fields = 0, bytes = 0;
};
bool in_jobs(const Counts& c) { return c.jobs + c.fields > 0; }
bool in_fields(const Counts& c) { return c.fields > 0; }
bool in_bytes(const Counts& c) { return c.bytes > 0; }

struct Rule {
  const char* row;
  std::function<bool(const Graph&)> has;  // null: the file declares other shapes
  bool (*differs)(const Counts&);         // null: cases with the row are refused
};
const Rule kRules[] = {
    {"1",
     [](const Graph& g) { return any_window(g, [](const Window& w) { return w.stride_h == 2 && w.in_h != w.in_w; }); },
     in_jobs},
    {"2",
     [](const Graph& g) { return any_window(g, [](const Window& w) { return w.stride_h == 2 && w.filter_h > 1; }); },
     in_jobs},
    {"3",
     [](const Graph& g) { return any_window(g, [](const Window& w) { return w.filter_h > 1 || w.filter_w > 1; }); },
     in_fields},
    {"4",
     [](const Graph& g) {
       return any_window(g, [](const Window& w) {
         return w.depthwise && w.stride_h == 2 && (w.in_h == 6 || w.in_h == 7 || w.in_w == 6 || w.in_w == 7);
       });
     },
     in_jobs},
    {"5.6", [](const Graph& g) { return any_of_kind(g, OpKind::pad); }, in_jobs},
    {"6",
     [](const Graph& g) {
       return any_window(g, [](const Window& w) { return w.filter_h == 5 && w.filter_w == 5 && w.in_c == 1; });
     },
     in_bytes},
    {"6.2.3", [](const Graph& g) { return any_window(g, [](const Window& w) { return w.filter_w > 5; }); }, in_bytes},
    {"7.3", [](const Graph& g) { return any_requantization(g, [](float by) { return by >= 2; }); }, nullptr},
    {"7.7", adds_with_coarse_weights, nullptr},
    {"8.6", [](const Graph& g) { return any_of_kind(g, OpKind::sub); }, nullptr},
    {"10", [](const Graph& g) { return any_window(g, [](const Window& w) { return w.filter_h != w.filter_w; }); },
     in_jobs},
    {"10.2", has_row_images, in_jobs},
    {"10.3", nullptr, in_jobs},
    {"12", [](const Graph& g) { return any_of_kind(g, OpKind::fully_connected); }, in_jobs},
    {"13", [](const Graph& g) { return any_of_kind(g, OpKind::add); }, in_bytes},
    {"15",
     [](const Graph& g) {
       return any_op(g, [](const Op& op) {
         return op.kind == OpKind::concatenation || op.kind == OpKind::split ||
                (op.kind == OpKind::add && op.inputs[0] == op.inputs[1]);
       });
     },
     in_jobs},
    {"17", adds_an_input_to_a_result, in_jobs},
    {"19", [](const Graph& g) { return any_requantization(g, [](float by) { return by < 0x1p-112F; }); }, nullptr},
    {"20", any_activation, in_fields},
    {"21",
     [](const Graph& g) {
       return any_window(g, [](const Window& w) { return w.stride_h != w.stride_w || w.stride_h > 2; });
     },
     nullptr},
    {"22", is_beyond_fields, in_jobs},
    {"23",
     [](const Graph& g) {
       return any_op(g, [&](const Op& op) {
         return op.kind == OpKind::fully_connected && g.tensor(op.inputs[0]).shape.rank() > 2;
       });
     },
     in_jobs},
    {"24", pads_few_rows, in_jobs},
    {"25", concatenates_other_scales, in_jobs},
    {"26", has_output_that_is_used, in_jobs},
};

bool has(const Rule& rule, const Model& model) {
  return rule.has ? rule.has(model.graph) : model.declares_other_shapes;
}

struct Line {
  std::string chip, name, outcome, reason;
  std::vector<std::string> rows;
  Counts counts;
};

std::vector<Line> lines_of(const std::string& chip) {
  const auto bytes = read_file(skillet::in_tree(fmt::format("tests/expectations/golden-{}.txt", chip)));
  EXPECT_TRUE(bytes.ok());
  std::istringstream file(std::string(bytes->begin(), bytes->end()));
  const std::regex row(R"(\((\d+(\.\d+)*)\))"), counts(R"(\[jobs (\d+), fields (\d+), bytes (\d+),)");
  std::vector<Line> out;
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    Line one{.chip = chip};
    if (!(words >> one.name >> one.outcome >> std::ws) || one.name[0] == '#' || !std::getline(words, one.reason))
      continue;
    if (one.outcome != "differs" && one.outcome != "refused") continue;
    for (std::sregex_iterator at(one.reason.begin(), one.reason.end(), row), end; at != end; ++at)
      one.rows.push_back((*at)[1]);
    if (std::smatch found; std::regex_search(one.reason, found, counts))
      one.counts = {std::stoi(found[1]), std::stoi(found[2]), std::stoi(found[3])};
    out.push_back(std::move(one));
  }
  return out;
}

const Rule* rule_of(const std::string& row) {
  const auto found = std::ranges::find(kRules, row, &Rule::row);
  return found == std::end(kRules) ? nullptr : &*found;
}

TEST(Rows, WhatALineNamesIsThere) {
  const auto dir = find_golden_dir();
  if (!dir) GTEST_SKIP() << "the recordings are not there";
  std::map<std::string, int> checked, open;
  for (const char* chip : {"a311d", "imx8mp", "s905d3"}) {
    for (const Line& line : lines_of(chip)) {
      const auto model = model_of(*dir + "/models/" + line.name + ".tflite");
      ASSERT_TRUE(model.has_value()) << line.name;
      for (const std::string& row : line.rows) {
        const Rule* const rule = rule_of(row);
        ++(rule == nullptr ? open : checked)[row];
        if (rule == nullptr) continue;
        EXPECT_TRUE(has(*rule, *model)) << chip << " " << line.name << ": (" << row << ") of a model without it";
        const bool differs = line.outcome == "differs";
        if (differs && row == line.rows.front()) {
          EXPECT_TRUE(rule->differs != nullptr && rule->differs(line.counts))
              << chip << " " << line.name << ": (" << row << ")";
        }
      }
    }
  }
  for (const Rule& rule : kRules) EXPECT_GT(checked[rule.row], 0) << rule.row;
  for (const auto& [row, count] : open) std::printf("(%s): %d lines, no rule\n", row.c_str(), count);
}

// A rule that almost every model meets would check nothing.
TEST(Rows, RulesTellModelsApart) {
  const auto dir = find_golden_dir();
  if (!dir) GTEST_SKIP() << "the recordings are not there";
  std::map<std::string, int> with;
  int all = 0;
  const std::vector<std::string> names = list_captures(*dir, "a311d").value();
  for (const std::string& name : names) {
    const auto model = model_of(*dir + "/models/" + name + ".tflite");
    if (!model) continue;
    ++all;
    for (const Rule& rule : kRules) with[rule.row] += has(rule, *model) ? 1 : 0;
  }
  for (const Rule& rule : kRules) {
    std::printf("(%s): %d of %d models\n", rule.row, with[rule.row], all);
    EXPECT_LT(with[rule.row] * 4, all * 3) << rule.row;
  }
}

}  // namespace
}  // namespace skillet::golden
