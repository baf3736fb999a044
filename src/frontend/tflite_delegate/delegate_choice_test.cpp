// Tests which nodes the delegate claims if ops do not compile or are unproven.
#include <array>
#include <cstring>
#include <set>

#include "frontend/tflite_delegate/testing/cases.h"

namespace skillet::delegate {
namespace {

// A driver whose compiler refuses the operation that computes one tensor.
class PickyDriver : public npu::Driver {
 public:
  PickyDriver(const npu::Driver& inner, std::string refused) : inner_(inner), refused_(std::move(refused)) {}
  std::string_view name() const override { return inner_.name(); }
  std::span<const npu::Chip> chips() const override { return inner_.chips(); }
  Result<npu::Chip> identify(const capture::DeviceInfo& info) const override { return inner_.identify(info); }
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return inner_.supports(chip, graph, op);
  }
  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override {
    for (const ir::Op& op : graph.ops) {
      if (graph.tensor(op.outputs[0]).name == refused_) return error(ErrorCode::out_of_range, "it does not fit");
    }
    return inner_.compile(chip, graph, options);
  }
  Result<npu::Annotated> decode_as(const npu::Chip& chip, const capture::Submission& submission,
                                   npu::Detail detail) const override {
    return inner_.decode_as(chip, submission, detail);
  }

