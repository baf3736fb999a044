// `skillet eval`: measures the accuracy of a network on a folder of pictures, and how close an NPU is to the CPU
// kernels.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "runtime/session.h"
#include "runtime/tuned_driver.h"
#include "tools/cli/input_flags.h"
#include "tools/cli/orderly_end.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/model/delegate_host.h"
#include "tools/model/model.h"
#include "tools/run/agreement.h"
#include "tools/run/found.h"
#include "tools/run/run_judge.h"
#include "tools/run/scores.h"
#include "tools/show/progress.h"
#include "tools/show/text_table.h"
#include "tools/tensors/picture.h"
#include "tools/tensors/run_inputs.h"
#include "tools/time/npu_use.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string model, device = "auto", data, labels, against = "cpu";
  tflite::ImportOptions import_as;
  SessionFlags session;
  DelegateHostOptions host;
  InputOptions input;
  double bound = 1;
  bool layers = false, bisect = false, json = false, require_npu = false;
};

// Operations that the other side took; empty for the CPU kernels, or if a runtime does not report it.
struct OtherUse {
  std::optional<size_t> npu_ops, cpu_ops;
  std::optional<compile::ModelUse> model;  // from a session
  std::vector<size_t> claimed;             // by a delegate: indices in the model
};
struct Report {
  std::string device, against;
  NpuUse use;
  OtherUse other_use;
  size_t pictures = 0, with_truth = 0, same_class = 0;
  Hits device_hits, other_hits;
  double equal = 0, cosine = 0;  // sums
  double worst_cosine = 1, worst_psnr_db = std::numeric_limits<double>::infinity();
  std::vector<Difference> differences, noise;  // by output; noise: its effect on the CPU kernels' outputs
  double lost_margin = -1;                     // where the best class differs: largest lead of the right one
  std::string worst_picture, lost_picture;
  bool has_classes = false;  // the first output is a row of scores
  std::vector<std::string> unreadable;
  std::map<ir::OpId, runtime::LayerDiff> layers;  // of all pictures
};

bool has_classes(const ir::Graph& graph) { return recognise(graph) == Task::classes; }

// The right class of each picture, by file name.
Result<std::map<std::string, int64_t>> truth_of(const Options& options, const ir::Graph& graph,
                                                const std::vector<std::string>& pictures) {
  std::map<std::string, int64_t> out;
  if (options.labels.empty()) return out;
  const ir::Tensor& scores = graph.tensor(graph.outputs[0]);
  if (!has_classes(graph))
    return error(ErrorCode::invalid_argument, "--labels: output '{}' ({}) is not a row of class scores", scores.name,
                 scores.shape.to_string());
  SK_TRY_ASSIGN(const Bytes file, read_file(options.labels));
  SK_TRY_ASSIGN(const auto lines,
                parse_truth({reinterpret_cast<const char*>(file.data()), file.size()}).with_context(options.labels));
  for (const Truth& one : lines) {
    if (one.index >= scores.shape.elems())
      return error(ErrorCode::invalid_argument, "{}: '{}' is of class {}; the network has {} classes, counted from 0",
                   options.labels, one.name, one.index, scores.shape.elems());
    out[one.name] = one.index;
  }
  const bool is_used = std::ranges::any_of(
      pictures, [&](const std::string& path) { return out.contains(fs::path(path).filename().string()); });
  if (!is_used)
    return error(ErrorCode::invalid_argument, "{}: names none of the pictures in {}", options.labels, options.data);
  return out;
}

// The side that a device is compared with: its outputs of one inference, in the graph's order.
struct Reference {
  std::function<Result<std::vector<Bytes>>(const InputSet&)> outputs;
  Run with_noise = nullptr;                             // the CPU kernels for noisy inputs
  std::shared_ptr<runtime::Session> session = nullptr;  // on another device
  std::shared_ptr<DelegateHost> host = nullptr;
};

