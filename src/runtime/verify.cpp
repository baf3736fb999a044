#include "runtime/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/log.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "base/text.h"
#include "runtime/program_cache.h"
#include "runtime/trial.h"
#include "runtime/trust.h"
#include "runtime/trusted_driver.h"

namespace skillet::runtime {
namespace {

using compile::Compiled;
using Outcome = Trial::Outcome;

// Each round leaves at least one operation to the CPU; after the last round all unproven ones go to the CPU.
constexpr int kRoundsMax = 16;
// Hangs in one session; after these, everything still unknown goes to the CPU.
constexpr int kHangsMax = 3;

bool is_tuned(const SessionOptions& options) {
  return options.compile.tuning == npu::Tuning::tuned || !options.compile.switches.empty() ||
         !options.tuning_file.empty() || options.tuning != nullptr;
}

SessionOptions untuned(SessionOptions options) {
  options.compile.tuning = std::min(options.compile.tuning, npu::Tuning::proven);
  options.compile.switches.clear();
  options.tuning_file.clear();
  options.tuning = nullptr;
  return options;
}

class Verifier {
 public:
  Verifier(const Target& target, const SessionOptions& options) : target_(target), options_(with_time(options)) {}

  Result<Compiled> run(const ir::Graph& graph) {
    model_ = &graph;
    for (int round = 0; round < kRoundsMax; ++round) {
      note_refuted();
      SK_TRY_ASSIGN(Compiled compiled, compile_for(target_, graph, options_));
      const Stopwatch watch;
      const bool is_done = settle(compiled);
      verify_ms_ += watch.ms();
      if (why_not_.empty() && !is_done) continue;
      if (!why_not_.empty()) break;
      compiled.verified = compared();
      for (compile::OpPlace& place : compiled.ops) place.verified = place.on_npu;
      return compiled;
    }
    log::warning("{}: operations that no known driver ran on silicon run on the CPU: {}", target_.name,
                 why_not_.empty() ? "too many of them are wrong on this device" : why_not_);
    SessionOptions without = untuned(options_);
    without.compile.unproven = npu::Unproven::refuse;
    SK_TRY_ASSIGN(Compiled compiled, compile_for(target_, graph, without));
    compiled.verified = compared();
    return compiled;
  }

 private:
  // A part without an entry in the trust.
  struct OpenPart {
    compile::Part* part = nullptr;
    std::string key;  // of its program
    std::set<const npu::Assumption*> stands_on = {};
  };

  // A device that differs in one assumption may also differ in how a part's proven jobs follow each other. Tuned jobs
  // differ from recorded ones, whatever their operation is.
  bool is_in_doubt(const Compiled& compiled, const compile::Part& part) const {
    return part.partition.on_npu &&
           (is_tuned(options_) || stands_on_something(compiled, part) ||
            target_.trust->refutes(TrustKind::assumption) || target_.trust->refutes(TrustKind::operation));
  }
  static bool stands_on_something(const Compiled& compiled, const compile::Part& part) {
    return part.partition.on_npu && std::ranges::any_of(part.partition.op_map, [&](ir::OpId op) {
             return !compiled.ops[static_cast<size_t>(op)].stands_on.empty();
           });
  }

  // True: everything on the NPU was seen to be right. False: compile again, or why_not_ says why that does not help.
  bool settle(Compiled& compiled) {
    std::vector<OpenPart> open;
    for (compile::Part& part : compiled.parts) {
      if (!is_in_doubt(compiled, part)) continue;
      std::string key = part.key.empty() ? program_key(part) : part.key;  // empty: compared each time
      const auto found = target_.trust->find(TrustKind::program, key);
      if (!found)
        open.push_back({&part, std::move(key)});
      else if (!found->confirmed)
        return leave(compiled, part, found->evidence), false;
    }
    if (open.empty()) return true;
    if (!open_device()) return false;
    has_compared_ = true;
    is_set_up_ = !compile::programs(*open[0].part)[0].program->init_jobs.empty();
    if (!ask_assumptions(compiled, open) || !why_not_.empty()) return false;
    for (const OpenPart& one : open) {
      if (!check_part(compiled, one)) return false;
    }
    return true;
  }

