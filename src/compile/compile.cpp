#include "compile/compile.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/log.h"
#include "base/stopwatch.h"
#include "compile/bands.h"
#include "compile/kept.h"
#include "compile/prefix.h"
#include "npu/steps_off.h"

namespace skillet::compile {
namespace {

using npu::Remedy;
using npu::Support;

// What the CPU computes as the model has it is found in rounds: without it others may be faster there, too.
constexpr int kMaxKeptRounds = 4;

// Each search for an op at fault costs several compilations. After this many, a failing part goes to the CPU whole.
constexpr int kMaxSearches = 64;

// Times are sums of whole nanoseconds in different orders.
constexpr double kRoundingUs = 0.01;

class Compiler {
 public:
  Compiler(const Target& target, const Options& options, const Kept& kept)
      : target_(target), options_(options), kept_(kept), driver_options_(options.driver) {
    // Copies of intermediates cost time and must not influence the choice.
    driver_options_.keep_intermediates &= !by_time();
  }

  Result<Compiled> run(ir::Graph graph, bool with_programs) {
    const Stopwatch watch;
    model_ = std::move(graph);
    out_.graph = model_;
    out_.model_ops = model_.ops.size();
    model_constants_ = passes::constant_bytes(model_);
    Target target = target_;
    // Where the chip computes the same bits as the CPU, no pass may change them.
    target.per_channel = target_.driver != nullptr && npu::is_exact(*target_.driver, target_.chip, model_)
                             ? npu::PerChannel::strict
                             : options_.driver.per_channel;
    target.weight_changes = &changes_;
    target.takes_unproven = options_.driver.takes_unproven();
    target.constants_max = passes::constants_max(out_.graph);
    if (options_.rewrite && options_.driver.tuning != npu::Tuning::recorded) target.rewrites = &out_.rewrites;
    target.tried = &tried_;
    SK_TRY(rewrite(target));
    if (Kept vain = in_vain(out_, support_); !vain.empty()) {
      kept_.merge(vain);
      out_.graph = model_;
      out_.rewrites.clear(), changes_.clear(), tried_.clear();
      SK_TRY(rewrite(target));
    }
    bound_constants(target.constants_max);
    if (by_time()) cpu_us_ = cpu_times_us(out_, model_, options_.cost_model->cpu);
    if (with_programs) bands_ = may_divide_runs() && !by_time();
    divide();
    out_.passes_ms = watch.ms();
    if (with_programs) SK_TRY(settle());
    if (with_programs && by_time() && may_divide_runs()) SK_TRY(divide_runs());
    if (with_programs && by_time() && options_.driver.keep_intermediates) SK_TRY(keep_intermediates());
    take_back_rewrites();
    report();
    return std::move(out_);
  }

 private:
  Result<void> rewrite(Target& target) {
    for (const auto& [source, why] : kept_) target.kept.insert(source);
    SK_TRY(passes::run_pipeline(out_.graph, target));
    support_ = passes::supports(out_.graph, target_);
    for (size_t op = 0; op < support_.size(); ++op) {
      gate(support_[op]);
      const auto kept = kept_.find(out_.graph.ops[op].source_index);
      if (kept != kept_.end()) support_[op] = kept->second;
    }
    return {};
  }

  // Until each part has a program and is profitable to offload.
  Result<void> settle() {
    while (true) {
      SK_TRY_ASSIGN(bool all_stay, compile_parts());
      if (all_stay && !is_compared_) begin_comparison();
      all_stay = all_stay && judge_parts();
      if (!all_stay) {
        divide();
        continue;
      }
      if (!may_undo()) return {};
      divide();
    }
  }

  // Times of the NPU with everything that the chip takes, and of the CPU alone.
  void begin_comparison() {
    is_compared_ = true;
    const auto cannot_leave = [](const Part& part) { return part.partition.on_npu && needs_npu(part.partition.graph); };
    if (!by_time() || std::ranges::any_of(out_.parts, cannot_leave)) return;
    const auto all = times();
    if (!all) return;
    support_of_all_ = support_;
    out_.network = {
        {kept_.empty() ? "all that the chip takes on the NPU" : "all but the CPU's operations on the NPU", *all},
        {"all on the CPU", cpu_alone()}};
  }

