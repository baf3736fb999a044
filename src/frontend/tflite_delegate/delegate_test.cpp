// Tests the delegate with a fake host around an ir::Graph; tests with real hosts are in tests/integration.
#include "frontend/tflite_delegate/delegate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/testing/own_folder.h"
#include "frontend/tflite_delegate/builtin_params.h"
#include "frontend/tflite_delegate/plugin.h"
#include "frontend/tflite_delegate/testing/allocations.h"
#include "frontend/tflite_delegate/testing/cases.h"

namespace skillet::delegate {
namespace {

std::string reported;
void collect(const char* text) { reported += text; }

class Plugin {
 public:
  explicit Plugin(const std::vector<KeyValue>& options) {
    std::vector<const char*> keys, values;
    for (const auto& [key, value] : options) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
    reported.clear();
    delegate = create(keys.data(), values.data(), keys.size(), collect);
  }
  ~Plugin() { destroy(delegate); }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  TfLiteDelegate* delegate = nullptr;
};

// partition=work, because small networks are predicted to be faster on the CPU.
std::vector<KeyValue> on_sim(std::vector<KeyValue> more = {}) {
  more.emplace_back("partition", "work");
  more.emplace_back("device", "sim:a311d");
  return more;
}

TEST(Delegate, RunsWithTheResultsOfTheCpu) {
  const ir::Graph graph = digits();
  const Plugin plugin(on_sim());
  ASSERT_NE(plugin.delegate, nullptr) << reported;
  FakeHost host(graph);
  ASSERT_EQ(host.apply(plugin.delegate), kTfLiteOk);
  ASSERT_GE(host.partitions(), 1U);
  for (uint8_t seed = 1; seed < 4; ++seed) {
    fill_inputs(host, graph, seed);
    EXPECT_EQ(outputs_of(host, graph), expected(graph, seed));
  }
}

TEST(Delegate, FollowsTensorsThatMove) {
  const ir::Graph graph = digits();
  const Plugin plugin(on_sim());
  FakeHost host(graph);
  ASSERT_EQ(host.apply(plugin.delegate), kTfLiteOk);
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    if (!graph.tensors[i].is_constant()) host.move_memory(static_cast<ir::TensorId>(i));
  }
  fill_inputs(host, graph, 7);
  EXPECT_EQ(outputs_of(host, graph), expected(graph, 7));
  TfLiteTensor& input = host.tensor(graph.inputs[0]);
  const size_t right = input.bytes;
  for (const size_t wrong : {right - 1, right + 1}) {
    input.bytes = wrong;
    EXPECT_EQ(host.invoke_partition(0), kTfLiteError) << wrong;
    ASSERT_FALSE(host.errors.empty());
    EXPECT_NE(host.errors.back().find("it was prepared for"), std::string::npos) << host.errors.back();
  }
  input.bytes = right;
  input.data = nullptr;
  EXPECT_EQ(host.invoke_partition(0), kTfLiteError);
  EXPECT_NE(host.errors.back().find("no memory of the CPU"), std::string::npos) << host.errors.back();
}

TEST(Delegate, ChoosesPartitionsByOptions) {
  const ir::Graph graph = digits_in_two();
  const auto partitions = [&](std::vector<KeyValue> options) {
    const Plugin plugin(on_sim(std::move(options)));
    FakeHost host(graph);
    EXPECT_EQ(host.apply(plugin.delegate), kTfLiteOk);
    std::vector<std::vector<int>> all;
    for (size_t i = 0; i < host.partitions(); ++i) all.push_back(host.partition(i));
    return all;
  };
  const auto all = partitions({});
  ASSERT_EQ(all.size(), 2U);
  const std::vector<std::vector<int>> only_first = {all[0]};
  EXPECT_EQ(partitions({{"max_delegated_partitions", "1"}}), only_first) << "the one with the most work";
  EXPECT_EQ(partitions({{"min_nodes_per_partition", "5"}}), only_first);
  EXPECT_TRUE(partitions({{"min_nodes_per_partition", "100"}}).empty());
  EXPECT_TRUE(partitions({{"min_macs_per_byte", "1000000"}}).empty());
}

// One op on a tensor of 4 x 4 x 8.
ir::Graph one_op(ir::OpKind kind, ir::Attrs attrs, ir::Shape out) {
  ir::Graph graph("one");
  ir::Tensor tensor{.name = "in", .dtype = ir::DType::uint8, .shape = {1, 4, 4, 8}};
  tensor.quant = {.scales = {1.0F}, .zero_points = {0}};
  graph.inputs = {graph.add_tensor(tensor)};
  tensor.name = "out", tensor.shape = std::move(out);
  graph.outputs = {graph.add_tensor(tensor)};
  graph.add_op({.kind = kind, .attrs = std::move(attrs), .inputs = {0}, .outputs = {1}});
  return graph;
}

TEST(Delegate, LeavesToTheHostWhatIsNotWorthTheWay) {
  const struct {
    ir::Graph graph;
    const char* reason;
    size_t lifted;  // number of partitions without that threshold
  } kRows[] = {
      {one_op(ir::OpKind::reshape, ir::ReshapeAttrs{{1, 128}}, {1, 128}), "its partition would only move data", 0},
      {one_op(ir::OpKind::relu, {}, {1, 4, 4, 8}),
       "its partition does 0 multiply-accumulates and moves 256 bytes, less than min_macs_per_byte=4", 1},
  };
  for (const auto& row : kRows) {
    const auto claimed = [&](std::vector<KeyValue> options, std::string& said) {
      ::testing::internal::CaptureStderr();
      const Plugin plugin(on_sim(std::move(options)));
      FakeHost host(row.graph);
      EXPECT_EQ(host.apply(plugin.delegate), kTfLiteOk);
      said = ::testing::internal::GetCapturedStderr();
      fill_inputs(host, row.graph, 3);
      EXPECT_EQ(outputs_of(host, row.graph), expected(row.graph, 3));
      return host.partitions();
    };
    std::string said;
    EXPECT_EQ(claimed({{"log", "info"}}, said), 0U);
    EXPECT_NE(said.find(row.reason), std::string::npos) << said;
    EXPECT_EQ(claimed({{"log", "warning"}}, said), 0U);
    EXPECT_NE(said.find(row.reason), std::string::npos) << "where nothing is claimed a reason is said: " << said;
    EXPECT_EQ(claimed({{"log", "warning"}, {"min_macs_per_byte", "0"}}, said), row.lifted);
    EXPECT_EQ(said.find("nothing is claimed") == std::string::npos, row.lifted != 0) << said;
    EXPECT_EQ(said.find("its part needs no job") == std::string::npos, row.lifted != 0) << said;
  }
}

// On this chip an addition is a convolution, but it counts as an addition of the network.
TEST(Delegate, CountsTheWorkOfTheNetwork) {
  ir::Graph graph = one_op(ir::OpKind::add, ir::ActivationAttrs{}, {1, 4, 4, 8});
  graph.ops[0].inputs = {0, 0};
  graph.tensors[1].quant.scales = {2.0F};
  const auto partitions = [&](const char* min_macs_per_byte) {
    const Plugin plugin(
        {{"device", "sim:imx8mp"}, {"log", "error"}, {"partition", "work"}, {"min_macs_per_byte", min_macs_per_byte}});
    FakeHost host(graph);
    EXPECT_EQ(host.apply(plugin.delegate), kTfLiteOk);
    return host.partitions();
  };
  EXPECT_EQ(partitions("0"), 1U);
  EXPECT_EQ(partitions("1"), 0U);
}

TEST(Delegate, StrictMakesFallbackAnError) {
  const Plugin plugin(on_sim({{"strict", "True"}}));
  FakeHost host(digits());
  EXPECT_EQ(host.apply(plugin.delegate), kTfLiteError);
  ASSERT_EQ(host.errors.size(), 1U);
  EXPECT_NE(host.errors[0].find("CPU: op 13 SOFTMAX: "), std::string::npos) << host.errors[0];
  EXPECT_EQ(host.errors[0].find('\n'), std::string::npos) << "hosts print one line";
}

TEST(Delegate, NeverFailsByDefault) {
  for (const char* device : {"sim:nonesuch", "/dev/null", "/nowhere", "auto", "cpu", "", "banana"}) {
    const Plugin plugin({{"device", device}, {"colour", "blue"}, {"strict", "maybe"}});
    ASSERT_NE(plugin.delegate, nullptr) << device;
    FakeHost host(digits());
    EXPECT_EQ(host.apply(plugin.delegate), kTfLiteOk) << device;
    EXPECT_EQ(host.partitions(), 0U) << device;
  }
  const Plugin strict({{"device", "sim:nonesuch"}, {"strict", "1"}});
  EXPECT_EQ(strict.delegate, nullptr);
  EXPECT_NE(reported.find("nonesuch"), std::string::npos) << reported;
  const Plugin unknown(on_sim({{"colour", "blue"}, {"strict", "1"}}));
  EXPECT_EQ(unknown.delegate, nullptr);
  EXPECT_NE(reported.find("colour"), std::string::npos) << reported;
}

TEST(Delegate, TakesNullPointers) {
  TfLiteDelegate* delegate = create(nullptr, nullptr, 0, nullptr);
  EXPECT_NE(delegate, nullptr);
  destroy(delegate);
  destroy(nullptr);
  const char* key = "strict";
  const char* value = "1";
  const char* keys[] = {key, "device"};
  const char* values[] = {value, nullptr};
  EXPECT_EQ(create(keys, values, 2, nullptr), nullptr) << "strict, and no device named ''";
}

TEST(Delegate, OutlivesNothing) {
  const ir::Graph graph = digits();
  auto plugin = std::make_unique<Plugin>(on_sim());
  FakeHost host(graph);
  ASSERT_EQ(host.apply(plugin->delegate), kTfLiteOk);
  plugin.reset();  // before the interpreter, as some hosts do
  fill_inputs(host, graph, 2);
  EXPECT_EQ(outputs_of(host, graph), expected(graph, 2));
}

TEST(Delegate, ServesInterpretersOnSeveralThreads) {
  const ir::Graph graph = digits();
  const Plugin plugin(on_sim());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  const auto want = expected(graph, 5);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      FakeHost host(graph);
      if (host.apply(plugin.delegate) != kTfLiteOk || host.partitions() == 0) ++wrong;
      fill_inputs(host, graph, 5);
      for (int i = 0; i < 3; ++i) wrong += outputs_of(host, graph) != want;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

const std::vector<KeyValue> kAnyWork = {{"min_macs_per_byte", "0"}};

TEST(Delegate, CompilesAgainAfterResizing) {
  ir::Graph graph = convolution();
  const Plugin plugin(on_sim(kAnyWork));
  FakeHost host(graph);
  ASSERT_EQ(host.apply(plugin.delegate), kTfLiteOk);
  ASSERT_EQ(host.partitions(), 1U);
  for (const int32_t size : {10, 3, 6}) {
    const ir::Shape shape{1, size, size, 8};
    host.resize(graph.inputs[0], shape);
    ASSERT_EQ(host.prepare(), kTfLiteOk);
    ASSERT_EQ(host.tensor(graph.outputs[0]).dims->data()[1], size) << "the kernel sizes its outputs";
    graph.tensor(graph.inputs[0]).shape = graph.tensor(graph.outputs[0]).shape = shape;
    fill_inputs(host, graph, 9);
    EXPECT_EQ(outputs_of(host, graph), expected(graph, 9));
  }
  // This chip takes no batches: the same kernel runs them on the CPU.
  const ir::Shape batch{2, 6, 6, 8};
  host.resize(graph.inputs[0], batch);
  ASSERT_EQ(host.prepare(), kTfLiteOk) << host.errors.at(0);
  graph.tensor(graph.inputs[0]).shape = graph.tensor(graph.outputs[0]).shape = batch;
  fill_inputs(host, graph, 9);
  EXPECT_EQ(outputs_of(host, graph), expected(graph, 9));
}

TEST(Delegate, LeavesOddNodesToTheHost) {
  const ir::Graph graph = convolution();
  const auto partitions_with = [&](auto damage) {
    const Plugin plugin(on_sim(kAnyWork));
    FakeHost host(graph);
    damage(host);
    EXPECT_EQ(host.apply(plugin.delegate), kTfLiteOk);
    return host.partitions();
  };
  const auto quant = [](FakeHost& host, int tensor) {
    return static_cast<TfLiteAffineQuantization*>(host.tensor(tensor).quantization.params);
  };
  EXPECT_EQ(partitions_with([](FakeHost&) {}), 1U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.node(0).builtin_data = nullptr; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { static_cast<TfLiteConvParams*>(h.node(0).builtin_data)->padding = 9; }),
            0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) {
              static_cast<TfLiteConvParams*>(h.node(0).builtin_data)->fused_activation_function = 99;
            }),
            0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { static_cast<TfLiteConvParams*>(h.node(0).builtin_data)->stride_w = 0; }),
            0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.registration(0).builtin_code = 12345; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.registration(0).builtin_code = kTfLiteBuiltinDelegate; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.node(0).inputs->data()[0] = 1000; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.node(0).outputs->data()[0] = -1; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.node(0).outputs->data()[0] = h.node(0).inputs->data()[0]; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.node(0).outputs->size = 0; }), 0U) << "nothing reads what it computes";
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.tensor(0).type = 20; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.tensor(0).type = -7; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.tensor(0).allocation_type = kTfLiteNonCpu; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.tensor(0).dims = nullptr; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.tensor(0).dims->data()[1] = -1; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.tensor(0).dims->data()[1] = 0x7fffffff; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.tensor(0).is_variable = true; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.tensor(1).quantization.type = 2; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.tensor(1).data = nullptr; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.tensor(1).bytes = 63; }), 0U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.tensor(1).sparsity = &h; }), 0U);
  EXPECT_EQ(partitions_with([&](FakeHost& h) { quant(h, 0)->zero_point->data()[0] = 300; }), 0U);
  EXPECT_EQ(partitions_with([&](FakeHost& h) { quant(h, 0)->scale = nullptr; }), 0U);
  // Odd, but harmless.
  EXPECT_EQ(partitions_with([&](FakeHost& h) { quant(h, 2)->quantized_dimension = 3; }), 1U);
  EXPECT_EQ(partitions_with([](FakeHost& h) { h.tensor(0).name = nullptr; }), 1U);
  EXPECT_EQ(partitions_with([&](FakeHost& h) { quant(h, 2)->zero_point = nullptr; }), 1U);
}

