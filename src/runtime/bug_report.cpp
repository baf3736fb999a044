#include "runtime/bug_report.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>

#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "compile/build_id.h"
#include "runtime/program_cache.h"

namespace skillet::runtime {
namespace {

constexpr int kMaxReports = 8;  // a lost device fails in every part of every network

// Creates a file with a new name, which cannot be a link.
Result<std::string> claim_name(const std::string& folder, int number) {
  const std::string path = fmt::format("{}/skillet-bug-{}-{}.tar", folder, ::getpid(), number);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) return error(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  ::close(fd);
  return path;
}

std::string count_name(int count) { return count == 0 ? "auto" : std::to_string(count); }

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
  std::string text =
      fmt::format("skillet   {}\ncompiler  {}\nlibc      {}\nsystem    {} {} {}\n", SKILLET_VERSION,
                  compile::build_id(), ::gnu_get_libc_version(), system.sysname, system.release, system.machine);
  text += describe_device(target);
  text += fmt::format(
      "options   tuning={} switches={} unproven={} per_channel={} fallback={} timeout_ms={} min_macs_per_byte={} "
      "partition={} host_threads={} cores={} cache={} tuning_file={} verify_every={}\n",
      npu::tuning_name(options.compile.tuning), fmt::join(options.compile.switches, "+"),
      npu::unproven_name(options.compile.unproven), npu::per_channel_name(options.compile.per_channel),
      options.allow_fallback, options.timeout.count(), options.min_macs_per_byte.value_or(kMacsPerByte),
      compile::kPartitionByNames[static_cast<size_t>(partition_of(options))],
      count_name(options.host_threads.value_or(0)), count_name(options.cores), options.cache_dir.empty() ? "no" : "yes",
      options.tuning_file.empty() ? "no" : "yes", options.verify_every);
  return text;
}

Result<void> add_part(BugReport& report, const std::string& name, const ir::Graph& graph, const npu::Program& program,
                      bool with_weights) {
  report.files.emplace_back(name + ".graph.txt", text_bytes(ir::print(graph)));
  report.files.emplace_back(name + ".program.txt", text_bytes(npu::print(program)));
  if (!with_weights) return {};
  CompiledModel made{.graph = graph};
  SK_TRY_ASSIGN(Bytes packed, npu::serialise(program, true));
  made.programs.push_back({graph_key(graph), program.chip, std::move(packed)});
  SK_TRY_ASSIGN(Bytes file, save_compiled(made));
  report.files.emplace_back(name + ".program", std::move(file));
  return {};
}

void report_fallback(const Target& target, const SessionOptions& options, size_t index,
                     std::span<const ir::Graph> graphs, const Error& cause) {
  static std::atomic<int> count{0};
  const char* const folder = environment_variable("SKILLET_BUG_DIR");
  if (folder == nullptr || *folder == '\0') return;
  const int number = ++count;
  if (number > kMaxReports) return;
  BugReport report{.text = fmt::format("A part of a network runs on the CPU.\n\ncause     {}\n{}", cause.message,
                                       describe_environment(target, options)),
                   .files = {}};
  // Compiled again, because a loaded program has moved its bytes to the device.
  for (size_t i = 0; i < graphs.size(); ++i) {
    const std::string name = fmt::format("part{}{}", index, graphs.size() == 1 ? "" : fmt::format(", band {}", i));
    auto program = compile_part(target, graphs[i], options);
    const Result<void> added = program.ok() ? add_part(report, name, graphs[i], *program, true) : program.error();
    if (!added.ok()) report.text += fmt::format("{}: {}\n", name, added.error().message);
  }
  std::error_code ignored;                                          // claim_name() reports the error
  std::filesystem::create_directory(expand_home(folder), ignored);  // not its parents: the path may be misspelt
  const auto path = claim_name(expand_home(folder), number);
  const Result<void> written = path.ok() ? write_file(*path, report.pack()) : Result<void>(path.error());
  if (written.ok()) {
    log::warning("a report was written to {}", *path);
  } else {
    log::warning("SKILLET_BUG_DIR: {}", written.error().message);
  }
}

}  // namespace skillet::runtime