  // True: as a whole, the chosen division is slower than all on the NPU or all on the CPU, because parts are not the
  // runs that were compared. Ops in pieces on both are joined; if there are none, the faster of these two is taken.
  bool may_undo() {
    if (out_.network.size() != 2) return false;
    const auto divided = times();
    if (!divided) {
      out_.network.clear();
      return false;
    }
    const double all_us = out_.network[0].times.us(), cpu_us = out_.network[1].times.us();
    const bool is_for_cpu = is_cpu_faster(cpu_us, all_us, *options_.cost_model);
    if (divided->us() > (is_for_cpu ? cpu_us : all_us) + kRoundingUs) {
      if (join_pieces(out_.graph, support_)) return true;
      if (!is_for_cpu) support_ = support_of_all_;
      for (Support& one : support_)
        if (is_for_cpu && one.ok) one = faster_on_cpu();
      out_.network[is_for_cpu ? 1 : 0].is_chosen = true;
      out_.network.push_back({"divided", *divided});
      is_settled_ = true;
      return true;
    }
    out_.network.push_back({"divided", *divided, true});
    return false;
  }

  Times cpu_alone() const {
    const ir::Graph& graph = out_.rewrites.empty() ? out_.graph : model_;  // see take_back_rewrites()
    Times out;
    for (size_t op = 0; op < graph.ops.size(); ++op)
      out.cpu_us += options_.cost_model->cpu.us(graph, static_cast<ir::OpId>(op));
    return out;
  }

  // Times of the current parts; none: the cost of a part is not known.
  std::optional<Times> times() const {
    Times out;
    std::set<int32_t> on_npu;  // ops of the model, or pieces of them; the CPU computes other ops in the model's form
    for (const Part& part : out_.parts)
      for (const ir::OpId op : part.partition.op_map)
        if (part.partition.on_npu) on_npu.insert(out_.graph.op(op).source_index);
    for (const Part& part : out_.parts) {
      if (!part.partition.on_npu) {
        for (const ir::OpId op : part.partition.op_map)
          out.cpu_us += on_npu.contains(out_.graph.op(op).source_index) ? options_.cost_model->cpu.us(out_.graph, op)
                                                                        : cpu_us_[static_cast<size_t>(op)];
        continue;
      }
      if (!part.program) return std::nullopt;
      const auto one = times_on_npu(part.partition.graph, *part.program, *options_.cost_model);
      if (!one.ok()) return std::nullopt;
      out += *one;
    }
    return out;
  }

  // Choices use programs for one core: parts that are profitable on one core are divided among several afterwards.
  Result<void> divide_runs() {
    bands_ = true;
    for (Part& part : out_.parts) part.program.reset();
    divide();
    return settle();
  }

  // Compiles the chosen parts again, with intermediates.
  Result<void> keep_intermediates() {
    driver_options_.keep_intermediates = true;
    is_settled_ = true;
    for (Part& part : out_.parts) part.program.reset();
    return settle();
  }

  bool by_time() const { return options_.cost_model != nullptr && options_.driver.tuning != npu::Tuning::recorded; }

  void gate(Support& support) const {
    if (!support.ok || !support.rests_on_assumptions() || options_.driver.takes_unproven()) return;
    const Remedy remedy = support.remedy == Remedy::none ? Remedy::unproven : support.remedy;
    support = Support::no(remedy, "{}", npu::why_refused(support.reason, npu::names_of(support.stands_on)));
  }

  // A small model file must not demand all of the machine's memory.
  void bound_constants(uint64_t limit) {
    if (target_.driver == nullptr || options_.driver.tuning == npu::Tuning::recorded) return;
    uint64_t total = 0;
    std::set<std::string> keys;
    for (size_t i = 0; i < support_.size(); ++i) {
      if (!support_[i].ok) continue;
      const npu::MadeConstants made =
          target_.driver->made_constants(target_.chip, out_.graph, static_cast<ir::OpId>(i));
      if (!made.key.empty() && keys.contains(made.key)) continue;
      if (made.bytes > limit - total) {
        support_[i] = Support::no(Remedy::split,
                                  "its constants take {} bytes in the NPU's format, besides {} of others; a model with "
                                  "{} bytes of constants may take {}",
                                  made.bytes, total, model_constants_, limit);
        continue;
      }
      total += made.bytes;
      if (!made.key.empty()) keys.insert(made.key);
    }
  }

