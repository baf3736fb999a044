#include "interpose/virtual_core.h"

#include <cstring>

namespace skillet::interpose {

Result<std::unique_ptr<VirtualCore>> VirtualCore::create(VirtualOptions options) {
  std::unique_ptr<VirtualCore> core(new VirtualCore(std::move(options)));
  SK_TRY_ASSIGN(core->chip_, sim::create(core->options_.chip));
  return core;
}

void VirtualCore::write_trace(const std::string& text) const {
  const std::string line = fmt::format("skillet: virtual: {}\n", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void VirtualCore::write_refusal(int number, const std::string& text) const {
  const char* const name = ::strerrorname_np(number);
  write_trace(fmt::format("{}: {}", name == nullptr ? "?" : name, text));
}

}  // namespace skillet::interpose
