#include "replay.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>

#include "base/testing/noise.h"
#include "capture/capture.h"
#include "captures.h"
#include "golden_case.h"
#include "graph/import/import.h"
#include "graph/ir/graph.h"
#include "graph/ref/ref.h"
#include "known_faults.h"
#include "npus/rockchip/sim/npu.h"
#include "recorded_memory.h"
#include "taken_ops.h"

namespace skillet::rockchip_replay {
namespace {

using golden::GoldenCase;

struct Model {
  ir::Graph graph;
  std::vector<Bytes> inputs;                   // of the graph, in order
  std::vector<std::optional<Bytes>> expected;  // outputs, where the case has them
};

Result<Model> read_model(const std::string& dir, const std::string& set, const std::string& name) {
  Model model;
  auto golden = golden::load_case(dir, set, name);
  if (!golden.ok() && golden.error().code != ErrorCode::unsupported) return std::move(golden).error();
  SK_TRY_ASSIGN(model.graph, tflite::import_file(fmt::format("{}/models/{}/{}.tflite", dir, set, name)));
  for (const ir::TensorId id : model.graph.inputs) {
    const size_t i = model.inputs.size();
    const auto size = static_cast<size_t>(model.graph.tensor(id).bytes());
    model.inputs.push_back(golden.ok() ? golden->inputs.at(i).bytes : testing::noise(size));
    if (model.inputs.back().size() != size) return error(ErrorCode::malformed, "input {}: case and model differ", i);
  }
  for (size_t i = 0; i < model.graph.outputs.size(); ++i)
    model.expected.push_back(golden.ok() ? golden->outputs.at(i).expected : std::nullopt);
  return model;
}

bool is_int8(const ir::Tensor& tensor) { return tensor.dtype == ir::DType::int8; }

// Values of all tensors; the reference kernels run one operation at a time.
class Values {
 public:
  explicit Values(const ir::Graph& graph) : graph_(graph) {
    for (const ir::Tensor& tensor : graph.tensors) {
      Bytes& value = values_.emplace_back(tensor.data.begin(), tensor.data.end());
      value.resize(static_cast<size_t>(tensor.bytes()));
    }
  }
  Bytes& operator[](ir::TensorId tensor) { return values_[static_cast<size_t>(tensor)]; }
  Result<void> run(ir::OpId op) {
    SK_TRY_ASSIGN(const auto kernel, ref::prepare(graph_, op));
    std::vector<std::span<uint8_t>> spans(values_.begin(), values_.end());
    return kernel->run(spans);
  }

 private:
  const ir::Graph& graph_;
  std::vector<Bytes> values_;
};

Row compare(std::string name, const Bytes& simulated, const Bytes& expected, bool is_signed) {
  Row row;
  row.name = std::move(name);
  row.elements = static_cast<int64_t>(expected.size());
  if (simulated.size() != expected.size()) {
    row.reason = fmt::format("{} bytes, the reference has {}", simulated.size(), expected.size());
    return row;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const int a = is_signed ? static_cast<int8_t>(simulated[i]) : simulated[i];
    const int b = is_signed ? static_cast<int8_t>(expected[i]) : expected[i];
    row.max_difference = std::max(row.max_difference, std::abs(a - b));
    row.differing += a != b ? 1 : 0;
  }
  row.output_hash = XXH64(simulated.data(), simulated.size(), 0);
  row.result = row.max_difference == 0   ? ReplayClass::exact
               : row.max_difference == 1 ? ReplayClass::within_1
                                         : ReplayClass::worse;
  return row;
}

class Replay {
 public:
  Replay(std::string name, const Model& model, const capture::Capture& capture, std::vector<Taken> taken,
         sim::rockchip::Npu& npu)
      : name_(std::move(name)),
        model_(model),
        graph_(model.graph),
        capture_(capture),
        taken_(std::move(taken)),
        npu_(npu),
        values_(graph_),
        check_(graph_) {}