  // Unchanged parts keep their programs.
  void divide() {
    std::vector<Part> before = std::move(out_.parts);
    out_.parts.clear();
    for (passes::Partition& partition : passes::partition(out_.graph, support_)) {
      const auto same = std::ranges::find_if(before, [&](const Part& part) {
        return part.partition.op_map == partition.op_map && part.partition.graph.outputs == partition.graph.outputs &&
               part.partition.on_npu == partition.on_npu && part.bands.empty();
      });
      Part part;
      if (same != before.end()) part = std::move(*same);
      part.partition = std::move(partition);
      add(std::move(part));
    }
  }

  bool may_divide_runs() const {
    return options_.cores > 1 && !options_.driver.keep_intermediates &&
           options_.driver.tuning != npu::Tuning::recorded &&
           target_.driver->costs(target_.chip, options_.measured).has_value();
  }

  // Adds the part undivided, or as a run of layers in bands and the rest.
  void add(Part part) {
    const bool wants_bands =
        bands_ && part.partition.on_npu && !part.program &&
        (part.is_weighed || why_not_worth(part.partition.graph, options_.min_macs_per_byte).empty());
    BandPlan plan;
    if (wants_bands) plan = plan_bands(out_.graph, part.partition, target_, options_);
    part.note = plan.note;
    if (plan.bands.empty()) {
      out_.parts.push_back(std::move(part));
      return;
    }
    Part& run = out_.parts.emplace_back(Part{.partition = std::move(plan.parts[0]), .is_piece = true});
    run.note = std::move(plan.note);
    for (passes::Band& band : plan.bands) run.bands.push_back({std::move(band), {}});
    if (plan.parts.size() > 1) out_.parts.push_back({.partition = std::move(plan.parts[1]), .is_piece = true});
  }

  // False: the bands do not compile, and no part is divided any more.
  Result<bool> compile_bands(Part& part) {
    const Stopwatch watch;
    for (Band& band : part.bands) {
      auto program = compiler().compile(target_.chip, band.rows.graph, driver_options_);
      if (!program.ok()) {
        if (program.error().code == ErrorCode::invalid_argument) return std::move(program).error();
        log::info("{}: no bands: {}", target_.chip.name, program.error().message);
        bands_ = false;
        return false;
      }
      band.program = std::move(program).value();
    }
    part.compile_ms = watch.ms();
    return true;
  }
  const npu::Driver& compiler() const { return options_.compiler != nullptr ? *options_.compiler : *target_.driver; }

  // False: ops have been left out, and the graph must be divided again.
  Result<bool> compile_parts() {
    bool all = true;
    ++rounds_;
    for (size_t i = 0; i < out_.parts.size(); ++i) {
      Part& part = out_.parts[i];
      if (!part.partition.on_npu || part.program) continue;
      if (!part.bands.empty()) {
        SK_TRY_ASSIGN(const bool done, compile_bands(part));
        if (!done) return false;
        continue;
      }
      const Stopwatch watch;
      auto program = compiler().compile(target_.chip, part.partition.graph, driver_options_);
      part.compile_ms = watch.ms();
      if (program.ok()) {
        part.program = std::move(program).value();
        continue;
      }
      if (!options_.leave_out)
        return std::move(program).error().with_context(
            fmt::format("part {} ({} ops)", i, part.partition.op_map.size()));
      if (program.error().code == ErrorCode::invalid_argument) return std::move(program).error();
      leave_out(part.partition, std::move(program).error());
      all = false;
    }
    return all;
  }

  void leave_out(const passes::Partition& part, Error cause) {
    std::vector<ir::OpId> ops = part.op_map;
    if (rounds_ <= kMaxSearches) {
      const size_t at = op_at_fault(part.graph, cause);
      ops = {part.op_map[at]};
      // The compiler numbers the part's operations, not the graph's.
      const std::string named = ir::describe_op(part.graph, static_cast<ir::OpId>(at)) + ": ";
      if (cause.message.starts_with(named)) cause.message.erase(0, named.size());
    }
    log::warning("{}: {}{} runs on the CPU: {}", target_.chip.name, ir::describe_op(out_.graph, ops[0]),
                 ops.size() > 1 ? fmt::format(" and {} more", ops.size() - 1) : "", cause.message);
    exclude(ops, Remedy::report, "the compiler: " + cause.message);
  }

