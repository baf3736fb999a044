// target_at(): the target of a --device text that names a node, for a node of a fake kernel driver in this process.
// Called by tests of clients and of sessions on them.
// Must not know: which kernel driver it is.
#pragma once

#include <string>

#include "kernels/api/kernels.h"
#include "runtime/device_context.h"

namespace skillet::testing {

inline Result<runtime::Target> target_at(const std::string& node, const kernels::SyscallsRef& calls) {
  SK_TRY_ASSIGN(kernels::NodeReport report, kernels::ask_node(node, calls));
  const runtime::NpuSearch search = runtime::identify({std::move(report)});
  if (search.npus.empty()) return error(ErrorCode::unsupported, "{}", search.rejected);
  const runtime::FoundNpu& npu = search.npus[0];
  runtime::Target target{.name = node, .chip = npu.chip, .driver = npu.driver, .context = nullptr};
  target.context = std::make_shared<runtime::DeviceContext>();
  target.context->chip = npu.chip.name;
  SK_TRY_ASSIGN(target.context->device, kernels::open_core(npu.core, calls));
  return target;
}

}  // namespace skillet::testing
