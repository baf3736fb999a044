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

#include "compile/advice.h"
#include "compile/report.h"
#include "frontend/host/options.h"

namespace skillet::host {

// The end of reasons that are a choice of `partition`.
constexpr std::string_view kTakenByAll = " (partition=all takes it all the same)";

// An operation of the host: its number, and the tensors of the host that it reads and writes, where that matters.
struct Node {
  int index = -1;
  std::vector<int> inputs, outputs;
};
std::vector<Node> numbered(size_t count);

// An operation that stays with the host, and why.
struct Refusal {
  int node = -1;  // the host's index
  std::string reason;
  bool by_cost = false;  // the NPU could compute it
  std::string plain;     // the reason without names of tensors; empty: it has none
  npu::Remedy remedy = npu::Remedy::none;
};

// What a host's operations are beside what they compute.
struct Roles {
  std::set<int> for_cpu;   // our CPU kernels run these, in parts
  std::set<int> together;  // share memory: all of them are ours, or none
  std::set<int> shapes;    // only compute shapes, which are known
  std::set<int> sized;     // read such a shape, and our CPU kernels could run them
};

// What a session of the plug-in's options is made with.
runtime::SessionOptions session_options(const Options& options);

// What a part that was compiled of `nodes`, the host's numbers, leaves to the CPU, but for `for_cpu`: with any, the
// part is not handed over. All of it when the part needs no job: copies there and back cost time, and the host moves
// bytes as well.
std::vector<Refusal> refusals_of(const compile::Compiled& compiled, std::span<const int> nodes,
                                 const std::set<int>& for_cpu = {});

// Where `session` refuses what is unproven: rows of `compiled`, made of `graph`, that it would be the remedy for say
// so.
Result<void> advise_unproven(std::vector<compile::OpRow>& rows, const compile::Compiled& compiled,
                             const runtime::Target& target, const ir::Graph& graph, runtime::SessionOptions session);

// Operations that the host would hand over as one.
struct Set {
  std::vector<int> nodes, outputs;  // outputs: where the host tells them
  auto operator<=>(const Set&) const = default;
};
// As a graph of their own, where nodes are the ops of `whole`.
ir::Graph graph_of(const ir::Graph& whole, const Set& set);

// What only a host's plug-in knows.
struct Ways {
  std::function<Result<std::vector<Set>>()> divide;  // what is ours, in sets
  // Compiles a set. With refusals, or an error that says why, it is no part. by_cost: false: costs cut nothing off.
  std::function<Result<std::vector<Refusal>>(const Set&, bool by_cost)> propose;
};

// What the user is told.
struct Told {
  std::vector<std::string> refusals;  // a line for each operation that stays
  std::vector<std::string> kept;      // and for each of ours that our CPU kernels compute
  size_t ops = 0;                     // that were asked of
  std::string count;
  std::string compared;         // with the CPU, now; empty: nothing
  std::string such_as, advice;  // where nothing is ours: the most telling refusal, what would change it
};

class Choice {
 public:
  // `nodes`: all that the host has, in its order. `target` and `options` are borrowed.
  Choice(const runtime::Target& target, const Options& options, std::vector<Node> nodes,
         compile::Words words = compile::Words::tflite)
      : target_(target), options_(options), nodes_(std::move(nodes)), words_(words) {}

  // Plans the whole graph, without those that only compute shapes.
  Result<void> ask(ir::Graph whole, Roles roles = {});
  // Forms parts, compiles each, drops those that are not worth it, until the rest stays.
  Result<void> divide(const Ways& host);

  // The first reason stays.
  void refuse(int node, const std::string& reason) { refuse({.node = node, .reason = reason}); }
  bool is_ours(int node) const { return !refusals_.contains(node); }
  // Null: there is none.
  const Refusal* refusal(int node) const;
  // Ours, but for our CPU kernels, because the NPU reads what it makes: why not for the NPU. Null: it is not.
  const Refusal* kept(int node) const;
  bool only_sizes(int node) const { return roles_.shapes.contains(node); }  // nothing computes it where it is ours
  const std::set<int>& for_cpu() const { return roles_.for_cpu; }
  std::vector<int> ours() const;
  // For Ways::propose: told in one line.
  void add_compared(const compile::Verified& one) { compared_ += one; }
  // For Ways::divide, of hosts that take any sets that no path leaves and comes back to.
  std::vector<Set> closed_sets(const ir::Graph& graph) const;

  std::span<const Set> parts() const { return parts_; }
  // `name` of a node: "op 3 ADD".
  Told told(const std::function<std::string(int)>& name) const;
  // With strict=1: an error where anything stays.
  Result<void> check_strict(const Told& told) const;

 private:
  void refuse(Refusal refusal);
  void add_only_sized();
  void keep_sizes();
  void refuse_shapes();
  void refuse_together();
  bool drop(const Set& set, const std::string& reason);
  bool judge(const Set& set, const Ways& host);
  bool limit();
  uint64_t macs(const Set& set) const;
  std::string print_unseen() const;

  const runtime::Target& target_;
  const Options& options_;
  const std::vector<Node> nodes_;
  const compile::Words words_;
  Roles roles_;
  std::map<int, Refusal> refusals_, kept_;
  std::map<int, uint64_t> macs_;
  std::set<int> unseen_;  // stand on what no recorded job shows
  compile::Verified compared_;
  std::set<int> quiet_;  // what hosts have beside the network, and nobody misses
  std::string advice_;
  std::vector<Set> parts_;
  std::set<Set> fit_;
  std::set<int> weighed_;  // of sets from which costs cut something off: the rest of them is not cut again
};

// Where a host has no log of its own. `parts`: a line for each.
void log_told(const Told& told, std::span<const std::string> parts = {});

}  // namespace skillet::host