 private:
  const npu::Driver& inner_;
  std::string refused_;
};

std::set<int> claimed(const FakeHost& host) {
  std::set<int> nodes;
  for (size_t i = 0; i < host.partitions(); ++i) {
    for (const int node : host.partition(i)) nodes.insert(node);
  }
  return nodes;
}

// A network so small that with transfers the NPU is slower than four CPU cores, but faster than one. Results are the
// same for each division, because the host's and the NPU's are equal here.
TEST(Delegate, DividesByPredictedTimeWhereItIsTold) {
  using compile::PartitionBy;
  const ir::Graph graph = digits();
  const struct {
    std::optional<PartitionBy> partition;
    std::optional<uint64_t> min_macs_per_byte;
    std::optional<int> host_threads;
    bool claims;
    int num_threads = 0;  // of the host
  } kRows[] = {{PartitionBy::all, {}, 4, true},
               {PartitionBy::work, {}, 4, true},
               {{}, 4, {}, true},
               {PartitionBy::work, 1'000'000, 1, false},
               {{}, 1'000'000, {}, false},
               {Options().session.partition, {}, {}, true},
               {Options().session.partition, {}, {}, true, -1},
               {Options().session.partition, {}, {}, true, 1},
               {Options().session.partition, {}, {}, false, 4},
               {PartitionBy::predicted, {}, 1, true, 4},
               {PartitionBy::predicted, {}, 1, true},
               {PartitionBy::predicted, 0, 4, false},
               {PartitionBy::predicted, {}, 64, false}};
  for (const auto& row : kRows) {
    for (const bool simulated : {false, true}) {
      Wrapped wrapped;
      wrapped.state->options.session.partition = row.partition;
      wrapped.state->options.session.min_macs_per_byte = row.min_macs_per_byte;
      if (row.host_threads) wrapped.state->options.session.host_threads = row.host_threads;
      wrapped.state->options.host_threads_given = row.host_threads.has_value();
      wrapped.state->target.simulated = simulated;
      FakeHost host(graph);
      host.context()->recommended_num_threads = row.num_threads;
      EXPECT_EQ(host.apply(&wrapped.delegate->host), kTfLiteOk);
      fill_inputs(host, graph, 8);
      EXPECT_EQ(outputs_of(host, graph), expected(graph, 8));
      EXPECT_EQ(!claimed(host).empty(), row.claims) << &row - kRows;
    }
  }
}

// Keras' Input((None, None, 3)): a prediction for 1x1 would never claim anything.
TEST(Delegate, PredictsNothingOfSizesThatAreFree) {
  const auto graph = tflite::import_file(skillet::in_tree("tests/models/free/free_sizes_u8.tflite"));
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const struct {
    std::vector<int> signature;  // of the input; its length first
    std::optional<compile::PartitionBy> partition;
    bool claims;
  } kRows[] = {{{4, -1, -1, -1, 3}, {}, true},
               {{4, -1, 1, -1, 3}, {}, true},
               {{4, -1, 1, 1, 3}, {}, false},
               {{4, 1, 1, 1, 3}, {}, false},
               {{0}, {}, false},
               {{3, -1, 1, 1}, {}, false},
               {{4, -1, 1, 1, 3}, compile::PartitionBy::all, true}};
  for (const auto& row : kRows) {
    Wrapped wrapped;
    wrapped.state->options.session.partition = row.partition.value_or(compile::PartitionBy::predicted);
    FakeHost host(*graph);
    host.tensor(graph->inputs[0]).dims_signature = reinterpret_cast<const TfLiteIntArray*>(row.signature.data());
    EXPECT_EQ(host.apply(&wrapped.delegate->host), kTfLiteOk);
    fill_inputs(host, *graph, 8);
    EXPECT_EQ(outputs_of(host, *graph), expected(*graph, 8));
    EXPECT_EQ(!claimed(host).empty(), row.claims) << &row - kRows;
  }
}

// Tensors for two consecutive operations.
ir::Graph of_two_ops() {
  ir::Graph graph("two");
  for (const char* name : {"in", "between", "out"})
    graph.add_tensor({.name = name,
                      .dtype = ir::DType::uint8,
                      .shape = {1, 4, 4, 8},
                      .quant = {.scales = {1.0F}, .zero_points = {0}}});
  graph.inputs = {0}, graph.outputs = {2};
  return graph;
}

// The reason is not the first operation that stays, but the second one, which the NPU could take.
TEST(Delegate, SaysWhatTheNpuWouldTakeWhereNothingIsClaimed) {
  ir::Graph graph = of_two_ops();
  graph.add_op({.kind = ir::OpKind::softmax, .attrs = ir::SoftmaxAttrs{}, .inputs = {0}, .outputs = {1}});
  graph.add_op({.kind = ir::OpKind::relu, .attrs = {}, .inputs = {1}, .outputs = {2}});
  Wrapped wrapped;
  wrapped.state->options.session.partition = compile::PartitionBy::predicted;
  ::testing::internal::CaptureStderr();
  FakeHost host(graph);
  EXPECT_EQ(host.apply(&wrapped.delegate->host), kTfLiteOk);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(host.partitions(), 0U);
  EXPECT_NE(said.find("such as op 1 RELU: "), std::string::npos) << said;
  EXPECT_NE(said.find("(partition=all takes it anyway)\n"), std::string::npos) << said;
}

// The host runs variables and calls: they are not named as a reason, and no advice is given.
TEST(Delegate, SaysNothingOfVariablesThatTheHostRuns) {
  for (const bool has_network : {false, true}) {
    ir::Graph graph = of_two_ops();
    for (const ir::TensorId id : {0, 1}) {
      ir::Op op{.kind = ir::OpKind::opaque, .opaque_name = id == 0 ? "VAR_HANDLE" : "CALL_ONCE"};
      op.attrs = ir::default_attrs(ir::OpKind::opaque);
      if (has_network && id == 1) op = {.kind = ir::OpKind::softmax, .attrs = ir::SoftmaxAttrs{}};
      op.inputs = {id}, op.outputs = {id + 1};
      graph.add_op(std::move(op));
    }
    Wrapped wrapped;
    ::testing::internal::CaptureStderr();
    FakeHost host(graph);
    EXPECT_EQ(host.apply(&wrapped.delegate->host), kTfLiteOk);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("variables are not supported"), std::string::npos) << said;
    EXPECT_EQ(said.find("such as op 0"), std::string::npos) << said;
    EXPECT_EQ(said.find("nothing is claimed, such as op 1 SOFTMAX") != std::string::npos, has_network) << said;
  }
}

