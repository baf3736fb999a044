#include "tools/jobs/decode_weights.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/show/text_table.h"
#include "tools/tensors/tensor_file.h"

namespace skillet::tools {
namespace {

// Writes an array of 8- or 32-bit numbers.
Result<void> write_array(const std::string& path, ir::DType type, std::vector<int32_t> dims,
                         std::span<const uint8_t> bytes) {
  ir::Tensor tensor;
  tensor.name = path;
  tensor.dtype = type;
  tensor.shape.dims = std::move(dims);
  SK_TRY_ASSIGN(const Bytes file, npy_of(tensor, bytes));
  return write_file(path, file);
}

std::string shape_text(const sim::Weights& w) {
  return fmt::format("{}x{}x{}x{}{}", w.kernels, w.planes, w.height, w.width, w.depthwise ? " depthwise" : "");
}

// Writes one file of weights and one of biases.
Result<void> write_reading(const std::string& folder, const std::string& stem, const std::string& order,
                           const sim::Weights& w) {
  const auto size = [](int64_t number) { return static_cast<int32_t>(number); };
  SK_TRY(write_array(fmt::format("{}/{}_weights{}.npy", folder, stem, order), ir::DType::uint8,
                     {size(w.kernels), size(w.planes), size(w.height), size(w.width)}, w.bytes));
  return write_array(fmt::format("{}/{}_biases{}.npy", folder, stem, order), ir::DType::int32, {size(w.kernels)},
                     as_bytes(std::span(reinterpret_cast<const uint32_t*>(w.biases.data()), w.biases.size())));
}

}  // namespace

Result<SubmissionWeights> weights_of(const std::string& chip, const capture::Submission& submission,
                                     const RecordedMemory& memory) {
  SubmissionWeights all;
  for (const capture::Job& job : submission.jobs) {
    const std::vector<sim::Commands> commands = commands_of(job);
    SK_TRY_ASSIGN(SubmissionWeights some, sim::read_weights(chip, {.commands = commands}, memory.memory()));
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

void settle_order(SubmissionWeights& weights, std::string_view order) {
  for (std::optional<sim::Weights>& one : weights) {
    if (!one || one->others.empty() || order.empty()) continue;
    const auto found = std::ranges::find(one->others, order, &sim::Weights::order);
    if (found == one->others.end() && one->order != order) continue;
    sim::Weights right = found == one->others.end() ? *one : *found;
    right.others.clear();
    one = std::move(right);
  }
}

Result<std::string> write_weights(const std::string& folder, size_t index, const SubmissionWeights& weights) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return error(ErrorCode::io, "{}: {}", folder, failure.message());
  TextTable table({"job", "weights", "zero point", "order", "file"});
  bool is_told = true;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!weights[i]) continue;
    const sim::Weights& w = *weights[i];
    const std::string stem = fmt::format("submission{}_job{}", index, i);
    if (!w.problem.empty()) {
      table.add({fmt::format("{}", i), "cannot be read: " + w.problem, "", "", ""});
      continue;
    }
    SK_TRY(write_reading(folder, stem, "", w));
    table.add({fmt::format("{}", i), shape_text(w), fmt::format("{}", w.zero_point), w.order, stem + "_weights.npy"});
    for (const sim::Weights& other : w.others) {
      is_told = false;
      SK_TRY(write_reading(folder, stem, "_" + other.order, other));
      table.add({"", "or", "", other.order, fmt::format("{}_weights_{}.npy", stem, other.order)});
    }
  }
  if (table.empty()) return std::string();
  return table.print() +
         (is_told ? ""
                  : "or: these jobs do not show the order of their weights; the first is the order in recorded jobs\n");
}

nlohmann::json weights_json(const SubmissionWeights& weights, size_t job) {
  if (job >= weights.size() || !weights[job]) return nullptr;
  const sim::Weights& w = *weights[job];
  if (!w.problem.empty()) return {{"problem", w.problem}};
  nlohmann::json others = nlohmann::json::array();
  for (const sim::Weights& other : w.others) others.push_back(other.order);
  return {{"shape", {w.kernels, w.planes, w.height, w.width}},
          {"depthwise", w.depthwise},
          {"zero_point", w.zero_point},
          {"order", w.order},
          {"other_orders", others}};
}

}  // namespace skillet::tools
