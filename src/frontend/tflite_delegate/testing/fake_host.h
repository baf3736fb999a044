// FakeHost: the part of TensorFlow Lite that a delegate uses, around an ir::Graph.
// Called by tests and by the benchmark of the host's part (bench/delegate_bench.cpp).
// Must not know: internals of the delegate.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "frontend/tflite_delegate/tflite_abi.h"
#include "graph/ir/graph.h"
#include "graph/ref/ref.h"

namespace skillet::delegate {

class FakeHost {
 public:
  // Nodes and tensors have the indices of ops and tensors of `graph`. Partitions are runs of adjacent nodes.
  explicit FakeHost(ir::Graph graph);
  ~FakeHost();
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  // As ModifyGraphWithDelegate and AllocateTensors.
  TfLiteStatus apply(TfLiteDelegate* delegate);
  TfLiteStatus prepare();
  // Runs unclaimed ops on graph/ref/.
  TfLiteStatus invoke();
  TfLiteStatus invoke_partition(size_t i) {
    return partitions_[i].registration.invoke(&context_, &partitions_[i].node);
  }
  // Gives an input new dimensions; prepare() must follow.
  void resize(ir::TensorId id, const ir::Shape& shape);

  std::span<uint8_t> bytes(ir::TensorId id);
  // Moves a tensor's memory elsewhere, to an odd address.
  void move_memory(ir::TensorId id);
  TfLiteTensor& tensor(ir::TensorId id) { return tensors_[static_cast<size_t>(id)]; }
  TfLiteNode& node(ir::OpId id) { return nodes_[static_cast<size_t>(id)].node; }
  TfLiteRegistration& registration(ir::OpId id) { return nodes_[static_cast<size_t>(id)].registration; }
  TfLiteContext* context() { return &context_; }
  size_t partitions() const { return partitions_.size(); }
  // Indices of the nodes that partition `i` took.
  std::vector<int> partition(size_t i) const;

  std::vector<std::string> errors;  // reported errors

 private:
  struct Node {
    TfLiteNode node{};
    TfLiteRegistration registration{};
    std::unique_ptr<ref::Kernel> kernel;
    bool replaced = false;
  };
  struct Partition {
    TfLiteNode node{};
    TfLiteRegistration registration{};
    TfLiteDelegateParams params{};
  };
  static FakeHost& of(TfLiteContext* context) { return *static_cast<FakeHost*>(context->impl); }
  static TfLiteStatus get_plan(TfLiteContext* context, TfLiteIntArray** plan);
  static TfLiteStatus get_node(TfLiteContext* context, int index, TfLiteNode** node, TfLiteRegistration** registration);
  static TfLiteStatus resize_tensor(TfLiteContext* context, TfLiteTensor* tensor, TfLiteIntArray* size);
  static void report_error(TfLiteContext* context, const char* format, ...);
  static TfLiteStatus preview(TfLiteContext* context, const TfLiteIntArray* nodes, TfLiteDelegateParams** params,
                              int* count);
  static TfLiteStatus replace(TfLiteContext* context, TfLiteRegistration registration, const TfLiteIntArray* nodes,
                              TfLiteDelegate* delegate);
  std::vector<TfLiteDelegateParams> divide(const TfLiteIntArray* nodes, TfLiteDelegate* delegate);
  void add_tensor(size_t index);
  void add_node(size_t index);
  TfLiteIntArray* array(const std::vector<int>& values);
  void allocate(size_t index);

  ir::Graph graph_;
  TfLiteContext context_{};
  std::vector<TfLiteTensor> tensors_;
  std::vector<Node> nodes_;
  std::vector<Partition> partitions_;
  std::vector<TfLiteDelegateParams> previewed_;
  TfLiteIntArray* plan_ = nullptr;
  std::deque<std::vector<int>> arrays_;  // results of array()
  std::deque<TfLiteAffineQuantization> quants_;
  std::deque<Bytes> params_;
  std::vector<Bytes> memory_;  // by tensor
};

}  // namespace skillet::delegate
