#include <fmt/ranges.h>

#include "runtime/toy_session.h"

namespace skillet::runtime {
namespace {

TEST_F(ToySession, RunsPartsInOrderAndConvertsLayouts) {
  auto session = open();
  ASSERT_NE(session, nullptr);
  for (uint8_t seed = 0; seed < 20; ++seed) EXPECT_EQ(run(*session, Inputs(seed)), Inputs(seed).expected());
  EXPECT_EQ(state_.runs, 60);
  EXPECT_EQ(state_.init_runs, 1) << "two programs on one device file";
  ASSERT_EQ(session->report().parts.size(), 3u);
  EXPECT_TRUE(session->report().parts[0].on_npu && !session->report().parts[1].on_npu);
  EXPECT_EQ(session->report().ops[2].reason, "the toy has no SLICE");
  EXPECT_EQ(session->programs(0).size(), 1U);
  EXPECT_TRUE(session->programs(1).empty());
}

// An initialisation runs once on a chip, unless another program's initialisation ran in between.
TEST_F(ToySession, EachInitialisationRunsOnce) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (const auto& [argument, init_runs] : {std::pair{0U, 1}, {3U, 2}, {3U, 2}, {0U, 2}, {4U, 3}}) {
    driver_.init_argument = argument;
    sessions.push_back(open());
    EXPECT_EQ(state_.init_runs, init_runs) << argument;
    EXPECT_EQ(run(*sessions.back(), Inputs(5)), Inputs(5).expected());
  }
  for (const auto& session : sessions) EXPECT_EQ(run(*session, Inputs(6)), Inputs(6).expected());
  EXPECT_EQ(state_.init_runs, 3);
}

TEST_F(ToySession, ExplainsItself) {
  ir::Graph graph = chain();
  for (size_t i = 0; i < graph.ops.size(); ++i) graph.ops[i].source_index = static_cast<int32_t>(i);
  const std::string text = explain(*open(std::move(graph), target()));
  EXPECT_TRUE(text.starts_with("3 of 4 operations on the NPU, 3 parts\n")) << text;
  EXPECT_NE(text.find("  op 2 SLICE -> 'a': the toy has no SLICE\n"), std::string::npos) << text;
}

TEST_F(ToySession, TheCpuTargetComputesTheSame) {
  auto session = Session::create(chain(), Target{.name = "cpu"});
  ASSERT_TRUE(session.ok()) << session.error().message;
  EXPECT_EQ(run(**session, Inputs(3)), Inputs(3).expected());
  EXPECT_EQ((*session)->tensor(kM).value(), Inputs(3).expected_m());
  EXPECT_TRUE((*session)->compare_layers().value().empty());
}

TEST_F(ToySession, AnErrorOfACpuKernelNamesItsOperationOnce) {
  auto graph = ir::parse(
      "graph \"rows\"\ntensor 0 \"i\" int32 1\ntensor 1 \"rows\" int8 2x1 scale=1 const=[1 2]\n"
      "tensor 2 \"out\" int8 1x1 scale=1\ninputs 0\noutputs 2\nop 0 GATHER in=[1 0] out=[2]\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  auto session = Session::create(*graph, Target{.name = "cpu"});
  ASSERT_TRUE(session.ok()) << session.error().message;
  ASSERT_TRUE((*session)->set_input(0, Bytes{7, 0, 0, 0}).ok());
  const auto ran = (*session)->run();
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().message, "op 0 GATHER -> 'out': index 7 is outside a dimension of 2");
}

TEST_F(ToySession, ReadsTensorsInsideTheNpuWhenTheyAreKept) {
  auto kept = open({.keep_intermediates = true});
  EXPECT_FALSE(kept->tensor(kM).ok()) << "nothing has run";
  run(*kept, Inputs(5));
  EXPECT_EQ(kept->tensor(kM).value(), Inputs(5).expected_m());
  EXPECT_EQ(kept->tensor(kR).value(), Inputs(5).expected()[0]);
  EXPECT_FALSE(kept->tensor(77).ok());
  auto plain = open();
  run(*plain, Inputs(5));
  EXPECT_EQ(plain->tensor(kM).error().code, ErrorCode::unsupported);
}

TEST_F(ToySession, CompareLayersLooksAtEveryElement) {
  for (const size_t at : {size_t{0}, size_t{1}, size_t{kElems} / 2, size_t{kElems} - 1}) {
    state_ = {.wrong_run = 0, .wrong_byte = at};
    auto session = open({.keep_intermediates = true});
    run(*session, Inputs(5));
    EXPECT_EQ(session->compare_layers().value().at(0).differing, 1) << at;
  }
}

TEST_F(ToySession, CompareLayersFindsTheOpThatIsWrong) {
  auto session = open({.keep_intermediates = true});
  state_.wrong_run = 0;  // the first MAXIMUM
  run(*session, Inputs(5));
  const auto diffs = session->compare_layers().value();
  ASSERT_EQ(diffs.size(), 3u);
  EXPECT_EQ(diffs[0].tensor, kM);
  EXPECT_TRUE(diffs[0].compared);
  EXPECT_EQ(diffs[0].elems, kElems);
  EXPECT_EQ(diffs[0].differing, 1);
  EXPECT_EQ(diffs[0].max_abs_diff, 1);
  // Later ops are compared on the NPU's own inputs: they are right.
  EXPECT_EQ(diffs[1].differing + diffs[2].differing, 0);
}

// MAXIMUM and RELU as if passes had written them for one operation: the result is compared as one.
TEST_F(ToySession, CompareLayersJudgesWhatWasWrittenAsSeveralAsOne) {
  ir::Graph graph = chain();
  for (size_t i = 0; i < graph.ops.size(); ++i) graph.ops[i].source_index = i < 2 ? 0 : static_cast<int32_t>(i);
  auto session = open(std::move(graph), target(), {.keep_intermediates = true});
  state_.wrong_run = 0;
  run(*session, Inputs(50));
  const auto diffs = session->compare_layers().value();
  ASSERT_EQ(diffs.size(), 3u);
  EXPECT_EQ(diffs[0].max_abs_diff, 1);
  EXPECT_FALSE(diffs[0].is_result);
  EXPECT_EQ(diffs[1].max_abs_diff, 0) << "RELU alone is right";
  EXPECT_TRUE(diffs[1].is_result);
  EXPECT_EQ(diffs[1].written_as, 2);
  EXPECT_EQ(diffs[0].place() + diffs[1].place() + diffs[2].place(), ", one of 2, last of 2");
  EXPECT_EQ(diffs[1].max_of_result, 1);
  EXPECT_EQ(diffs[1].differing_of_result, 1);
  EXPECT_TRUE(diffs[2].is_result);
  EXPECT_EQ(diffs[2].written_as, 1);
}

// RELU and SLICE as if passes had written them for one operation, of which the CPU computes a part.
TEST_F(ToySession, CompareLayersJudgesWhatTheCpusShareReads) {
  ir::Graph graph = chain();
  graph.outputs = {graph.outputs[1]};
  for (size_t i = 0; i < graph.ops.size(); ++i) graph.ops[i].source_index = i == 2 ? 1 : static_cast<int32_t>(i);
  auto session = open(std::move(graph), target(), {.keep_intermediates = true});
  run(*session, Inputs(50));
  const auto diffs = session->compare_layers().value();
  ASSERT_EQ(diffs.size(), 3u);
  for (const LayerDiff& one : diffs) EXPECT_TRUE(one.compared && one.is_result) << one.op;
  EXPECT_EQ(diffs[0].place() + diffs[1].place() + diffs[2].place(), ", one of 2") << "the CPU has the last";
}

// The model's input there was computed by the part before: the NPU's own tensor is used, not the CPU's.
TEST_F(ToySession, CompareLayersKnowsWhatEarlierPartsHaveMade) {
  ir::Graph model = chain();
  model.ops[0].kind = ir::OpKind::minimum;
  model.ops.erase(model.ops.begin() + 2);
  model.ops[2].inputs[0] = kM;
  auto session = open({.keep_intermediates = true});
  run(*session, Inputs(50));
  const auto diffs = session->compare_layers(&model).value();
  ASSERT_EQ(diffs.size(), 3u);
  EXPECT_GT(diffs[0].max_of_result, 0) << "m is the larger one here";
  EXPECT_TRUE(diffs[2].compared && diffs[2].is_result);
  EXPECT_EQ(diffs[2].max_of_result, 0) << "z = max(m, K)";
}

// Passes may have rewritten a result: it is compared with the model's own operation on the NPU's inputs.
TEST_F(ToySession, CompareLayersJudgesResultsByTheModel) {
  ir::Graph model = chain();
  model.ops[0].kind = ir::OpKind::minimum;
  for (const bool keep : {true, false}) {
    auto session = open({.keep_intermediates = keep});
    run(*session, Inputs(50));
    const auto diffs = session->compare_layers(&model).value();
    ASSERT_EQ(diffs.size(), 3u);
    EXPECT_EQ(diffs[0].compared, keep);
    EXPECT_EQ(diffs[0].max_of_result > 0, keep);
    EXPECT_EQ(diffs[1].max_of_result > 0, !keep) << "of the nearest tensors that the NPU has made";
    EXPECT_EQ(diffs[0].max_abs_diff + diffs[1].max_abs_diff, 0) << "what was given is as compiled";
    EXPECT_EQ(diffs[2].max_of_result, 0);
  }
}

// A batch of two images, each computed separately, named as by split_batches(). In the model m is the smaller one.
TEST_F(ToySession, CompareLayersFindsTheImagesOfABatch) {
  const auto tensor = [](std::string name, int32_t images) {
    ir::Tensor t{.name = std::move(name), .dtype = ir::DType::uint8, .shape = {images, kHeight, kWidth, kChannels}};
    t.quant = {.scales = {0.5F}, .zero_points = {100}};
    return t;
  };
  const auto op = [](ir::OpKind kind, std::vector<ir::TensorId> inputs, std::vector<ir::TensorId> outputs,
                     ir::Attrs attrs) {
    return ir::Op{.kind = kind, .attrs = std::move(attrs), .inputs = std::move(inputs), .outputs = std::move(outputs)};
  };
  ir::Graph model("batch");
  for (const char* name : {"x", "y", "m", "z"}) model.add_tensor(tensor(name, 2));
  model.inputs = {0, 1}, model.outputs = {3};
  ir::Graph graph = model;
  model.add_op(op(ir::OpKind::minimum, {0, 1}, {2}, ir::default_attrs(ir::OpKind::minimum)));
  model.add_op(op(ir::OpKind::relu, {2}, {3}, {}));
  ir::Tensor axis{.name = "axis", .dtype = ir::DType::int32, .shape = {}};
  ir::set_constant(axis, Bytes(4, 0));
  const ir::TensorId zero = graph.add_tensor(std::move(axis));
  std::vector<std::vector<ir::TensorId>> images(4);
  for (size_t t = 0; t < 4; ++t)
    for (int32_t i = 0; i < 2; ++i)
      images[t].push_back(graph.add_tensor(tensor(fmt::format("{}/image{}", graph.tensors[t].name, i), 1)));
  for (const ir::TensorId input : {0, 1})
    graph.add_op(op(ir::OpKind::split, {zero, input}, images[static_cast<size_t>(input)], ir::SplitAttrs{2}));
  for (size_t i : {0, 1})
    graph.add_op(
        op(ir::OpKind::maximum, {images[0][i], images[1][i]}, {images[2][i]}, ir::default_attrs(ir::OpKind::maximum)));
  for (size_t i : {0, 1}) graph.add_op(op(ir::OpKind::relu, {images[2][i]}, {images[3][i]}, {}));
  graph.add_op(op(ir::OpKind::concatenation, images[3], {3}, ir::ConcatAttrs{.axis = 0}));
  auto session = open(std::move(graph), target(), {.keep_intermediates = true});
  const Bytes x(2 * kElems, 120);
  Bytes y(2 * kElems, 121);
  std::fill(y.begin() + kElems, y.end(), 125);
  const std::vector<std::span<const uint8_t>> inputs = {x, y};
  ASSERT_TRUE(session->run(inputs).ok());
  const auto diffs = session->compare_layers(&model).value();
  ASSERT_EQ(diffs.size(), 4U);
  for (const LayerDiff& one : diffs) EXPECT_TRUE(one.is_result && one.max_abs_diff == 0);
  EXPECT_EQ(diffs[0].max_of_result, 1);
  EXPECT_EQ(diffs[1].max_of_result, 5);
  EXPECT_EQ(diffs[2].max_of_result + diffs[3].max_of_result, 0) << "of the NPU's own images";
}

TEST_F(ToySession, CompareLayersBridgesTensorsThatWereNotKept) {
  auto session = open();
  run(*session, Inputs(5));
  const auto diffs = session->compare_layers().value();
  ASSERT_EQ(diffs.size(), 3u);
  EXPECT_FALSE(diffs[0].compared);
  EXPECT_TRUE(diffs[1].compared && diffs[2].compared);
  EXPECT_EQ(diffs[1].differing, 0);
}

TEST_F(ToySession, FallsBackWhenTheDeviceFails) {
  auto session = open();
  state_.fault = true;
  EXPECT_EQ(run(*session, Inputs(1)), Inputs(1).expected());
  EXPECT_NE(session->report().parts[0].fallback.find("the toy broke"), std::string::npos);
  EXPECT_TRUE(session->report().parts[1].fallback.empty());
  state_.fault = false;
  EXPECT_EQ(run(*session, Inputs(2)), Inputs(2).expected());
  EXPECT_EQ(state_.runs, 0) << "a part that failed stays on the CPU";
  EXPECT_EQ(session->tensor(kM).value(), Inputs(2).expected_m());
}

TEST_F(ToySession, FallsBackWhenTheDriverRefuses) {
  driver_.refuse_compile = true;
  auto session = open();
  EXPECT_EQ(run(*session, Inputs(1)), Inputs(1).expected());
  EXPECT_EQ(session->report().ops[0].reason, "the compiler: the toy refuses");
  EXPECT_FALSE(session->report().parts[0].on_npu);
}

TEST_F(ToySession, WithoutFallbackFailuresAreErrors) {
  driver_.refuse_compile = true;
  EXPECT_EQ(cause(Session::create(chain(), target(), {.allow_fallback = false})), "part 0 (2 ops): the toy refuses");
  driver_.refuse_compile = false;
  auto session = open({.allow_fallback = false});
  state_.fault = true;
  const auto ran = session->run();
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, ErrorCode::fault);
  EXPECT_EQ(ran.error().message, "toy: part 0 (2 ops): job 'm': sim:toy: the toy broke");
}

