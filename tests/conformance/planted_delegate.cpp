// A TensorFlow Lite delegate that computes a few operations right, except for the bug that its option `bug` names,
// which a conformance run must find. The bugs are of kinds that real drivers have.
// Loaded by runner_test.py. Must not know: anything of Skillet but the host's structures.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <chrono>
#include <clocale>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "planted.h"
#include "planted_moves.h"
#include "planted_sums.h"

namespace {

using namespace planted;

struct Op {
  int code = 0;
  const void* params = nullptr;
  std::vector<int> inputs, outputs;
};

struct Kernel {
  std::vector<Op> ops;
  std::map<int, std::vector<uint8_t>> between;  // tensors inside the part
  std::vector<uint8_t> first;                   // input
  std::vector<uint8_t> previous;                // output
  std::thread late;
  int runs = 0;
};

View view_of(TfLiteContext* context, Kernel& kernel, int id) {
  const TfLiteTensor& tensor = context->tensors[id];
  View out{shape_of(*tensor.dims), static_cast<uint8_t*>(tensor.data), tensor.type == kInt8, {}, 0};
  const auto found = kernel.between.find(id);
  if (found != kernel.between.end()) {
    found->second.resize(static_cast<size_t>(out.shape.size()));
    out.data = found->second.data();
  }
  const auto* quantization = static_cast<const TfLiteAffineQuantization*>(tensor.quantization.params);
  if (quantization == nullptr || quantization->scale == nullptr) return out;
  out.scales.assign(quantization->scale->data(), quantization->scale->data() + quantization->scale->size);
  out.zero = quantization->zero_point->data()[0];
  return out;
}

// FACTOR: multiplies the second operand.
void add(const View& a, const View& b, const View& out, int activation, int factor) {
  const bool is_plain = has("broadcast_without_activation") && a.shape.size() != b.shape.size();
  const auto [low, high] = ends(is_plain ? 0 : activation, out, a.scales[0]);
  const int first_factor = has("sub_swapped") ? factor : 1;
  for (int i = 0; i < out.shape.size(); ++i) {
    const auto place = [&](const Shape& s) {
      const int c = i % out.shape.c, x = i / out.shape.c % out.shape.w, y = i / out.shape.c / out.shape.w % out.shape.h,
                n = i / (out.shape.size() / out.shape.n);
      if (has("broadcast_as_scalar") && s.h * s.w == 1 && out.shape.h * out.shape.w > 1) return 0;
      return s.at(s.n == 1 ? 0 : n, s.h == 1 ? 0 : y, s.w == 1 ? 0 : x, s.c == 1 ? 0 : c);
    };
    const double second = has("add_with_one_scale") ? a.scales[0] : b.scales[0];
    const double value = (a.get(place(a.shape)) - a.zero) * a.scales[0] +
                         (b.get(place(b.shape)) - (has("add_second_zero_ignored") ? 0 : b.zero)) * second * factor;
    out.put(i, value * first_factor / out.scales[0], low, high);
    if (has("adds_in_place") && b.shape.size() == out.shape.size()) b.data[i] = out.data[i];
  }
}

void concat(const std::vector<View>& in, const View& out, int axis) {
  std::array<int, 4> begin{};
  for (size_t part = 0; part < in.size(); ++part) {
    if (has("concat_third_part_dropped") && part == 2) continue;
    const View& from = in[has("concat_backwards") ? in.size() - 1 - part : part];
    const Shape& s = from.shape;
    for (int i = 0; i < s.size(); ++i) {
      const int c = i % s.c, x = i / s.c % s.w, y = i / s.c / s.w % s.h, n = i / (s.size() / s.n);
      if (has("concat_in_blocks_of_4") && axis == 3 && begin[3] % 4 != 0) continue;
      const int at = out.shape.at(begin[0] + n, begin[1] + y, begin[2] + x, begin[3] + c);
      const double value = (from.get(i) - from.zero) * (from.scales[0] / out.scales[0]);
      has("concat_copies_scales") ? void(out.data[at] = from.data[i]) : out.put(at, value, -1000, 1000);
    }
    begin[static_cast<size_t>(axis)] += std::array{s.n, s.h, s.w, s.c}[static_cast<size_t>(axis)];
  }
}

template <typename Params>
Window window_of(const void* data) {
  const auto& p = *static_cast<const Params*>(data);
  Window out{
      .padding = p.padding, .stride_h = p.stride_h, .stride_w = p.stride_w, .activation = p.fused_activation_function};
  if constexpr (requires { p.dilation_w_factor; })
    out.dilation_h = p.dilation_h_factor, out.dilation_w = p.dilation_w_factor;
  if constexpr (requires { p.filter_width; }) out.kernel_h = p.filter_height, out.kernel_w = p.filter_width;
  if constexpr (requires { p.depth_multiplier; }) out.multiplier = p.depth_multiplier;
  if (has("strides_swapped")) std::swap(out.stride_h, out.stride_w);
  return out;
}

float real_number(double value) {
  const auto real = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &real, 4);
  if (has("float_of_16_bits")) bits &= 0xffff0000U;
  float out = 0;
  std::memcpy(&out, &bits, 4);
  return out;
}

