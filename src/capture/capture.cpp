#include "capture/capture.h"

#include <algorithm>
#include <filesystem>

#include "capture/golden_folder.h"

namespace skillet::capture {

Result<Capture> read(const std::string& path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) return read_golden_folder(path).with_context(path);
  SK_TRY_ASSIGN(const Bytes file, read_file(path));
  return parse(file).with_context(path);
}

Result<void> write(const Capture& capture, const std::string& path) {
  SK_TRY_ASSIGN(const Bytes file, serialise(capture).with_context(path));
  return write_file(path, file);
}

uint64_t DeviceInfo::fact(std::string_view name) const {
  const auto found = std::ranges::find(facts, name, &Fact::name);
  return found == facts.end() ? 0 : found->value;
}

std::string print(const DeviceInfo& info) {
  std::string text;
  for (const Fact& one : info.facts) text += fmt::format("{}{} {:#x}", text.empty() ? "" : ", ", one.name, one.value);
  if (text.empty() && !info.compatible.empty()) text = fmt::format("compatible '{}'", info.compatible);
  return text;
}

void set_contents(BufferSnapshot& snapshot, std::span<const uint8_t> contents) {
  const auto last = std::find_if(contents.rbegin(), contents.rend(), [](uint8_t byte) { return byte != 0; });
  snapshot.bytes.assign(contents.begin(), last.base());
  snapshot.content = snapshot.bytes.empty() ? Content::zero : Content::bytes;
}

}  // namespace skillet::capture
