#include "vendor_files.h"

#include <algorithm>

namespace skillet::golden {

uint32_t value_of(const Words& words, uint16_t address) {
  const auto found = std::ranges::find(words, address, &Word::address);
  return found == words.end() ? 0 : found->value;
}

using nlohmann::json;

Words VendorCase::words(const json& task) const {
  Words out;
  const size_t at = task.at("offset"), count = task.at("words");
  for (size_t i = 0; i < count && at + (i + 1) * kWordBytes <= program.size(); ++i) {
    const auto word = load_le<uint64_t>(program.data() + at + i * kWordBytes);
    out.push_back({static_cast<uint16_t>(word >> 48), static_cast<uint16_t>(word), static_cast<uint32_t>(word >> 16)});
  }
  return out;
}

std::vector<Words> VendorCase::records(int number) const {
  std::vector<Words> out;
  for (const json& task : j.at("tasks")) {
    if (task.at("op") == number) out.push_back(words(task));
  }
  return out;
}

std::optional<Bytes> VendorCase::buffer(int number, std::string_view role) const {
  for (const json& one : j.at("buffers")) {
    if (one.at("op") != number || one.at("role") != role) continue;
    if (auto bytes = read_file(folder + "/" + one.at("file").get<std::string>()); bytes.ok()) return std::move(*bytes);
  }
  return std::nullopt;
}

Result<VendorCase> read_vendor_case(const std::string& folder) {
  VendorCase c{.folder = folder, .j = {}, .program = {}};
  SK_TRY_ASSIGN(const Bytes text, read_file(folder + "/case.json"));
  c.j = json::parse(text.begin(), text.end(), nullptr, false);
  if (!c.j.is_object() || !c.j.contains("tasks") || !c.j.contains("kind"))
    return error(ErrorCode::invalid_argument, "{}/case.json: not the case of a vendor's compiler", folder);
  SK_TRY_ASSIGN(c.program, read_file(folder + "/program.bin"));
  return c;
}

}  // namespace skillet::golden