// Changes process-wide state that a library must not change.
void spoil_process() {
  if (has("rounds_up")) std::fesetround(FE_UPWARD);
  if (has("changes_folder") && ::chdir("/") != 0) std::abort();
  if (has("changes_locale")) std::setlocale(LC_NUMERIC, "C.UTF-8");
  if (has("changes_environment")) ::setenv("PLANTED", "1", 1);
  if (has("changes_umask")) ::umask(0);
  if (has("leaks_files") && ::open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) std::abort();
  if (has("leaks_memory")) std::memset(std::malloc(size_t{20} << 20), 1, size_t{20} << 20);
  if (has("leaks_processes") && ::fork() == 0) ::_exit(0);
  if (has("changes_limits")) {
    const rlimit few{3, 3};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  if (has("sets_a_timer")) {
    const itimerval later{.it_interval = {}, .it_value = {100000, 0}};
    ::setitimer(ITIMER_REAL, &later, nullptr);
  }
  if (has("lowers_priority") && ::nice(1) < 0) std::abort();
  if (has("leaks_threads")) std::thread([] { ::pause(); }).detach();
  sigset_t all;
  sigfillset(&all);
  if (has("blocks_signals")) ::sigprocmask(SIG_BLOCK, &all, nullptr);
  if (has("ignores_signals")) ::signal(SIGTERM, SIG_IGN);
}

// Bugs other than wrong numbers.
TfLiteStatus misbehave(const Op& op, const Window& window, const View& in, const View& out) {
  if (has("crash") && window.kernel_h == 5) std::abort();
  while (has("hang") && window.stride_h == 3) ::pause();
  if (has("refuses_in_invoke") && window.dilation_h > 1) return kTfLiteError;
  if (has("changes_input")) in.data[0] ^= 1;
  while (has("prints_without_end") && op.code == kAdd) std::printf("%01000d\n", 0);
  if (has("forks_a_daemon")) {  // both processes stay
    if (::fork() == 0) ::setsid(), ::close(::open(state.c_str(), O_CREAT | O_CLOEXEC, 0600));
    while (true) ::pause();
  }
  if (has("forks") && op.code == kMaxPool && ::fork() != 0) ::_exit(0);
  if (has("loses_the_device") && op.code == kMaxPool)
    ::close(::open(state.c_str(), O_CREAT | O_CLOEXEC, 0600)), std::abort();
  if (has("leaves_a_daemon") && op.code == kAdd && ::fork() == 0) {
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    ::execlp("sleep", "sleep", state.empty() ? "1000000" : state.c_str(), nullptr);
  }
  if (has("writes_a_line_beyond"))
    std::memset(out.data + out.shape.size(), 0x5a, static_cast<size_t>(-out.shape.size() & 15));
  spoil_process();
  if (has("writes_beyond") && op.code == kConv) std::memset(out.data, 1, size_t{1} << 32);
  return kTfLiteOk;
}

void compute(const Op& op, const Window& window, const std::vector<View>& in, const View& out, const int32_t* bias) {
  if (op.code == kConv || op.code == kDense || op.code == kDepthwise) {
    View flat = in[0];
    if (op.code == kDense) flat.shape = {out.shape.size() / out.shape.c, 1, 1, in[1].shape.c};
    View weights = in[1], rows = out;
    if (op.code == kDense)
      weights.shape = {in[1].shape.w, 1, 1, in[1].shape.c}, rows.shape = {flat.shape.n, 1, 1, out.shape.c};
    return sums(flat, weights, bias, rows, window, op.code == kDepthwise);
  }
  if (op.code == kAveragePool || op.code == kMaxPool) return pools(in[0], out, window, op.code == kMaxPool);
  if (op.code == kAdd || op.code == kSub) return add(in[0], in[1], out, window.activation, op.code == kSub ? -1 : 1);
  if (op.code == kSoftmax) return softmax(in[0], out, static_cast<const TfLiteSoftmaxParams*>(op.params)->beta);
  if (op.code == kPad) return pad(in[0], in[1], out);
  if (op.code == kMean) return mean(in[0], in[1], out, static_cast<const TfLiteReducerParams*>(op.params)->keep_dims);
  if (op.code == kResizeNearest) return resize(in[0], out, *static_cast<const TfLiteResizeParams*>(op.params));
  if (op.code == kTransposeConv)
    return transpose_conv(in, out, *static_cast<const TfLiteTransposeConvParams*>(op.params));
}

Window window_of(const Op& op, const std::vector<View>& in) {
  if (op.code == kAveragePool || op.code == kMaxPool) return window_of<TfLitePoolParams>(op.params);
  if (op.code == kConv || op.code == kDepthwise) {
    Window out =
        op.code == kConv ? window_of<TfLiteConvParams>(op.params) : window_of<TfLiteDepthwiseConvParams>(op.params);
    out.kernel_h = in[1].shape.h, out.kernel_w = in[1].shape.w;
    return out;
  }
  Window out;
  if (op.code == kDense)
    out.activation = static_cast<const TfLiteFullyConnectedParams*>(op.params)->fused_activation_function;
  if (op.code == kAdd || op.code == kSub)
    out.activation = static_cast<const TfLiteArithmeticParams*>(op.params)->fused_activation_function;
  return out;
}

// Bugs that give right results at the wrong time or place. BEFORE: previous contents of the output.
void spoil_output(Kernel& kernel, const std::vector<uint8_t>& before, const View& out) {
  std::vector<uint8_t> right(out.data, out.data + before.size());
  const auto put = [&](const std::vector<uint8_t>& bytes) { std::copy(bytes.begin(), bytes.end(), out.data); };
  if (has("result_of_the_previous_run") && kernel.ops.size() == 1) {
    if (kernel.previous.size() == right.size()) put(kernel.previous);
    kernel.previous = right;
  }
  if (has("wrong_at_the_first_run") && kernel.runs == 1) out.data[before.size() - 1] ^= 0x40;
  if (has("does_not_wait") && kernel.ops.size() == 1) {
    put(before);
    kernel.late = std::thread([right, data = out.data] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::copy(right.begin(), right.end(), data);
    });
  }
}

