// Three cores behind one node: sessions on many threads and in many processes give the results of a single session.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <map>
#include <thread>

#include "base/testing/in_tree.h"
#include "base/testing/noise.h"
#include "base/testing/threads_in_children.h"
#include "graph/import/import.h"
#include "runtime/device_pool.h"
#include "runtime/session.h"

namespace skillet::runtime {
namespace {

const std::string kModel = skillet::in_tree("models/digits.tflite");
constexpr int kRuns = 3;

std::unique_ptr<Session> make_session(const Target& target) {
  auto session = Session::create(tflite::import_file(kModel).value(), target, {.allow_fallback = false});
  EXPECT_TRUE(session.ok()) << session.error().message;
  return session.ok() ? std::move(session).value() : nullptr;
}

// Returns a different input for each thread and run.
Bytes picture(const Session& session, uint32_t seed) {
  return skillet::testing::noise(static_cast<size_t>(session.graph().tensor(session.graph().inputs[0]).bytes()), seed);
}

Bytes run(Session& session, uint32_t seed) {
  const Bytes input = picture(session, seed);
  const std::span<const uint8_t> inputs[] = {input};
  const auto outputs = session.run(inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.error().message;
  return outputs.ok() ? outputs->at(0) : Bytes();
}

std::vector<Bytes> expected_results(uint32_t count) {
  const auto session = make_session(open_target("sim:rk3588").value());
  std::vector<Bytes> out;
  for (uint32_t seed = 0; seed < count; ++seed) out.push_back(run(*session, seed));
  return out;
}

// Returns how many results are not as expected.
int run_on_threads(const Target& target, uint32_t threads, const std::vector<Bytes>& expected) {
  std::atomic<int> wrong = 0;
  std::latch ready(threads);
  std::vector<std::thread> all;
  for (uint32_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      const auto session = make_session(target);
      ready.arrive_and_wait();
      for (uint32_t r = 0; r < kRuns; ++r) {
        const uint32_t seed = t * kRuns + r;
        wrong += session == nullptr || run(*session, seed) != expected[seed] ? 1 : 0;
      }
    });
  }
  for (std::thread& one : all) one.join();
  return wrong;
}

TEST(ThreeCores, SessionsTakeAFileForEachCore) {
  const Target target = open_target("sim:rk3588").value();
  ASSERT_NE(target.pool, nullptr);
  std::vector<std::unique_ptr<Session>> sessions;
  std::map<const DeviceContext*, int> users;
  for (int i = 0; i < 7; ++i) {
    sessions.push_back(make_session(target));
    EXPECT_EQ(target.pool->open_files(), std::min<size_t>(sessions.size(), 3));
    ++users[sessions.back()->context().get()];
  }
  EXPECT_EQ(users.size(), 3u);
  for (const auto& [context, count] : users) EXPECT_GE(count, 2);
  const DeviceContext* const freed = sessions[2]->context().get();  // the last file, not the first of equal ones
  sessions.erase(sessions.begin() + 2);
  sessions.erase(std::ranges::find(sessions, freed, [](const auto& one) { return one->context().get(); }));
  EXPECT_EQ(make_session(target)->context().get(), freed) << "the one with the fewest";
}

TEST(ThreeCores, ThirtyTwoThreadsOfOneProcess) {
  const std::vector<Bytes> expected = expected_results(32 * kRuns);
  EXPECT_EQ(run_on_threads(open_target("sim:rk3588").value(), 32, expected), 0);
}

TEST(ThreeCores, EightProcessesOfFourThreads) {
  if (!testing::kChildrenMayHaveThreads) GTEST_SKIP() << "no threads in children";
  const std::vector<Bytes> expected = expected_results(4 * kRuns);
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(120);
      ::_exit(run_on_threads(open_target("sim:rk3588").value(), 4, expected) == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

// A file that cannot be opened leaves one core fewer until a later attempt succeeds.
TEST(DevicePool, GoesOnWithFewerFiles) {
  const auto first = std::make_shared<DeviceContext>();
  int asked = 0;
  const auto pool = std::make_shared<DevicePool>(first, 3, [&]() -> Result<std::shared_ptr<DeviceContext>> {
    if (++asked == 1 || asked == 4) return std::make_shared<DeviceContext>();
    return error(ErrorCode::io, "no more");
  });
  std::vector<std::shared_ptr<DeviceContext>> held;
  for (int i = 0; i < 4; ++i) held.push_back(pool->take());
  EXPECT_EQ(pool->open_files(), 2u);
  for (int i = 0; i < 2; ++i) held.push_back(pool->take());
  EXPECT_EQ(pool->open_files(), 3u);
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(held[0], first);
  EXPECT_NE(held[1], first);
}

}  // namespace
}  // namespace skillet::runtime
