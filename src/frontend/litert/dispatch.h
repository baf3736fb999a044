// The dispatch library: runs parts from the compiler plug-in on the host's buffers.
// Called by dispatch_exports.cpp. Must not know: how parts are chosen.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/host/options.h"
#include "frontend/litert/litert_abi.h"
#include "runtime/session.h"

namespace skillet::litert {

struct Device {
  Table host;
  host::Options options;
  runtime::Target target;  // without a driver: CPU kernels run
};

// One part of a model.
struct Invocation {
  // A tensor of the session, and the host's buffer for it.
  struct Port {
    HostBuffer* buffer = nullptr;
    uint64_t bytes = 0;
  };

  Device* device = nullptr;
  std::unique_ptr<runtime::Session> session;
  std::mutex mutex;  // guards all members below
  std::vector<Port> inputs, outputs;
  std::vector<std::span<const uint8_t>> in;
  std::vector<std::span<uint8_t>> out;
};

Result<std::unique_ptr<Device>> make_device(const void* context);
// `name`: the part's name in the model. `is_wrong`: true if Skillet did not write the bytes, or if
// they are another part's.
Result<std::unique_ptr<Invocation>> make_invocation(Device& device, const MemBuffer& memory, std::string_view name,
                                                    int num_inputs, int num_outputs, bool& is_wrong);
// An error if the host's tensor has another type than the part was compiled for; null: the host passes no type.
Result<void> check_type(const Invocation& invocation, bool is_input, size_t index, const RankedType* type);
Result<void> attach(const Device& device, Invocation::Port& port, HostBuffer* buffer);
Result<void> invoke(Invocation& invocation);

}  // namespace skillet::litert
