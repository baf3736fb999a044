// Objects that belong to one process, in children of fork().
#include "base/own_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/fair_mutex.h"
#include "base/leaked.h"
#include "base/process_lock.h"
#include "base/testing/threads_in_children.h"

namespace skillet {
namespace {

// True if `body` returned true in a child; the child has 20 s.
template <typename Body>
bool is_fine_in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(body() ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

TEST(OwnProcess, IsHereInItsOwnProcessOnly) {
  const OwnProcess parent;
  const uint64_t number = OwnProcess::number();
  EXPECT_NE(number, 0u);
  EXPECT_TRUE(parent.is_here());
  EXPECT_TRUE(is_fine_in_child([&] {
    if (parent.is_here()) return false;
    const OwnProcess child;
    return child.is_here() && OwnProcess::number() != number &&
           is_fine_in_child([&] { return !parent.is_here() && !child.is_here() && OwnProcess().is_here(); });
  }));
  EXPECT_TRUE(parent.is_here());
  EXPECT_EQ(OwnProcess::number(), number);
}

TEST(OwnProcess, ThreadsAgree) {
  if (!testing::kChildrenMayHaveThreads) GTEST_SKIP() << "no threads in children";
  EXPECT_TRUE(is_fine_in_child([] {
    std::atomic<bool> begin{false};
    std::vector<uint64_t> numbers(8);
    std::vector<std::thread> threads;
    for (uint64_t& number : numbers) {
      threads.emplace_back([&] {
        while (!begin) continue;
        number = OwnProcess::number();
      });
    }
    begin = true;
    for (std::thread& thread : threads) thread.join();
    for (const uint64_t number : numbers) {
      if (number != numbers[0]) return false;
    }
    return true;
  }));
}

TEST(ProcessLock, LetsOneInAtATime) {
  static constinit ProcessLock lock;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20'000; ++k) {
        lock.lock();
        ++count;
        lock.unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 80'000);
}

TEST(ProcessLock, IsFreeInAChildWhoeverHasItInTheParent) {
  static constinit ProcessLock lock;
  EXPECT_TRUE(lock.lock_in_process()) << "the first time";
  EXPECT_TRUE(is_fine_in_child([] {
    const bool is_first = lock.lock_in_process();
    lock.unlock();
    const bool is_second = !lock.lock_in_process();
    lock.unlock();
    return is_first && is_second;
  }));
  lock.unlock();
  EXPECT_FALSE(lock.lock_in_process()) << "it is the same as before";
  lock.unlock();
}

TEST(Leaked, IsThereInAChildWhileAThreadOfTheParentMakesIt) {
  static constinit std::atomic<int> makers{0};
  static constinit std::atomic<bool> may_end{false};
  constexpr auto value = [] {
    return leaked([] {
      const int maker = ++makers;
      while (maker == 1 && !may_end) std::this_thread::yield();
      return 7;
    });
  };
  int made = 0;
  std::thread maker([&] { made = value(); });
  while (makers == 0) std::this_thread::yield();
  EXPECT_TRUE(is_fine_in_child([&] { return value() == 7; }));
  may_end = true;
  maker.join();
  EXPECT_EQ(made, 7);
  EXPECT_EQ(makers, 1) << "once in this process";
}

TEST(Leaked, IsOneObjectForAllThreads) {
  const auto address = [] { return &leaked([] { return std::vector<int>(9); }); };
  std::vector<std::vector<int>*> seen(8);
  std::vector<std::thread> threads;
  for (auto& one : seen) threads.emplace_back([&] { one = address(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto* one : seen) EXPECT_EQ(one, seen[0]);
}

TEST(FairMutex, LetsInInTheOrderOfArrival) {
  FairMutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  mutex.lock();
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      mutex.lock();
      order.push_back(i);
      mutex.unlock();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  mutex.unlock();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

// The child destroys its copy of a device that threads of the parent wait for.
TEST(FairMutex, EndsInAChildWhileThreadsOfTheParentWait) {
  auto mutex = std::make_unique<FairMutex>();
  mutex->lock();
  std::thread waiting([&] {
    mutex->lock();
    mutex->unlock();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(is_fine_in_child([&] {
    mutex.reset();
    return true;
  }));
  mutex->unlock();
  waiting.join();
}

}  // namespace
}  // namespace skillet
