// What an NPU takes of a host's graph, in which sets, and why not the rest, by Op::source_index: the host's own
// numbers. Called by the plug-ins. Must not know: hosts.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "frontend/host/options.h"

namespace skillet::host {

// The end of reasons that are a choice of `partition`.
constexpr std::string_view kTakenByAll = " (partition=all takes it all the same)";

// An operation that stays with the host, and why.
struct Refusal {
  int node = -1;  // the host's index
  std::string reason;
  bool by_cost = false;  // the NPU could compute it
};

// What a session of the plug-in's options is made with.
runtime::SessionOptions session_options(const Options& options);

// What a part that was compiled of `nodes`, the host's numbers, leaves to the CPU, but for `for_cpu`: with any, the
// part is not handed over. All of it when the part needs no job: copies there and back cost time, and the host moves
// bytes as well.
std::vector<Refusal> refusals_of(const compile::Compiled& compiled, std::span<const int> nodes,
                                 const std::set<int>& for_cpu = {});

// Operations that the host would hand over as one.
struct Set {
  std::vector<int> nodes, outputs;  // outputs: where the host tells them
  auto operator<=>(const Set&) const = default;
};

// What only a host's plug-in knows.
struct Ways {
  std::function<void()> settle;  // may be null: refuses what goes only with others, before each division
  std::function<Result<std::vector<Set>>()> divide;  // what is ours, in sets
  // Compiles a set. With refusals, or an error that says why, it is no part. by_cost: false: costs cut nothing off.
  std::function<Result<std::vector<Refusal>>(const Set&, bool by_cost)> propose;
};

// What the user is told.
struct Told {
  std::vector<std::string> refusals;  // a line for each operation that stays
  std::string count;
  std::string such_as, advice;  // where nothing is ours: the most telling refusal, what would change it
};

class Choice {
 public:
  // `nodes`: all that the host has, in its order. Both others are borrowed.
  Choice(const runtime::Target& target, const Options& options, std::vector<int> nodes)
      : target_(target), options_(options), nodes_(std::move(nodes)) {}

  // Plans the whole graph. `for_cpu`: what our CPU kernels run in parts; `carried`: what is no operation of the graph
  // and goes with those that read it.
  Result<void> ask(ir::Graph whole, const std::set<int>& for_cpu = {}, const std::set<int>& carried = {});
  // Forms parts, compiles each, drops those that are not worth it, until the rest stays.
  Result<void> divide(const Ways& host);

  // The first reason stays.
  void refuse(int node, const std::string& reason);
  void take(int node) { refusals_.erase(node); }
  bool is_ours(int node) const { return !refusals_.contains(node); }
  std::string_view refusal(int node) const;
  std::vector<int> ours() const;
  // For Ways::divide, of hosts that take any sets that no path leaves and comes back to.
  std::vector<Set> closed_sets(const ir::Graph& graph) const;

  std::span<const Set> parts() const { return parts_; }
  // `name` of a node: "op 3 ADD".
  Told told(const std::function<std::string(int)>& name) const;
  // With strict=1: an error where anything stays.
  Result<void> check_strict(const Told& told) const;

 private:
  bool drop(const Set& set, const std::string& reason);
  bool judge(const Set& set, const Ways& host);
  bool limit();
  uint64_t macs(const Set& set) const;

  const runtime::Target& target_;
  const Options& options_;
  const std::vector<int> nodes_;
  std::map<int, std::string> refusals_;
  std::map<int, uint64_t> macs_;
  std::set<int> quiet_;  // what hosts have beside the network, and nobody misses
  std::string advice_;
  std::vector<Set> parts_;
  std::set<Set> fit_;
  std::set<int> weighed_;  // of sets from which costs cut something off: the rest of them is not cut again
};

// Where a host has no log of its own. `parts`: a line for each.
void log_told(const Told& told, std::span<const std::string> parts = {});

}  // namespace skillet::host
