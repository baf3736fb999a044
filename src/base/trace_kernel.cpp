#include "base/trace_kernel.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "base/parse_number.h"

namespace skillet::trace {
namespace {

constexpr std::string_view kOurs = "skillet-";
constexpr size_t kMostEvents = 200'000;

bool put(const std::string& file, std::string_view text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

// Removes instances of crashed processes, which continue to record.
void remove_old(const std::string& folder) {
  std::error_code failed;
  std::filesystem::directory_iterator entry(folder, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(kOurs)) continue;
    const std::string process = "/proc/" + name.substr(kOurs.size());
    if (::access(process.c_str(), F_OK) != 0 && errno == ENOENT) ::rmdir(entry->path().c_str());
  }
}

// "12.345678"
std::optional<int64_t> time_ns(std::string_view text) {
  const size_t point = text.find('.');
  if (point == std::string_view::npos || text.size() - point - 1 > 9) return std::nullopt;
  std::string fraction(text.substr(point + 1));
  fraction.resize(9, '0');
  const auto seconds = parse_number<uint32_t>(text.substr(0, point));
  const auto rest = parse_number<uint32_t>(fraction);
  if (!seconds || !rest) return std::nullopt;
  return int64_t{*seconds} * 1'000'000'000 + *rest;
}

}  // namespace

bool parse_kernel_event(const std::string& line, KernelEvent& event) {
  if (line.starts_with('#')) return false;
  const std::string_view all = line;
  const size_t cpu = all.find("] ");
  const size_t end = cpu == std::string_view::npos ? cpu : all.find(": ", cpu);
  if (end == std::string_view::npos) return false;
  const size_t begin = all.rfind(' ', end);
  const auto at_ns = time_ns(all.substr(begin + 1, end - begin - 1));
  if (!at_ns) return false;
  const std::string_view rest = all.substr(end + 2);
  const size_t colon = rest.find(':');
  if (colon == 0 || colon == std::string_view::npos) return false;
  event = {*at_ns, std::string(rest.substr(0, colon)),
           std::string(rest.substr(std::min(rest.size(), rest.find_first_not_of(' ', colon + 1))))};
  return true;
}

KernelEvents::KernelEvents(std::string folder) {
  remove_old(folder);
  const std::string instance = folder + "/" + std::string(kOurs) + std::to_string(::getpid());
  if (::mkdir(instance.c_str(), 0700) != 0 && errno != EEXIST) {
    log::info("the trace lacks the kernel's events: {}: {}", instance, std::strerror(errno));
    return;
  }
  instance_ = instance;
  if (put(instance + "/trace_clock", "mono") && put(instance + "/events/gpu_scheduler/enable", "1")) return;
  log::info("the trace lacks the kernel's events: this kernel has no events gpu_scheduler");
  ::rmdir(instance.c_str());
  instance_.clear();
}

KernelEvents::~KernelEvents() {
  if (!instance_.empty()) ::rmdir(instance_.c_str());
}

std::vector<KernelEvent> KernelEvents::take() {
  std::vector<KernelEvent> out;
  if (instance_.empty()) return out;
  put(instance_ + "/tracing_on", "0");
  std::ifstream file(instance_ + "/trace");
  KernelEvent event;
  for (std::string line; out.size() < kMostEvents && std::getline(file, line);) {
    if (parse_kernel_event(line, event)) out.push_back(event);
  }
  return out;
}

}  // namespace skillet::trace