  Result<CaseRows> run() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) values_[graph_.inputs[i]] = model_.inputs[i];
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const auto id = static_cast<ir::OpId>(i);
      if (next_ < taken_.size() && taken_[next_].conv == id) {
        SK_TRY(operation(taken_[next_++]).with_context(ir::describe_op(graph_, id)));
      } else if (!is_fused(id)) {
        SK_TRY(values_.run(id).with_context(ir::describe_op(graph_, id)));
      }
    }
    SK_TRY(compare_outputs());
    return std::move(rows_);
  }

 private:
  bool is_fused(ir::OpId id) const {
    return std::any_of(taken_.begin(), taken_.end(), [id](const Taken& t) { return t.add == id; });
  }

  bool is_second_operand(ir::TensorId tensor) const {
    return std::any_of(taken_.begin(), taken_.end(),
                       [tensor](const Taken& t) { return t.add >= 0 && t.second == tensor; });
  }

  Result<void> operation(const Taken& t) {
    if (submission_ != static_cast<int64_t>(t.op.submission)) SK_TRY(start_submission(t.op.submission));
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < t.op.tasks.size(); ++i) SK_TRY(task(t, i));
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    rows_.final.simulated_ms += time.count();
    return check_operation(t, time.count());
  }

  Result<void> task(const Taken& t, size_t i) {
    const capture::Commands& recorded = t.op.tasks[i].commands;
    const bool first = i == 0 || t.op.tasks[i - 1].job != t.op.tasks[i].job;
    const auto count = static_cast<uint32_t>(recorded.size_bytes / hw::kCommandBytes);
    sim::rockchip::Task task{.regcmd = recorded.address, .regcmd_count = count, .first_of_job = first};
    if (i + 1 < t.op.tasks.size() && t.op.tasks[i + 1].job == t.op.tasks[i].job) {
      task.next_regcmd = t.op.tasks[i + 1].commands.address;
      task.next_regcmd_count = static_cast<uint32_t>(t.op.tasks[i + 1].commands.size_bytes / hw::kCommandBytes);
    }
    SK_TRY_ASSIGN(const auto result, npu_.run_task(0, task, memory_.get()));
    if (!result.completes()) return error(ErrorCode::device, "task {}: {}", i, result.stall);
    return {};
  }

  Result<void> start_submission(size_t index) {
    submission_ = static_cast<int64_t>(index);
    SK_TRY(memory_.add(capture_.submissions[index]));
    for (const Taken& t : taken_) {
      if (t.op.submission == index && !made_by_device(t.input, index)) SK_TRY(place(t));
    }
    return {};
  }

  bool made_by_device(ir::TensorId tensor, size_t submission) const {
    return std::any_of(taken_.begin(), taken_.end(),
                       [&](const Taken& t) { return t.output == tensor && t.op.submission <= submission; });
  }

  // Writes the inputs of a submission in the recorded driver's layout.
  Result<void> place(const Taken& t) {
    // The recorded driver does not upload the input of an operation with one input and one output channel, except for
    // additions.
    const bool dense_rows = t.op.packed && t.op.in_channels == 1;
    if (dense_rows && is_zero_in_capture(t)) return {};
    const ir::Tensor& tensor = graph_.tensor(t.input);
    const auto zero_point = static_cast<uint8_t>(tensor.quant.zero_point());
    const auto channels = static_cast<size_t>(tensor.shape.back(0));
    if (dense_rows) return memory_.write_packed(t.op.input, values_[t.input], tensor.shape.back(1), zero_point);
    return memory_.write_cube(t.op.input, values_[t.input], channels, zero_point);
  }

  bool is_zero_in_capture(const Taken& t) const {
    const auto& buffers = capture_.submissions[t.op.submission].buffers;
    return std::any_of(buffers.begin(), buffers.end(), [&](const capture::BufferSnapshot& b) {
      return b.address == t.op.input && b.content == capture::Content::zero;
    });
  }

  // Compares the operation's result with the reference kernel's, on the input values that the device has.
  Result<void> check_operation(const Taken& t, double ms) {
    const ir::Tensor& tensor = graph_.tensor(t.output);
    const auto channels = static_cast<size_t>(tensor.shape.back(0));
    const auto pixels = static_cast<size_t>(tensor.shape.elems()) / channels;
    SK_TRY_ASSIGN(Bytes simulated, memory_.read_cube(t.op.output, pixels, channels, t.op.out_pixels));
    check_[t.input] = values_[t.input];
    SK_TRY(check_.run(t.conv));
    if (t.add >= 0) {
      check_[t.second] = values_[t.second];
      SK_TRY(check_.run(t.add));
    }
    const Bytes& alone = check_[graph_.op(t.conv).outputs[0]];
    const std::string fault = known_faults(graph_, t, is_second_operand(t.output), alone);
    if (!fault.empty() && rows_.final.reason.empty()) rows_.final.reason = fault;
    rows_.each.push_back(compare(fmt::format("{} {}", name_, ir::describe_op(graph_, t.conv)), simulated,
                                 check_[t.output], is_int8(tensor)));
    rows_.each.back().simulated_ms = ms;
    rows_.each.back().reason = fault;
    rows_.each.back().max_unclamped_difference = unclamped_difference(simulated, check_[t.output], alone);
    values_[t.output] = std::move(simulated);
    return {};
  }

  // For unsigned bytes only; recorded additions of signed ones are wrong anyway.
  static int unclamped_difference(const Bytes& simulated, const Bytes& expected, const Bytes& alone) {
    int most = 0;
    for (size_t i = 0; i < expected.size() && alone.size() == expected.size(); ++i) {
      if (alone[i] != 0 && alone[i] != 255) most = std::max(most, std::abs(simulated[i] - expected[i]));
    }
    return most;
  }

  Result<void> compare_outputs() {
    SK_TRY_ASSIGN(ref::Interpreter reference, ref::Interpreter::create(graph_));
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const std::span<uint8_t> to = reference.tensor(graph_.inputs[i]);
      std::copy(model_.inputs[i].begin(), model_.inputs[i].end(), to.begin());
    }
    SK_TRY(reference.run());
    Row& all = rows_.final;
    all.name = name_;
    all.result = ReplayClass::exact;
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ir::TensorId id = graph_.outputs[i];
      const std::span<uint8_t> computed = reference.tensor(id);
      const Bytes expected = model_.expected[i] ? *model_.expected[i] : Bytes(computed.begin(), computed.end());
      const Row one = compare(name_, values_[id], expected, is_int8(graph_.tensor(id)));
      all.elements += one.elements;
      all.output_hash = XXH64(values_[id].data(), values_[id].size(), all.output_hash);
      all.differing += one.differing;
      all.max_difference = std::max(all.max_difference, one.max_difference);
      all.result = std::max(all.result, one.result);
      if (all.reason.empty()) all.reason = one.reason;
    }
    if (all.result == ReplayClass::worse && all.reason.empty() && taken_.size() > 1)
      all.reason = fmt::format("{} operations, each within 1: differences add up", taken_.size());
    return {};
  }

  std::string name_;
  const Model& model_;
  const ir::Graph& graph_;
  const capture::Capture& capture_;
  std::vector<Taken> taken_;
  sim::rockchip::Npu& npu_;
  RecordedMemory memory_;
  Values values_, check_;
  int64_t submission_ = -1;
  size_t next_ = 0;
  CaseRows rows_;
};

