// Delegate: the object behind the host's TfLiteDelegate*. Chooses which nodes of a graph become our kernels.
// Called by plugin.cpp (made, destroyed) and by the host (Prepare).
// Must not know: where options and devices come from.
#pragma once

#include <memory>
#include <vector>

#include "frontend/tflite_delegate/kernel.h"

namespace skillet::delegate {

// A chosen partition, kept until the host requests its kernel.
struct Pending {
  const TfLiteContext* context;
  std::unique_ptr<Kernel> kernel;
};

struct Delegate {
  TfLiteDelegate host;   // first: the host's pointer points to the whole struct
  uint64_t reserved[4];  // zero: newer hosts may read fields here that tflite_abi.h does not have
  std::shared_ptr<State> state;
  std::mutex mutex;              // guards `pending`
  std::vector<Pending> pending;  // between Prepare and the host's call of init
};

// `state` must have its options and target.
std::unique_ptr<Delegate> make_delegate(std::shared_ptr<State> state);

}  // namespace skillet::delegate
