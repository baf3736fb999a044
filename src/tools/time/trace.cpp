// `skillet trace`: what a trace says in a few lines, and as a picture.
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/log.h"
#include "base/text.h"
#include "tools/cli/verbs.h"
#include "tools/show/text_table.h"
#include "tools/time/trace_file.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string file, svg;
  bool json = false;
};

constexpr int64_t kMostBytes = int64_t{1} << 30;

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

double busy_share(const TraceSummary& summary) {
  return summary.runs_ns > 0 ? std::min(1.0, ms(summary.npu_ns) / ms(summary.runs_ns)) : 0;
}

void print_json(const Options& options, const Trace& trace, const TraceSummary& summary) {
  nlohmann::json categories = nlohmann::json::array(), longest = nlohmann::json::array();
  for (const TraceCategory& one : summary.categories)
    categories.push_back({{"name", one.name}, {"slices", one.slices}, {"ms", ms(one.ns)}, {"own_ms", ms(one.own_ns)}});
  for (const size_t i : summary.longest) {
    const TraceSlice& one = trace.slices[i];
    longest.push_back({{"name", one.name},
                       {"category", one.category},
                       {"track", trace.tracks[one.track].name},
                       {"begin_ms", ms(one.begin_ns - trace.begin_ns)},
                       {"ms", ms(one.ns())},
                       {"own_ms", ms(one.own_ns)}});
  }
  out_report({{"file", options.file},
              {"ms", ms(trace.end_ns - trace.begin_ns)},
              {"tracks", trace.tracks.size()},
              {"slices", trace.slices.size()},
              {"runs", summary.runs},
              {"runs_ms", ms(summary.runs_ns)},
              {"npu_submissions", summary.submissions},
              {"npu_jobs", summary.jobs},
              {"npu_ms", ms(summary.npu_ns)},
              {"npu_busy", busy_share(summary)},
              {"categories", categories},
              {"longest", longest}});
}

void print_text(const Options& options, const Trace& trace, const TraceSummary& summary) {
  out("{}: {}, {} slices on {} tracks\n", printable(options.file), print_ms(ms(trace.end_ns - trace.begin_ns)),
      print_count(trace.slices.size()), trace.tracks.size());
  out("{} runs in {}; the NPU ran {} jobs in {} submissions and was busy {:.1f} % of that time\n\n", summary.runs,
      print_ms(ms(summary.runs_ns)), summary.jobs, summary.submissions, 100 * busy_share(summary));
  TextTable categories({"category", "slices", "time", "without slices inside"});
  for (const TraceCategory& one : summary.categories)
    categories.add({one.name, print_count(one.slices), print_ms(ms(one.ns)), print_ms(ms(one.own_ns))});
  TextTable longest({"longest without slices inside", "all of it", "at", "category", "track", "name"});
  for (const size_t i : summary.longest) {
    const TraceSlice& one = trace.slices[i];
    longest.add({print_ms(ms(one.own_ns)), print_ms(ms(one.ns())), print_ms(ms(one.begin_ns - trace.begin_ns)),
                 one.category, trace.tracks[one.track].name, one.is_open ? one.name + " (not ended)" : one.name});
  }
  out("{}\n{}", categories.print(), longest.print());
}

Result<void> show(const Options& options, Outcome& outcome) {
  struct stat status {};
  if (::stat(options.file.c_str(), &status) == 0 && status.st_size > kMostBytes)
    return error(ErrorCode::unsupported, "{}: {} are more than is read", options.file,
                 print_bytes(static_cast<uint64_t>(status.st_size)));
  SK_TRY_ASSIGN(const Bytes bytes, read_file(options.file));
  SK_TRY_ASSIGN(const Trace trace, read_trace(bytes).with_context(options.file));
  if (trace.is_cut) log::warning("{}: the file ends within a packet; what is before it is read", options.file);
  outcome.begin();
  const TraceSummary summary = summarise(trace);
  if (!options.svg.empty()) {
    const std::string picture = draw_trace(trace);
    SK_TRY(write_file(options.svg, {reinterpret_cast<const uint8_t*>(picture.data()), picture.size()}));
  }
  options.json ? print_json(options, trace, summary) : print_text(options, trace, summary);
  return {};
}

}  // namespace

void add_trace_verb(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("trace",
                             "What a trace of --trace says: time by category, the longest slices, the NPU's share.\n"
                             "https://ui.perfetto.dev shows all of it (docs/traces.md).\n"
                             "Example: skillet trace run.pftrace --svg run.svg");
  verb.option("FILE", options->file, "a trace in Perfetto's format").required();
  verb.option("--svg", options->svg, "draw the last whole run as this picture").check(not_empty());
  verb.flag("--json", options->json, "machine-readable output");
  verb.runs([options, &outcome] { outcome.finish(show(*options, outcome)); });
}

}  // namespace skillet::tools
