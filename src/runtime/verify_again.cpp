#include "runtime/verify_again.h"

#include <algorithm>

#include "base/log.h"
#include "runtime/trial.h"
#include "runtime/trusted_driver.h"

namespace skillet::runtime {

bool VerifyAgain::can(const Target& target, const SessionOptions& options) {
  return options.verify_every > 0 && target.trust != nullptr && options.compile.tuning != npu::Tuning::recorded;
}

Result<Session*> VerifyAgain::session_of(size_t index, const passes::Partition& part) {
  std::unique_ptr<Session>& session = sessions_[index];
  if (session != nullptr) return session.get();
  if (!device_) SK_TRY_INTO(device_, open_for_trials(target_.name));
  const SessionOptions keep = trial_options(*target_.driver, *target_.trust, with_time(options_), true);
  compile::Compiled compiled = alone(part.graph);
  SK_TRY_ASSIGN(compiled.parts[0].program, compile_part(*device_, part.graph, keep));
  SK_TRY_ASSIGN(session, Session::create(std::move(compiled), *device_, keep));
  return session.get();
}

std::string VerifyAgain::check(size_t index, const passes::Partition& part, const ir::Graph& graph,
                               const Report& report,
                               const std::function<std::span<const uint8_t>(ir::TensorId)>& bytes_of) {
  if (is_over_) return "";
  WrongOps wrong;
  std::string what;
  const auto compare = [&]() -> Result<void> {
    SK_TRY_ASSIGN(Session* const session, session_of(index, part));
    std::vector<std::span<const uint8_t>> inputs;
    for (const ir::TensorId id : part.graph.inputs) inputs.push_back(bytes_of(id));
    SK_TRY_ASSIGN(const std::vector<Bytes> outputs, session->run(inputs));
    SK_TRY_ASSIGN(const std::vector<LayerDiff> diffs, session->compare_layers());
    note_wrong(*session, target_, diffs, wrong);
    what = first_of(session->graph(), wrong);
    for (size_t i = 0; i < outputs.size() && what.empty(); ++i)
      if (!std::ranges::equal(outputs[i], bytes_of(part.graph.outputs[i])))
        what = "results differ from those of one operation at a time";
    return {};
  };
  if (const auto done = compare(); !done.ok()) {
    is_over_ = true;
    log::warning("{}: verify_every: results cannot be compared with the CPU: {}", target_.name, done.error().message);
    return "";
  }
  if (!what.empty()) refute(part, graph, report, wrong, what);
  return what;
}

// Refutes the assumption of an operation that stands on only one; with several it is not known which fails. If all
// operations that may be at fault are proven, any of them may be.
void VerifyAgain::refute(const passes::Partition& part, const ir::Graph& graph, const Report& report,
                         const WrongOps& wrong, const std::string& what) {
  const std::span<const compile::OpPlace> ops = report.ops;
  std::vector<size_t> suspects;
  for (size_t i = 0; i < part.op_map.size(); ++i)
    if (wrong.empty() || wrong.contains(static_cast<ir::OpId>(i))) suspects.push_back(i);
  const bool is_proven = std::ranges::all_of(
      suspects, [&](size_t i) { return ops[static_cast<size_t>(part.op_map[i])].stands_on.empty(); });
  std::vector<TrustEntry> entries;
  for (const size_t i : suspects) {
    const ir::OpId whole = part.op_map[i];
    const auto& stands_on = ops[static_cast<size_t>(whole)].stands_on;
    if (stands_on.empty() && !is_proven) continue;
    const auto own = wrong.find(static_cast<ir::OpId>(i));
    const std::string evidence = fmt::format("{}: {} (on the user's inputs)", ir::describe_op(graph, whole),
                                             own == wrong.end() ? what : own->second);
    const bool is_one = stands_on.size() == 1 && !wrong.empty();
    const auto names = is_one ? std::set{std::string(stands_on[0]->name)}
                              : operation_names(graph, whole, report.rewrites, report.model_keys);
    for (const std::string& name : names)
      entries.push_back({.kind = is_one ? TrustKind::assumption : TrustKind::operation,
                         .name = name,
                         .confirmed = false,
                         .build = {},
                         .date = {},
                         .evidence = evidence});
  }
  target_.trust->add(std::move(entries));
}

}  // namespace skillet::runtime
