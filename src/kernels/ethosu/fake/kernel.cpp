#include "kernels/ethosu/fake/kernel.h"

#include <cerrno>
#include <thread>

#include "base/caught.h"
#include "base/trace.h"
#include "kernels/ethosu/fake/file.h"

namespace skillet::fake::ethosu {
namespace {

// The simulated address of a region's buffer; programs never get this address from the kernel.
constexpr uint64_t address_of(size_t region) { return uint64_t{region + 1} << 36; }

}  // namespace

Kernel::Kernel(std::string chip, const Identity& identity, std::unique_ptr<sim::Device> simulator, Options options)
    : fake::Kernel(std::move(options)), chip_(std::move(chip)), identity_(identity), simulator_(std::move(simulator)) {}

std::shared_ptr<File> Kernel::make_file(unsigned minor) { return std::make_shared<EthosuFile>(*this, minor); }

NodePlace Kernel::place() const {
  return {.subsystem = "accel",
          .folder = "/dev/accel",
          .major = abi::kAccelMajor,
          .driver = abi::kDriverName,
          .device_name = "virtual.npu",
          .of_full_name = "/npu",
          .compatible = std::string(identity_.compatible),
          .cores = {},
          .nodes = {{"accel0", 0}}};
}

// A fault has the effect of a hang on hardware: the NPU is reset and user space sees unwritten outputs.
int Kernel::run(const Launch& launch, FaultKind fault) {
  const bool is_lost = fault == FaultKind::reset;
  if (is_lost || fault == FaultKind::reset_before) log::warning("virtual {}: job timed out: injected reset", chip_);
  if (simulator_ == nullptr) return 0;
  if (is_lost || fault == FaultKind::reset_before) simulator_->reset(0);
  if (is_lost) return 0;
  const Result<void> done = caught([&] { return simulate(launch); });
  if (fault == FaultKind::late) std::this_thread::sleep_for(kJobTimeout);
  if (done.ok()) return 0;
  simulator_->reset(0);
  const bool is_error = options().on_fault == OnFault::error;
  if (!is_error || !options().is_own_process)
    log::warning("virtual {}: job timed out: {}", chip_, done.error().message);
  return is_error ? refuse(EIO, "{}", done.error().message) : 0;
}

// Buffers that the stream does not write are mapped read-only.
Result<void> Kernel::simulate(const Launch& launch) const {
  sim::Memory memory;
  std::array<uint64_t, abi::kRegions> slots{};
  for (size_t region = 0; region < slots.size(); ++region) {
    const std::shared_ptr<Buffer>& buffer = launch.regions[region];
    if (buffer == nullptr) continue;
    slots[region] = address_of(region);
    const uint64_t size = options().is_own_process ? buffer->asked_bytes() : buffer->size_bytes();
    const std::span<uint8_t> bytes = buffer->bytes().first(size);
    const std::string name = fmt::format("region {}", region);
    if (launch.stream->needs.writes[region])
      SK_TRY(memory.map(slots[region], bytes, name));
    else
      SK_TRY(memory.map_to_read(slots[region], bytes, name));
  }
  const std::span words(launch.stream->words);
  const sim::Commands commands{.bytes = {reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()}};
  const sim::Job job{.commands = {&commands, 1}, .slots = slots, .sram_bytes = launch.sram_bytes};
  {
    const trace::Slice slice(trace::kSimulate);
    SK_TRY(simulator_->run(job, memory));
  }
  if (options().clock == nullptr) return {};
  options().clock->count_submission();
  options().clock->count_job(job, memory);
  return {};
}

bool has(std::string_view chip) { return identity_of(chip).has_value(); }

std::unique_ptr<fake::Kernel> create(const std::string& chip, std::unique_ptr<sim::Device> simulator, Options options) {
  const Identity identity = identity_of(chip).value_or(Identity{});
  if (!identity.assumption.empty()) log::message(log::Level::info, "simulated {}: {}", chip, identity.assumption);
  return std::make_unique<Kernel>(chip, identity, std::move(simulator), std::move(options));
}

}  // namespace skillet::fake::ethosu
