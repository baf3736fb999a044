// The order of jobs. Jobs that were started and not waited for run at the same time: here in an order drawn from a
// seed, and no job may write what another one reads. Results that a job leaves in the caches of its unit are visible
// only after a flush.
// Called by vivante.cpp for the front end's events.
// Must not know: descriptors, what the bytes mean.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/splitmix64.h"
#include "npus/vivante/sim/rules.h"

namespace skillet::sim::vivante {

enum Unit : uint8_t { kNn, kTp };

// The memory that a job touches, as reported by its unit.
struct Accesses {
  struct Range {
    uint64_t begin = 0, size = 0;
    std::string_view what;  // the field of the descriptor
    bool meets(const Range& other) const {
      return size > 0 && other.size > 0 && begin < other.begin + other.size && other.begin < begin + size;
    }
  };
  Range read, written;
  bool flushes = false;    // flushes its unit's caches at its end
  bool is_a_part = false;  // a later job of its operation flushes for this one
};

struct OrderOptions {
  uint64_t seed = 1;  // of the order of jobs that run at the same time; 0: in the order of their starts
  Leniency leniency;
};

class Order {
 public:
  using Run = std::function<Result<Accesses>()>;

  // `cores`: number of TP cores, each of which may run a part of an operation.
  Order(const OrderOptions& options, int tp_cores) : options_(options), tp_cores_(tp_cores), random_(options.seed) {}

  // The bits of state vip_flush_control: later jobs do not flush.
  void set_flush_control(bool nn_no_flush, bool tp_no_flush) { no_flush_ = {nn_no_flush, tp_no_flush}; }
  // The bit of state nn_config.
  void set_small_batch(bool on) { small_batch_ = on; }
  // `word` is the job's place in the stream. `run` is called at once or later, before the stream's end.
  void start(Unit unit, uint32_t event, std::string name, size_t word, Run run);
  // Waits until a job with this event is complete.
  Result<void> wait(uint32_t event);
  // State flush_cache with all caches: for readers after the stream. It does not wait.
  void flush_all();

  void start_of_stream();
  // Runs all remaining jobs. Error if there are results that were not flushed.
  Result<void> end_of_stream();

 private:
  struct Job {
    Unit unit;
    uint32_t event;
    std::string name;
    size_t word;
    Run run;         // none: it has run
    bool held_back;  // by vip_flush_control
    bool unordered;  // later jobs may run at the same time despite a wait
    bool waited = false;
    size_t operation;
    Accesses accesses;
    std::string place() const { return fmt::format("stream word {}: {}", word, name); }
  };

  Result<void> run_started();
  Result<void> account(size_t index, Result<Accesses> done);
  Result<void> check_parts(const Job& job);
  Result<void> check_races(const Job& job, std::span<const Job> before) const;
  Result<void> check_flushed(const Job& job) const;
  void note_written(const Job& job);
  bool any_runs() const;

  const OrderOptions options_;
  const int tp_cores_;
  SplitMix64 random_;

  std::vector<Job> jobs_;  // jobs that may still run, in the order of their starts
  struct Unseen {
    Unit unit;
    Accesses::Range range;
  };
  std::vector<Unseen> unseen_;
  std::array<bool, 2> no_flush_{};
  bool small_batch_ = true;
  size_t operation_ = 0;
  int jobs_since_flush_ = 0, flushes_ = 0;
  int parts_open_ = 0;  // TP jobs since the last one that flushes
};

}  // namespace skillet::sim::vivante
