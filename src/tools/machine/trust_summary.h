// Counts the assumptions of one device by their state. For `skillet trust` and `skillet doctor`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/device_context.h"

namespace skillet::tools {

struct NotAsked {
  std::string_view name;
  std::string why;
};

struct TrustSummary {
  std::vector<std::string_view> confirmed, refuted, open;  // assumptions by name, in the order of the driver's table
  std::vector<NotAsked> not_asked;                         // assumptions that no session tests on this device
  size_t programs = 0;                                     // parts of networks with right results, of this build
  size_t refuted_operations = 0;                           // wrong results, though their assumptions hold
};

// The target must have trust.
TrustSummary summary_of_trust(const runtime::Target& target);

// Text after "taken": names from Trust::add_kept(), and what to do about them. Empty: nothing.
std::string still_refuted(const std::vector<std::string>& names);

}  // namespace skillet::tools
