#include "npus/vivante/sim/order.h"

#include <gtest/gtest.h>

#include <set>

namespace skillet::sim::vivante {
namespace {

using Range = Accesses::Range;

// An Order, and jobs that touch the given memory.
struct Scene {
  Order order;
  std::vector<std::string> ran;

  explicit Scene(const OrderOptions& options = {}, int tp_cores = 4) : order(options, tp_cores) {
    order.start_of_stream();
  }
  void start(Unit unit, Range read, Range written, bool flushes = true, uint32_t event = 0) {
    const std::string name = fmt::format("job {}", count_++);
    order.start(unit, event, name, 0, [=, this]() -> Result<Accesses> {
      ran.push_back(name);
      return Accesses{.read = read, .written = written, .flushes = flushes, .is_a_part = unit == kTp && !flushes};
    });
  }
  Result<void> end() {
    order.flush_all();
    order.flush_all();
    return order.end_of_stream();
  }

 private:
  int count_ = 0;
};

OrderOptions warning_of(Rule rule, uint64_t seed = 1) {
  OrderOptions options{.seed = seed, .leniency = {}};
  options.leniency.warn_of(rule);
  return options;
}

constexpr Range kElsewhere{1000, 10, "x"};

TEST(Order, AJobThatDoesNotFlushIsNotSeen) {
  for (const auto& [address, size, seen] :
       {std::tuple<uint64_t, uint64_t, bool>{0, 100, true}, {150, 10, true}, {149, 1, false}, {90, 11, false}}) {
    Scene s(warning_of(Rule::last_flushes));
    s.start(kTp, kElsewhere, {100, 50}, false);
    EXPECT_TRUE(s.order.wait(0).ok());
    s.start(kNn, {address, size, "x"}, {2000, 10});
    EXPECT_EQ(s.order.wait(0).ok(), seen) << address;
  }
}

TEST(Order, ALaterJobOfTheSameUnitFlushes) {
  for (const bool same_unit : {false, true}) {
    Scene s(warning_of(Rule::last_flushes));
    s.start(kTp, kElsewhere, {100, 50}, false);
    EXPECT_TRUE(s.order.wait(0).ok());
    s.start(same_unit ? kTp : kNn, kElsewhere, {200, 50});
    EXPECT_TRUE(s.order.wait(0).ok());
    s.start(kNn, {200, 1}, {2000, 10});
    EXPECT_TRUE(s.order.wait(0).ok());
    s.start(kNn, {100, 1}, {2000, 10});
    EXPECT_EQ(s.order.wait(0).ok(), same_unit);
  }
}

TEST(Order, TheStateHoldsBackWhatAJobWouldFlush) {
  for (const auto unit : {kNn, kTp}) {
    Scene strict;
    strict.order.set_flush_control(unit == kNn, unit == kTp);
    strict.start(unit, kElsewhere, {100, 50});
    EXPECT_FALSE(strict.order.wait(0).ok());
    for (const bool flushes_after : {false, true}) {
      Scene s(warning_of(Rule::last_flushes));
      s.order.set_flush_control(unit == kNn, unit == kTp);
      s.start(unit, kElsewhere, {100, 50});
      EXPECT_TRUE(s.order.wait(0).ok());
      if (flushes_after) {
        s.order.set_flush_control(false, false);
        s.start(unit, kElsewhere, {200, 50});
        EXPECT_TRUE(s.order.wait(0).ok());
      }
      s.start(kNn, {100, 1}, {2000, 10});
      EXPECT_EQ(s.order.wait(0).ok(), flushes_after);
    }
  }
}

TEST(Order, AStreamEndsWithTwoFlushes) {
  EXPECT_TRUE(Scene().order.end_of_stream().ok());
  for (const int flushes : {0, 1, 2, 3}) {
    Scene s;
    s.start(kNn, kElsewhere, {100, 50});
    EXPECT_TRUE(s.order.wait(0).ok());
    for (int i = 0; i < flushes; ++i) s.order.flush_all();
    EXPECT_EQ(s.order.end_of_stream().ok(), flushes >= 2) << flushes;
  }
  Scene s;
  s.start(kNn, kElsewhere, {100, 50});
  s.order.flush_all();
  EXPECT_TRUE(s.order.wait(0).ok());
  s.order.flush_all();
  EXPECT_FALSE(s.order.end_of_stream().ok()) << "a flush before the job's end does not see what it writes";
}

// Memory that a job reads or writes, compared with that of another job that was not waited for.
TEST(Order, JobsThatRunAtTheSameTimeShareNothingThatOneWrites) {
  struct Pair {
    Range read, written;
    bool in_order;
  };
  for (const Pair& row :
       {Pair{{149, 1}, {900, 1}, false},                                   // reads what the other writes
        Pair{{150, 1}, {900, 1}, true}, Pair{{300, 1}, {1009, 1}, false},  // writes what the other reads
        Pair{{300, 1}, {1010, 1}, true}, Pair{{300, 1}, {149, 1}, false},  // writes what the other writes
        Pair{{1000, 10}, {900, 1}, true}, Pair{{120, 0}, {900, 1}, true}}) {
    for (const bool waits : {true, false}) {
      Scene s;
      s.start(kTp, kElsewhere, {100, 50});
      if (waits) {
        EXPECT_TRUE(s.order.wait(0).ok());
      }
      s.start(kNn, row.read, row.written);
      EXPECT_EQ(s.order.wait(0).ok(), waits || row.in_order) << row.read.begin << " " << row.written.begin;
    }
  }
}

// Parts of one operation write between each other's bytes; a wait for the last part waits for all of them.
TEST(Order, PartsOfAnOperationEndTogether) {
  Scene s;
  for (uint64_t part = 0; part < 4; ++part) s.start(kTp, kElsewhere, {100 + part, 50}, part == 3, part == 3 ? 0 : 1);
  EXPECT_TRUE(s.order.wait(0).ok());
  s.start(kNn, {100, 53}, {2000, 1});
  EXPECT_TRUE(s.order.wait(0).ok());
  EXPECT_TRUE(s.end().ok());
}

// Events of four parts; only the last part's event is 0.
TEST(Order, AnEventIsWaitedForOnce) {
  for (const std::array<uint32_t, 4>& events :
       {std::array<uint32_t, 4>{1, 1, 1, 0}, {0, 0, 0, 0}, {1, 1, 1, 1}, {0, 0, 0, 1}, {1, 0, 1, 0}, {0, 1, 1, 1}}) {
    for (const bool each_flushes : {false, true}) {
      Scene s;
      for (uint64_t part = 0; part < 4; ++part)
        s.start(kTp, kElsewhere, {100 + 50 * part, 50}, each_flushes || part == 3, events[part]);
      const bool waited = s.order.wait(0).ok();
      EXPECT_EQ(waited && s.end().ok(), events == (std::array<uint32_t, 4>{1, 1, 1, 0}))
          << fmt::format("{} {} {} {}", events[0], events[1], events[2], events[3]);
    }
  }
}

TEST(Order, TheLastJobOfAnOperationFlushes) {
  for (const auto unit : {kNn, kTp}) {
    Scene s;
    s.start(unit, kElsewhere, {100, 50}, false);
    EXPECT_FALSE(s.order.wait(0).ok());
  }
}

TEST(Order, WithoutSmallBatchAWaitIsNotEnough) {
  for (const auto unit : {kNn, kTp}) {
    Scene s;
    s.order.set_small_batch(false);
    s.start(unit, kElsewhere, {100, 50});
    EXPECT_TRUE(s.order.wait(0).ok());
    s.start(kTp, {100, 1}, {2000, 10});
    EXPECT_EQ(s.order.wait(0).ok(), unit == kTp) << "the bit is one of NN jobs";
  }
}

TEST(Order, MorePartsThanCores) {
  for (const int cores : {3, 4}) {
    Scene s({}, cores);
    for (uint64_t part = 0; part < 4; ++part) s.start(kTp, kElsewhere, {100, 50}, part == 3, part == 3 ? 0 : 1);
    EXPECT_EQ(s.order.wait(0).ok(), cores == 4);
  }
}

// Every order occurs, seed 0 gives the stream's order, and a seed always gives the same order.
TEST(Order, JobsRunInAnyOrderOfASeed) {
  const auto ran = [](const OrderOptions& options) {
    Scene s(options);
    for (uint64_t part = 0; part < 4; ++part)
      s.start(kTp, kElsewhere, {100 + 50 * part, 50}, part == 3, part == 3 ? 0 : 1);
    EXPECT_TRUE(s.order.wait(0).ok());
    return s.ran;
  };
  std::set<std::vector<std::string>> orders;
  for (uint64_t seed = 1; seed < 500; ++seed) orders.insert(ran({.seed = seed, .leniency = {}}));
  EXPECT_EQ(orders.size(), 24U);
  const std::vector<std::string> in_stream = {"job 0", "job 1", "job 2", "job 3"};
  EXPECT_EQ(ran({.seed = 0, .leniency = {}}), in_stream);
  EXPECT_EQ(ran({.seed = 7, .leniency = {}}), ran({.seed = 7, .leniency = {}}));
  EXPECT_EQ(ran(warning_of(Rule::waits, 7)), in_stream) << "nothing then says what may run at the same time";
}

// The first fault of the stream is reported, whatever the order in which jobs run.
TEST(Order, FaultsComeInTheOrderOfTheStream) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Order order({.seed = seed, .leniency = {}}, 4);
    order.start_of_stream();
    for (int i = 0; i < 3; ++i)
      order.start(kTp, i == 2 ? 0 : 1, fmt::format("job {}", i), 4, [i]() -> Result<Accesses> {
        if (i > 0) return error(ErrorCode::device, "fault {}", i);
        return Accesses{.is_a_part = true};
      });
    const auto done = order.wait(0);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().message, "stream word 4: job 1: fault 1");
  }
}

}  // namespace
}  // namespace skillet::sim::vivante
