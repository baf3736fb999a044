#include "tools/model/delegate_host.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/interruptions.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

// Arguments: MODEL LIBRARY KEY=VALUE... Writes a line of JSON, then answers each set of inputs with the bytes of the
// outputs. Output of delegates goes to standard error.
constexpr const char* kHost = R"py(
import json, os, sys
from importlib.metadata import version
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
def say(**words):
    answers.write(json.dumps(words).encode() + b"\n")
    answers.flush()
try:
    import numpy
    try:
        from ai_edge_litert import interpreter as runtime
        name = "ai-edge-litert"
    except ImportError:
        from tflite_runtime import interpreter as runtime
        name = "tflite-runtime"
except ImportError as error:
    say(error=f"{sys.executable} has neither ai-edge-litert nor tflite-runtime ({error}); --python names another one")
    sys.exit()
model, library, *settings = sys.argv[1:]
def claimed(graph, count):
    """Of the first COUNT operations, those between what each of the delegate's own (the others) reads and writes."""
    makers, taken = {int(one): at for at in graph[:count] for one in at["outputs"]}, set()
    for node in graph[count:]:
        wanted, seen = [int(one) for one in node["outputs"]], {int(one) for one in node["inputs"]}
        while wanted:
            tensor = wanted.pop()
            if tensor not in seen and tensor in makers:
                taken.add(makers[tensor]["index"])
                wanted += [int(one) for one in makers[tensor]["inputs"]]
            seen.add(tensor)
    return sorted(taken)
try:
    tells = hasattr(runtime.Interpreter, "_get_ops_details")
    count = len(runtime.Interpreter(model)._get_ops_details()) if tells else None
    delegate = runtime.load_delegate(library, dict(one.split("=", 1) for one in settings))
    host = runtime.Interpreter(model, experimental_delegates=[delegate])
    ops = claimed(host._get_ops_details(), count) if tells else None  # before the runtime brings delegates of its own
    words = (os.pread(2, 4096, max(0, os.fstat(2).st_size - 4096)).decode(errors="replace").strip().splitlines() or [""])[-1]
    host.allocate_tensors()
except Exception as error:
    say(error=" ".join(str(error).split()))
    sys.exit()
size = lambda detail: int(numpy.prod(detail["shape"], dtype=numpy.int64)) * numpy.dtype(detail["dtype"]).itemsize
inputs, outputs = host.get_input_details(), host.get_output_details()
say(host=f"{name} {version(name)}", ops=count, claimed=ops, words=words, inputs=[size(one) for one in inputs], outputs=[size(one) for one in outputs])
while True:
    for one in inputs:
        data = sys.stdin.buffer.read(size(one))
        if len(data) < size(one):
            sys.exit()
        host.set_tensor(one["index"], numpy.frombuffer(data, one["dtype"]).reshape(one["shape"]))
    host.invoke()
    for one in outputs:
        answers.write(host.get_tensor(one["index"]).tobytes())
    answers.flush()
)py";

constexpr size_t kLongestGreeting = 1 << 20;
constexpr auto kPatience = std::chrono::seconds(5);

