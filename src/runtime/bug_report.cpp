#include "runtime/bug_report.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "base/text.h"
#include "compile/build_id.h"

namespace skillet::runtime {
namespace {

constexpr int kMaxReports = 8;  // a device that is gone fails with every part of every network

// Claims a name that nobody has, and no link leads elsewhere.
Result<std::string> claim_name(const std::string& folder, int number) {
  const std::string path = fmt::format("{}/skillet-bug-{}-{}.tar", folder, ::getpid(), number);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) return error(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  ::close(fd);
  return path;
}

std::string describe_device(const Target& target) {
  if (target.driver == nullptr) return fmt::format("device    {}\n", target.name);
  std::string text = fmt::format("device    {}\nchip      {}, {}\n", target.name, target.chip.name, target.chip.title);
  if (target.context == nullptr || target.context->device == nullptr) return text;
  const capture::DeviceInfo& info = target.context->device->info();
  text += fmt::format("node      {}\nkernel    {}\nmachine   {}\n", info.node, info.kernel_driver, info.compatible);
  for (const capture::Fact& fact : info.facts) text += fmt::format("  {} {:#x}\n", fact.name, fact.value);
  return text;
}

}  // namespace

Bytes BugReport::pack() const {
  std::vector<NamedFile> all = {{"report.txt", text_bytes(text)}};
  all.insert(all.end(), files.begin(), files.end());
  return tar(all);
}

std::string describe_environment(const Target& target, const SessionOptions& options) {
  utsname system{};
  ::uname(&system);
  std::string text = fmt::format("compiler  {}\nlibc      {}\nsystem    {} {} {}\n", compile::build_id(),
                                 ::gnu_get_libc_version(), system.sysname, system.release, system.machine);
  text += describe_device(target);
  text += fmt::format(
      "options   tuning={} switches={} allow_unproven={} per_channel={} fallback={} timeout_ms={} min_macs_per_byte={} "
      "partition={} cache={} tuning_file={}\n",
      driver::tuning_name(options.compile.tuning), fmt::join(options.compile.switches, "+"),
      options.compile.allow_unproven, driver::per_channel_name(options.compile.per_channel), options.allow_fallback,
      options.timeout.count(), options.min_macs_per_byte.value_or(kMacsPerByte),
      compile::kPartitionByNames[static_cast<size_t>(partition_of(options))], options.cache_dir.empty() ? "no" : "yes",
      options.tuning_file.empty() ? "no" : "yes");
  return text;
}

void add_part(BugReport& report, const std::string& name, const ir::Graph& graph, const driver::Program* program) {
  report.files.emplace_back(name + ".graph.txt", text_bytes(ir::print(graph)));
  if (program != nullptr) report.files.emplace_back(name + ".program.txt", text_bytes(driver::print(*program)));
}

void report_fallback(const Target& target, const SessionOptions& options, const ir::Graph& part, const Error& cause) {
  static std::atomic<int> count{0};
  const char* const folder = std::getenv("SKILLET_BUG_DIR");
  if (folder == nullptr || *folder == '\0') return;
  const int number = ++count;
  if (number > kMaxReports) return;
  BugReport report{.text = fmt::format("A part of a network runs on the CPU.\n\ncause     {}\n{}", cause.message,
                                       describe_environment(target, options)),
                   .files = {}};
  // Once more: a program that is loaded has given its bytes to the device.
  const auto program = target.driver->compile(target.chip, part, options.compile);
  add_part(report, "part", part, program.ok() ? &*program : nullptr);
  std::error_code ignored;                                          // claim_name() says what is wrong
  std::filesystem::create_directory(expand_home(folder), ignored);  // not those above it: a misspelt path
  const auto path = claim_name(expand_home(folder), number);
  const Result<void> written = path.ok() ? write_file(*path, report.pack()) : Result<void>(path.error());
  if (written.ok()) {
    log::warning("a report of it is in {}", *path);
  } else {
    log::warning("SKILLET_BUG_DIR: {}", written.error().message);
  }
}

}  // namespace skillet::runtime