  // Probes use their own device file, so that their memory does not affect the session.
  bool open_device() {
    if (device_) return true;
    auto opened = open_for_trials(target_.name);
    if (!opened.ok()) {
      why_not_ = "the device cannot be opened to compare it with the CPU: " + opened.error().message;
      return false;
    }
    device_.emplace(std::move(opened).value());
    return true;
  }

  // Adds the assumptions that the part's operations stand on, as a whole and in bands: fewer rows may change the form
  // of an image.
  void add_assumptions(const Compiled& compiled, const compile::Part& part,
                       std::set<const npu::Assumption*>& to) const {
    for (const ir::OpId op : part.partition.op_map)
      for (const npu::Assumption* one : compiled.ops[static_cast<size_t>(op)].stands_on) to.insert(one);
    for (const compile::Band& band : part.bands) {
      for (size_t op = 0; op < band.rows.graph.ops.size(); ++op)
        for (const npu::Assumption* one :
             target_.driver->supports(target_.chip, band.rows.graph, static_cast<ir::OpId>(op)).stands_on)
          to.insert(one);
    }
  }

  // In the order of the tables, where each assumption stands only on earlier ones.
  bool ask_assumptions(const Compiled& compiled, std::vector<OpenPart>& open) {
    std::set<const npu::Assumption*> needed;
    for (OpenPart& part : open) {
      add_assumptions(compiled, *part.part, part.stands_on);
      needed.insert(part.stands_on.begin(), part.stands_on.end());
    }
    bool may_ask = true;
    for (const npu::Assumption& one : target_.driver->assumptions(target_.chip))
      may_ask = may_ask && (!needed.contains(&one) || ask(one));
    keep_probed();
    return may_ask && std::ranges::none_of(needed, [&](const npu::Assumption* one) {
             return is_refuted(*one) && !refuted_before_.contains(one);
           });
  }

  bool is_refuted(const npu::Assumption& one) const {
    return target_.trust->is_refuted(TrustKind::assumption, one.name);
  }
  // The next compilation omits them: other processes add findings too, and adding an entry merges theirs.
  void note_refuted() {
    for (const npu::Assumption& one : target_.driver->assumptions(target_.chip))
      if (is_refuted(one)) refuted_before_.insert(&one);
  }

  // False: why_not_ says why no more can be tried.
  bool ask(const npu::Assumption& one) {
    if (asked_.contains(one.name) || target_.trust->find(TrustKind::assumption, one.name)) return true;
    asked_.insert(one.name);
    const auto once = [&] { return try_assumption(*device_, *target_.trust, one, options_); };
    const auto ask_others = [&] {
      return std::ranges::all_of(others_of(one), [&](const npu::Assumption* other) { return ask(*other); });
    };
    const std::optional<Trial> tried = try_surely(once, &one, ask_others);
    if (!tried) return false;
    const Trial& trial = *tried;
    if (trial.outcome == Outcome::not_asked) {
      if (!trial.what.empty()) log::info("{}: {} was not tried: {}", target_.name, one.name, trial.what);
      return true;
    }
    const bool holds = trial.outcome == Outcome::right;
    probed_.push_back(entry_of_probe(one.name, holds, trial.what));
    confirmed_ += holds ? 1 : 0;
    if (holds) return true;
    keep_probed();
    log::warning(
        "{}: differs from an assumption ({}: {}), so operations that depend on it run in another way or on the CPU: "
        "{}; please send the report of skillet prove -o report.zip",
        target_.name, one.name, one.what, trial.what);
    return trial.outcome != Outcome::hangs || may_hang_again();
  }

  // Writing the file takes as long as a probe, so assumptions that hold are written together.
  void keep_probed() {
    if (!probed_.empty()) target_.trust->add(std::exchange(probed_, {}));
  }