// The importer's fixes also apply to graphs from a host.
TEST(Delegate, Int8FiltersHaveNoZeroPoint) {
  const auto of = [](ir::OpKind kind, int32_t zero_point) {
    ir::Graph graph = convolution();
    for (ir::Tensor& tensor : graph.tensors) {
      if (tensor.dtype == ir::DType::uint8) tensor.dtype = ir::DType::int8, tensor.quant.zero_points = {0};
    }
    graph.tensor(1).quant.zero_points = {zero_point};
    graph.ops[0].kind = kind;
    if (kind == ir::OpKind::depthwise_conv_2d) graph.tensor(1).shape = {1, 1, 8, 8};
    return graph;
  };
  const Plugin refused(on_sim(kAnyWork));
  FakeHost host(of(ir::OpKind::conv_2d, 7));
  EXPECT_EQ(host.apply(refused.delegate), kTfLiteOk);
  EXPECT_EQ(host.partitions(), 0U);
  const ir::Graph graph = of(ir::OpKind::depthwise_conv_2d, 7);
  const Plugin taken(on_sim(kAnyWork));
  FakeHost ignoring(graph);
  EXPECT_EQ(ignoring.apply(taken.delegate), kTfLiteOk);
  EXPECT_EQ(ignoring.partitions(), 1U);
  fill_inputs(ignoring, graph, 9);
  EXPECT_EQ(outputs_of(ignoring, graph), expected(of(ir::OpKind::depthwise_conv_2d, 0), 9));
}