  // Returns the last op of the shortest prefix that fails; sets `cause` to that prefix's error.
  size_t op_at_fault(const ir::Graph& part, Error& cause) const {
    size_t good = 0, bad = part.ops.size();
    while (bad - good > 1) {
      const size_t middle = good + (bad - good) / 2;
      auto program = target_.driver->compile(target_.chip, prefix(part, middle), driver_options_);
      if (!program.ok()) cause = std::move(program).error();
      (program.ok() ? good : bad) = middle;
    }
    return bad - 1;
  }

  // False: parts have been moved to the CPU.
  bool judge_parts() {
    bool all = true;
    for (Part& part : out_.parts) {
      if (!part.partition.on_npu || part.is_piece || part.is_weighed) continue;
      if (is_settled_ || needs_npu(part.partition.graph)) {
        part.is_weighed = true;
        continue;
      }
      if (by_time() && part.program) {
        std::vector<double> cpu_us;
        for (const ir::OpId op : part.partition.op_map) cpu_us.push_back(cpu_us_[static_cast<size_t>(op)]);
        auto choice = choose_offload(part.partition.graph, *part.program, *options_.cost_model, cpu_us);
        if (choice.ok()) {
          all &= take_choice(part, std::move(choice).value());
          continue;
        }
        log::info("{}: no predicted time: {}", target_.chip.name, choice.error().message);
      }
      const std::string reason = why_not_worth(part.partition.graph, options_.min_macs_per_byte);
      if (!reason.empty()) exclude(part.partition.op_map, Remedy::take_all, reason);
      all &= reason.empty();
    }
    return all;
  }

  // False: ops of the part go to the CPU.
  bool take_choice(Part& part, OffloadChoice choice) {
    choice.ops = part.partition.op_map;
    std::vector<ir::OpId> moved;
    size_t next = 0;
    for (const Span& span : choice.alternatives[choice.chosen].on_npu) {
      for (; next < span.first; ++next) moved.push_back(choice.ops[next]);
      next = span.last;
    }
    for (; next < choice.ops.size(); ++next) moved.push_back(choice.ops[next]);
    if (!moved.empty())
      exclude(moved, Remedy::take_all, why_moved(out_.graph, moved, choice, options_.cost_model->cpu_cores));
    part.is_weighed = moved.empty();
    out_.choices.push_back(std::move(choice));
    return moved.empty();
  }

  void exclude(const std::vector<ir::OpId>& ops, Remedy remedy, const std::string& reason) {
    for (const ir::OpId op : ops) support_[static_cast<size_t>(op)] = Support::no(remedy, "{}", reason);
  }

  static Support faster_on_cpu() {
    return Support::no(Remedy::take_all, "the network is predicted to be faster on the CPU alone");
  }

  // If nothing is on the NPU, the CPU computes the original model: rewrites cost it time, and some change results by a
  // step.
  void take_back_rewrites() {
    if (out_.rewrites.empty() || std::ranges::any_of(out_.parts, [](auto& part) { return part.partition.on_npu; }))
      return;
    std::vector<Support> of_model = passes::supports(model_, target_);
    for (size_t op = 0; op < of_model.size(); ++op) {
      if (const Support* const rewritten = support_of_source(model_.ops[op].source_index))
        of_model[op] = *rewritten;
      else if (of_model[op].ok)
        of_model[op] = by_time() ? faster_on_cpu() : Support::no(Remedy::none, "alone it would only move data");
    }
    support_ = std::move(of_model);
    out_.compared = std::exchange(out_.graph, std::move(model_));
    out_.rewrites.clear();
    changes_.clear();
    divide();
  }

  // The answer for what the passes made of the model's op: first one that is only slower on the NPU, then one that was
  // seen to be wrong there. None: nothing is left of the op.
  const Support* support_of_source(int32_t source) const {
    const Support* found = nullptr;
    for (size_t op = 0; op < support_.size(); ++op) {
      if (out_.graph.ops[op].source_index != source) continue;
      const auto rank = [](const Support& one) { return one.remedy == Remedy::take_all ? 2 : one.seen_wrong ? 1 : 0; };
      if (found == nullptr || rank(support_[op]) > rank(*found)) found = &support_[op];
    }
    return found;
  }