  // The other assumptions that its probe stands on: a wrong result may be due to them.
  std::set<const npu::Assumption*> others_of(const npu::Assumption& one) const {
    std::set<const npu::Assumption*> others;
    const auto graph = ir::parse(one.probe);
    SessionOptions how = options_of_trial(true);
    how.partition = compile::PartitionBy::all;
    const auto compiled = graph.ok() ? compile_for(*device_, *graph, how) : Result<Compiled>(graph.error());
    if (!compiled.ok()) return others;
    for (const compile::OpPlace& place : compiled->ops) others.insert(place.stands_on.begin(), place.stands_on.end());
    others.erase(&one);
    return others;
  }

  static bool is_bad(const Trial& trial) { return trial.outcome == Outcome::wrong || trial.outcome == Outcome::hangs; }
  // Repeats a bad trial after `between`, and after other probes were right: a transient failure does not recur. None:
  // why_not_ says why nothing is learned now.
  template <typename Try, typename Between>
  std::optional<Trial> try_surely(Try&& once, const npu::Assumption* asked, Between&& between) {
    Trial trial = once();
    if (is_down(trial, asked)) return std::nullopt;
    if (!is_bad(trial)) return trial;
    return between() ? std::optional(once()) : std::nullopt;
  }
  template <typename Try>
  std::optional<Trial> try_surely(Try&& once) {
    return try_surely(once, nullptr, [] { return true; });
  }
  // Returns whether the device fails at other jobs too now; then this trial shows nothing, and why_not_ says so.
  bool is_down(const Trial& trial, const npu::Assumption* asked) {
    const bool failed_outside = trial.outcome == Outcome::not_asked && trial.code == ErrorCode::device;
    // If a job set the chip up, it was waited for before the one that hung. Its own loss would go unnoticed.
    const bool others_ran = is_set_up_ && trial.code == ErrorCode::timeout;
    const bool is_in_doubt =
        failed_outside || trial.outcome == Outcome::wrong || (trial.outcome == Outcome::hangs && !others_ran);
    if (!is_in_doubt) return false;
    keep_probed();
    const Others others = try_others(target_.name, *target_.trust, failed_outside ? nullptr : asked, options_);
    if (others == Others::right) return false;
    why_not_ =
        asked == nullptr
            ? "the device now fails other jobs too: " + trial.what
            : fmt::format(
                  "the device now fails other jobs too, so {} cannot be tested: {}; skillet prove shows what is wrong",
                  asked->name, trial.what);
    return true;
  }

  bool may_hang_again() {
    device_.reset();  // closes a file that waits for a hung job
    if (++hangs_ < kHangsMax) return open_device();
    why_not_ = fmt::format("{} different jobs hung", hangs_);
    return false;
  }

  bool check_part(const Compiled& compiled, const OpenPart& open) {
    compile::Part& part = *open.part;
    const std::optional<Trial> made = try_surely([&] { return try_part(part); });
    if (!made) return false;
    const Trial& trial = *made;
    if (trial.outcome == Outcome::not_asked) {
      why_not_ = "they cannot be compared with the CPU now: " + trial.what;
      return false;
    }
    if (trial.outcome == Outcome::right) {
      remember(open, true, fmt::format("{} operations are right", part.partition.op_map.size()));
      ++parts_;
      return true;
    }
    const std::string what = fmt::format("{}: {}", place_of(compiled, part), trial.what);
    log::warning("{}: {}", target_.name, what);
    const bool hangs = trial.outcome == Outcome::hangs;
    if (hangs && !may_hang_again()) return false;
    std::vector<ir::OpId> wrong;  // empty for tuned jobs: proven jobs are tried first
    if (!is_tuned(options_)) wrong = hangs ? isolate(compiled, part) : trial.wrong;
    if (!why_not_.empty()) return false;
    // A proven operation that is wrong beside unproven ones may be so because of them.
    if (std::ranges::any_of(wrong, [&](ir::OpId op) { return may_be_wrong(compiled, part, op); }))
      std::erase_if(wrong, [&](ir::OpId op) { return !may_be_wrong(compiled, part, op); });
    if (wrong.empty()) {
      remember(open, false, what);
      leave(compiled, part, what);
    } else {
      refuse(compiled, part, wrong, trial.what);
    }
    return false;
  }

