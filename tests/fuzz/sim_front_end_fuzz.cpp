// Command stream, descriptors, coefficients and images from fuzz bytes, into the Vivante simulator. It must answer
// every input in bounded time, and its fast paths must give the results of its plain loops.
//
// Even inputs start from a small valid job (input[0] / 2 % 2 selects NN or TP) and patch words of it; odd ones are raw:
// the first 64 words are the stream, the rest is the memory; input[0] / 4 % 2 selects the chip.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "npus/vivante/sim/vivante.h"

namespace {

using skillet::Bytes;
namespace vivante = skillet::sim::vivante;

constexpr uint64_t kDescriptor = 0x00600000, kInput = 0x00501000, kCoefficients = 0x00502000, kOutput = 0x00503000;
constexpr uint64_t kTable = 0x00510000, kRaw = 0x00600000;
constexpr size_t kRawStreamWords = 64;
constexpr uint64_t kWorkLimit = uint64_t{1} << 18;

// 8x8x4 pixels, 3x3 filter, 8 output channels.
constexpr uint32_t kNnJob[] = {0xA010010C, 0x00400200, 0xB800003F, 0x00400200, 0x10234008, 0x00014080, 0x00501000,
                               0x00503000, 0x00083004, 0x00000000, 0x00000000, 0x00000800, 0x00000C00, 0x00000000,
                               0x00000800, 0x02400200, 0x00080008, 0x06000008, 0x00000000, 0x03FFFFFF, 0x00000000,
                               0x03FFFFFF, 0x0000107F, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
                               0x03FFFFFF, 0x7F800000, 0xFF800000, 0x00000000};
// Transpose of 8x8x4.
constexpr uint32_t kTpJob[] = {0x00000004, 0x00080008, 0x00000004, 0x00000020, 0x00000000, 0x00070003, 0x20000018,
                               0x00000000, 0x00080001, 0x00080001, 0x00501000, 0x00000000, 0x80000002, 0x00503000,
                               0x00000001, 0x00000040, 0x00040008, 0x00000008, 0x00000000, 0x00010008, 0x00000000,
                               0x00000000, 0x00010001, 0x00000000, 0x0000000A, 0x00000000, 0x03FFFFFF, 0x00000000,
                               0x03FFFFFF, 0x80000000, 0x00000080, 0x00000000};

struct Scene {
  const char* chip = "a311d";
  std::vector<uint32_t> stream;
  std::map<uint64_t, Bytes> buffers;
};

Bytes pattern(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 167 + i / 251);
  return bytes;
}

// Eight streams of one kernel and one output plane each; zrl_bits 0.
Bytes default_coefficients() {
  Bytes bytes(64 + 8 * 64);
  for (size_t core = 0; core < 8; ++core) {
    skillet::store_le(bytes.data() + core * 4, uint32_t{64});
    uint8_t* const stream = bytes.data() + 64 + core * 64;
    stream[1] = 1;
    for (size_t i = 0; i < 36; ++i) stream[i == 0 ? 3 : 7 + i] = static_cast<uint8_t>(core * 36 + i * 7);
    skillet::store_le(stream + 3 + 1 + 4 + 35, static_cast<uint32_t>(core * 64));
  }
  return bytes;
}

Scene patched_scene(std::span<const uint8_t> data) {
  Scene scene;
  const bool nn = data[0] / 2 % 2 == 0;
  scene.stream = {nn ? 0x08010428U : 0x0801042EU, static_cast<uint32_t>(kDescriptor), 0x08010429, 0};
  scene.stream.insert(scene.stream.end(), {0x08010E03, 0xC23, 0x08010E03, 0xC23});
  scene.buffers = {{kInput, pattern(0x1000)},
                   {kCoefficients, default_coefficients()},
                   {kOutput, Bytes(0x4000)},
                   {kTable, Bytes(0x1000)}};
  Bytes descriptor(128);
  std::memcpy(descriptor.data(), nn ? kNnJob : kTpJob, 128);
  // Records of six bytes: place, number of the word, value. The low bits of the place select set, flip or add.
  for (data = data.subspan(1); data.size() >= 6; data = data.subspan(6)) {
    const auto value = skillet::load_le<uint32_t>(data.data() + 2);
    const bool coefficients = data[0] >= 192;
    Bytes& target = coefficients ? scene.buffers[kCoefficients] : descriptor;
    const size_t word = (data[1] + (coefficients ? (data[0] & 1U) * 256U : 0U)) % (target.size() / 4);
    const auto old = skillet::load_le<uint32_t>(target.data() + word * 4);
    const uint32_t by_kind[] = {value, old ^ value, old + value, old ^ 1U << value % 32};
    skillet::store_le(target.data() + word * 4, by_kind[data[0] / 2 % 4]);
  }
  scene.buffers[kDescriptor] = std::move(descriptor);
  return scene;
}

Scene raw_scene(std::span<const uint8_t> data) {
  Scene scene;
  if (data[0] / 4 % 2 == 1) scene.chip = "imx8mp";
  data = data.subspan(1);
  const size_t words = std::min(kRawStreamWords, data.size() / 4);
  scene.stream.resize(words);
  if (words > 0) std::memcpy(scene.stream.data(), data.data(), words * 4);
  data = data.subspan(words * 4);
  if (!data.empty()) scene.buffers[kRaw] = Bytes(data.begin(), data.end());
  return scene;
}

skillet::Result<Scene> run(Scene scene, bool reference_only) {
  skillet::sim::Memory memory;
  for (auto& [address, bytes] : scene.buffers) SK_TRY(memory.map(address, bytes, "buffer"));
  SK_TRY_ASSIGN(const auto device, vivante::create(scene.chip, {.reference_only = reference_only,
                                                                .max_macs_per_job = kWorkLimit,
                                                                .max_elements_per_job = kWorkLimit}));
  SK_TRY(device->execute(scene.stream, memory));
  return scene;
}

void fail(const char* what, const std::string& detail) {
  std::fprintf(stderr, "%s: %s\n", what, detail.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> data(bytes, size);
  const Scene scene = data[0] % 2 == 0 ? patched_scene(data) : raw_scene(data);
  const auto fast = run(scene, false);
  const auto plain = run(scene, true);
  if (fast.ok() != plain.ok()) fail("only one path faults", (fast.ok() ? plain : fast).error().message);
  if (fast.ok() && fast->buffers != plain->buffers) fail("different results", "fast and plain");
  return 0;
}