  void report() {
    out_.ops.resize(out_.graph.ops.size());
    for (size_t part = 0; part < out_.parts.size(); ++part) {
      for (const ir::OpId op : out_.parts[part].partition.op_map) {
        Support& support = support_[static_cast<size_t>(op)];
        const bool is_open = support.remedy == Remedy::none ||
                             (support.remedy == Remedy::quantize && out_.graph.op(op).kind == ir::OpKind::quantize);
        if (!support.ok && is_open && !support.seen_wrong && target_.driver != nullptr)
          support.remedy = npu::remedy_of_op(out_.graph, op);
        if (!support.ok && support.remedy == Remedy::quantize && npu::remedy_at_border(out_.graph, op) != Remedy::none)
          support.remedy = npu::remedy_at_border(out_.graph, op);
        out_.ops[static_cast<size_t>(op)] = {
            support.ok, std::move(support.reason), support.unproven, part, "", support.remedy, {}};
        if (support.ok) out_.ops[static_cast<size_t>(op)].stands_on = std::move(support.stands_on);
      }
    }
    for (const passes::Tried& one : tried_) add_tried(one);
    for (passes::WeightChange& change : changes_) restore(std::move(change));
  }

  // Adds a note to ops on the CPU: why the ops of a function of one byte stay there together. If the device was seen to
  // compute the combined op wrong, that replaces the reason.
  void add_tried(const passes::Tried& one) {
    for (size_t i = 0; i < out_.ops.size(); ++i) {
      OpPlace& place = out_.ops[i];
      const int32_t source = out_.graph.ops[i].source_index;
      const bool is_one = source >= 0 && std::ranges::count(one.sources, source) != 0;
      if (!is_one || place.on_npu || place.remedy == Remedy::take_all || support_[i].seen_wrong) continue;
      std::string& to = one.seen_wrong ? place.reason : place.note;
      if (one.seen_wrong || to.empty()) to = one.why;
      if (one.seen_wrong) place.remedy = Remedy::none;
      support_[i].seen_wrong |= one.seen_wrong;
    }
  }

  // Parts on the NPU keep the new weights; the CPU computes with the model's own.
  void restore(passes::WeightChange change) {
    const auto op = static_cast<size_t>(change.op);
    out_.graph.ops[op].inputs = change.inputs;
    if (!out_.ops[op].on_npu) return;
    out_.ops[op].note = change.text();
    out_.weight_changes.push_back(std::move(change));
  }

  const Target& target_;
  const Options& options_;
  Kept kept_;  // and what is rewritten in vain
  npu::CompileOptions driver_options_;
  std::vector<Support> support_, support_of_all_;  // by op
  std::vector<double> cpu_us_;                     // by op
  std::vector<passes::WeightChange> changes_;
  std::vector<passes::Tried> tried_;
  ir::Graph model_;               // before the passes
  uint64_t model_constants_ = 0;  // bytes
  int rounds_ = 0;
  bool bands_ = false;        // runs of layers may be divided
  bool is_compared_ = false;  // begin_comparison() was here
  bool is_settled_ = false;   // by time: parts stay as they are
  Compiled out_;
};

}  // namespace

std::vector<PartProgram> programs(Part& part) {
  std::vector<PartProgram> out;
  if (part.program) out.push_back({&part.partition.graph, &*part.program, ""});
  for (size_t i = 0; i < part.bands.size(); ++i)
    out.push_back({&part.bands[i].rows.graph, &part.bands[i].program, fmt::format(", band {}", i)});
  return out;
}

Result<Compiled> compile(ir::Graph graph, const Target& target, const Options& options) {
  Kept kept = options.kept;
  std::optional<Compiled> before;
  double before_excess = 0;
  for (int round = 0;; ++round) {
    SK_TRY_ASSIGN(Compiled out, Compiler(target, options, kept).run(graph, target.driver != nullptr));
    if (options.cost_model == nullptr) return out;
    const double excess = excess_us(out, graph, options.cost_model->cpu);
    if (before && is_slower(out, *before, excess, before_excess)) return std::move(*before);
    before_excess = excess;
    if (round == kMaxKeptRounds || !keep_more(out, kept)) return out;
    before = std::move(out);
  }
}

Result<Compiled> plan(ir::Graph graph, const Target& target, const Options& options) {
  return Compiler(target, options, options.kept).run(std::move(graph), false);
}

}  // namespace skillet::compile