TEST_F(ToySession, UnprovenOpsAreTakenWhereTheyAreNotRefused) {
  driver_.unproven = true;
  const auto places = [&](const SessionOptions& options) {
    auto session = open(options);
    EXPECT_EQ(run(*session, Inputs(4)), Inputs(4).expected());
    std::string text;
    for (const compile::OpPlace& op : session->report().ops) text += op.on_npu ? 'N' : 'C';
    const bool npu = session->report().ops[0].on_npu;
    EXPECT_EQ(session->report().ops[0].unproven, npu);
    EXPECT_EQ(session->report().ops[0].reason,
              npu ? "the toy was never made" : "the toy was never made (unproven on silicon, unproven=refuse)");
    return text;
  };
  EXPECT_EQ(places({.compile = {.unproven = npu::Unproven::refuse}}), "CNCC");
  EXPECT_EQ(places({.compile = {.unproven = npu::Unproven::take}}), "NNCN");
}

TEST_F(ToySession, RefusesProgramsThatDoNotFitTheGraph) {
  driver_.wrong_binding = true;
  const auto session = Session::create(chain(), target(), {.allow_fallback = false});
  EXPECT_NE(cause(session).find("elements reach to byte 24 of 23"), std::string::npos) << cause(session);
}

TEST_F(ToySession, RefusesProgramsOfOtherChips) {
  const Target& here = target();
  here.context->chip = "lathe";
  const auto session = Session::create(chain(), here, {.allow_fallback = false});
  EXPECT_EQ(cause(session), "toy: part 0 (2 ops): the program is for chip 'toy', the device has 'lathe'");
}