  // "op 3 CONV_2D to op 9 ADD": the place of a part that is wrong as a whole.
  static std::string place_of(const Compiled& compiled, const compile::Part& part) {
    const auto name = [&](ir::OpId op) {
      const ir::Op& one = compiled.graph.op(op);
      return fmt::format("op {} {}", ir::op_number(one), ir::op_name(one));
    };
    const std::vector<ir::OpId>& ops = part.partition.op_map;
    return ops.size() == 1 ? name(ops[0]) : fmt::format("{} to {}", name(ops.front()), name(ops.back()));
  }

  void remember(const OpenPart& open, bool is_right, std::string evidence) {
    if (open.key.empty()) return;
    std::vector<std::string> stands_on;
    for (const npu::Assumption* one : open.stands_on) stands_on.emplace_back(one->name);
    std::ranges::sort(stands_on);
    target_.trust->add({{.kind = TrustKind::program,
                         .name = open.key,
                         .confirmed = is_right,
                         .build = {},
                         .date = {},
                         .evidence = std::move(evidence),
                         .stands_on = std::move(stands_on)}});
  }

  // The operations of a hanging part that also hang or are wrong alone; proven ones are tried only if no other is at
  // fault.
  std::vector<ir::OpId> isolate(const Compiled& compiled, const compile::Part& part) {
    std::vector<ir::OpId> found;
    std::map<std::string, bool> known;  // by operation: true if it is at fault
    for (const bool is_suspect : {true, false}) {
      for (size_t i = 0; i < part.partition.op_map.size(); ++i) {
        const auto op = static_cast<ir::OpId>(i);
        if (may_be_wrong(compiled, part, op) != is_suspect) continue;
        const auto [at, is_new] = known.try_emplace(operation_key(part.partition.graph, op), false);
        if (is_new) {
          const std::optional<bool> is_at_fault = is_bad_alone(part.partition.graph, op);
          if (!is_at_fault) return found;
          at->second = *is_at_fault;
        }
        if (at->second) found.push_back(op);
      }
      if (!found.empty()) break;
    }
    return found;
  }

  // None: why_not_ says why nothing more can be learned.
  std::optional<bool> is_bad_alone(const ir::Graph& graph, ir::OpId op) {
    const auto try_alone = [&](const Target& device) -> Result<Trial> {
      compile::Part one;
      one.partition.graph = operation_alone(graph, op);
      return try_kept(device, one, nullptr);
    };
    const std::optional<Trial> trial = try_surely([&] { return try_twice(*device_, try_alone); });
    if (!trial || (trial->outcome == Outcome::hangs && !may_hang_again())) return std::nullopt;
    return is_bad(*trial);
  }

  // Runs with all intermediates and compares each operation.
  Result<Trial> try_kept(const Target& device, const compile::Part& part,
                         std::map<size_t, std::vector<Bytes>>* outputs) {
    Compiled kept = alone(part.partition.graph);
    const SessionOptions keep = options_of_trial(true);
    SK_TRY_ASSIGN(kept.parts[0].program, compile_part(device, part.partition.graph, keep));
    SK_TRY_ASSIGN(const auto session, Session::create(std::move(kept), device, keep));
    return try_session(*session, device, kKeptInputs, outputs);
  }

  SessionOptions options_of_trial(bool keep) const {
    return trial_options(*target_.driver, *target_.trust, options_, keep);
  }

  static std::span<const npu::Assumption* const> stands_on(const Compiled& compiled, const compile::Part& part,
                                                           ir::OpId op) {
    return compiled.ops[static_cast<size_t>(part.partition.op_map[static_cast<size_t>(op)])].stands_on;
  }

  // If all operations are proven, any of them may be wrong.
  static bool may_be_wrong(const Compiled& compiled, const compile::Part& part, ir::OpId op) {
    return !stands_on(compiled, part, op).empty() || !stands_on_something(compiled, part);
  }