TEST(Delegate, SaysOptionsThatCountForNothing) {
  using compile::PartitionBy;
  const auto none = [](const char*) -> const char* { return nullptr; };
  EXPECT_EQ(parse_options({{"partition", "predicted"}}, none).session.partition, PartitionBy::predicted);
  EXPECT_EQ(parse_options({}, none).session.partition, PartitionBy::predicted);
  EXPECT_EQ(parse_options({}, none).session.host_threads, 1);
  EXPECT_FALSE(parse_options({}, none).host_threads_given);
  EXPECT_EQ(parse_options({{"host_threads", "3"}}, none).session.host_threads, 3);
  EXPECT_TRUE(parse_options({{"host_threads", "3"}}, none).host_threads_given);
  const struct {
    std::vector<KeyValue> given;
    PartitionBy by;
    size_t problems;
  } kRows[] = {{{}, PartitionBy::predicted, 0},
               {{{"min_macs_per_byte", "0"}}, PartitionBy::work, 0},
               {{{"partition", "predicted"}, {"min_macs_per_byte", "9"}}, PartitionBy::predicted, 0},
               {{{"min_macs_per_byte", "9"}, {"partition", "all"}}, PartitionBy::all, 1},
               {{{"host_threads", "2"}, {"partition", "work"}}, PartitionBy::work, 1},
               {{{"host_threads", "2"}, {"partition", "predicted"}}, PartitionBy::predicted, 0},
               {{{"host_threads", "2"}, {"min_macs_per_byte", "1"}, {"partition", "all"}}, PartitionBy::all, 2}};
  for (const auto& row : kRows) {
    const Options options = parse_options(row.given, none);
    EXPECT_EQ(runtime::partition_of(options.session), row.by) << &row - kRows;
    EXPECT_EQ(options.problems.size(), row.problems) << &row - kRows;
  }
  EXPECT_EQ(parse_options({{"partition", "auto"}}, none).problems.size(), 1U);
}

TEST(Delegate, LeavesOutTheOpThatDoesNotCompile) {
  const ir::Graph graph = digits();
  const auto claimed_by = [&](const npu::Driver* driver) {
    Wrapped wrapped;
    wrapped.state->options.session.partition = compile::PartitionBy::all;
    if (driver != nullptr) wrapped.state->target.driver = driver;
    FakeHost host(graph);
    EXPECT_EQ(host.apply(&wrapped.delegate->host), kTfLiteOk);
    fill_inputs(host, graph, 8);
    EXPECT_EQ(outputs_of(host, graph), expected(graph, 8));
    return claimed(host);
  };
  const std::set<int> all = claimed_by(nullptr);
  ASSERT_GT(all.size(), 5U);
  const npu::Driver& real = *runtime::open_target("sim:a311d")->driver;
  for (const int node : all) {
    const PickyDriver picky(real, graph.tensor(graph.op(node).outputs[0]).name);
    std::set<int> others = all;
    others.erase(node);
    // Alone it needs no job.
    std::erase_if(others, [&](int one) {
      const ir::Op& op = graph.op(one);
      return op.kind == ir::OpKind::reshape && op.inputs[0] == graph.op(node).outputs[0];
    });
    EXPECT_EQ(claimed_by(&picky), others) << node;
  }
}

// Images that are not square are unproven.
TEST(Delegate, UnprovenOpsAreTakenWhereTheyAreNotRefused) {
  ir::Graph graph = convolution();
  for (const ir::TensorId id : {graph.inputs[0], graph.outputs[0]}) graph.tensor(id).shape = {1, 6, 5, 8};
  const auto partitions = [&](npu::Unproven unproven) {
    Wrapped wrapped;
    wrapped.state->options.session.partition = compile::PartitionBy::all;
    wrapped.state->options.session.compile.unproven = unproven;
    FakeHost host(graph);
    EXPECT_EQ(host.apply(&wrapped.delegate->host), kTfLiteOk);
    fill_inputs(host, graph, 8);
    EXPECT_EQ(outputs_of(host, graph), expected(graph, 8));
    return host.partitions();
  };
  EXPECT_EQ(partitions(npu::Unproven::refuse), 0U);
  EXPECT_EQ(partitions(npu::Unproven::verify), 1U);
  EXPECT_EQ(partitions(npu::Unproven::take), 1U);
}