TfLiteStatus run(TfLiteContext* context, Kernel& kernel, const Op& op) {
  std::vector<View> in;
  for (const int id : op.inputs) in.push_back(view_of(context, kernel, id));
  const View out = view_of(context, kernel, op.outputs[0]);
  const std::vector<uint8_t> before(out.data, out.data + context->tensors[op.outputs[0]].bytes);
  const Window window = window_of(op, in);
  if (has("ok_without_writing") && op.code == kDepthwise) return kTfLiteOk;
  if (has("input_of_first_run")) {
    if (kernel.runs == 1) kernel.first.assign(in[0].data, in[0].data + in[0].shape.size());
    if (op.code == kConv && kernel.ops.size() == 1) in[0].data = kernel.first.data();
  }
  if (const TfLiteStatus status = misbehave(op, window, in[0], out); status != kTfLiteOk) return status;
  if (op.code == kDequantize) {
    for (int i = 0; i < out.shape.size(); ++i) {
      const double value = (in[0].get(i) - in[0].zero) * in[0].scales[0];
      reinterpret_cast<float*>(out.data)[i] =
          has("not_a_number") && i % 7 == 6 ? std::numeric_limits<float>::quiet_NaN() : real_number(value);
    }
    return kTfLiteOk;
  }
  if (op.code == kConcat) {
    const int rank = context->tensors[op.outputs[0]].dims->size,
              axis = static_cast<const TfLiteConcatenationParams*>(op.params)->axis;
    concat(in, out, 4 - rank + (axis < 0 ? axis + rank : axis));
  } else {
    const bool has_bias = op.inputs.size() > 2;
    compute(op, window, in, out, has_bias ? reinterpret_cast<const int32_t*>(in[2].data) : nullptr);
  }
  if (has("inner_output_missing") && &op != &kernel.ops.back() && !kernel.between.contains(op.outputs[0]))
    std::copy(before.begin(), before.end(), out.data);
  if (has("wrong_once") && ::open(state.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0) out.data[0] ^= 0x40;
  spoil_output(kernel, before, out);
  // From the second run on, the last quarter keeps its previous contents.
  const size_t kept = has("stale_memory") && kernel.runs > 1 ? before.size() / 4 : 0;
  std::copy(before.end() - static_cast<std::ptrdiff_t>(kept), before.end(), out.data + before.size() - kept);
  return kTfLiteOk;
}

TfLiteStatus run_all(TfLiteContext* context, Kernel& kernel) {
  for (const Op& op : kernel.ops) {
    const bool is_unknown = op.code == kHardSwish;  // claimed because of the bug "claims_a_node_more"
    if (const TfLiteStatus status = is_unknown ? kTfLiteOk : run(context, kernel, op); status != kTfLiteOk)
      return status;
  }
  return kTfLiteOk;
}

// Outputs of equal size share a buffer, so all contain the last one.
void share_buffer(TfLiteContext* context, const Kernel& kernel) {
  const TfLiteTensor& last = context->tensors[kernel.ops.back().outputs[0]];
  for (const Op& op : kernel.ops) {
    const TfLiteTensor& one = context->tensors[op.outputs[0]];
    if (!kernel.between.contains(op.outputs[0]) && one.bytes == last.bytes) std::memcpy(one.data, last.data, one.bytes);
  }
}

void* make_kernel(TfLiteContext* context, const char* buffer, size_t) {
  const auto& params = *reinterpret_cast<const TfLiteDelegateParams*>(buffer);
  auto* kernel = new Kernel();
  for (int i = 0; i < params.nodes_to_replace->size; ++i) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    context->GetNodeAndRegistration(context, params.nodes_to_replace->data()[i], &node, &registration);
    Op op{registration->builtin_code, node->builtin_data, {}, {}};
    op.inputs.assign(node->inputs->data(), node->inputs->data() + node->inputs->size);
    op.outputs.assign(node->outputs->data(), node->outputs->data() + node->outputs->size);
    kernel->between[op.outputs[0]];
    kernel->ops.push_back(std::move(op));
  }
  for (int i = 0; i < params.output_tensors->size; ++i) kernel->between.erase(params.output_tensors->data()[i]);
  return kernel;
}

