// Which file of an NPU a session gets, and the messages about unusable nodes.
#include "runtime/device_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "runtime/device_context.h"

namespace skillet::runtime {
namespace {

struct Files {
  std::vector<DeviceContext*> opened;
  int refused = 0;  // of the next openings
  int asked = 0;

  std::shared_ptr<DevicePool> pool(size_t most) {
    return std::make_shared<DevicePool>(one(), most, [this]() -> Result<std::shared_ptr<DeviceContext>> {
      ++asked;
      if (refused > 0 && refused-- > 0) return error(ErrorCode::io, "too many files");
      return one();
    });
  }
  std::shared_ptr<DeviceContext> one() {
    auto context = std::make_shared<DeviceContext>();
    opened.push_back(context.get());
    return context;
  }
  // "012": the files, numbered in the order in which they were opened.
  std::string names(const std::vector<std::shared_ptr<DeviceContext>>& held) const {
    std::string out;
    for (const auto& one : held) out += std::to_string(std::ranges::find(opened, one.get()) - opened.begin());
    return out;
  }
};

TEST(DevicePool, GivesTheFileWithTheFewestHolders) {
  Files files;
  const auto pool = files.pool(3);
  EXPECT_EQ(pool->most(), 3U);
  std::vector<std::shared_ptr<DeviceContext>> held;
  for (int i = 0; i < 5; ++i) held.push_back(pool->take());
  EXPECT_EQ(files.names(held), "01201");
  EXPECT_EQ(pool->open_files(), 3U);
  EXPECT_EQ(files.asked, 2) << "not asked for a fourth";
  held.erase(held.begin() + 1);  // file 1 has as many holders as 2, and precedes it
  held.push_back(pool->take());
  EXPECT_EQ(files.names(held), "02011");
  held.erase(held.begin() + 1);
  held.push_back(pool->take());
  EXPECT_EQ(files.names(held), "00112");
  const auto copy = held[0];
  held.clear();
  EXPECT_EQ(files.names({pool->take()}), "1") << "a copy still holds the first";
}

TEST(DevicePool, OpensNoneWhileOneIsFree) {
  Files files;
  const auto pool = files.pool(2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(files.names({pool->take()}), "0");
  EXPECT_EQ(pool->open_files(), 1U);
}

TEST(DevicePool, ManyAtOnceAreEachAnotherFile) {
  Files files;
  const auto pool = files.pool(3);
  const auto first = pool->take();
  auto two = pool->take(2);
  EXPECT_EQ(files.names(two), "10") << "the one without holders first";
  EXPECT_EQ(pool->open_files(), 2U) << "as many as were asked for";
  const auto all = pool->take(7);
  EXPECT_EQ(files.names(all), "210");
  EXPECT_EQ(pool->open_files(), 3U);
  two.clear();
  EXPECT_EQ(files.names(pool->take(2)), "12");
}

TEST(DevicePool, DoesWithWhatCanBeOpened) {
  Files files;
  files.refused = 1;
  const auto pool = files.pool(3);
  auto held = pool->take(3);
  EXPECT_EQ(files.names(held), "0") << "it gives up at the first refusal";
  held.push_back(pool->take());
  EXPECT_EQ(files.names(held), "01") << "the next one has more luck";
  EXPECT_EQ(files.asked, 2);
}

// A thread that does not exist in the child holds the pool's lock.
TEST(DevicePool, AChildOfForkGivesNothingBack) {
  std::promise<void> opening, forked;
  const auto pool = std::make_shared<DevicePool>(std::make_shared<DeviceContext>(), 2,
                                                 [&]() -> Result<std::shared_ptr<DeviceContext>> {
                                                   opening.set_value();
                                                   forked.get_future().wait();
                                                   return std::make_shared<DeviceContext>();
                                                 });
  std::shared_ptr<DeviceContext> held = pool->take();
  std::thread other([&] { pool->take(); });
  opening.get_future().wait();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    held.reset();
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  forked.set_value();
  other.join();
}

// The reason for a node without an NPU that a driver of this build knows; the toy driver knows only its own.
TEST(Identify, SaysWhyANodeHasNone) {
  const auto core = [](const char* kernel, const char* node, uint32_t index) {
    kernels::Core out;
    out.info.kernel_driver = kernel;
    out.info.node = node;
    out.index = index;
    return out;
  };
  const NpuSearch search = identify({{"/dev/dri/renderD128", "panfrost", {}, {}},
                                     {"/dev/dri/renderD129", "", {}, error(ErrorCode::io, "no permission")},
                                     {"/dev/accel/accel0", "other", {core("other", "/dev/accel/accel0", 4)}, {}}});
  EXPECT_TRUE(search.npus.empty());
  EXPECT_TRUE(search.blocked);
  EXPECT_TRUE(search.rejected.starts_with(
      "/dev/dri/renderD128: kernel driver 'panfrost' has no NPU core here; no permission; core 4: "))
      << search.rejected;
  EXPECT_FALSE(identify({{"/dev/dri/renderD128", "panfrost", {}, {}}}).blocked);
  EXPECT_EQ(identify({}).rejected, "");
}

TEST(CheckTaken, RealChipsThatWereNeverSeenAreTakenWhenToldOnly) {
  Target target{.name = "/dev/accel/accel0", .chip = {.name = "c"}, .driver = nullptr, .context = nullptr};
  EXPECT_TRUE(check_taken(target, npu::Unproven::refuse).ok());
  target.chip.unproven = "never seen";
  const auto refused = check_taken(target, npu::Unproven::refuse);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "/dev/accel/accel0 is refused by unproven=refuse: never seen");
  EXPECT_TRUE(check_taken(target, npu::Unproven::verify).ok());
  EXPECT_EQ(refusal({.name = "c"}), "");
}

}  // namespace
}  // namespace skillet::runtime