TEST(Delegate, SummaryCountsUnprovenOperations) {
  for (const bool square : {true, false}) {
    ir::Graph graph = convolution();
    for (const ir::TensorId id : {graph.inputs[0], graph.outputs[0]})
      graph.tensor(id).shape = {1, 6, square ? 6 : 5, 8};
    const auto state = std::make_shared<State>();
    state->target = std::move(runtime::open_target("sim:a311d")).value();
    state->options.session.partition = compile::PartitionBy::all;
    FakeHost host(graph);
    auto kernel = Kernel::create(host.context(), state, {read_node(host.context(), 0).value()}, {graph.outputs[0]});
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ASSERT_TRUE((*kernel)->prepare(host.context()).ok());
    EXPECT_EQ((*kernel)->summary().find("1 ops, 1 jobs, "), 0U) << (*kernel)->summary();
    EXPECT_EQ((*kernel)->summary().find(", 1 unproven op ") == std::string::npos, square) << (*kernel)->summary();
  }
}

// The host's profiler, which records events.
class HostProfiler final : public TfLiteProfiler {
 public:
  struct Event {
    std::string tag;
    uint64_t us = 0;
    int64_t node = -1;
  };
  uint32_t BeginEvent(const char*, int, int64_t, int64_t) override { return 0; }
  void EndEvent(uint32_t, int64_t, int64_t) override {}
  void EndEvent(uint32_t) override {}
  void AddEvent(const char* tag, int type, uint64_t us, int64_t node, int64_t) override {
    EXPECT_EQ(type, kDelegateProfiledOperator);
    events.push_back({tag, us, node});
  }
  void AddEventWithData(const char*, int, const void*) override {}

  std::vector<Event> events;
};

TEST(DelegateProfile, TellsEachOperationWhereItIsAskedTo) {
  const ir::Graph graph = digits_in_two();
  for (const bool asked : {false, true}) {
    auto state = std::make_shared<State>();
    state->options.session.partition = compile::PartitionBy::all;
    state->options.profile = asked;
    auto target = runtime::open_target("sim:a311d");
    ASSERT_TRUE(target.ok()) << target.error().message;
    state->target = std::move(target).value();
    const std::unique_ptr<Delegate> delegate = make_delegate(std::move(state));
    EXPECT_EQ((delegate->host.flags & kTfLiteDelegateFlagsPerOperatorProfiling) != 0, asked);
    HostProfiler profiler;
    FakeHost host(graph);
    host.context()->profiler = &profiler;
    ASSERT_EQ(host.apply(&delegate->host), kTfLiteOk);
    fill_inputs(host, graph, 1);
    ASSERT_EQ(host.invoke(), kTfLiteOk);
    std::set<int> told;
    uint64_t us = 0;
    for (const HostProfiler::Event& one : profiler.events) {
      told.insert(static_cast<int>(one.node));
      us += one.us;
      EXPECT_EQ(one.tag, fmt::format("Skillet NPU {}", ir::op_name(graph.op(static_cast<ir::OpId>(one.node)))));
    }
    EXPECT_EQ(told, asked ? claimed(host) : std::set<int>());
    EXPECT_EQ(us > 0, asked);
    host.context()->profiler = nullptr;  // a host without a profiler
    EXPECT_EQ(host.invoke(), kTfLiteOk);
  }
}

// The convolution and a RESHAPE to a shape from an integer input, as FLATTEN is exported for a dynamic batch.
ir::Graph pixels(int32_t batch) {
  ir::Graph graph = convolution();
  graph.tensor(graph.inputs[0]).shape = graph.tensor(graph.outputs[0]).shape = {batch, 1, 1, 8};
  return graph;
}
ir::Graph flattened() {
  ir::Graph graph = pixels(1);
  ir::Tensor flat = graph.tensor(graph.outputs[0]);
  flat.name = "flat", flat.shape = {1, 8};
  const ir::TensorId from = graph.outputs[0], to = graph.add_tensor(flat);
  const auto shape = graph.add_tensor({.name = "shape", .dtype = ir::DType::int32, .shape = {2}, .owner = {}});
  graph.inputs.push_back(shape);
  graph.outputs = {to};
  graph.add_op({.kind = ir::OpKind::reshape, .attrs = ir::ReshapeAttrs{}, .inputs = {from, shape}, .outputs = {to}});
  return graph;
}

