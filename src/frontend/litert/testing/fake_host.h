// Fake host with LiteRT's interface: graphs and buffers behind the tables that plug-ins receive.
// Called by litert_test.cpp. Must not know: plug-ins.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "frontend/host/element_types.h"
#include "frontend/litert/litert_abi.h"
#include "graph/ir/attrs_fields.h"
#include "graph/ir/graph.h"

namespace skillet::litert {

struct HostWeights {
  std::span<const uint8_t> data;
};
struct HostTensor {
  const ir::Tensor* tensor;
  HostWeights weights;
  std::vector<float> scales;
  std::vector<int64_t> zero_points;
};
struct HostOp {
  const ir::Op* op;
  std::vector<HostTensor*> inputs, outputs;  // null: left out
};
struct HostSubgraph {
  explicit HostSubgraph(const ir::Graph& graph) {
    for (const ir::Tensor& one : graph.tensors) {
      tensors.push_back({&one, {one.data}, one.quant.scales, {}});
      tensors.back().zero_points.assign(one.quant.zero_points.begin(), one.quant.zero_points.end());
    }
    const auto all = [&](const std::vector<ir::TensorId>& ids) {
      std::vector<HostTensor*> out;
      for (const ir::TensorId id : ids)
        out.push_back(id == ir::kNoTensor ? nullptr : &tensors[static_cast<size_t>(id)]);
      return out;
    };
    for (const ir::Op& op : graph.ops) ops.push_back({&op, all(op.inputs), all(op.outputs)});
    inputs = all(graph.inputs), outputs = all(graph.outputs);
  }
  std::deque<HostTensor> tensors;
  std::deque<HostOp> ops;
  std::vector<HostTensor*> inputs, outputs;
};
struct HostModel {
  std::vector<HostSubgraph*> subgraphs;
};
struct HostOpList {
  std::vector<std::pair<HostOp*, size_t>> ops;
};
struct HostBuffer {
  Bytes bytes;
  int locks = 0;
};
struct HostRequirements {
  size_t bytes = 0;
};

// A table of functions. Functions that are not set do not exist.
class FakeTable {
 public:
  FakeTable() : header{sizeof(FakeTable), kMajor, 0, 0} {}

  template <typename... Args>
  void set(Slot<Args...> slot, Status (*function)(Args...)) {
    functions[slot.at / sizeof(void*) - 1] = reinterpret_cast<void*>(function);
  }
  // f(*from) is a list. Sets two functions: its length, and each element.
  template <typename From, typename One, typename F>
  void set_list(Slot<From*, size_t*> count, Slot<From*, size_t, One**> each, F) {
    set(
        count, +[](From* from, size_t* out) {
          *out = F{}(*from).size();
          return kOk;
        });
    set(
        each, +[](From* from, size_t index, One** out) {
          if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(F{}(*from)[0])>>)
            *out = F{}(*from)[index];
          else
            *out = &F{}(*from)[index];
          return kOk;
        });
  }
  template <ir::OpKind kind, auto member>
  void set_attribute(uint16_t at) {
    using A = ir::AttrsOf<kind>;
    using F = std::remove_cvref_t<decltype(std::declval<A>().*member)>;
    if constexpr (std::is_same_v<F, std::vector<int32_t>>) {
      set(
          Slot<HostOp*, const int32_t**, int32_t*>{at}, +[](HostOp* op, const int32_t** first, int32_t* count) {
            if (op->op->kind != kind) return kInvalid;
            *first = (op->op->as<A>().*member).data();
            *count = static_cast<int32_t>((op->op->as<A>().*member).size());
            return kOk;
          });
    } else {
      using Out = std::conditional_t<std::is_enum_v<F> || std::is_same_v<F, bool>, uint32_t, F>;
      set(
          Slot<HostOp*, Out*>{at}, +[](HostOp* op, Out* out) {
            if (op->op->kind != kind) return kInvalid;
            *out = static_cast<Out>(op->op->as<A>().*member);
            return kOk;
          });
    }
  }

  AbiHeader header;
  void* functions[180] = {};
};

FakeTable compiler_context();
FakeTable runtime_context();

}  // namespace skillet::litert
