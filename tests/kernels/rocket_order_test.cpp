// The order in which the emulated rocket kernel driver runs jobs, and what they may read.
#include "rocket_node.h"

namespace skillet::testing {
namespace {

// Two jobs in one call: the second copies what the first writes, and lists it as read or not.
Result<int> copy_twice(kernels::Device& device, bool lists_source) {
  std::vector<kernels::Handle> data;
  for (int i = 0; i < 3; ++i) data.push_back(device.alloc(64).value());
  const kernels::Handle commands = device.alloc_commands(128).value();
  std::vector<kernels::JobId> jobs;
  for (size_t i = 0; i < 2; ++i) {
    const auto bytes = device.map(commands).value().subspan(i * 64);
    store_le(bytes.data(), static_cast<uint32_t>(device.address(data[i]).value()));
    store_le(bytes.data() + 4, static_cast<uint32_t>(device.address(data[i + 1]).value()));
    kernels::Job job{.name = "copy", .commands = {{commands, i * 64, 8}}, .buffers = {{data[i + 1], false, true}}};
    if (i == 1 && lists_source) job.buffers.push_back({data[i], true, false});
    jobs.push_back(device.prepare(job).value());
  }
  EXPECT_TRUE(device.end_cpu(commands).ok());
  SK_TRY_ASSIGN(const kernels::Fence fence, device.submit(jobs));
  SK_TRY(device.wait(fence, milliseconds(5000)));
  SK_TRY(device.begin_cpu(data[1], false));
  SK_TRY(device.begin_cpu(data[2], false));
  return device.map(data[2]).value()[0];
}

TEST_F(Rocket, InThisProcessAJobListsWhatAnotherStillWrites) {
  start("", fake::OnFault::error);
  const auto device = open();
  const auto listed = copy_twice(*device, true), forgotten = copy_twice(*device, false);
  ASSERT_TRUE(listed.ok()) << listed.error().message;
  EXPECT_EQ(*listed, 2);
  ASSERT_FALSE(forgotten.ok());
  EXPECT_NE(forgotten.error().message.find("nothing orders them"), std::string::npos) << forgotten.error().message;
}

// Jobs ordered by fences run in that order with any schedule; other jobs overtake with some.
TEST_F(Rocket, ASchedulePicksAmongJobsThatNoFenceOrders) {
  int overtaken = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    start("", fake::OnFault::error, 3, seed, false);
    const auto device = open();
    EXPECT_EQ(*copy_twice(*device, true), 2) << seed;
    const int forgotten = *copy_twice(*device, false);
    overtaken += forgotten == 1 ? 1 : 0;
    EXPECT_TRUE(forgotten == 2 || (forgotten == 1 && seed != 0)) << seed;
  }
  EXPECT_GT(overtaken, 3);
  EXPECT_LT(overtaken, 17);
}

}  // namespace
}  // namespace skillet::testing