Result<CaseRows> replay_or_fail(const std::string& dir, const std::string& name,
                                const sim::rockchip::Options& options) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return error(ErrorCode::invalid_argument, "'{}' is not SET/CASE", name);
  SK_TRY_ASSIGN(const Model model, read_model(dir, name.substr(0, slash), name.substr(slash + 1)));
  SK_TRY_ASSIGN(const capture::Capture capture, capture::read(dir + "/rk3588/" + name));
  SK_TRY_ASSIGN(const std::vector<RecordedOp> recorded, recorded_ops(capture));
  SK_TRY_ASSIGN(std::vector<Taken> taken, match(model.graph, recorded));
  SK_TRY_ASSIGN(const auto npu, sim::rockchip::Npu::create("rk3588", options));
  return Replay(name, model, capture, std::move(taken), *npu).run();
}

}  // namespace

CaseRows replay_case(const std::string& dir, const std::string& name, const sim::rockchip::Options& options) {
  auto rows = replay_or_fail(dir, name, options);
  if (rows.ok()) return std::move(rows).value();
  CaseRows failed;
  failed.final.name = name;
  failed.final.reason = rows.error().message;
  return failed;
}

std::vector<golden::ReplayRow> simulate_case(const std::string& dir, const std::string& /*chip*/,
                                             const std::string& name) {
  constexpr size_t kNetwork = 8;  // operations of a whole network, at least
  const auto options = sim::rockchip::options_from_environment();
  CaseRows found;
  if (options.ok())
    found = replay_case(dir, name, *options);
  else
    found.final.name = name, found.final.reason = options.error().message;
  std::vector<golden::ReplayRow> rows = {found.final};
  for (size_t i = 0; i < found.each.size() && found.each.size() > kNetwork; ++i) {
    rows.push_back(found.each[i]);
    rows.back().name = fmt::format("{}:{}", name, i);
  }
  return rows;
}

Result<std::vector<CaseRows>> replay_all(const std::string& dir, const sim::rockchip::Options& options) {
  SK_TRY_ASSIGN(const std::vector<std::string> names, golden::list_captures(dir, "rk3588"));
  std::vector<CaseRows> all;
  for (const std::string& name : names) all.push_back(replay_case(dir, name, options));
  return all;
}

}  // namespace skillet::rockchip_replay