Result<std::vector<Bytes>> outputs_of(runtime::Session& session, const InputSet& set) {
  SK_TRY(session.set_input(0, set.tensors[0]));
  SK_TRY(session.run());
  std::vector<Bytes> out;
  for (size_t i = 0; i < session.graph().outputs.size(); ++i) {
    SK_TRY_ASSIGN(const auto bytes, session.output(i));
    out.emplace_back(bytes.begin(), bytes.end());
  }
  return out;
}

bool is_library(const std::string& text) { return fs::path(text).filename().string().find(".so") != std::string::npos; }

// `model`: the file's graph; must outlive the result. `name`: receives a name for people.
Result<Reference> open_reference(const Options& options, const ir::Graph& model,
                                 const runtime::SessionOptions& session_options, std::string& name) {
  if (options.against == "cpu") {
    name = "cpu kernels";
    constexpr const char* kNone = "the CPU cannot compute the network; --against also takes an NPU (sim:CHIP)";
    SK_TRY_ASSIGN(const Run kernels, cpu_kernels(model).with_context(kNone));
    SK_TRY_ASSIGN(Run with_noise, cpu_kernels(model));
    return Reference{[kernels](const InputSet& set) { return kernels(set.tensors); }, std::move(with_noise)};
  }
  if (is_library(options.against)) {
    DelegateHostOptions host = options.host;
    host.model = options.model;
    host.library = options.against;
    SK_TRY_ASSIGN(std::shared_ptr<DelegateHost> other, DelegateHost::start(host, model));
    name = other->name();
    return Reference{[other](const InputSet& set) { return other->run(set.tensors); }, nullptr, nullptr, other};
  }
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.against));
  SK_TRY_ASSIGN(std::shared_ptr<runtime::Session> session, runtime::Session::create(model, target, session_options));
  name = target.name;
  return Reference{[session](const InputSet& set) { return outputs_of(*session, set); }, nullptr, session};
}

OtherUse other_use(const Reference& reference) {
  if (reference.session) {
    const NpuUse use = npu_use(*reference.session);
    return {use.npu_ops, use.cpu_ops, use.model, {}};
  }
  if (!reference.host || !reference.host->claimed()) return {};
  const std::vector<size_t>& claimed = *reference.host->claimed();
  return {claimed.size(), reference.host->ops() - claimed.size(), {}, claimed};
}

// Example: "0-3, 7".
std::string print_ranges(const std::vector<size_t>& sorted) {
  std::string out;
  for (size_t i = 0, end = 0; i < sorted.size(); i = end) {
    for (end = i + 1; end < sorted.size() && sorted[end] == sorted[end - 1] + 1;) ++end;
    out += fmt::format("{}{}", out.empty() ? "" : ", ", sorted[i]);
    if (end - i > 1) out += fmt::format("-{}", sorted[end - 1]);
  }
  return out;
}

std::string print_other(const Reference& reference, const OtherUse& use) {
  if (!reference.session && !reference.host) return "";
  if (!use.npu_ops) return "its runtime does not report which operations it took\n";
  if (use.model) return compile::print(*use.model) + " on its NPU\n";
  const size_t all = *use.npu_ops + *use.cpu_ops;
  if (*use.npu_ops > 0)
    return fmt::format("it took {} of the {} operations ({}); the runtime's CPU kernels ran the others\n", *use.npu_ops,
                       all, print_ranges(use.claimed));
  return fmt::format("it took none of the {} operations: the comparison is with the runtime's CPU kernels{}\n", all,
                     reference.host->words().empty() ? "" : "; it said: " + printable(reference.host->words()));
}

class Evaluation {
 public:
  Evaluation(const Options& options, const ir::Graph& model, runtime::Session& session, const Reference& reference,
             Report& report)
      : options_(options), model_(model), session_(session), reference_(reference), report_(report) {}

  // A picture that cannot be read is reported; the others are still evaluated.
  Result<void> picture(const std::string& path, std::optional<int64_t> truth) {
    InputOptions input = options_.input;
    input.images = {path};
    auto source = InputSource::create(input, session_.graph());
    if (!source.ok()) {
      complain(source.error().message);
      report_.unreadable.push_back(fs::path(path).filename().string());
      return {};
    }
    return inference(path, *source, truth).with_context(path);
  }

