#include "kernels/etnaviv/fake/kernel.h"

#include <cerrno>
#include <thread>

#include "base/caught.h"
#include "base/trace.h"
#include "kernels/etnaviv/fake/file.h"

namespace skillet::fake::etnaviv {

Kernel::Kernel(std::vector<Core> cores, Options options) : fake::Kernel(std::move(options)), cores_(std::move(cores)) {}

std::shared_ptr<File> Kernel::make_file(unsigned minor) { return std::make_shared<EtnavivFile>(*this, minor); }

NodePlace Kernel::place() const {
  const Identity& identity = cores_[0].identity;
  return {.subsystem = "drm",
          .folder = "/dev/dri",
          .major = drm::kMajor,
          .driver = abi::kDriverName,
          .device_name = std::string(identity.device_name),
          .of_full_name = std::string(identity.of_full_name),
          .compatible = std::string(identity.compatible),
          .cores = {},
          .nodes = {{"card0", drm::kCardMinor}, {"renderD128", drm::kRenderMinor}}};
}

// A fault has the effect of a hang on hardware: the core is reset and user space sees unwritten outputs.
int Kernel::run(const Request& request, FaultKind fault) {
  const Core& core = cores_[request.pipe];
  const bool is_lost = fault == FaultKind::reset;
  if (is_lost || fault == FaultKind::reset_before)
    log::warning("virtual {}: recover hung GPU: injected reset", core.chip);
  if (core.simulator == nullptr) return 0;
  if (is_lost || fault == FaultKind::reset_before) core.simulator->reset(0);
  if (is_lost) return 0;
  const Result<void> done = caught([&] { return simulate(core, request); });
  if (fault == FaultKind::late) std::this_thread::sleep_for(kJobTimeout);
  if (done.ok()) return 0;
  core.simulator->reset(0);
  const bool is_error = options().on_fault == OnFault::error;
  if (!is_error || !options().is_own_process)
    log::warning("virtual {}: recover hung GPU: {}", core.chip, done.error().message);
  return is_error ? refuse(EIO, "{}", done.error().message) : 0;
}

Result<void> Kernel::simulate(const Core& core, const Request& request) const {
  sim::Memory memory;
  for (size_t i = 0; i < request.uses.size(); ++i) {
    const Request::Use& use = request.uses[i];
    const uint64_t size = options().is_own_process ? use.buffer->asked_bytes() : use.buffer->size_bytes();
    const std::span<uint8_t> bytes = use.buffer->bytes().first(size);
    const std::string name = fmt::format("buffer {}", request.buffers[i].handle);
    // The kernel accepts a job that writes more than it lists, but no fence covers these writes.
    if (use.writes || !options().checks_lists)
      SK_TRY(memory.map(use.address, bytes, name));
    else
      SK_TRY(memory.map_to_read(use.address, bytes, name + ", which the job does not list as written"));
  }
  {
    const skillet::trace::Slice slice(skillet::trace::kSimulate);
    SK_TRY(core.simulator->execute(request.stream, memory));
  }
  if (options().clock == nullptr) return {};
  const std::span words(request.stream);
  const sim::Commands commands{.bytes = {reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()}};
  options().clock->count_submission();
  options().clock->count_job({.commands = {&commands, 1}}, memory);
  return {};
}

std::unique_ptr<fake::Kernel> create(const std::string& chip, std::unique_ptr<sim::Device> simulator, Options options) {
  std::vector<Core> cores;
  cores.push_back({chip, identity_of(chip), std::move(simulator)});
  if (const std::string_view assumption = cores[0].identity.assumption; !assumption.empty())
    log::message(log::Level::info, "simulated {}: {}", chip, assumption);
  return std::make_unique<Kernel>(std::move(cores), std::move(options));
}

}  // namespace skillet::fake::etnaviv