TEST_F(ToySession, RefusesProgramsThatDoNotBindEachInputAndOutput) {
  const ir::Graph graph = chain_of_one();
  const npu::Program whole = driver_.compile({}, graph, {}).value();
  const auto refusal = [&](const std::function<void(npu::Program&)>& change) {
    npu::Program program = whole;
    change(program);
    const auto loaded = LoadedProgram::load(target().context, std::move(program), graph, std::chrono::seconds(1));
    return loaded.ok() ? "" : loaded.error().message;
  };
  EXPECT_EQ(refusal([](npu::Program&) {}), "");
  EXPECT_EQ(refusal([](npu::Program& p) { p.inputs.clear(); }), "program does not bind tensor 0 'x' uint8 1x3x2x4");
  EXPECT_EQ(refusal([](npu::Program& p) { p.outputs.clear(); }), "program does not bind tensor 1 'y' uint8 1x3x2x4");
  EXPECT_EQ(refusal([](npu::Program& p) { p.outputs.push_back(p.inputs[0]); }),
            "program binds tensor 0 'x' uint8 1x3x2x4, which is neither an input nor an output of the graph");
  // The buffer that contains the commands, by the first job.
  const npu::BufferId commands = whole.jobs[0].commands[0].buffer;
  const std::string& name = whole.buffers[commands].name;
  EXPECT_EQ(refusal([&](npu::Program& p) { p.buffers[commands].relocations.push_back({.target = commands}); }),
            fmt::format("{}: byte 0: '{}' has no address on sim:toy", name, name));
  EXPECT_EQ(refusal([](npu::Program& p) { p.jobs[0].commands.push_back(p.jobs[0].commands[0]); }),
            fmt::format("job '{}': 2 lists of commands; sim:toy takes one", whole.jobs[0].name));
}