void close_if_open(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

Result<void> write_all(int to, std::span<const uint8_t> bytes) {
  Interruptions interruptions;
  while (!bytes.empty()) {
    const ssize_t done = ::write(to, bytes.data(), bytes.size());
    if (interruptions.again(done)) continue;
    if (done <= 0) return error(ErrorCode::io, "{}", std::strerror(errno));
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return {};
}

// The last line that is not empty.
std::string last_line(int file) {
  constexpr off_t kMost = 4096;
  const off_t size = ::lseek(file, 0, SEEK_END);
  std::string text(static_cast<size_t>(std::clamp<off_t>(size, 0, kMost)), '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), std::max<off_t>(size - kMost, 0));
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  text.erase(text.find_last_not_of(" \n") + 1);
  return text.substr(text.find_last_of('\n') + 1);
}

std::vector<size_t> sizes_of(const ir::Graph& graph, std::span<const ir::TensorId> tensors) {
  std::vector<size_t> out;
  for (const ir::TensorId id : tensors) out.push_back(static_cast<size_t>(graph.tensor(id).bytes()));
  return out;
}

}  // namespace

Result<std::unique_ptr<DelegateHost>> DelegateHost::start(const DelegateHostOptions& options, const ir::Graph& graph) {
  std::unique_ptr<DelegateHost> out(new DelegateHost());
  out->library_ = fs::path(options.library).filename().string();
  SK_TRY(out->begin(options));
  SK_TRY(out->greet(options, graph));
  return out;
}

Result<void> DelegateHost::begin(const DelegateHostOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // a dead process is then an error of write()
  std::array<int, 2> in{-1, -1}, answers{-1, -1};
  said_ = ::memfd_create("skillet-delegate-host", MFD_CLOEXEC);
  const bool has_pipes = ::pipe2(in.data(), O_CLOEXEC) == 0 && ::pipe2(answers.data(), O_CLOEXEC) == 0;
  to_ = in[1];
  from_ = answers[0];
  int number = has_pipes && said_ >= 0 ? 0 : errno;
  if (number == 0) {
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, answers[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, said_, STDERR_FILENO);
    // A bare name that is no file in this folder is searched in the system's folders.
    std::error_code problem;
    const fs::path whole = fs::exists(options.library, problem) ? fs::absolute(options.library, problem) : "";
    const std::string library = whole.empty() ? options.library : whole.string();
    std::vector<std::string> words = {options.python, "-c", kHost, options.model, library};
    words.insert(words.end(), options.settings.begin(), options.settings.end());
    std::vector<char*> arguments;
    for (std::string& one : words) arguments.push_back(one.data());
    arguments.push_back(nullptr);
    number = ::posix_spawnp(&process_, arguments[0], &files, nullptr, arguments.data(), environ);
    if (number != 0) process_ = -1;
    ::posix_spawn_file_actions_destroy(&files);
  }
  close_if_open(in[0]);
  close_if_open(answers[1]);
  if (number != 0) return error(ErrorCode::io, "{}: {}", options.python, std::strerror(number));
  return {};
}

Result<std::string> DelegateHost::first_line() {
  std::string line;
  for (uint8_t one = 0; line.size() < kLongestGreeting; line += static_cast<char>(one)) {
    SK_TRY(read_all({&one, 1}));
    if (one == '\n') break;
  }
  return line;
}

Result<void> DelegateHost::greet(const DelegateHostOptions& options, const ir::Graph& graph) {
  SK_TRY_ASSIGN(const std::string line, first_line());
  const auto said = nlohmann::json::parse(line, nullptr, false);
  if (said.is_object() && said.contains("error") && said["error"].is_string())
    return error(ErrorCode::invalid_argument, "{}: {}", options.library, said["error"].get<std::string>());
  if (!said.is_object() || !said.contains("host") || !said["host"].is_string())
    return error(ErrorCode::io, "{}: {} is not Python 3", options.library, options.python);
  name_ = fmt::format("{} in {}", library_, said["host"].get<std::string>());
  if (said["ops"].is_number_unsigned() && said["claimed"].is_array()) {
    ops_ = said["ops"].get<size_t>();
    claimed_ = said["claimed"].get<std::vector<size_t>>();
  }
  words_ = said.value("words", "");
  output_bytes_ = sizes_of(graph, graph.outputs);
  if (said["inputs"] != sizes_of(graph, graph.inputs) || said["outputs"] != output_bytes_)
    return error(ErrorCode::unsupported, "{}: its inputs take {} bytes and its outputs {}; the model's {} and {}",
                 name_, said["inputs"].dump(), said["outputs"].dump(),
                 nlohmann::json(sizes_of(graph, graph.inputs)).dump(), nlohmann::json(output_bytes_).dump());
  return {};
}

DelegateHost::~DelegateHost() {
  end();
  close_if_open(said_);
}

int DelegateHost::end() {
  close_if_open(to_);
  close_if_open(from_);
  int status = 0;
  const auto latest = std::chrono::steady_clock::now() + kPatience;
  pid_t ended = 0;
  while (process_ > 0 && (ended = ::waitpid(process_, &status, WNOHANG)) <= 0) {
    if (ended < 0 && errno != EINTR) break;
    if (std::chrono::steady_clock::now() > latest) ::kill(process_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  process_ = -1;
  return status;
}

Result<std::vector<Bytes>> DelegateHost::run(std::span<const Bytes> inputs) {
  for (const Bytes& one : inputs) {
    if (!write_all(to_, one).ok()) return gone();
  }
  std::vector<Bytes> out;
  for (const size_t size : output_bytes_) {
    out.emplace_back(size);
    SK_TRY(read_all(out.back()));
  }
  return out;
}

Result<void> DelegateHost::read_all(std::span<uint8_t> bytes) {
  Interruptions interruptions;
  while (!bytes.empty()) {
    const ssize_t got = ::read(from_, bytes.data(), bytes.size());
    if (interruptions.again(got)) continue;
    if (got <= 0) return gone();
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return {};
}

// The error for an ended process, with its last message.
Error DelegateHost::gone() {
  const int status = end();
  const std::string how = WIFSIGNALED(status)
                              ? fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                              : fmt::format("exit code {}", WEXITSTATUS(status));
  const std::string words = last_line(said_);
  return error(ErrorCode::io, "{}: its host ended with {}{}{}", library_, how, words.empty() ? "" : ": ", words);
}

}  // namespace skillet::tools
