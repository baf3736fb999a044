// What an NPU takes of a host's graph, in which sets, and why not the rest, by Op::source_index: the host's own
// numbers. Called by the plug-ins. Must not know: hosts.
#pragma once

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
};

// What a session of the plug-in's options is made with.
runtime::SessionOptions session_options(const Options& options);

// What a plan of the whole graph leaves to the host, those that passes merged with others among it. `left`: the
// host's numbers of all that is still there in some form.
struct Planned {
  std::vector<Refusal> refusals;
  std::vector<int> left;  // sorted
};
Planned planned_for(const compile::Compiled& planned);

// What a part that was compiled of `nodes`, the host's numbers, leaves to the CPU: with any, the part is not handed
// over. All of it when the part needs no job: copies there and back cost time, and the host moves bytes as well.
std::vector<Refusal> refusals_of(const compile::Compiled& compiled, std::span<const int> nodes);

}  // namespace skillet::host
