// Replays a capture file on the simulator and compares the buffers that its last job writes with the expected bytes.
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/bytes.h"
#include "capture/reader.h"
#include "kernels/etnaviv/recorder/replay.h"
#include "kernels/fake/simulated.h"
#include "npu/driver.h"

namespace skillet::interpose_test {
namespace {

Result<npu::Chip> chip_of(const capture::DeviceInfo& info) {
  for (const npu::Driver* driver : npu::drivers()) {
    if (auto chip = driver->identify(info); chip.ok()) return chip;
  }
  return error(ErrorCode::malformed, "no driver knows the recorded device");
}

Result<bool> is_output(kernels::etnaviv::Replay& replay, const capture::Submission& job, const Bytes& expected) {
  for (const capture::BufferSnapshot& one : job.buffers) {
    if (!one.write || one.size_bytes < expected.size()) continue;
    SK_TRY_ASSIGN(const std::span<uint8_t> bytes, replay.buffer(one.handle));
    bool is_equal = true;
    for (size_t i = 0; i < expected.size(); ++i) is_equal = is_equal && std::abs(bytes[i] - expected[i]) <= 1;
    if (is_equal) return true;
  }
  return false;
}

Result<void> run(const std::string& path, const std::string& expected_path) {
  SK_TRY_ASSIGN(capture::Reader recorded, capture::Reader::open(path));
  SK_TRY_ASSIGN(const Bytes expected, read_file(expected_path));
  SK_TRY_ASSIGN(const npu::Chip chip, chip_of(recorded.device()));
  SK_TRY_ASSIGN(const fake::SimulatedCore simulated, fake::simulated_core(chip.name));
  SK_TRY_ASSIGN(auto replay, kernels::etnaviv::Replay::create(simulated.core, simulated.calls));
  std::optional<capture::Submission> last;
  while (true) {
    SK_TRY_ASSIGN(std::optional<capture::Submission> one, recorded.next());
    if (!one) break;
    SK_TRY(replay.run(*one).with_context(fmt::format("submission {}", recorded.index())));
    last = std::move(one);
  }
  if (!last) return error(ErrorCode::malformed, "{}: no submissions", path);
  SK_TRY_ASSIGN(const bool is_right, is_output(replay, *last, expected));
  if (!is_right) return error(ErrorCode::device, "{}: no buffer holds the expected output", path);
  std::printf("%zu submissions of %s, output right\n", recorded.count(), chip.name.c_str());
  return {};
}

}  // namespace
}  // namespace skillet::interpose_test

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto done = skillet::interpose_test::run(argv[1], argv[2]);
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done.ok() ? 0 : 1;
}