  // Refuses operations of the part, by their number in it.
  void refuse(const Compiled& compiled, const compile::Part& part, const std::vector<ir::OpId>& ops,
              const std::string& what) {
    std::vector<TrustEntry> entries;
    const compile::ModelKeys keys = model_keys(*model_);
    for (const ir::OpId op : ops) {
      const ir::OpId whole = part.partition.op_map[static_cast<size_t>(op)];
      for (const std::string& name : operation_names(compiled.graph, whole, compiled.rewrites, keys))
        entries.push_back({.kind = TrustKind::operation,
                           .name = name,
                           .evidence = fmt::format("{}: {}", ir::describe_op(compiled.graph, whole), what)});
    }
    target_.trust->add(std::move(entries));
  }

  // For a program that is wrong although its operations are right one by one: gives up tuned jobs first, then bands.
  void leave(const Compiled& compiled, const compile::Part& part, const std::string& what) {
    if (is_tuned(options_)) {
      log::warning("{}: proven jobs replace the tuned ones: {}", target_.name, what);
      options_ = untuned(std::move(options_));
      return;
    }
    if (part.bands.empty()) return refuse_all(compiled, part, what);
    log::warning("{}: one core is used instead of several: {}", target_.name, what);
    options_.cores = 1;
  }

  void refuse_all(const Compiled& compiled, const compile::Part& part, const std::string& what) {
    std::vector<ir::OpId> all;
    for (size_t i = 0; i < part.partition.op_map.size(); ++i)
      if (may_be_wrong(compiled, part, static_cast<ir::OpId>(i))) all.push_back(static_cast<ir::OpId>(i));
    refuse(compiled, part, all, what);
  }

  // Runs the part's program with all intermediates and compares each operation; then the unchanged program, which must
  // give the same bytes.
  Trial try_part(compile::Part& part) {
    return try_twice(*device_, [&](const Target& device) -> Result<Trial> {
      SK_TRY(check_stop());
      std::map<size_t, std::vector<Bytes>> expected;
      SK_TRY_ASSIGN(Trial trial, try_kept(device, part, &expected));
      if (trial.outcome != Outcome::right) return trial;
      Compiled real = alone(part.partition.graph);
      real.parts[0].program = part.program;
      real.parts[0].bands = part.bands;
      SK_TRY_ASSIGN(const auto runs, Session::create(std::move(real), device, options_of_trial(false)));
      return try_real(*runs, expected);
    });
  }

  compile::Verified compared() const {
    return has_compared_ ? compile::Verified{verify_ms_, confirmed_, parts_} : compile::Verified{};
  }

  const Target& target_;
  SessionOptions options_;
  const ir::Graph* model_ = nullptr;
  std::optional<Target> device_;
  std::set<std::string_view> asked_;
  std::vector<TrustEntry> probed_;                   // not yet added to the trust
  std::set<const npu::Assumption*> refuted_before_;  // before this round
  std::string why_not_;                              // why nothing can be verified now
  bool is_set_up_ = false;                           // by a separate job
  double verify_ms_ = 0;
  bool has_compared_ = false;
  size_t confirmed_ = 0, parts_ = 0;  // number of right ones
  int hangs_ = 0;
};

}  // namespace

bool verifies(const Target& target, const SessionOptions& options) {
  return options.compile.unproven == npu::Unproven::verify && target.trust != nullptr &&
         options.compile.tuning != npu::Tuning::recorded;
}

std::string text_of(const compile::Verified& compared) {
  if (compared.assumptions == 0 && compared.parts == 0) return "";
  return fmt::format("compared with the CPU in {:.0f} ms: right on this device: {}, {}", compared.ms,
                     counted(compared.assumptions, "assumption"), counted(compared.parts, "part"));
}

void log_compared(const Target& target, const compile::Verified& compared) {
  if (const std::string text = text_of(compared); !text.empty()) log::info("{}: {}", target.name, text);
}

Result<Compiled> compile_verified(const Target& target, ir::Graph graph, const SessionOptions& options) {
  SK_TRY(check_process(target));
  if (verifies(target, options)) return Verifier(target, options).run(graph);
  if (target.trust == nullptr || options.compile.unproven != npu::Unproven::refuse || !is_tuned(options))
    return compile_for(target, std::move(graph), options);
  log::warning("{}: tuned jobs were never recorded, so unproven=refuse runs proven ones", target.name);
  return compile_for(target, std::move(graph), untuned(options));
}

}  // namespace skillet::runtime
