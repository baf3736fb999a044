// What is known of the assumptions of one device, counted. For `skillet trust` and `skillet doctor`.
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
  std::vector<NotAsked> not_asked;                         // what no load asks this device
  size_t programs = 0;                                     // parts of networks that were right, made by this build
  size_t refuted_operations = 0;                           // wrong though their assumptions hold
};

// Of a target with trust.
TrustSummary summary_of_trust(const runtime::Target& target);

// What follows "taken": what Trust::add_kept() gives, and what to do about it. Empty: nothing.
std::string still_refuted(const std::vector<std::string>& names);

}  // namespace skillet::tools
