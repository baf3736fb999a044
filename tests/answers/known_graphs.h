// Graphs of one operation of each kind: recorded models of tests/conformance, and more_graphs.h.
// Called by graphs_test.cpp and passes_test.cpp.
// Must not know: what the tests check.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "answers/changes.h"
#include "answers/more_graphs.h"
#include "base/testing/in_tree.h"
#include "graph/import/import.h"

namespace skillet::answers {

inline constexpr std::string_view kTypes[] = {"int8", "uint8", "int16", "int32", "int64", "float32", "boolean"};
inline constexpr std::string_view kPaddings[] = {"same", "valid", "explicit"};
inline constexpr std::string_view kActivations[] = {"none", "relu", "relu6", "relu_n1_to_1", "tanh"};
inline constexpr std::string_view kBools[] = {"true", "false"};
inline constexpr Words kWords[] = {kTypes, kPaddings, kActivations, kBools};
inline constexpr int64_t kElemsMax = 1 << 12;  // per tensor: larger ones are slow and show nothing more
inline constexpr size_t kOfKind = 6;           // graphs of a kind

inline bool is_small(const ir::Graph& graph) {
  return std::ranges::all_of(graph.tensors, [](const ir::Tensor& one) { return one.shape.elems() <= kElemsMax; });
}

// Replaces constants that the text shortens by random ones, where possible.
inline std::string text_of(const ir::Graph& graph) {
  std::string text = ir::print(graph);
  for (size_t at = 0; (at = text.find("const=xxh3:", at)) != std::string::npos; ++at) {
    const std::string_view line = std::string_view(text).substr(text.rfind('\n', at), at - text.rfind('\n', at));
    const bool is_drawn =
        std::ranges::any_of(std::array{" int8 ", " uint8 ", " int16 ", " int32 ", " float32 "},
                            [&](const char* type) { return line.find(type) != std::string_view::npos; });
    if (is_drawn) text.replace(at, text.find_first_of(" \n", at) - at, "const=random:1");
  }
  return text;
}

// Models of one operation each, by the operation's name.
inline std::map<std::string, std::vector<std::string>> known_graphs() {
  std::vector<std::string> files;
  for (const char* folder : {"tests/conformance/models/kernels"}) {
    for (const auto& entry : std::filesystem::directory_iterator(in_tree(folder))) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::map<std::string, std::vector<std::string>> out;
  for (const std::string& file : files) {
    const auto graph = tflite::import_file(file);
    if (!graph.ok() || graph->ops.size() != 1 || !is_small(*graph)) continue;
    std::vector<std::string>& of_kind = out[std::string(ir::op_name(graph->ops[0]))];
    if (of_kind.size() < kOfKind) of_kind.push_back(text_of(*graph));
  }
  for (const std::string& text : more_graphs()) {
    const auto graph = ir::parse(text);
    EXPECT_EQ(graph.ok() ? ir::verify(*graph).ok() ? "" : ir::verify(*graph).error().message : graph.error().message,
              "")
        << text;
    if (graph.ok()) out[std::string(ir::op_name(graph->ops[0]))].push_back(text);
  }
  return out;
}

}  // namespace skillet::answers