// Outputs of a partition that whole graphs do not have: the same tensor twice, an input, a read-only constant in the
// host's memory. The memory of an input may be that of an output, unless the host returns both.
TEST(Delegate, PartitionsReturnAnyTensor) {
  const ir::Graph graph = convolution();
  const auto in = graph.inputs[0], out = graph.outputs[0];
  constexpr int kFilter = 1;
  const struct {
    std::vector<int> outputs;
    bool one_place, right;
  } kRows[] = {
      {{out}, false, true},
      {{out}, true, true},
      {{out, in, out, kFilter}, false, true},
      {{out, in}, true, false},
  };
  for (const auto& row : kRows) {
    const auto state = std::make_shared<State>();
    state->target = std::move(runtime::open_target("sim:a311d")).value();
    FakeHost host(graph);
    auto kernel = Kernel::create(host.context(), state, {read_node(host.context(), 0).value()}, row.outputs);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ASSERT_TRUE((*kernel)->prepare(host.context()).ok());
    if (row.one_place) host.tensor(in).data = host.tensor(out).data;
    fill_inputs(host, graph, 6);
    const Bytes given(host.bytes(in).begin(), host.bytes(in).end());
    const auto ran = (*kernel)->invoke(host.context());
    ASSERT_EQ(ran.ok(), row.right);
    if (!row.right) continue;
    EXPECT_EQ(Bytes(host.bytes(out).begin(), host.bytes(out).end()), expected(graph, 6)[0]);
    EXPECT_TRUE(row.one_place || std::ranges::equal(host.bytes(in), given));
  }
}