 private:
  Result<void> inference(const std::string& path, InputSource& source, std::optional<int64_t> truth) {
    SK_TRY_ASSIGN(const std::optional<InputSet> set, source.next());
    SK_TRY_ASSIGN(const std::vector<Bytes> got, outputs_of(session_, *set));
    SK_TRY_ASSIGN(const std::vector<Bytes> wanted, reference_.outputs(*set));
    note(path, agreement_of(model_, got, wanted));
    if (reference_.with_noise) {
      SK_TRY_ASSIGN(const auto noise, moved_by_noise(model_, set->tensors, wanted, reference_.with_noise));
      add(noise, report_.noise);
    }
    if (truth) {
      const ir::Tensor& first = session_.graph().tensor(session_.graph().outputs[0]);
      count_hits(first, got[0], *truth, report_.device_hits);
      count_hits(first, wanted[0], *truth, report_.other_hits);
      ++report_.with_truth;
    }
    return options_.layers || options_.bisect ? compare_layers() : Result<void>();
  }

  static void add(const std::vector<Difference>& of_one, std::vector<Difference>& of_all) {
    of_all.resize(of_one.size());
    for (size_t i = 0; i < of_one.size(); ++i) of_all[i].add(of_one[i]);
  }

  void note(const std::string& path, const Agreement& one) {
    const std::string name = fs::path(path).filename().string();
    ++report_.pictures;
    report_.same_class += one.same_class.is_same ? 1 : 0;
    if (!one.same_class.is_same && one.same_class.margin > report_.lost_margin)
      report_.lost_margin = one.same_class.margin, report_.lost_picture = name;
    add(one.differences, report_.differences);
    report_.equal += one.equal;
    report_.cosine += one.cosine;
    report_.worst_psnr_db = std::min(report_.worst_psnr_db, one.psnr_db);
    if (one.cosine > report_.worst_cosine || (one.cosine == report_.worst_cosine && report_.pictures > 1)) return;
    report_.worst_cosine = one.cosine;
    report_.worst_picture = name;
  }

  Result<void> compare_layers() {
    SK_TRY_ASSIGN(const auto layers, session_.compare_layers(&model_));
    for (const runtime::LayerDiff& one : layers) {
      if (!one.compared || !one.is_result) continue;
      const auto [at, is_new] = report_.layers.try_emplace(one.op, one);
      if (is_new) continue;
      runtime::LayerDiff& layer = at->second;
      layer.max_of_result = std::max(layer.max_of_result, one.max_of_result);
      layer.differing_of_result += one.differing_of_result;
      layer.beyond_one_of_result += one.beyond_one_of_result;
      layer.elems += one.elems;
    }
    return {};
  }

  const Options& options_;
  const ir::Graph& model_;
  runtime::Session& session_;
  const Reference& reference_;
  Report& report_;
};

std::string percent(double part, size_t all) {
  return fmt::format("{:.2f} %", all == 0 ? 0 : 100 * part / static_cast<double>(all));
}

std::string print_psnr(double db) {
  if (std::isinf(db)) return db > 0 ? "equal" : "no finite numbers";
  return fmt::format("{:.1f} dB", db);
}