// As in the graph, or in blocks of 2x2. The same number of bytes in any other shape is none of its tensors.
TEST_F(ToySession, RefusesProgramsThatBindOtherShapes) {
  const npu::ImageShape image{.height = 2, .width = 6, .channels = 2};
  ir::Graph graph = chain_of_one();
  npu::Program whole = driver_.compile({}, graph, {}).value();
  for (ir::Tensor& tensor : graph.tensors) tensor.shape = {1, 2, 6, 2};
  for (auto* list : {&whole.inputs, &whole.outputs, &whole.intermediates}) {
    for (npu::TensorBinding& one : *list) one.shape = image, one.layout = npu::nhwc_layout(image);
  }
  const auto refusal = [&](const npu::ImageShape& shape, const npu::TensorLayout& layout) {
    npu::Program program = whole;
    program.inputs[0].shape = shape, program.inputs[0].layout = layout;
    const auto checked = check_program(program, "toy", graph);
    return checked.ok() ? "" : checked.error().message;
  };
  const npu::ImageShape blocks = npu::in_blocks(image).value();
  EXPECT_EQ(refusal(image, npu::nhwc_layout(image)), "");
  EXPECT_EQ(refusal(blocks, npu::blocks_layout(blocks, 8)), "");
  const npu::ImageShape others[] = {
      {.images = 2, .height = 1, .width = 6, .channels = 2},  {.images = 1, .height = 6, .width = 2, .channels = 2},
      {.images = 1, .height = 2, .width = 2, .channels = 6},  {.images = 1, .height = 4, .width = 3, .channels = 2},
      {.images = 2, .height = 2, .width = 3, .channels = 2},  {.images = 1, .height = 1, .width = 1, .channels = 24},
      {.images = 24, .height = 1, .width = 1, .channels = 1}, {.images = 1, .height = 2, .width = 6, .channels = 1}};
  for (const npu::ImageShape& s : others) {
    EXPECT_EQ(refusal(s, npu::nhwc_layout(s)),
              fmt::format("program binds tensor 0 'x' uint8 1x2x6x2 as {}x{}x{}x{}, 1 bytes each", s.images, s.height,
                          s.width, s.channels));
  }
  EXPECT_NE(refusal({.height = 2, .width = 3, .channels = 2, .elem_bytes = 2}, npu::nhwc_layout(blocks)), "");
  // An odd number of rows has no blocks.
  for (ir::Tensor& tensor : graph.tensors) tensor.shape = {1, 3, 2, 4};
  EXPECT_NE(refusal(blocks, npu::blocks_layout(blocks, 8)).find("1x3x2x4 as 1x2x3x4"), std::string::npos);
}

