// Chooses which operations of a host's graph go to the NPU, and in which sets, with a reason for each of the rest.
// Operations have the host's numbers (Op::source_index). Called by the plug-ins. Must not know: hosts.
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

// End of a refusal's reason where `partition` decides.
constexpr std::string_view kTakenByAll = " (partition=all takes it anyway)";

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
  std::string plain;     // the reason without names of tensors; empty: no such form
  npu::Remedy remedy = npu::Remedy::none;
};

// How operations are treated, besides what they compute.
struct Roles {
  std::set<int> for_cpu;   // our CPU kernels run these, in parts
  std::set<int> together;  // share memory: all of them are ours, or none is
  std::set<int> shapes;    // only compute shapes, which are known
  std::set<int> sized;     // read such a shape; our CPU kernels could run them
};

// Session options for a plug-in's options.
runtime::SessionOptions session_options(const Options& options);

// Operations that the part compiled from `nodes` (the host's numbers) leaves to the CPU, except those in `for_cpu`. If
// there are any, the part is not handed over. Returns all of them if the part needs no job: the host can move bytes as
// well, without copies to the NPU and back.
std::vector<Refusal> refusals_of(const compile::Compiled& compiled, std::span<const int> nodes,
                                 const std::set<int>& for_cpu = {});

// If `session` refuses unproven operations: adds that remedy to the rows of `compiled` (made from `graph`) that
// accepting unproven operations would move to the NPU.
Result<void> advise_unproven(std::vector<compile::OpRow>& rows, const compile::Compiled& compiled,
                             const runtime::Target& target, const ir::Graph& graph, runtime::SessionOptions session);

// Operations that the host hands over together.
struct Set {
  std::vector<int> nodes, outputs;  // outputs: if the host reports them
  auto operator<=>(const Set&) const = default;
};
// The operations of `set` as a graph of their own; nodes are indices into `whole`.
ir::Graph graph_of(const ir::Graph& whole, const Set& set);

// Functions that only a host's plug-in can provide.
struct Ways {
  std::function<Result<std::vector<Set>>()> divide;  // our operations, in sets
  // Compiles a set. With refusals or an error it does not become a part. by_cost=false: costs remove no operations.
  std::function<Result<std::vector<Refusal>>(const Set&, bool by_cost)> propose;
};

// The report for the user.
struct Told {
  std::vector<std::string> refusals;  // one line for each operation that stays with the host
  std::vector<std::string> kept;      // one line for each claimed operation that our CPU kernels compute
  size_t ops = 0;                     // operations that were considered
  std::string count;
  std::string compared;         // result of comparing with the CPU now; empty: no comparison
  std::string such_as, advice;  // if nothing is claimed: the most useful refusal, and advice
};

class Choice {
 public:
  // `nodes`: all operations of the host, in its order. `target` is borrowed.
  Choice(const runtime::Target& target, const Options& options, std::vector<Node> nodes,
         compile::Words words = compile::Words::tflite)
      : target_(target), options_(options), nodes_(std::move(nodes)), words_(words) {}

  // Plans the whole graph, except operations that only compute shapes.
  Result<void> ask(ir::Graph whole, Roles roles = {});
  // Forms parts, compiles each, and drops those that are not profitable, until no more are dropped.
  Result<void> divide(const Ways& host);

  // Keeps the first reason of a node.
  void refuse(int node, const std::string& reason) { refuse({.node = node, .reason = reason}); }
  bool is_ours(int node) const { return !refusals_.contains(node); }
  // Null: not refused.
  const Refusal* refusal(int node) const;
  // The reason why our CPU kernels, not the NPU, run a claimed node whose output the NPU reads. Null: no such node.
  const Refusal* kept(int node) const;
  bool only_sizes(int node) const { return roles_.shapes.contains(node); }  // if claimed, nothing computes it
  const std::set<int>& for_cpu() const { return roles_.for_cpu; }
  std::vector<int> ours() const;
  // For Ways::propose: added to the report in one line.
  void add_compared(const compile::Verified& one) { compared_ += one; }
  // For Ways::divide of hosts that take any set that no path leaves and enters again.
  std::vector<Set> closed_sets(const ir::Graph& graph) const;

  std::span<const Set> parts() const { return parts_; }
  // `name`: name of a node, such as "op 3 ADD". The host's constants must still be there.
  Told told(const std::function<std::string(int)>& name) const;
  // With strict=1: an error if any operation stays with the host.
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
  Options options_;
  const std::vector<Node> nodes_;
  const compile::Words words_;
  Roles roles_;
  std::map<int, Refusal> refusals_, kept_;
  std::map<int, uint64_t> macs_;
  std::set<int> unseen_;  // unproven: no recorded job shows them
  compile::Verified compared_;
  std::set<int> quiet_;  // operations that keep state or branch: no examples for the user
  ir::Graph whole_;      // that was asked about; its constants are the host's
  std::vector<Set> parts_;
  std::set<Set> fit_;
  std::set<int> weighed_;  // operations of sets from which costs removed some; costs do not cut the remainder again
};

// For hosts without a log of their own. `parts`: a line for each.
void log_told(const Told& told, std::span<const std::string> parts = {});

}  // namespace skillet::host