TEST(Delegate, AllocatesNothingInTheSteadyState) {
  const Wrapped wrapped;
  FakeHost host(digits_in_two());
  ASSERT_EQ(host.apply(&wrapped.delegate->host), kTfLiteOk);
  ASSERT_EQ(host.partitions(), 2U);
  wrapped.chip->idle = true;
  const size_t before = allocation_count();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(host.invoke_partition(0), kTfLiteOk);
  EXPECT_EQ(allocation_count() - before, 0U);
}

TEST(Delegate, GoesOnWithoutItsDevice) {
  const ir::Graph graph = digits();
  const Wrapped wrapped;
  WrappedDevice& chip = *wrapped.chip;
  FakeHost host(graph);
  ASSERT_EQ(host.apply(&wrapped.delegate->host), kTfLiteOk);
  fill_inputs(host, graph, 4);
  EXPECT_EQ(outputs_of(host, graph), expected(graph, 4));
  chip.fail = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(outputs_of(host, graph), expected(graph, 4));
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("the chip is on fire"), std::string::npos);
  const int submits = chip.submits;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(outputs_of(host, graph), expected(graph, 4));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "said once";
  EXPECT_EQ(chip.submits, submits) << "a device that failed is left alone";
}

TEST(Delegate, LeavesAReportOfAPartThatFellBack) {
  const std::filesystem::path folder = own_path("bugs");
  std::filesystem::create_directory(folder);
  ASSERT_EQ(::setenv("SKILLET_BUG_DIR", folder.c_str(), 1), 0);
  const Wrapped wrapped;
  FakeHost host(digits());
  ASSERT_EQ(host.apply(&wrapped.delegate->host), kTfLiteOk);
  wrapped.chip->fail = true;
  for (int run = 0; run < 2; ++run) ASSERT_EQ(host.invoke(), kTfLiteOk);
  ::unsetenv("SKILLET_BUG_DIR");
  size_t reports = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++reports;
    const Bytes file = read_file(entry.path().string()).value();
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    for (const char* words : {"the chip is on fire", "chip      a311d", "part0.graph.txt", "part0.program.txt"})
      EXPECT_NE(text.find(words), std::string_view::npos) << words;
  }
  EXPECT_EQ(reports, host.partitions()) << "one a part, however often it runs";
  std::filesystem::remove_all(folder);
}

