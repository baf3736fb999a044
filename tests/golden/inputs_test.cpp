// The bytes that the host writes for graph inputs are compared with the recording: a change of any byte that Skillet
// writes must show, in each form that recordings keep (bytes, a hash, or that they equal the host's own).
#include "inputs.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/testing/in_tree.h"

namespace skillet::golden {
namespace {

struct KeptCase {
  const char* chip;
  const char* dir;
  const char* name;
  int InputCounts::*kept;
};

// Changes some bytes of our input buffers, one at a time, from the first to the last.
void change_inputs(const npu::Chip& chip, ComparedCase& c) {
  constexpr size_t kChanges = 12;
  const npu::Driver& driver = **npu::driver_of(chip);
  int tried = 0;
  for (capture::Submission& submission : c.ours.submissions) {
    for (capture::BufferSnapshot& buffer : submission.buffers) {
      const auto holds = [&](const GraphInput& input) { return input.place.handle == buffer.handle; };
      if (!buffer.listed || std::ranges::none_of(c.our_inputs, holds)) continue;
      const auto changed = std::make_shared<Bytes>(buffer.bytes.begin(), buffer.bytes.end());
      Bytes& bytes = *changed;
      buffer.bytes = SharedBytes(changed, bytes);
      for (size_t n = 0; n < kChanges; ++n, ++tried) {
        const size_t i = (bytes.size() - 1) * n / (kChanges - 1);
        bytes[i] ^= 0x80;
        const auto comparison = compare_sides(driver, chip, c);
        EXPECT_TRUE(comparison.ok() && !comparison->same()) << "byte " << i << " of buffer " << buffer.handle;
        bytes[i] ^= 0x80;
      }
    }
  }
  EXPECT_GT(tried, 4);
}

TEST(Inputs, AnyChangedByteIsSeen) {
  const std::string vivante = in_tree("tests/golden/small"), rockchip = in_tree("tests/rockchip/small");
  const KeptCase cases[] = {
      {"a311d", vivante.c_str(), "ops/dw3x3_odd_u8", &InputCounts::by_host_bytes},
      {"a311d", vivante.c_str(), "ops/concat3_i8", &InputCounts::by_bytes},
      {"rk3588", rockchip.c_str(), "rand/002_pw_u8", &InputCounts::by_bytes},
      {"rk3588", rockchip.c_str(), "teflon/mobiledet0", &InputCounts::by_hash},
      {"rk3588", rockchip.c_str(), "edge/k2s2_none_i8", &InputCounts::by_bytes},
      {"rk3588", rockchip.c_str(), "edge/res_c1_u8", &InputCounts::by_bytes},
  };
  for (const KeptCase& one : cases) {
    SCOPED_TRACE(one.name);
    const auto chip = npu::find_chip(one.chip);
    if (!chip.ok()) continue;  // not in this build
    auto c = prepare_case(one.dir, *chip, one.name);
    ASSERT_TRUE(c.ok()) << c.error().message;
    InputCounts counts;
    const auto comparison = compare_sides(**npu::driver_of(*chip), *chip, *c, &counts);
    ASSERT_TRUE(comparison.ok() && comparison->same());
    EXPECT_GT(counts.*one.kept, 0);
    change_inputs(*chip, *c);
  }
}

}  // namespace
}  // namespace skillet::golden
