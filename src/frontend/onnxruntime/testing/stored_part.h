// StoredPart: a RELU of 1x2x3 bytes as a compiled part, and a model with nodes that hold it.
// Called by tests of the provider. Must not know: hosts.
#pragma once

#include <string>

#include "frontend/onnx/part.h"
#include "frontend/onnxruntime/context.h"
#include "runtime/compiled_model.h"
#include "runtime/content_hash.h"

namespace skillet::onnxruntime {

struct Stored {
  Model model;
  Bytes bytes;

  // A chain of `count` such nodes.
  explicit Stored(int count = 1) {
    runtime::CompiledModel part;
    for (const char* name : {"x", "y"}) {
      ir::Tensor one{.name = name, .dtype = ir::DType::uint8, .shape = {1, 2, 3}};
      one.quant = {.scales = {0.5F}, .zero_points = {128}};
      part.graph.add_tensor(std::move(one));
    }
    part.graph.add_op(
        {.kind = ir::OpKind::relu, .attrs = ir::default_attrs(ir::OpKind::relu), .inputs = {0}, .outputs = {1}});
    part.graph.inputs = {0}, part.graph.outputs = {1};
    std::vector<Port> ports[2];
    for (auto& one : ports) one.push_back({.name = "", .dims = {1, 2, 3}, .n = 6});
    part.note = onnx::note_of(ports[0], ports[1]);
    bytes = runtime::save_compiled(part).value();
    add_value("in");
    for (int i = 0; i < count; ++i) {
      add_value("out" + (i == 0 ? "" : std::to_string(i)));
      model.nodes.push_back({.op = "EPContext",
                             .domain = "com.microsoft",
                             .name = "n",
                             .inputs = {i},
                             .outputs = {i + 1},
                             .attributes = {}});
    }
    set("source", kProviderName);
    set("ep_cache_context", {bytes.begin(), bytes.end()});
    set("partition_name", "p");
    runtime::ContentHash hash;
    hash.add("p", 1);
    hash.add(bytes.data(), bytes.size());
    set("notes", hash.text());
    mode(1);
  }
  void set(const char* name, const std::string& text) {
    for (Node& node : model.nodes) node.attributes[name].text = text;
  }
  void mode(int64_t mode) {
    for (Node& node : model.nodes) node.attributes["embed_mode"].ints = {mode};
  }
  Result<std::unique_ptr<Part>> read(const std::string& path = "") const {
    SK_TRY_ASSIGN(StoredPart stored, part_from(model, 0, path, runtime::cpu_target("a test"), {}, false));
    return std::move(stored.part);
  }
  std::string refusal(const std::string& path = "") const {
    const auto part = read(path);
    return part.ok() ? "" : part.error().message;
  }

 private:
  void add_value(const std::string& name) {
    model.values.push_back(
        {.name = name, .dtype = ir::DType::uint8, .dims = std::vector<int64_t>{1, 2, 3}, .data = {}});
  }
};

}  // namespace skillet::onnxruntime
