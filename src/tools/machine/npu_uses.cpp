#include "tools/machine/npu_uses.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "base/parse_number.h"
#include "base/text.h"
#include "base/trace.h"
#include "base/use_page.h"
#include "lab/interpose/environment.h"
#include "tools/time/clocks.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostText = 1 << 16;  // limit for a file in /proc
constexpr size_t kMostCores = 31;      // a process has as many slots
constexpr std::string_view kMemfd = "/memfd:", kDeleted = " (deleted)";

// Escapes an untrusted name for a terminal and for UTF-8 files.
std::string clean(std::string_view text) {
  std::string out = printable(text);
  if (is_utf8(out)) return out;
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return out;
}

template <size_t size>
std::string text_in(const std::array<char, size>& chars) {
  return clean({chars.data(), ::strnlen(chars.data(), size)});
}

std::string contents(const std::string& path) {
  std::string text(kMostText, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return text;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

// Calls `visit` for "KEY: VALUE" of each line.
template <typename Visit>
void each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (const size_t colon = line.find(':'); colon != std::string_view::npos)
      visit(line.substr(0, colon), trimmed(line.substr(colon + 1)));
  }
}

// Parses "12 KiB" to 12288; none: no number.
std::optional<double> number(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"KiB", 1024}, {"MiB", 1024 * 1024}, {"GiB", 1024 * 1024 * 1024}, {"KHz", 1e3}, {"MHz", 1e6}};
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc()) return std::nullopt;
  const std::string_view unit = trimmed({end, static_cast<size_t>(text.data() + text.size() - end)});
  const auto* const known = std::ranges::find(kUnits, unit, [](const auto& one) { return one.first; });
  return static_cast<double>(value) * (known == std::end(kUnits) ? 1 : known->second);
}

// A number in a line of /proc/PID/status; UINT64_MAX if there is none.
uint64_t whole_number(std::string_view text) {
  uint64_t value = UINT64_MAX;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// A copy of a page, and its time.
struct ReadPage {
  use::Page page;
  uint64_t at_ns = 0;
};

// Reads again if the process was preempted, because the time of the copy is then not known.
bool read_at_once(int fd, ReadPage& out) {
  constexpr uint64_t kAtOnceNs = 200'000;
  constexpr int kMostTries = 8;
  for (int i = 0; i < kMostTries; ++i) {
    const uint64_t before_ns = trace::now_ns();
    if (::pread(fd, static_cast<void*>(&out.page), sizeof out.page, 0) != sizeof out.page) return false;
    out.at_ns = trace::now_ns();
    if (out.at_ns - before_ns < kAtOnceNs) break;
  }
  return true;
}

std::optional<ReadPage> read_page(const std::string& path, const std::string& process) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct stat status {};
  ReadPage read;
  const bool is_whole = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == sizeof read.page &&
                        read_at_once(fd, read);
  ::close(fd);
  uint64_t user = 0, own_number = 0;
  each_line(contents(process + "/status"), [&](std::string_view key, std::string_view value) {
    if (key == "Uid") user = whole_number(value.substr(value.find('\t') + 1));           // the second of four
    if (key == "NSpid") own_number = whole_number(value.substr(value.rfind('\t') + 1));  // the last: own namespace
  });
  const bool is_its_own = status.st_uid == user && read.page.process == own_number;
  return is_whole && is_its_own && read.page.magic == use::Page::kMagic ? std::optional(read) : std::nullopt;
}

template <typename T, typename U>
void add(std::optional<T>& sum, const std::optional<U>& more) {
  if (more) sum = sum.value_or(0) + *more;
}

// The open files of one process.
class Process {
 public:
  Process(fs::path folder, uint64_t number, const std::set<std::string>& nodes)
      : folder_(std::move(folder)), number_(number), nodes_(nodes) {}

  void read(std::vector<ProcessUse>& uses) {
    std::error_code gone;
    for (const fs::path& one : entries(folder_ / "fd")) look_at(one, fs::read_symlink(one, gone).string());
    for (const ReadPage& read : pages_) add_page(read);
    for (auto& [key, use] : uses_) uses.push_back(std::move(use));
  }

 private:
  void look_at(const fs::path& file, std::string_view target) {
    if (target.starts_with("/dev/")) {
      if (target.starts_with("/dev/accel/") || nodes_.contains(std::string(target)))
        add_file(use_of(target, NpuKind::npu), contents(folder_ / "fdinfo" / file.filename()));
      return;
    }
    if (!target.starts_with(kMemfd)) return;
    target.remove_prefix(kMemfd.size());
    if (target.ends_with(kDeleted)) target.remove_suffix(kDeleted.size());
    if (target.starts_with(interpose::kNodeName))
      use_of(target.substr(std::strlen(interpose::kNodeName)), NpuKind::virtual_node);
    if (target != use::kPageName) return;
    if (const auto page = read_page(file, folder_)) pages_.push_back(*page);
  }

  // Without a chip: the use of the node. The first chip that is found gets it; other chips get their own.
  ProcessUse& use_of(std::string_view device, NpuKind kind, const std::string& chip = "") {
    const auto of_node = uses_.find({std::string(device), kind, ""});
    const bool is_other = of_node != uses_.end() && !of_node->second.chip.empty() && of_node->second.chip != chip;
    ProcessUse& use = uses_[{std::string(device), kind, is_other ? chip : ""}];
    if (!chip.empty()) use.chip = chip;
    if (use.process != 0) return use;
    use.device = clean(device);
    use.kind = kind;
    use.process = number_;
    use.process_name = clean(first_line(folder_ / "comm"));
    return use;
  }