TEST_F(ToySession, RefusesWrongInputs) {
  auto session = open();
  const Bytes short_input(kElems - 1);
  EXPECT_EQ(session->set_input(0, short_input).error().message,
            "input 0: 23 bytes given, tensor 0 'x' uint8 1x3x2x4 takes 24");
  for (const size_t beyond : {size_t{2}, size_t{3}, SIZE_MAX})
    EXPECT_NE(session->set_input(beyond, Bytes(kElems)).error().message.find(fmt::format("no input {}", beyond)),
              std::string::npos);
  EXPECT_EQ(session->run(std::span<const std::span<const uint8_t>>{}).error().message,
            "0 inputs given, the model has 2");
  EXPECT_EQ(session->output(0).error().message, "nothing has run yet");
  ASSERT_TRUE(session->run().ok());
  EXPECT_TRUE(session->output(0).ok());
  const size_t count = session->graph().outputs.size();
  EXPECT_TRUE(session->output(count - 1).ok());
  for (const size_t beyond : {count, count + 1, SIZE_MAX}) {
    const auto output = session->output(beyond);
    ASSERT_FALSE(output.ok()) << beyond;
    EXPECT_EQ(output.error().message, fmt::format("no output {}; the model has {}", beyond, count));
  }
}

TEST_F(ToySession, FreesItsBuffers) {
  { auto session = open(); }
  const auto handle = target_.context->device->alloc(1).value();
  EXPECT_EQ(target_.context->device->address(handle).value(), 0x00400000u);
}

