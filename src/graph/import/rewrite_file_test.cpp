// Written files have the requested contents: all models of the tree, each operation in each way to write it.
#include "graph/import/rewrite_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/bytes.h"
#include "base/int_math.h"
#include "base/testing/in_tree.h"
#include "graph/import/import.h"
#include "graph/ref/ref.h"
#include "tflite_schema_generated.h"

namespace skillet::tflite {
namespace {

namespace fs = std::filesystem;

struct Model {
  std::string path;
  Bytes file;
  ir::Graph graph;
};

// A custom operation of no vendor, with all fields that one may have.
Bytes custom_model() {
  flatbuffers::FlatBufferBuilder to;
  const auto data = to.CreateVector(Bytes{1, 2});
  const std::vector buffers = {schema::CreateBuffer(to), schema::CreateBuffer(to, data)};
  const auto shape = to.CreateVector(std::vector<int32_t>{2});
  const auto in = to.CreateString("in"), out = to.CreateString("out"), name = to.CreateString("Custom");
  constexpr int8_t kUint8 = 3, kCustom = 32;
  const std::vector tensors = {schema::CreateTensor(to, shape, kUint8, 1, in),
                               schema::CreateTensor(to, shape, kUint8, 0, out)};
  const auto inputs = to.CreateVector(std::vector<int32_t>{0}), outputs = to.CreateVector(std::vector<int32_t>{1}),
             none = to.CreateVector(std::vector<int32_t>{});
  const auto options = to.CreateVector(Bytes{7, 8, 9});
  const auto mutates = to.CreateVector(std::vector<uint8_t>{1});
  const std::vector operators = {
      schema::CreateOperator(to, 0, inputs, outputs, schema::BuiltinOptions::NONE, 0, options, 0, mutates, inputs)};
  const std::vector codes = {schema::CreateOperatorCode(to, kCustom, name, 1, kCustom)};
  const auto list = to.CreateVector(operators);
  const std::vector graphs = {schema::CreateSubGraph(to, to.CreateVector(tensors), none, outputs, list)};
  const auto all_codes = to.CreateVector(codes);
  const auto all_graphs = to.CreateVector(graphs);
  const auto all_buffers = to.CreateVector(buffers);
  schema::FinishModelBuffer(to, schema::CreateModel(to, 3, all_codes, all_graphs, 0, all_buffers));
  return Bytes(to.GetBufferPointer(), to.GetBufferPointer() + to.GetSize());
}

std::vector<Model> models() {
  std::vector<Model> out;
  Bytes custom = custom_model();
  auto of_custom = import(custom, "model");
  EXPECT_TRUE(of_custom.ok()) << (of_custom.ok() ? "" : of_custom.error().message);
  if (of_custom.ok()) out.push_back({"custom", std::move(custom), std::move(*of_custom)});
  for (const char* folder : {"tests/models", "tests/conformance/models", "models"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(skillet::in_tree(folder))) {
      if (entry.path().extension() != ".tflite" || entry.file_size() > 1 << 20) continue;
      Bytes file = read_file(entry.path().string()).value();
      auto graph = import(file, "model");
      // The importer adds tensors where it computes shapes.
      if (graph.ok() && graph->tensors.size() == schema::GetModel(file.data())->subgraphs()->Get(0)->tensors()->size())
        out.push_back({entry.path().string(), std::move(file), std::move(*graph)});
    }
  }
  std::ranges::sort(out, {}, &Model::path);
  return out;
}

bool is_convolution(const ir::Op& op) {
  return op.kind == ir::OpKind::conv_2d || op.kind == ir::OpKind::depthwise_conv_2d;
}

// A bias of zeros is written for 8-bit convolutions without one.
bool gets_bias(const ir::Graph& graph, const ir::Op& op) {
  return is_convolution(op) && op.input(2) == ir::kNoTensor && ir::is_8bit(graph.tensor(op.inputs[0]).dtype);
}

// Fields of the model after the known ones, such as metadata: the same bytes, in a copy of the old file.
void expect_same_rest(const Bytes& old_file, const Bytes& file) {
  const uint8_t* const copy = file.data() + file.size() - align_up(old_file.size(), size_t{64});
  ASSERT_TRUE(std::equal(old_file.begin(), old_file.end(), copy)) << "the old file is not there";
  const auto* before = reinterpret_cast<const flatbuffers::Table*>(schema::GetModel(old_file.data()));
  const auto* after = reinterpret_cast<const flatbuffers::Table*>(schema::GetModel(file.data()));
  EXPECT_EQ(schema::GetModel(file.data())->version(), schema::GetModel(old_file.data())->version());
  for (flatbuffers::voffset_t field = 4; field < 4 + 2 * 12; field = static_cast<flatbuffers::voffset_t>(field + 2)) {
    ASSERT_EQ(before->GetOptionalFieldOffset(field) != 0, after->GetOptionalFieldOffset(field) != 0) << field;
    if (field < 4 + 2 * 5 || before->GetOptionalFieldOffset(field) == 0) continue;
    EXPECT_EQ(before->GetPointer<const uint8_t*>(field) - old_file.data(),
              after->GetPointer<const uint8_t*>(field) - copy)
        << field;
  }
}

template <typename T>
void expect_same_list(const T* before, const T* after) {
  ASSERT_EQ(before != nullptr, after != nullptr);
  if (before != nullptr) {
    EXPECT_TRUE(std::equal(before->begin(), before->end(), after->begin(), after->end()));
  }
}

// Fields of an operation other than its operands.
void expect_same_fields(const Bytes& old_file, const Bytes& file, size_t op) {
  const auto at = [&](const Bytes& of) {
    return schema::GetModel(of.data())->subgraphs()->Get(0)->operators()->Get(static_cast<flatbuffers::uoffset_t>(op));
  };
  const schema::Operator &before = *at(old_file), &after = *at(file);
  EXPECT_EQ(before.opcode_index(), after.opcode_index());
  EXPECT_EQ(before.builtin_options_type(), after.builtin_options_type());
  EXPECT_EQ(before.builtin_options() != nullptr, after.builtin_options() != nullptr);
  EXPECT_EQ(before.custom_options_format(), after.custom_options_format());
  expect_same_list(before.custom_options(), after.custom_options());
  expect_same_list(before.mutating_variable_inputs(), after.mutating_variable_inputs());
  expect_same_list(before.intermediates(), after.intermediates());
}

TEST(RewriteFile, WhatIsUnchangedStays) {
  size_t tried = 0;
  for (const Model& model : models()) {
    SCOPED_TRACE(model.path);
    const auto written = rewrite_file(model.file, model.graph, model.graph);
    if (!written.ok()) continue;  // its constants are behind its tables
    const auto again = import(*written, "model");
    ASSERT_TRUE(again.ok()) << again.error().message;
    if (std::ranges::none_of(model.graph.ops, [&](const ir::Op& op) { return gets_bias(model.graph, op); })) {
      EXPECT_EQ(ir::print(*again), ir::print(model.graph));
    }
    expect_same_rest(model.file, *written);
    ++tried;
  }
  EXPECT_GT(tried, 200u);
}

// As if a pass had made each operation: all options of the kinds that passes make, and a code of the file or a new one.
TEST(RewriteFile, OptionsAreWrittenAsTheyAreRead) {
  std::set<ir::OpKind> kinds, refused;
  for (const Model& model : models()) {
    SCOPED_TRACE(model.path);
    for (size_t i = 0; i < model.graph.ops.size(); ++i) {
      ir::Graph other = model.graph;
      other.ops[i].opaque_name = "other";
      if (gets_bias(model.graph, model.graph.ops[i])) continue;
      const auto written = rewrite_file(model.file, other, model.graph);
      if (!written.ok()) {
        refused.insert(model.graph.ops[i].kind);
        continue;
      }
      const auto again = import(*written, "model");
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(ir::print(*again), ir::print(model.graph));
      kinds.insert(model.graph.ops[i].kind);
    }
  }
  using enum ir::OpKind;
  const std::set cannot_be_written = {opaque, arg_max, arg_min, unidirectional_sequence_lstm};
  for (const ir::OpKind kind : refused) {
    EXPECT_TRUE(cannot_be_written.contains(kind) || kinds.contains(kind)) << ir::op_kind_name(kind);
  }
  EXPECT_TRUE(kinds.contains(slice));
  EXPECT_GT(kinds.size(), 60u);
}

// Other operands, the same options, including those of custom operations.
TEST(RewriteFile, OperandsAreExchanged) {
  std::set<ir::OpKind> kinds;
  bool has_custom_options = false, has_intermediates = false;
  for (const Model& model : models()) {
    SCOPED_TRACE(model.path);
    for (size_t i = 0; i < model.graph.ops.size(); ++i) {
      for (size_t k = 0; k < model.graph.ops[i].inputs.size(); ++k) {
        const ir::TensorId id = model.graph.ops[i].inputs[k];
        if (id == ir::kNoTensor || !model.graph.tensor(id).is_constant()) continue;
        ir::Graph after = model.graph;
        ir::Tensor copy = after.tensor(id);
        copy.name += "/copy";
        after.ops[i].inputs[k] = after.add_tensor(std::move(copy));
        if (gets_bias(model.graph, model.graph.ops[i])) continue;
        const auto written = rewrite_file(model.file, model.graph, after);
        if (!written.ok()) continue;  // a type that no pass makes
        const auto again = import(*written, "model");
        ASSERT_TRUE(again.ok()) << again.error().message;
        EXPECT_EQ(ir::print(*again), ir::print(after));
        expect_same_fields(model.file, *written, i);
        const auto* const from = schema::GetModel(model.file.data())
                                     ->subgraphs()
                                     ->Get(0)
                                     ->operators()
                                     ->Get(static_cast<flatbuffers::uoffset_t>(i));
        has_custom_options |= from->custom_options() != nullptr;
        has_intermediates |= from->intermediates() != nullptr;
        kinds.insert(model.graph.ops[i].kind);
      }
    }
  }
  EXPECT_GT(kinds.size(), 20u);
  EXPECT_TRUE(has_custom_options);
  EXPECT_TRUE(has_intermediates);
}

// Results of a network for zeros, as bytes.
std::vector<Bytes> results(const ir::Graph& graph) {
  auto interpreter = ref::Interpreter::create(graph);
  EXPECT_TRUE(interpreter.ok() && interpreter->run().ok());
  std::vector<Bytes> out;
  for (const ir::TensorId id : graph.outputs) {
    const auto bytes = interpreter->tensor(id);
    out.emplace_back(bytes.begin(), bytes.end());
  }
  return out;
}

// Convolutions without a bias get zeros as bias, whose scales are the products of the others.
TEST(RewriteFile, ABiasOfZerosIsWritten) {
  std::set<ir::OpKind> kinds;
  for (const Model& model : models()) {
    SCOPED_TRACE(model.path);
    for (size_t i = 0; i < model.graph.ops.size(); ++i) {
      ir::Graph after = model.graph;
      ir::Op& op = after.ops[i];
      if (!is_convolution(op) || !ir::is_8bit(after.tensor(op.inputs[0]).dtype) ||
          !ir::is_8bit(after.tensor(op.inputs[1]).dtype))
        continue;
      op.inputs.resize(2);
      const auto written = rewrite_file(model.file, model.graph, after);
      if (!written.ok()) continue;
      const auto again = import(*written, "model");
      ASSERT_TRUE(again.ok()) << again.error().message;
      ASSERT_EQ(again->ops[i].inputs.size(), 3u);
      const ir::Tensor& bias = again->tensor(again->ops[i].inputs[2]);
      const ir::Tensor &in = after.tensor(op.inputs[0]), &filter = after.tensor(op.inputs[1]);
      const auto channels = static_cast<size_t>(after.tensor(op.outputs[0]).shape.dims.back());
      EXPECT_EQ(bias.dtype, ir::DType::int32);
      EXPECT_EQ(bias.values<int32_t>(), std::vector<int32_t>(channels, 0));
      ASSERT_EQ(bias.quant.scales.size(), filter.quant.scales.size());
      for (size_t c = 0; c < bias.quant.scales.size(); ++c) {
        EXPECT_EQ(bias.quant.scales[c], in.quant.scale() * filter.quant.scales[c]);
        EXPECT_EQ(bias.quant.zero_points[c], 0);
      }
      EXPECT_EQ(results(*again), results(after));
      kinds.insert(op.kind);
    }
  }
  EXPECT_EQ(kinds.size(), 2u);
}

}  // namespace
}  // namespace skillet::tflite
