// Payload: the first operand of an operation made by Arm's compiler Vela: the chip it is for, and the stream of
// commands (hardware specification, appendix D).
// Called by support.cpp and program.cpp.
// Must not know: what commands do.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "npus/ethosu/hw/ethosu.h"

namespace skillet::npus::ethosu {

namespace hw = ::skillet::ethosu::hw;

struct Payload {
  hw::PayloadConfig config;
  std::vector<uint32_t> stream;
};
Result<Payload> read_payload(std::span<const uint8_t> bytes);

}  // namespace skillet::npus::ethosu