void print_text(const Options& options, const Report& report, const Reference& reference, const ir::Graph& graph) {
  out("{} on {}: {} pictures; {} on the NPU\n\n", printable(options.model), report.device, report.pictures,
      compile::print(report.use.model));
  if (report.with_truth > 0) {
    TextTable table({"", "top 1", "top 5"});
    table.add({report.device, percent(static_cast<double>(report.device_hits.top1), report.with_truth),
               percent(static_cast<double>(report.device_hits.top5), report.with_truth)});
    table.add({report.against, percent(static_cast<double>(report.other_hits.top1), report.with_truth),
               percent(static_cast<double>(report.other_hits.top5), report.with_truth)});
    out("right, of the {} pictures whose class is known\n{}\n", report.with_truth, table.print());
  }
  out("against {}\n{}", report.against, print_other(reference, report.other_use));
  TextTable table({"what", "mean", "worst"});
  if (report.has_classes)
    table.add({"same best class", percent(static_cast<double>(report.same_class), report.pictures),
               report.lost_margin < 0
                   ? ""
                   : fmt::format("another class; on the CPU it is {} behind the best ({})",
                                 print_margin(report.lost_margin, report.differences[0].unit), report.lost_picture)});
  table.add({"equal elements", percent(report.equal, report.pictures), ""});
  const bool has_sizes = std::ranges::any_of(report.differences, [](auto& one) { return one.unit != Unit::number; });
  if (has_sizes)
    table.add({"cosine", fmt::format("{:.6f}", report.cosine / static_cast<double>(report.pictures)),
               fmt::format("{:.6f} ({})", report.worst_cosine, report.worst_picture)});
  if (has_sizes) table.add({"PSNR", "", print_psnr(report.worst_psnr_db)});
  out("{}", table.print());
  for (size_t i = 0; i < report.differences.size(); ++i) {
    const Difference& one = report.differences[i];
    out("{} of '{}': {}\n", one.unit == Unit::number ? "difference" : "largest difference",
        printable(graph.tensor(graph.outputs[i]).name), print(one));
    if (i < report.noise.size() && one.differing > 0) out("  {}: {}\n", kNoise, print(report.noise[i]));
  }
  if (options.bisect &&
      std::ranges::none_of(report.layers, [&](const auto& one) { return one.second.max_of_result > options.bound; }))
    out("no operation of the {} that were compared is beyond --bound {}\n", report.layers.size(), options.bound);
  if (!options.layers) return;
  TextTable layers({"op", "kind", "differing", "largest difference"});
  for (const auto words = words_of(options.model); const auto& [op, layer] : report.layers)
    layers.add({ir::op_number(graph.op(op)), compile::op_name(words, graph.op(op)) + layer.place(),
                fmt::format("{} of {}", print_count(static_cast<uint64_t>(layer.differing_of_result)),
                            print_count(static_cast<uint64_t>(layer.elems))),
                print_largest(layer.max_of_result, layer.beyond_one_of_result, layer.elems)});
  out("\nNPU operations, each with the NPU's own inputs\n{}", layers.print());
}

void print_json(const Options& options, const Report& report, const ir::Graph& graph) {
  const auto mean = [&](double sum) { return sum / static_cast<double>(report.pictures); };
  nlohmann::json differences = nlohmann::json::array(), layers = nlohmann::json::array();
  Difference largest;
  for (size_t i = 0; i < report.differences.size(); ++i) {
    largest.add(report.differences[i]);
    differences.push_back(to_json(report.differences[i]));
    if (i < report.noise.size()) differences.back()["noise"] = to_json(report.noise[i]);
  }
  for (const auto& [op, layer] : report.layers)
    layers.push_back({{"op", op},
                      {"source", graph.op(op).source_index},
                      {"largest", layer.max_of_result},
                      {"differing", layer.differing_of_result},
                      {"beyond_one", layer.beyond_one_of_result},
                      {"elems", layer.elems}});
  nlohmann::json all = {{"model", options.model},
                        {"device", report.device},
                        {"against", report.against},
                        {"pictures", report.pictures},
                        {"equal", mean(report.equal)},
                        {"cosine", mean(report.cosine)},
                        {"worst_cosine", report.worst_cosine},
                        {"worst_picture", report.worst_picture},
                        {"largest_difference", largest.largest},
                        {"differences", differences},
                        {"unreadable", report.unreadable},
                        {"layers", layers}};
  if (report.other_use.npu_ops) {
    all["against_npu_ops"] = *report.other_use.npu_ops;
    all["against_cpu_ops"] = *report.other_use.cpu_ops;
  }
  if (is_library(options.against))  // null: the runtime does not report it
    all["against_claimed"] = report.other_use.npu_ops ? nlohmann::json(report.other_use.claimed) : nlohmann::json();
  if (report.has_classes) all["same_class"] = report.same_class;
  if (report.has_classes && report.lost_margin >= 0) all["lost_margin"] = report.lost_margin;
  if (!std::isinf(report.worst_psnr_db)) all["worst_psnr_db"] = report.worst_psnr_db;
  if (report.with_truth > 0) {
    all["with_truth"] = report.with_truth;
    all["top1"] = report.device_hits.top1;
    all["top5"] = report.device_hits.top5;
    const std::string other = options.against == "cpu" ? "cpu" : "against";
    all[other + "_top1"] = report.other_hits.top1;
    all[other + "_top5"] = report.other_hits.top5;
  }
  add_json(all, report.use);
  out_report(std::move(all));
}