  // A client with several descriptors is counted once.
  void add_file(ProcessUse& use, const std::string& text) {
    const uint64_t read_at_ns = trace::now_ns();
    const DrmFdinfo info = parse_fdinfo(text);
    if (!info.client.empty() && !clients_.insert({use.device, info.client}).second) return;
    use.kernel_says_busy |= info.busy_ns.has_value();
    if (info.busy_ns) use.cores = std::max(use.cores, info.engines);
    use.kernel_says_bytes |= info.bytes.has_value();
    add(use.busy_ns, info.busy_ns);
    if (info.busy_ns) use.read_at_ns = read_at_ns;
    add(use.bytes, info.bytes);
  }

  void add_page(const ReadPage& read) {
    for (const use::Slot& slot : read.page.slots) {
      if (slot.cores == 0) continue;
      const std::string device = text_in(slot.device);
      const bool is_node = device.starts_with('/');
      const bool is_virtual = uses_.contains({device, NpuKind::virtual_node, ""});
      const NpuKind of_node = is_virtual ? NpuKind::virtual_node : NpuKind::npu;
      ProcessUse& use = use_of(device, is_node ? of_node : NpuKind::simulated, text_in(slot.chip));
      add_slot(slot, running_ns(read, slot), use);
      if (!use.kernel_says_busy) use.read_at_ns = read.at_ns;
    }
  }

  // Busy time that is not in busy_ns yet: the slot's share of the cores' time.
  static double running_ns(const ReadPage& read, const use::Slot& slot) {
    if (slot.since_ns == 0) return 0;
    const use::Page& page = read.page;
    const std::string device = text_in(slot.device);
    const auto running = std::ranges::count_if(
        page.slots, [&](const use::Slot& one) { return one.since_ns != 0 && text_in(one.device) == device; });
    const double passed = static_cast<double>(read.at_ns) - static_cast<double>(slot.since_ns);
    return std::max(passed, 0.0) * static_cast<double>(use::busy_cores(page.slots, device)) /
           static_cast<double>(running);
  }

  static void add_slot(const use::Slot& slot, double running_ns, ProcessUse& use) {
    ++use.files;
    if (slot.model[0] != '\0') use.models.insert(text_in(slot.model));
    if (!use.kernel_says_busy) use.cores = std::max(use.cores, std::min<size_t>(slot.cores, kMostCores));
    add(use.submitted, std::optional(slot.submitted));
    add(use.jobs, std::optional(slot.finished));
    if (!use.kernel_says_bytes) add(use.bytes, std::optional(static_cast<double>(slot.bytes)));
    if (!use.kernel_says_busy) add(use.busy_ns, std::optional(static_cast<double>(slot.busy_ns) + running_ns));
  }

  const fs::path folder_;
  const uint64_t number_;
  const std::set<std::string>& nodes_;
  std::map<std::tuple<std::string, NpuKind, std::string>, ProcessUse> uses_;  // by device, kind, chip
  std::set<std::pair<std::string, std::string>> clients_;
  std::vector<ReadPage> pages_;  // of each Skillet library in the process
};

double sum(const std::map<std::string, double, std::less<>>& values) {
  double all = 0;
  for (const auto& [name, value] : values) all += value;
  return all;
}

}  // namespace

std::string_view name_of(NpuKind kind) {
  constexpr std::string_view kNames[] = {"npu", "virtual", "simulated"};
  return kNames[static_cast<size_t>(kind)];
}

DrmFdinfo parse_fdinfo(std::string_view text) {
  using Values = std::map<std::string, double, std::less<>>;
  DrmFdinfo out;
  // Kinds by their prefix; longer prefixes first.
  std::pair<std::string_view, Values> kinds[] = {
      {"drm-engine-capacity-", {}}, {"drm-engine-", {}}, {"drm-cycles-", {}}, {"drm-maxfreq-", {}},
      {"drm-resident-", {}},        {"drm-memory-", {}}, {"drm-total-", {}}};
  each_line(text, [&](std::string_view key, std::string_view value) {
    if (key == "drm-driver") out.driver = clean(value);
    if (key == "drm-client-id") out.client = clean(value);
    auto* const kind = std::ranges::find_if(kinds, [&](const auto& one) { return key.starts_with(one.first); });
    if (kind == std::end(kinds)) return;
    if (const auto read = number(value)) kind->second[std::string(key.substr(kind->first.size()))] = *read;
  });
  const Values &capacities = kinds[0].second, &engines = kinds[1].second, &frequencies = kinds[3].second;
  for (const auto& [name, ns] : engines) {
    const auto capacity = capacities.find(name);
    ++out.engines;
    add(out.busy_ns, std::optional(ns / (capacity == capacities.end() ? 1 : std::max(capacity->second, 1.0))));
  }
  for (const auto& [name, count] : kinds[2].second) {
    const auto hz = frequencies.find(name);
    if (!engines.empty() || hz == frequencies.end() || hz->second <= 0) continue;
    ++out.engines;
    add(out.busy_ns, std::optional(count / hz->second * 1e9));
  }
  for (size_t kind = 4; kind < std::size(kinds) && !out.bytes; ++kind)
    if (!kinds[kind].second.empty()) out.bytes = sum(kinds[kind].second);
  return out;
}

std::vector<ProcessUse> npu_uses(const std::set<std::string>& nodes, const std::string& root) {
  std::vector<ProcessUse> uses;
  for (const fs::path& folder : entries(root + "/proc")) {
    if (const auto process = parse_number<uint64_t>(folder.filename().string()))
      Process(folder, *process, nodes).read(uses);
  }
  return uses;
}

}  // namespace skillet::tools