// Claims all operations that an RK3588 takes.
std::unique_ptr<Delegate> taking_all() {
  auto state = std::make_shared<State>();
  state->target = std::move(runtime::open_target("sim:rk3588")).value();
  state->options.session.partition = compile::PartitionBy::all;
  return make_delegate(state);
}

TEST(Delegate, TakesShapesThatComeWithTheRun) {
  const ir::Graph graph = flattened();
  const std::unique_ptr<Delegate> delegate = taking_all();
  FakeHost host(graph);
  ASSERT_EQ(host.apply(&delegate->host), kTfLiteOk);
  ASSERT_EQ(host.partitions(), 1U);
  ASSERT_EQ(host.partition(0).size(), 2U) << "RESHAPE too";
  const auto run = [&](int32_t rows, int32_t columns) {
    const std::array<int32_t, 2> shape = {rows, columns};
    fill_inputs(host, graph, 9);
    std::memcpy(host.bytes(graph.inputs[1]).data(), shape.data(), sizeof shape);
    return host.invoke();
  };
  for (const int32_t batch : {1, 2, 4, 3, 1}) {
    const Bytes want = expected(pixels(batch), 9)[0];
    host.resize(graph.inputs[0], {batch, 1, 1, 8});
    ASSERT_EQ(host.prepare(), kTfLiteOk) << batch << ": " << host.errors.at(0);
    std::vector<int32_t> rows_of = {batch};
    if (batch == 4) rows_of = {4, 2, 4};  // another shape in the same run
    for (const int32_t rows : rows_of) {
      ASSERT_EQ(run(rows, 8 * batch / rows), kTfLiteOk) << batch << ": " << host.errors.at(0);
      const TfLiteTensor& out = host.tensor(graph.outputs[0]);
      EXPECT_EQ(out.dims->data()[0], rows);
      EXPECT_EQ(out.dims->data()[1], 8 * batch / rows);
      const auto got = host.bytes(graph.outputs[0]);
      EXPECT_EQ(Bytes(got.begin(), got.end()), want) << batch;
    }
  }
  host.resize(graph.inputs[0], {2, 1, 1, 8});
  ASSERT_EQ(host.prepare(), kTfLiteOk);
  EXPECT_EQ(run(5, 7), kTfLiteError) << "no shape for so many values";
  EXPECT_NE(host.errors.back().find("16 values do not fit the new shape 5x7"), std::string::npos) << host.errors.back();
}

// As Keras exports "flatten" for a dynamic batch: the new shape is {the batch, -1}, computed from the image's shape.
// `outside`: the host needs that shape too.
ir::Graph flattened_by_batch(bool outside) {
  ir::Graph graph = flattened();
  graph.inputs.pop_back();
  const auto add = [&](const char* name, ir::Shape shape, std::initializer_list<int32_t> values = {}) {
    const ir::TensorId id = graph.add_tensor({.name = name, .dtype = ir::DType::int32, .shape = shape, .owner = {}});
    const std::vector<int32_t> list(values);
    const auto* bytes = reinterpret_cast<const uint8_t*>(list.data());
    if (!list.empty()) ir::set_constant(graph.tensor(id), Bytes(bytes, bytes + list.size() * sizeof(int32_t)));
    return id;
  };
  const ir::TensorId image = graph.ops[0].outputs[0], shape = graph.ops[1].inputs[1];
  const ir::TensorId all = add("all", {4}), batch = add("batch", {});
  const ir::TensorId begin = add("begin", {1}, {0}), end = add("end", {1}, {1}), step = add("step", {1}, {1});
  const ir::TensorId rest = add("rest", {}, {-1});
  const auto reshape = graph.ops[1];
  graph.ops.pop_back();
  graph.add_op({.kind = ir::OpKind::shape, .attrs = ir::NoAttrs{}, .inputs = {image}, .outputs = {all}});
  ir::StridedSliceAttrs slice;
  slice.shrink_axis_mask = 1;
  graph.add_op(
      {.kind = ir::OpKind::strided_slice, .attrs = slice, .inputs = {all, begin, end, step}, .outputs = {batch}});
  graph.add_op({.kind = ir::OpKind::pack,
                .attrs = ir::PackAttrs{.axis = 0, .count = 2},
                .inputs = {batch, rest},
                .outputs = {shape}});
  graph.add_op(reshape);
  if (outside) graph.outputs.push_back(shape);
  return graph;
}