// Messages to the host and to stderr when a delegate is created.
struct Loaded {
  bool made;
  std::string host, said;
};

std::string g_host_heard;

Loaded load(const std::vector<KeyValue>& options) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : options) keys.push_back(key.c_str()), values.push_back(value.c_str());
  g_host_heard.clear();
  ::testing::internal::CaptureStderr();
  TfLiteDelegate* const delegate =
      create(keys.data(), values.data(), keys.size(), [](const char* text) { g_host_heard += text; });
  const bool made = delegate != nullptr;
  destroy(delegate);
  return {made, g_host_heard, ::testing::internal::GetCapturedStderr()};
}

// There is no NPU where tests run.
TEST(Delegate, WrongUseIsSaidWhenItIsLoaded) {
  const struct {
    std::vector<KeyValue> options;
    bool made;
    const char *host, *said;
  } kRows[] = {
      {{}, true, "", "no operation goes to an NPU"},
      {{{"device", "npu"}}, false, "no NPU here", "error: no NPU here"},
      {{{"require_npu", "1"}}, false, "no NPU here", "error: no NPU here"},
      {{{"require_npu", "maybe"}}, false, "no NPU here", "error: no NPU here"},
      {{{"require_npu", "0"}}, true, "", "no operation goes to an NPU"},
      {{{"require_npu", "1"}, {"device", "cpu"}}, false, "require_npu=1, but device=cpu", "require_npu=1"},
      {{{"strict", "1"}, {"device", "cpu"}}, false, "strict=1, but device=cpu", "strict=1"},
      {{{"require_npu", "1"}, {"device", "sim:toaster"}}, false, "no chip 'toaster'", "no chip 'toaster'"},
      {{{"require_npu", "1"}, {"device", "sim:a311d"}}, true, "", "device sim:a311d"},
      {{{"require_npu", "maybe"}, {"device", "sim:a311d"}}, true, "", "is present (0); taking 1"},
      {{{"profile", "maybe"}, {"device", "sim:a311d"}}, true, "", "(0); ignored"},
      {{{"switches", "+"}, {"device", "sim:a311d"}}, true, "", "option switches: '+' is not a valid value"},
      {{{"device", "a311d"}}, true, "did you mean 'sim:a311d'?", "did you mean 'sim:a311d'?"},
      {{{"devise", "cpu"}}, true, "", "unknown option 'devise'; did you mean 'device'?"},
      {{{"device", "sim:a311d"}, {"tuning_file", "/nonexistent.json"}},
       true,
       "",
       "option tuning_file: /nonexistent.json"},
      {{{"device", "sim:a311d"}, {"tuning_file", "/nonexistent.json"}, {"strict", "1"}},
       false,
       "option tuning_file",
       "option tuning_file: /nonexistent.json"},
      {{{"device", "sim:a311d"}, {"switches", "bogus"}}, true, "", "option switches: no tuning switch 'bogus'"},
      {{{"device", "sim:a311d"}, {"switches", "bogus"}, {"strict", "1"}}, false, "no tuning switch 'bogus'", "bogus"},
      {{{"device", "sim:a311d"}, {"switches", "share_transposes"}, {"strict", "1"}}, true, "", "device sim:a311d"},
  };
  for (const auto& row : kRows) {
    const Loaded loaded = load(row.options);
    EXPECT_EQ(loaded.made, row.made) << row.said;
    EXPECT_NE(loaded.host.find(row.host), std::string::npos) << loaded.host;
    EXPECT_NE(loaded.said.find(row.said), std::string::npos) << loaded.said;
  }
}

TEST(Delegate, EachHasItsOwnLog) {
  const auto said = [](const TfLiteDelegate* delegate) {
    FakeHost host(convolution());
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(host.apply(const_cast<TfLiteDelegate*>(delegate)), kTfLiteOk);
    return ::testing::internal::GetCapturedStderr();
  };
  const Plugin quiet(on_sim({{"log", "error"}})), plain(on_sim({})), loud(on_sim({{"log", "info"}}));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(said(quiet.delegate), "");
    EXPECT_NE(said(plain.delegate).find("ops claimed"), std::string::npos);
    EXPECT_EQ(said(plain.delegate).find("partition of"), std::string::npos);
    EXPECT_NE(said(loud.delegate).find("partition of"), std::string::npos);
  }
}

}  // namespace
}  // namespace skillet::delegate
