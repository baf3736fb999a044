// Written: one buffer that a submission wrote, and its difference from the other side's.
// Called by `skillet replay`. Must not know: devices.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/jobs/writers.h"

namespace skillet::tools {

struct Written {
  size_t submission = 0;
  uint32_t handle = 0;
  uint64_t size_bytes = 0, hash = 0;
  std::optional<uint64_t> differing;  // number of bytes that differ from the other side
  uint64_t first = 0;                 // the first of these
  int largest = 0;                    // largest difference of two bytes
  std::vector<Writer> writers;        // of the buffer
  std::optional<Writer> writer;       // writer of the first byte that differs
};

// `b`: the other side's bytes.
void count_differences(std::span<const uint8_t> a, std::span<const uint8_t> b, Written& out);

nlohmann::json json_of(const Written& one);
std::string writers_text(const Written& one);
// "16,384 bytes by up to 3; first byte 0: job 1 NN, row 0, column 0, channel 0"
std::string difference_text(const Written& one);

}  // namespace skillet::tools