// Sizes of 0 run as in the host's own kernels; then a normal size again.
TEST(Delegate, TakesBatchesAndPicturesOfNothing) {
  ir::Graph graph = convolution();
  Wrapped wrapped;
  wrapped.state->options.session.partition = compile::PartitionBy::all;
  FakeHost host(graph);
  ASSERT_EQ(host.apply(&wrapped.delegate->host), kTfLiteOk);
  for (const ir::Shape& shape :
       {ir::Shape{0, 6, 6, 8}, ir::Shape{1, 0, 6, 8}, ir::Shape{1, 6, 6, 8}, ir::Shape{0, 0, 0, 8}}) {
    host.resize(graph.inputs[0], shape);
    ASSERT_EQ(host.prepare(), kTfLiteOk) << shape.to_string();
    EXPECT_TRUE(std::ranges::equal(elements(host.tensor(graph.outputs[0]).dims), shape.dims)) << shape.to_string();
    graph.tensor(graph.inputs[0]).shape = graph.tensor(graph.outputs[0]).shape = shape;
    fill_inputs(host, graph, 9);
    if (shape.elems() != 0) {
      EXPECT_EQ(outputs_of(host, graph), expected(graph, 9));
    } else {
      EXPECT_EQ(outputs_of(host, graph), (std::vector<Bytes>{{}}));
    }
  }
}

// Small shapes are computed as soon as the batch is known: with the graph, or after a resize.
TEST(Delegate, KnowsShapesThatAreComputedFromShapes) {
  for (const bool outside : {false, true}) {
    const ir::Graph graph = flattened_by_batch(outside);
    const std::unique_ptr<Delegate> delegate = taking_all();
    FakeHost host(graph);
    ASSERT_EQ(host.apply(&delegate->host), kTfLiteOk);
    EXPECT_EQ(claimed(host), outside ? std::set({0, 4}) : std::set({0, 1, 2, 3, 4}));
    EXPECT_EQ(host.partitions(), outside ? 2U : 1U);
    for (const int32_t batch : {1, 2, 4, 3, 1}) {
      host.resize(graph.inputs[0], {batch, 1, 1, 8});
      ASSERT_EQ(host.prepare(), kTfLiteOk) << batch << ": " << host.errors.at(0);
      const TfLiteTensor& out = host.tensor(graph.outputs[0]);
      ASSERT_EQ(out.dims->size, 2);
      EXPECT_EQ(out.dims->data()[0], batch) << "what follows is prepared with it";
      EXPECT_EQ(out.dims->data()[1], 8);
      fill_inputs(host, graph, 9);
      ASSERT_EQ(host.invoke(), kTfLiteOk) << batch << ": " << host.errors.at(0);
      const auto got = host.bytes(graph.outputs[0]);
      EXPECT_EQ(Bytes(got.begin(), got.end()), expected(pixels(batch), 9)[0]) << batch;
    }
  }
}

// A tensor of which only the shape is read, by the host: after a resize it may have no elements.
TEST(Delegate, LeavesWhatOnlyShapesOfTheHostAreReadOf) {
  for (const bool outside : {false, true}) {
    ir::Graph graph = flattened_by_batch(outside);
    ir::Op twin = graph.ops[0];
    const ir::TensorId same = graph.add_tensor(graph.tensor(twin.outputs[0]));
    twin.outputs = graph.ops[1].inputs = {same};
    graph.ops.insert(graph.ops.begin() + 1, twin);
    const std::unique_ptr<Delegate> delegate = taking_all();
    FakeHost host(graph);
    ASSERT_EQ(host.apply(&delegate->host), kTfLiteOk);
    EXPECT_EQ(claimed(host), outside ? std::set({0, 5}) : std::set({0, 1, 2, 3, 4, 5}));
  }
}

}  // namespace
}  // namespace skillet::delegate
