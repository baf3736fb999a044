// Runs one model once with TensorFlow Lite, alone or with a delegate, and writes the outputs to files; or times the
// inferences of several delegates in one process. Started by peer.py, one process per case, so that a crash of a
// delegate ends only its own case.
// Must not know: which delegate, chip or node it runs on.
#include <tensorflow/lite/delegates/external/external_delegate.h>
#include <tensorflow/lite/interpreter.h>
#include <tensorflow/lite/interpreter_builder.h>
#include <tensorflow/lite/kernels/register.h>
#include <tensorflow/lite/kernels/register_ref.h>
#include <tensorflow/lite/model_builder.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr const char* kUsage =
    "usage: runner MODEL [--delegate LIBRARY] [--kernels reference|optimized] [--random SEED | --input FILE...]\n"
    "              --output PREFIX      writes PREFIX0, PREFIX1, ...\n"
    "       runner MODEL --repeat N --delegate LIBRARY [--set KEY=VALUE]... [--delegate LIBRARY...]...\n"
    "              the time of an inference of each delegate, in turns in this one process\n";

struct DelegateOptions {
  std::string library;
  std::vector<std::pair<std::string, std::string>> values;
};

struct Options {
  std::string model, output;
  std::vector<DelegateOptions> delegates;
  int repeat = 0;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
  bool is_reference = true;
};

[[noreturn]] void stop(const std::string& text) {
  std::fprintf(stderr, "runner: %s\n", text.c_str());
  std::exit(1);
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word.substr(0, 2) != "--" && options.model.empty()) {
      options.model = word;
      continue;
    }
    if (++i >= count) stop(kUsage);
    if (word == "--delegate")
      options.delegates.push_back({words[i], {}});
    else if (word == "--set" && !options.delegates.empty() && std::strchr(words[i], '=') != nullptr)
      options.delegates.back().values.emplace_back(std::string(words[i], std::strchr(words[i], '=')),
                                                   std::strchr(words[i], '=') + 1);
    else if (word == "--repeat")
      options.repeat = std::atoi(words[i]);
    else if (word == "--output")
      options.output = words[i];
    else if (word == "--input")
      options.inputs.emplace_back(words[i]);
    else if (word == "--random")
      options.seed = std::strtoull(words[i], nullptr, 10);
    else if (word == "--kernels")
      options.is_reference = words[i] == std::string_view("reference");
    else
      stop(kUsage);
  }
  if (options.model.empty() || (options.output.empty() && options.repeat == 0)) stop(kUsage);
  return options;
}

// splitmix64: one stream for all inputs in order, each element the low bytes of the next draw.
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}
  uint64_t draw() {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }

 private:
  uint64_t state_;
};

void fill_randomly(TfLiteTensor& tensor, Generator& generator) {
  size_t element_bytes = 0;
  if (tensor.type == kTfLiteUInt8 || tensor.type == kTfLiteInt8) element_bytes = 1;
  if (tensor.type == kTfLiteInt16) element_bytes = 2;
  if (tensor.type == kTfLiteInt32 || tensor.type == kTfLiteFloat32) element_bytes = 4;
  if (element_bytes == 0) stop(std::string("no random values for type ") + TfLiteTypeGetName(tensor.type));
  for (size_t at = 0; at + element_bytes <= tensor.bytes; at += element_bytes) {
    const uint64_t draw = generator.draw();
    const float real = static_cast<float>(draw >> 40) / 16777216.0F;
    std::memcpy(tensor.data.raw + at, tensor.type == kTfLiteFloat32 ? static_cast<const void*>(&real) : &draw,
                element_bytes);
  }
}

void fill_from_file(TfLiteTensor& tensor, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (!file || bytes.size() != tensor.bytes)
    stop(path + ": " + std::to_string(bytes.size()) + " bytes for an input of " + std::to_string(tensor.bytes));
  std::memcpy(tensor.data.raw, bytes.data(), bytes.size());
}

using Delegate = std::unique_ptr<TfLiteDelegate, void (*)(TfLiteDelegate*)>;

Delegate load_delegate(const DelegateOptions& wanted) {
  TfLiteExternalDelegateOptions options = TfLiteExternalDelegateOptionsDefault(wanted.library.c_str());
  for (const auto& [key, value] : wanted.values)
    if (options.insert(&options, key.c_str(), value.c_str()) != kTfLiteOk) stop("too many options");
  Delegate delegate(TfLiteExternalDelegateCreate(&options), TfLiteExternalDelegateDelete);
  if (!delegate) stop("the delegate in " + wanted.library + " cannot be made");
  return delegate;
}

