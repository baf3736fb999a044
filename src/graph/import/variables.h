// Resource variables of a model file become variables of the graph; the file has handles. Called by the importer.
// Must not know: kernels.
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "graph/ir/graph.h"
#include "tflite_schema_generated.h"

namespace skillet::tflite {

class Variables {
 public:
  // Both are borrowed.
  Variables(const schema::Model& model, ir::Graph& graph) : model_(model), graph_(graph) {}

  // Handles VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and CALL_ONCE, given their builtin code `code`. Returns false
  // for other operations, and if the variable's name is not known.
  Result<bool> take(int32_t code, const schema::Operator& from);

  // Subgraphs that run once before the first run.
  const std::set<uint32_t>& initial_subgraphs() const { return initial_subgraphs_; }
  // Takes the values that the operations of `initial` set; `initial` is such a subgraph. Error if they do more.
  Result<void> set_initial(const Variables& initial);

 private:
  using Name = std::pair<std::string_view, std::string_view>;  // container, name; in the file

  ir::TensorId operand(const flatbuffers::Vector<int32_t>* list, flatbuffers::uoffset_t i) const;
  Result<void> add_initial(const schema::CallOnceOptions& options);
  Result<void> add_handle(const schema::VarHandleOptions* options, ir::TensorId handle);
  Result<bool> use(bool reads, const schema::Operator& from);

  const schema::Model& model_;
  ir::Graph& graph_;
  std::map<ir::TensorId, Name> handles_;  // by the tensor that holds the handle
  std::map<Name, ir::TensorId> variables_;
  std::set<uint32_t> initial_subgraphs_;
};

}  // namespace skillet::tflite
