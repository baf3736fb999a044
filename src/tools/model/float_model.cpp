#include "tools/model/float_model.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <sstream>
#include <thread>

#include "base/stop.h"
#include "base/text.h"
#include "tools/cli/python_verbs.h"
#include "tools/cli/temporary_folder.h"
#include "tools/model/float_quantizers.py.h"
#include "tools/model/model.h"
#include "tools/tensors/tensor_file.h"

namespace skillet::tools {
namespace {

constexpr std::chrono::milliseconds kLook{20};

struct Ended {
  int status = 0;
  std::string printed;  // stdout and stderr

  bool well() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

Result<int> wait_for(pid_t child) {
  bool is_told = false;
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return error(ErrorCode::io, "{}: wait: {}", python(), std::strerror(errno));
    if (requested_stop() != 0 && !std::exchange(is_told, true)) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(kLook);
  }
}

Result<Ended> run_python(const std::vector<std::string>& arguments, const std::string& log) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  const std::string program = python();
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& one : arguments) words.push_back(const_cast<char*>(one.c_str()));
  words.push_back(nullptr);
  pid_t child = -1;
  const int failure = ::posix_spawnp(&child, program.c_str(), &files, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (failure != 0) return error(ErrorCode::io, "{}: {}", program, std::strerror(failure));
  SK_TRY_ASSIGN(const int status, wait_for(child));
  SK_TRY(check_stop());
  SK_TRY_ASSIGN(const Bytes printed, read_file(log));
  return Ended{status, {printed.begin(), printed.end()}};
}

std::string last_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

std::string_view packages_for(const std::string& path) {
  return is_onnx(path) ? "onnxruntime onnx" : "ai-edge-quantizer";
}

Error failure_of(const Ended& ended, const std::string& path) {
  if (ended.printed.find("ModuleNotFoundError") != std::string::npos)
    return error(ErrorCode::unsupported,
                 "quantizing a float model needs Python packages that {} does not have ({}): pip install {} ({} names "
                 "another Python; docs/models.md)",
                 python(), last_line(ended.printed), packages_for(path), kPythonVariable);
  if (WIFSIGNALED(ended.status))
    return error(ErrorCode::unsupported, "{}: the quantizer ended with signal {}", path, WTERMSIG(ended.status));
  return error(ErrorCode::unsupported, "{}: the quantizer failed: {}", path, printable(last_line(ended.printed)));
}

Result<void> write_inferences(const std::string& folder, const ir::Graph& graph,
                              const std::vector<std::vector<Bytes>>& inferences) {
  for (size_t k = 0; k < inferences.size(); ++k) {
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      SK_TRY_ASSIGN(const Bytes array, npy_of(graph.tensor(graph.inputs[i]), inferences[k][i]));
      SK_TRY(write_file(fmt::format("{}/{}_{}.npy", folder, k, i), array));
    }
  }
  return {};
}

bool are_alike(const ir::Graph& a, std::span<const ir::TensorId> of_a, const ir::Graph& b,
               std::span<const ir::TensorId> of_b) {
  return std::ranges::equal(of_a, of_b, [&](ir::TensorId one, ir::TensorId other) {
    return a.tensor(one).dtype == b.tensor(other).dtype && a.tensor(one).shape == b.tensor(other).shape;
  });
}

// Checks the other program's file: it is not trusted.
Result<void> check_made(const ir::Graph& model, const ir::Graph& made) {
  if (is_float_model(made)) return error(ErrorCode::unsupported, "all layers are still float");
  if (!are_alike(model, model.inputs, made, made.inputs) || !are_alike(model, model.outputs, made, made.outputs))
    return error(ErrorCode::unsupported, "inputs or outputs differ from the model's");
  return {};
}

bool is_float(const ir::Graph& graph, ir::TensorId tensor) { return graph.tensor(tensor).dtype == ir::DType::float32; }

}  // namespace

bool is_float_model(const ir::Graph& graph) {
  size_t layers = 0;
  for (const ir::Op& op : graph.ops) {
    const bool is_layer = op.kind == ir::OpKind::conv_2d || op.kind == ir::OpKind::depthwise_conv_2d ||
                          op.kind == ir::OpKind::fully_connected || op.kind == ir::OpKind::batch_matmul;
    if (!is_layer) continue;
    if (!is_float(graph, op.inputs[0]) || !is_float(graph, op.inputs[1])) return false;
    ++layers;
  }
  return layers > 0;
}

Result<EightBits> quantize_float(const std::string& path, const Bytes& file, const ir::Graph& graph,
                                 const std::vector<std::vector<Bytes>>& inferences, Weights weights,
                                 const tflite::ImportOptions& import_as) {
  SK_TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create("quantize"));
  SK_TRY(write_inferences(folder.path(), graph, inferences));
  const std::string made = folder.path() + (is_onnx(path) ? "/made.onnx" : "/made.tflite");
  const std::string model = is_onnx(path) ? path : folder.path() + "/model.tflite";
  if (model != path) SK_TRY(write_file(model, file));
  SK_TRY_ASSIGN(const Ended ended, run_python({"-c", kFloatQuantizers, model, folder.path(), made,
                                               weights == Weights::scale_per_channel ? "channel" : "tensor"},
                                              folder.path() + "/log"));
  if (!ended.well()) return failure_of(ended, path);
  SK_TRY_ASSIGN(const Bytes by, read_file(made + ".by"));
  EightBits out;
  std::istringstream lines(std::string(by.begin(), by.end()));
  std::getline(lines, out.by);
  for (std::string line; std::getline(lines, line);) out.notes.push_back(line);
  SK_TRY_ASSIGN(out.file, read_file(made));
  SK_TRY_ASSIGN(out.graph, import_model(made, import_as));
  SK_TRY(check_made(graph, out.graph).with_context(path + ": the quantizer's output"));
  return out;
}

}  // namespace skillet::tools