void count_delegated(const tflite::Interpreter& interpreter) {
  size_t parts = 0;
  for (const int node : interpreter.execution_plan())
    parts += interpreter.node_and_registration(node)->first.delegate != nullptr ? 1 : 0;
  std::printf("steps %zu delegated %zu\n", interpreter.execution_plan().size(), parts);
}

void write_outputs(tflite::Interpreter& interpreter, const std::string& prefix) {
  for (size_t i = 0; i < interpreter.outputs().size(); ++i) {
    const TfLiteTensor& tensor = *interpreter.output_tensor(i);
    std::ofstream file(prefix + std::to_string(i), std::ios::binary);
    file.write(tensor.data.raw, static_cast<std::streamsize>(tensor.bytes));
    if (!file) stop("cannot write " + prefix + std::to_string(i));
    std::printf("output %zu %s %zu\n", i, TfLiteTypeGetName(tensor.type), tensor.bytes);
  }
}

int milliseconds_since(std::chrono::steady_clock::time_point start) {
  return static_cast<int>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count());
}

struct Timed {
  Delegate delegate;  // must outlive the interpreter
  std::unique_ptr<tflite::Interpreter> interpreter;
  std::vector<double> us;
};

Timed make_timed(const tflite::FlatBufferModel& model, const tflite::OpResolver& kernels, const DelegateOptions& one) {
  Timed out{load_delegate(one), nullptr, {}};
  if (tflite::InterpreterBuilder(model, kernels)(&out.interpreter, 1) != kTfLiteOk) stop("no interpreter");
  if (out.interpreter->ModifyGraphWithDelegate(out.delegate.get()) != kTfLiteOk) stop("the delegate failed");
  if (out.interpreter->AllocateTensors() != kTfLiteOk) stop("no memory for the tensors");
  std::printf("%s: ", one.library.c_str());
  count_delegated(*out.interpreter);
  return out;
}

// The delegates alternate, so that other load on the machine affects all equally.
void print_times(const tflite::FlatBufferModel& model, const tflite::OpResolver& kernels, const Options& options) {
  std::vector<Timed> all;
  for (const DelegateOptions& one : options.delegates) all.push_back(make_timed(model, kernels, one));
  for (int i = 0; i < options.repeat; ++i) {
    for (Timed& one : all) {
      const auto start = std::chrono::steady_clock::now();
      if (one.interpreter->Invoke() != kTfLiteOk) stop("the inference failed");
      one.us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    std::sort(all[i].us.begin(), all[i].us.end());
    std::printf("%s: inference, us: min %.1f median %.1f\n", options.delegates[i].library.c_str(), all[i].us.front(),
                all[i].us[all[i].us.size() / 2]);
  }
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  const auto model = tflite::FlatBufferModel::BuildFromFile(options.model.c_str());
  if (!model) stop(options.model + ": not a model");
  const tflite::ops::builtin::BuiltinRefOpResolver reference;
  const tflite::ops::builtin::BuiltinOpResolverWithoutDefaultDelegates optimized;
  const tflite::OpResolver& kernels =
      options.is_reference ? static_cast<const tflite::OpResolver&>(reference) : optimized;

  if (options.repeat > 0) {
    print_times(*model, kernels, options);
    return 0;
  }
  Delegate delegate(nullptr, TfLiteExternalDelegateDelete);  // must outlive the interpreter
  if (!options.delegates.empty()) delegate = load_delegate(options.delegates[0]);
  std::unique_ptr<tflite::Interpreter> interpreter;
  if (tflite::InterpreterBuilder(*model, kernels)(&interpreter, 1) != kTfLiteOk) stop("no interpreter");
  auto start = std::chrono::steady_clock::now();
  if (delegate && interpreter->ModifyGraphWithDelegate(delegate.get()) != kTfLiteOk) stop("the delegate failed");
  if (interpreter->AllocateTensors() != kTfLiteOk) stop("no memory for the tensors");
  count_delegated(*interpreter);
  std::printf("prepare_ms %d\n", milliseconds_since(start));
  std::fflush(stdout);

  if (!options.inputs.empty() && options.inputs.size() != interpreter->inputs().size()) stop("wrong number of inputs");
  Generator generator(options.seed);
  for (size_t i = 0; i < interpreter->inputs().size(); ++i) {
    TfLiteTensor& tensor = *interpreter->input_tensor(i);
    if (options.inputs.empty())
      fill_randomly(tensor, generator);
    else
      fill_from_file(tensor, options.inputs[i]);
  }
  start = std::chrono::steady_clock::now();
  if (interpreter->Invoke() != kTfLiteOk) stop("the inference failed");
  std::printf("invoke_ms %d\n", milliseconds_since(start));
  write_outputs(*interpreter, options.output);
  std::printf("done\n");
  std::fflush(stdout);
}
