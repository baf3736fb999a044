// The files of a case of the RK3576's vendor compiler: its description, programs and buffers. Called by
// vendor_case.cpp, vendor_run.cpp. Must not know: their use.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet::golden {

constexpr size_t kWordBytes = 8;

// A command of a program.
struct Word {
  uint16_t target = 0, address = 0;
  uint32_t value = 0;
  bool operator==(const Word&) const = default;
};
using Words = std::vector<Word>;
uint32_t value_of(const Words& words, uint16_t address);  // 0: no such word

struct VendorCase {
  std::string folder;
  nlohmann::json j;
  Bytes program;

  Words words(const nlohmann::json& task) const;  // without the trailer
  std::vector<Words> records(int number) const;   // of one operation
  std::optional<Bytes> buffer(int number, std::string_view role) const;
};
Result<VendorCase> read_vendor_case(const std::string& folder);

}  // namespace skillet::golden