// Error: the first layer, in the order of execution, that exceeds the limit.
Result<void> first_beyond(const Options& options, const Report& report, const ir::Graph& graph) {
  if (report.layers.empty()) return error(ErrorCode::device, "--bisect: {} computes no operation", report.device);
  for (const auto& [op, layer] : report.layers) {
    if (layer.max_of_result <= options.bound) continue;
    return error(ErrorCode::device,
                 "{}{} is the first operation beyond its bound: {} of {} elements differ, by up to {}; --bound is {}",
                 ir::describe_op(graph, op), layer.place(), layer.differing_of_result, layer.elems, layer.max_of_result,
                 options.bound);
  }
  return {};
}

// --require-npu: an error if one side is the CPU alone.
Result<void> check_required(const Options& options, const Report& report) {
  if (!options.require_npu) return {};
  if (report.use.npu_ops == 0)
    return error(ErrorCode::device, "--require-npu: {} takes none of the operations", report.device);
  if (report.other_use.npu_ops.value_or(1) > 0) return {};
  return error(ErrorCode::device, "--require-npu: {} took none of the operations", report.against);
}

Rule key_and_value() {
  return {"KEY=VALUE", [](const std::string& text) {
            return text.find('=', 1) != std::string::npos ? "" : fmt::format("must be KEY=VALUE, not '{}'", text);
          }};
}