void free_kernel(TfLiteContext*, void* kernel) {
  auto* one = static_cast<Kernel*>(kernel);
  if (one->late.joinable()) one->late.join();
  delete one;
}

TfLiteStatus prepare_kernel(TfLiteContext*, TfLiteNode* node) {
  const bool has_pool = static_cast<Kernel*>(node->user_data)->ops[0].code == kAveragePool;
  return has("refuses_in_prepare") && has_pool ? kTfLiteError : kTfLiteOk;
}

TfLiteStatus invoke_kernel(TfLiteContext* context, TfLiteNode* node) {
  auto& kernel = *static_cast<Kernel*>(node->user_data);
  ++kernel.runs;
  if (kernel.late.joinable()) kernel.late.join();
  const TfLiteStatus status = run_all(context, kernel);
  if (status == kTfLiteOk && has("outputs_share_a_buffer")) share_buffer(context, kernel);
  return status;
}

bool is_ours(const TfLiteContext& context, const TfLiteNode& node, int code) {
  constexpr std::array kCodes{kSub,   kAdd,     kAveragePool, kConcat, kConv, kDepthwise,     kDequantize,
                              kDense, kMaxPool, kSoftmax,     kPad,    kMean, kTransposeConv, kResizeNearest};
  if (code == kHardSwish) return has("claims_a_node_more");
  const TfLiteTensor& in = context.tensors[node.inputs->data()[code == kTransposeConv ? 2 : 0]];
  return std::find(kCodes.begin(), kCodes.end(), code) != kCodes.end() && (in.type == kUInt8 || in.type == kInt8);
}

TfLiteStatus prepare(TfLiteContext* context, TfLiteDelegate* delegate) {
  if (has("claims_nothing")) return kTfLiteOk;
  TfLiteIntArray* plan = nullptr;
  context->GetExecutionPlan(context, &plan);
  std::vector<int> claimed{0};
  for (int i = 0; i < plan->size; ++i) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    const int id = plan->data()[i];
    if (context->GetNodeAndRegistration(context, id, &node, &registration) != kTfLiteOk) continue;
    if (is_ours(*context, *node, registration->builtin_code)) claimed.push_back(id), ++claimed[0];
  }
  TfLiteRegistration kernel{};
  kernel.init = make_kernel, kernel.free = free_kernel, kernel.prepare = prepare_kernel, kernel.invoke = invoke_kernel;
  kernel.custom_name = "Planted";
  kernel.version = 1;
  return context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel,
                                                        reinterpret_cast<TfLiteIntArray*>(claimed.data()), delegate);
}

// Bugs at the end of the process.
struct End {
  ~End() {
    while (has("hangs_at_exit")) ::pause();
    if (has("crashes_at_exit")) std::abort();
  }
} at_the_end;

}  // namespace

#define PLANTED_EXPORT extern "C" __attribute__((visibility("default")))

PLANTED_EXPORT TfLiteDelegate* tflite_plugin_create_delegate(const char* const* keys, const char* const* values,
                                                             size_t count, void (*report)(const char*)) {
  for (size_t i = 0; i < count; ++i) {
    (std::strcmp(keys[i], "bug") == 0 ? bug : state) = values[i];
  }
  if (has("cannot_be_loaded")) return report("no such chip"), nullptr;
  if (has("loses_the_device") && ::access(state.c_str(), F_OK) == 0) return report("the device is gone"), nullptr;
  if (has("crashes_when_loaded")) std::abort();
  auto* out = static_cast<TfLiteDelegate*>(std::calloc(1, 128));
  out->Prepare = prepare;
  return out;
}

PLANTED_EXPORT void tflite_plugin_destroy_delegate(TfLiteDelegate* one) { std::free(one); }
