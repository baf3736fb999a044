// The page of counters: contents for other processes, no effect of forked children, and no failure without a page.
#include "base/use_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/testing/open_files.h"

namespace skillet::use {
namespace {

std::string link_to_page() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone).string().starts_with("/memfd:skillet-use")) return entry.path();
  }
  return "";
}

// Reads it as another process would.
std::optional<Page> read_page() {
  const int fd = ::open(link_to_page().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  Page page;
  EXPECT_EQ(::pread(fd, static_cast<void*>(&page), sizeof page, 0), static_cast<ssize_t>(sizeof page));
  EXPECT_EQ(::ftruncate(fd, 1), -1);
  ::close(fd);
  return page;
}

// A page written by another program may have texts without an end: bytes after the field must not be read.
TEST(UsePage, TextsWithoutAnEndAreReadToTheirEnd) {
  std::vector<Slot> slots(2);
  for (Slot& slot : slots) {
    slot.cores = slot.since_ns = 1;
    slot.device.fill('d'), slot.chip.fill('c'), slot.model.fill('m');
  }
  EXPECT_EQ(busy_cores(slots, std::string(slots[0].device.size(), 'd')), 1U);
  EXPECT_EQ(busy_cores(slots, std::string(slots[0].device.size(), 'd') + "c"), 0U);
}

TEST(UsePage, SaysWhatADeviceDoes) {
  const size_t before = testing::open_files();
  {
    Counter first("sim:one", "one"), second("/dev/accel/accel0", "two");
    first.name_model(std::string(500, 'm'));
    first.change_bytes(300);
    first.change_bytes(-100);
    first.submitted(2);
    first.submitted(1);
    const Page running = read_page().value();
    EXPECT_EQ(running.magic, Page::kMagic);
    EXPECT_EQ(running.process, static_cast<uint64_t>(::getpid()));
    EXPECT_NE(running.slots[0].since_ns, 0U);
    EXPECT_EQ(running.slots[0].finished, 0U);
    first.ended();
    first.ended();
    second.submitted(7);
    second.ended(false);
    const Page page = read_page().value();
    const Slot& one = page.slots[0];
    EXPECT_STREQ(one.device.data(), "sim:one");
    EXPECT_STREQ(one.chip.data(), "one");
    EXPECT_EQ(std::strlen(one.model.data()), one.model.size() - 1);
    EXPECT_EQ(one.submitted, 3U);
    EXPECT_EQ(one.finished, 3U);
    EXPECT_EQ(one.since_ns, 0U);
    EXPECT_EQ(one.bytes, 200U);
    EXPECT_GT(one.busy_ns, 0U);
    EXPECT_STREQ(page.slots[1].device.data(), "/dev/accel/accel0");
    EXPECT_EQ(page.slots[1].finished, 0U);
    EXPECT_EQ(first.totals().jobs, 3U);
    EXPECT_EQ(first.totals().busy_ns, one.busy_ns);
  }
  EXPECT_EQ(testing::open_files(), before);
  EXPECT_FALSE(read_page());
}

TEST(UsePage, OpenDevicesOfOneNpuKeepNoMoreCoresBusyThanThereAre) {
  const auto run = [](uint64_t cores, size_t count) {
    std::vector<std::unique_ptr<Counter>> all;
    for (size_t i = 0; i < count; ++i) all.push_back(std::make_unique<Counter>("sim:one", "one", cores));
    Counter other("sim:other", "one");  // is counted separately
    other.submitted(1);
    const auto begin = std::chrono::steady_clock::now();
    for (const auto& one : all) one->submitted(1);
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(busy_cores(read_page()->slots, "sim:one"), std::min<uint64_t>(cores, count));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto ends = std::chrono::steady_clock::now();
    for (const auto& one : all) one->ended();
    const auto ended = std::chrono::steady_clock::now();
    uint64_t busy_ns = 0;
    for (const auto& one : all) busy_ns += one->totals().busy_ns;
    const auto ns = [&](auto from, auto to) {
      return static_cast<uint64_t>((to - from) / std::chrono::nanoseconds(1)) * std::min<uint64_t>(cores, count);
    };
    EXPECT_GE(busy_ns, ns(begun, ends));
    EXPECT_LE(busy_ns, ns(begin, ended));
  };
  run(1, 1), run(1, 3), run(3, 2), run(3, 5);
}

TEST(UsePage, HasRoomForSomeDevicesAndCountsTheOthersToo) {
  std::vector<std::unique_ptr<Counter>> many;
  for (int i = 0; i < 40; ++i) many.push_back(std::make_unique<Counter>("sim:many", "many"));
  many.back()->submitted(5);
  many.back()->ended();
  EXPECT_EQ(many.back()->totals().jobs, 5U);
  many[3].reset();
  const Counter again("sim:again", "many");
  EXPECT_STREQ(read_page()->slots[3].device.data(), "sim:again");
}

// Runs `body` in a child and returns its result.
template <typename Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(UsePage, OfAChildIsAnother) {
  auto counter = std::make_unique<Counter>("sim:parent", "one");
  EXPECT_EQ(in_child([&] {
              counter.reset();
              Counter own("sim:child", "one");
              own.submitted(9);
              own.ended();
              return own.totals().jobs == 9 ? 0 : 1;
            }),
            0);
  const Page page = read_page().value();
  EXPECT_STREQ(page.slots[0].device.data(), "sim:parent");
  EXPECT_EQ(page.slots[0].finished, 0U);
  EXPECT_EQ(page.slots[1].cores, 0U);
}

int count_without_page() {
  Counter counter("sim:one", "one");
  counter.submitted(2);
  counter.ended();
  return link_to_page().empty() && counter.totals().jobs == 2 ? 0 : 1;
}

TEST(UsePage, IsNotNeeded) {
  EXPECT_EQ(in_child([] {
              ::setenv("SKILLET_TOP", "0", 1);
              return count_without_page();
            }),
            0)
      << "turned off";
  EXPECT_EQ(in_child([] {
              const rlimit small{100, 100};
              return ::setrlimit(RLIMIT_FSIZE, &small) == 0 ? count_without_page() : 2;
            }),
            0)
      << "files must be small";
  EXPECT_EQ(in_child([] {
              const int last = ::dup(0);
              const rlimit few{static_cast<rlim_t>(last), static_cast<rlim_t>(last)};
              ::close(last);
              if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return 2;
              Counter counter("sim:one", "one");
              counter.submitted(2);
              counter.ended();
              return counter.totals().jobs == 2 ? 0 : 1;
            }),
            0)
      << "no descriptor is left";
}

}  // namespace
}  // namespace skillet::use