Result<void> eval(Options& options, Outcome& outcome) {
  options.device = runtime::device_meant(options.device);
  if (options.require_npu && options.device == "auto") options.device = "npu";
  SK_TRY_ASSIGN(ir::Graph graph, import_model(options.model, options.import_as));
  if (graph.inputs.size() != 1)
    return error(ErrorCode::invalid_argument, "{}: pictures need a network with one input; this one has {}",
                 options.model, graph.inputs.size());
  if (graph.outputs.empty()) return error(ErrorCode::invalid_argument, "{}: no output to compare", options.model);
  SK_TRY(check_image_input(graph.tensor(graph.inputs[0])));
  SK_TRY_ASSIGN(const std::vector<std::string> pictures,
                files_in(options.data, {".png", ".jpg", ".jpeg", ".bmp"}, ".png, .jpg or .bmp"));
  SK_TRY_ASSIGN(const auto truth, truth_of(options, graph, pictures));
  if (!options.host.settings.empty() && !is_library(options.against))
    return error(ErrorCode::invalid_argument, "--delegate-option needs --against with the library of a delegate");
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
  if (options.device != "auto") SK_TRY(runtime::check_taken(target, unproven_of(options.session)));
  complain_of_cores(options.session, target);
  SK_TRY(check_cache(options.session));
  complain_of_nothing(target);
  SK_TRY(runtime::check_tuning_file(target, options.session.tuning_file));
  if (target.driver == nullptr && options.device == "auto" && options.against == "cpu")
    log::warning("{}: not an NPU: the CPU kernels are compared with themselves (see skillet devices)", options.model);
  runtime::SessionOptions device_options = session_options(options.session), other_options = device_options;
  other_options.tuning_file.clear();  // it is of one chip
  device_options.keep_intermediates = options.layers || options.bisect;
  auto created = runtime::Session::create(graph, target, device_options);
  if (!created.ok()) outcome.begin_with(created);
  SK_TRY_ASSIGN(const auto session, std::move(created).with_context(options.model));
  Report report{.device = target.name, .has_classes = has_classes(session->graph())};
  SK_TRY_ASSIGN(const Reference reference, open_reference(options, graph, other_options, report.against));
  outcome.begin();
  Evaluation evaluation(options, graph, *session, reference, report);
  {
    const Progress progress(fmt::format("running {} pictures", pictures.size()));
    for (const std::string& path : pictures) {
      const auto known = truth.find(fs::path(path).filename().string());
      SK_TRY(evaluation.picture(path, known == truth.end() ? std::nullopt : std::optional(known->second)));
    }
  }
  if (report.pictures == 0)
    return error(ErrorCode::malformed, "{}: none of its {} pictures can be read", options.data, pictures.size());
  report.use = npu_use(*session);
  report.other_use = other_use(reference);
  if (options.json)
    print_json(options, report, session->graph());
  else
    print_text(options, report, reference, session->graph());
  SK_TRY(check_npu_use(options.device, report.use));
  if (reference.session) SK_TRY(check_npu_use(options.against, npu_use(*reference.session)));
  SK_TRY(check_required(options, report));
  if (options.bisect) SK_TRY(first_beyond(options, report, session->graph()));
  if (report.unreadable.empty()) return {};
  return error(ErrorCode::malformed, "{}: {} of {} pictures cannot be read", options.data, report.unreadable.size(),
               pictures.size());
}

}  // namespace

void add_eval(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb =
      app.verb("eval",
               "Run a network on every picture of a folder: how often it is right, and how close a device is to the "
               "CPU kernels or to another delegate.\n"
               "Examples:\n"
               "  skillet eval models/digits.tflite --data models/digits --device sim:a311d\n"
               "  skillet eval net.tflite --data pictures --labels classes.txt --device sim:rk3588 --layers\n"
               "  skillet eval net.tflite --data pictures --against /usr/lib/teflon/libteflon.so");
  verb.option("MODEL", options->model, "a .tflite or .onnx file").required();
  add_import(verb, options->import_as);
  verb.option("--data", options->data, "folder of BMP, PNG and JPEG pictures").required().check(existing_folder());
  add_float_pixels(verb, options->input.float_pixels);
  verb.option("--labels", options->labels, "the class of each picture: 'PICTURE CLASS' lines, classes counted from 0");
  verb.option("--device", options->device, kDeviceHelp).shows_default().variable(kDeviceVariable);
  verb.option("--against", options->against,
              "what to compare with: cpu (our CPU kernels), another device, or the library of a TensorFlow Lite "
              "delegate,\nwhich runs in Python with ai-edge-litert or tflite-runtime")
      .shows_default()
      .check(not_empty());
  verb.option("--delegate-option", options->host.settings, "KEY=VALUE for that delegate (may be given again)")
      .one_at_a_time()
      .check(key_and_value());
  verb.option("--python", options->host.python, "the Python to run it in").shows_default().check(not_empty());
  verb.flag("--require-npu", options->require_npu,
            "fail if the NPU, or the other side unless it is cpu, takes none of the operations");
  verb.flag("--layers", options->layers, "also compare each NPU operation, with the NPU's own inputs");
  const Option bisect = verb.flag("--bisect", options->bisect, "fail at the first operation that is beyond --bound");
  verb.option("--bound", options->bound, "largest difference from the CPU kernels, in units of its type")
      .shows_default()
      .check(number_of_0_or_more())
      .needs(bisect);
  add_running_session(verb, options->session);
  verb.flag("--json", options->json, "machine-readable output");
  runs_jobs(verb, outcome, [options, &outcome] { return eval(*options, outcome); });
}

}  // namespace skillet::tools