TEST(Relocate, ShiftsChecksAndKeepsOtherBits) {
  struct Case {
    npu::Relocation relocation;
    uint64_t address;
    Bytes before;
    std::string after;  // hex, or the error
  };
  const npu::Relocation field{.target_offset_bytes = 0x40, .lsb = 4, .width_bits = 8, .shift = 6};
  const npu::Relocation command{.at_byte = 2, .width_bits = 32};  // the value of a 64-bit register command
  const npu::Relocation wide{.at_byte = 1, .lsb = 4, .width_bits = 40};
  const Case cases[] = {
      {field, 0x3F80, {0x05, 0xEF, 0xCD, 0xAB}, "f5efcdab"},
      {field, 0x3F81, {0, 0, 0, 0}, "address 0x3fc1 is not a multiple of 64"},
      {field, 0x4000, {0, 0, 0, 0}, "address 0x4040 >> 6 does not fit 8 bits"},
      {{}, 0xFFFFFFFF, {7, 0, 0, 0}, "ffffffff"},
      {{}, 0x100000000, {7, 0, 0, 0}, "address 0x100000000 >> 0 does not fit 32 bits"},
      {command, 0x12345678, {1, 2, 3, 4, 5, 6, 7, 8}, "0102785634120708"},
      {wide, 0xFEDCBA9876, {9, 0xFF, 9, 9, 9, 9, 9, 9}, "096f87a9cbed0f09"},
      {{.width_bits = 64}, 0x1122334455667788, Bytes(8), "8877665544332211"},
  };
  for (const Case& c : cases) {
    Bytes bytes = c.before;
    const auto done = relocate(bytes, c.relocation, c.address);
    EXPECT_EQ(done.ok() ? fmt::format("{:02x}", fmt::join(bytes, "")) : done.error().message, c.after);
  }
}

TEST(OpenTarget, NamesWhatThereIs) {
  EXPECT_EQ(open_target("cpu")->driver, nullptr);
  EXPECT_EQ(open_target("toaster").error().code, ErrorCode::invalid_argument);
  EXPECT_NE(open_target("sim:toaster").error().message.find("no chip 'toaster'"), std::string::npos);
  const auto missing_node = open_target("/dev/toaster");
  ASSERT_FALSE(missing_node.ok());
  EXPECT_EQ(missing_node.error().code, ErrorCode::io);
  EXPECT_NE(missing_node.error().message.find("/dev/toaster"), std::string::npos);
}

TEST_F(ToySession, RunsOnMemoryOfTheCaller) {
  auto session = open();
  const Inputs inputs(5);
  std::vector<Bytes> outputs(2, Bytes(kElems));
  const std::span<const uint8_t> in[] = {inputs.x, inputs.y};
  const std::span<uint8_t> out[] = {outputs[0], outputs[1]};
  auto ran = session->run_on(in, out);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  EXPECT_EQ(outputs, inputs.expected());
  EXPECT_EQ(run(*session, Inputs(9)), Inputs(9).expected()) << "its own memory is in use again";

  const std::span<uint8_t> too_short[] = {outputs[0], std::span(outputs[1]).first(3)};
  ran = session->run_on(in, too_short);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message.find("3 bytes given"), std::string::npos) << ran.error().message;
  EXPECT_EQ(run(*session, inputs), inputs.expected()) << "nothing stays borrowed after an error";
  for (const size_t i : {0, 1}) {
    std::span<const uint8_t> short_in[] = {inputs.x, inputs.y};
    std::span<uint8_t> short_out[] = {outputs[0], outputs[1]};
    short_in[i] = short_in[i].first(4);
    short_out[i] = short_out[i].first(5);
    for (const auto& [failed, given] : {std::pair{session->run_on(short_in, out), "4 bytes given"},
                                        std::pair{session->run_on(in, short_out), "5 bytes given"}}) {
      ASSERT_FALSE(failed.ok()) << i;
      EXPECT_TRUE(failed.error().message.starts_with(given)) << failed.error().message;
    }
  }
}

}  // namespace
}  // namespace skillet::runtime
