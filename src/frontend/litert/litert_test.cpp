// Both halves of the plug-in with the tables of a fake host: claimed operations, bytes of a part, and results.
#include <gtest/gtest.h>

#include <climits>
#include <cstdlib>
#include <map>
#include <utility>

#include "frontend/litert/subgraph.h"
#include "frontend/litert/testing/fake_host.h"
#include "runtime/session.h"

extern "C" {
skillet::litert::Status LiteRtCompilerPluginQueryInterface(int id, skillet::litert::Version version, const void** out);
skillet::litert::Status LiteRtDispatchQueryInterface(int id, skillet::litert::Version version, const void** out);
skillet::litert::Status LiteRtDispatchGetApi(skillet::litert::DispatchApi* out);
}

namespace skillet::litert {
namespace {

ir::Graph parsed(const std::string& text) { return ir::parse(text).value(); }

constexpr const char* kPart = R"(graph ""
tensor 0 "in" uint8 1x8x8x8 scale=0.5 zero=128
tensor 1 "filter" uint8 8x3x3x8 scale=0.25 zero=120 const=random:1
tensor 2 "bias" int32 8 scale=0.125 zero=0 const=[1 2 3 4 5 6 7 8]
tensor 3 "between" uint8 1x8x8x8 scale=40 zero=100
tensor 4 "filter2" uint8 8x1x1x8 scale=0.25 zero=100 const=random:2
tensor 5 "bias2" int32 8 scale=10 zero=0 const=[8 7 6 5 4 3 2 1]
tensor 6 "out" uint8 1x8x8x8 scale=4000 zero=100
inputs 0
outputs 6
op 0 CONV_2D in=[0 1 2] out=[3] activation=relu
op 1 CONV_2D in=[3 4 5] out=[6] padding=valid
)";

ir::Graph with_softmax() {
  ir::Graph graph = parsed(kPart);
  graph.add_tensor({.name = "soft", .dtype = ir::DType::uint8, .shape = {1, 8, 8, 8}, .quant = {{1.0F / 256}, {0}}});
  graph.add_op({.kind = ir::OpKind::softmax, .attrs = ir::SoftmaxAttrs{}, .inputs = {6}, .outputs = {7}});
  graph.ops.back().source_index = 2;
  graph.outputs = {7};
  return graph;
}

class Plugin : public testing::Test {
 protected:
  void SetUp() override {
    setenv("SKILLET_DEVICE", "sim:a311d", 1);
    setenv("SKILLET_PARTITION", "all", 1);
    const void* table = nullptr;
    ASSERT_EQ(LiteRtCompilerPluginQueryInterface(kBasicInterface, kQueryVersion, &table), kOk);
    compiler = static_cast<const CompilerTable*>(table);
    ASSERT_EQ(LiteRtDispatchQueryInterface(kBasicInterface, kQueryVersion, &table), kOk);
    dispatch = &static_cast<const DispatchQueryTable*>(table)->functions;
  }
  void TearDown() override {
    unsetenv("SKILLET_DEVICE");
    unsetenv("SKILLET_PARTITION");
  }

  Bytes compiled(const char* soc) {
    Compiler* made = nullptr;
    CompiledParts* parts = nullptr;
    const ir::Graph graph = parsed(kPart);
    HostSubgraph part(graph);
    HostModel model{{&part}};
    EXPECT_EQ(compiler->create(&context, &made, nullptr, nullptr), kOk);
    EXPECT_EQ(compiler->compile(made, soc, &model, &parts), kOk);
    size_t count = 0, size = 0, module = 9;
    const void *bytes = nullptr, *name = nullptr;
    EXPECT_EQ(compiler->num_byte_codes(parts, &count), kOk);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(compiler->call_info(parts, 0, &name, &size, &module), kOk);
    EXPECT_EQ(std::string(static_cast<const char*>(name), size), "skillet_0");
    EXPECT_EQ(module, 0u);
    EXPECT_EQ(compiler->byte_code(parts, 0, &bytes, &size), kOk);
    EXPECT_EQ(compiler->byte_code(parts, 1, &bytes, &size), kInvalid);
    const auto* first = static_cast<const uint8_t*>(bytes);
    Bytes out(first, first + size);
    compiler->destroy_result(parts);
    compiler->destroy(made);
    return out;
  }

  Status create(const Bytes& bytes, int num_inputs, Invocation** out, const char* name = "skillet_0",
                int num_outputs = 1) {
    const MemBuffer memory{-1, bytes.data(), 0, bytes.size(), 0};
    return dispatch->create_invocation(&runtime, device, 2, &memory, name, num_inputs, num_outputs, out);
  }

  FakeTable context = compiler_context(), runtime = runtime_context();
  const CompilerTable* compiler = nullptr;
  const DispatchTable* dispatch = nullptr;
  Device* device = nullptr;
};

TEST_F(Plugin, ReadsWhatTheHostHas) {
  const ir::Graph graph = with_softmax();
  HostSubgraph subgraph(graph);
  const auto read = read_subgraph(Table(&context), &subgraph);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ir::print(read->graph), ir::print(graph));
  for (const std::string& refusal : read->refusals) EXPECT_EQ(refusal, "");
  // If the table ends before an operation's parameters, the operation stays with the host.
  FakeTable shorter = context;
  shorter.header.struct_size = 368;
  const auto less = read_subgraph(Table(&shorter), &subgraph);
  ASSERT_TRUE(less.ok());
  EXPECT_NE(less->refusals[0].find("does not report its padding"), std::string::npos) << less->refusals[0];
  // So do operations on tensors with more dimensions than the host's struct can hold.
  static const FakeTable* plain = nullptr;
  plain = &context;
  FakeTable deeper = context;
  deeper.set(
      kRankedType, +[](HostTensor* from, RankedType* out) {
        const Status status = Table(plain).call(kRankedType, from, out);
        if (!from->tensor->is_constant()) out->rank = 9;
        return status;
      });
  const auto none = read_subgraph(Table(&deeper), &subgraph);
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_NE(none->refusals[0].find("it has 9 dimensions"), std::string::npos) << none->refusals[0];
  // So does an operation that contradicts itself; the others do not.
  ir::Graph odd = graph;
  odd.tensor(6).shape = {1, 8, 8, 7};
  HostSubgraph of_odd(odd);
  const auto some = read_subgraph(Table(&context), &of_odd);
  ASSERT_TRUE(some.ok()) << some.error().message;
  EXPECT_EQ(some->refusals[0], "");
  EXPECT_NE(some->refusals[1], "");
}

// Memory that is no header is a pointer or zero.
TEST(Table, IsKnownByItsHeader) {
  const auto is_known = [](AbiHeader header) { return Table(&header).is_known(); };
  EXPECT_TRUE(is_known({.struct_size = 256, .major = kMajor, .minor = 255, .reserved = 0}));
  for (const AbiHeader& header :
       {AbiHeader{248, kMajor, 0, 0}, AbiHeader{257, kMajor, 0, 0}, AbiHeader{256, kMajor, 256, 0},
        AbiHeader{256, kMajor, 0, 1}, AbiHeader{256, kMajor + 1, 0, 0}, AbiHeader{256, kMajor - 1, 0, 0}})
    EXPECT_FALSE(is_known(header)) << header.struct_size << " " << header.major << "." << header.minor;
  EXPECT_FALSE(Table(nullptr).is_known());
}

// LiteRT's table has the parameters of all pools in one order.
TEST(Slots, OfPoolsAreInOneOrder) {
  std::map<ir::OpKind, std::map<std::string, int>> places;
#define SLOT(kind, field, at) places[ir::OpKind::kind][#field] = at;
#include "frontend/litert/slots.def"
#undef SLOT
  using enum ir::OpKind;
  for (const ir::OpKind kind : {average_pool_2d, max_pool_2d, l2_pool_2d}) {
    int at = places[kind]["padding"];
    for (const char* field : {"padding", "stride_w", "stride_h", "filter_w", "filter_h", "activation"})
      EXPECT_EQ(std::exchange(at, at + 8), places[kind][field]) << static_cast<int>(kind) << ' ' << field;
  }
}

TEST_F(Plugin, ReadsAFreeBatchAsOneImage) {
  ir::Graph graph = parsed(kPart);
  for (const ir::TensorId id : {0, 3, 6}) graph.tensor(id).shape.dims[0] = -1;
  HostSubgraph subgraph(graph);
  const auto read = read_subgraph(Table(&context), &subgraph);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ir::print(read->graph), ir::print(parsed(kPart)));
  for (const std::string& refusal : read->refusals) EXPECT_EQ(refusal, "");
}

TEST_F(Plugin, LeavesWeightsThatAreShuffled) {
  const ir::Graph graph = parsed(R"(graph ""
tensor 0 "in" uint8 1x8 scale=0.5 zero=128
tensor 1 "weights" uint8 4x8 scale=0.25 zero=120 const=random:1
tensor 2 "out" uint8 1x4 scale=40 zero=100
inputs 0
outputs 2
op 0 FULLY_CONNECTED in=[0 1 -] out=[2]
)");
  HostSubgraph subgraph(graph);
  for (const bool is_shuffled : {false, true}) {
    constexpr uint16_t kWeightsFormat = 536;
    if (is_shuffled)
      context.set(
          Slot<HostOp*, uint32_t*>{kWeightsFormat}, +[](HostOp*, uint32_t* out) {
            *out = 1;
            return kOk;
          });
    const auto read = read_subgraph(Table(&context), &subgraph);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->refusals[0], is_shuffled ? "weights format 1" : "");
  }
}

// Says whether a number of 32 bits may be the value of a field of this type.
struct MayBe {
  uint32_t number;
  bool operator()(bool) const { return number <= 1; }
  bool operator()(ir::Padding) const { return number <= 1; }
  bool operator()(ir::Activation) const { return number <= static_cast<uint32_t>(ir::Activation::sign_bit); }
  template <typename T>
  bool operator()(const T&) const {
    return true;
  }
};

// A host of another version may have other numbers in an attribute's place.
template <typename F>
void expect_refusals(FakeTable host, ir::OpKind kind, std::string_view field, uint16_t at, const F& type) {
  if constexpr (!std::is_same_v<F, std::vector<int32_t>>) {
    static uint32_t number = 0;
    const ir::Op op{.kind = kind, .attrs = ir::default_attrs(kind)};
    HostOp host_op{.op = &op, .inputs = {}, .outputs = {}};
    host.set(
        Slot<HostOp*, uint32_t*>{at}, +[](HostOp*, uint32_t* out) {
          *out = number;
          return kOk;
        });
    const uint32_t highest = static_cast<uint32_t>(ir::Activation::sign_bit);
    for (const uint32_t one : {0U, 1U, 2U, 3U, highest, highest + 1, 255U, 256U, 1U << 31}) {
      number = one;
      const auto read = read_attrs(Table(&host), &host_op, kind);
      EXPECT_EQ(read.ok(), MayBe{one}(type)) << ir::op_kind_name(kind) << " " << field << " " << one;
      const std::string said = read.ok() ? fmt::format(" {}", one) : read.error().message;
      EXPECT_TRUE(said.ends_with(fmt::format(" {}", one))) << said;
    }
  }
}

TEST_F(Plugin, RefusesFlagsAndEnumerationsThatItDoesNotKnow) {
#define SLOT(kind, field, at) \
  expect_refusals(context, ir::OpKind::kind, #field, at, ir::AttrsOf<ir::OpKind::kind>{}.field);
#include "frontend/litert/slots.def"
#undef SLOT
}

// The host forms parts only of operations that follow each other.
TEST_F(Plugin, DividesWhatAnotherOperationStandsBetween) {
  ir::Graph graph = parsed(kPart);
  graph.add_tensor({.name = "soft", .dtype = ir::DType::uint8, .shape = {1, 8, 8, 8}, .quant = {{1.0F / 256}, {0}}});
  graph.ops.insert(graph.ops.begin() + 1,
                   {.kind = ir::OpKind::softmax, .attrs = ir::SoftmaxAttrs{}, .inputs = {0}, .outputs = {7}});
  for (size_t i = 0; i < graph.ops.size(); ++i) graph.ops[i].source_index = static_cast<int32_t>(i);
  graph.outputs.push_back(7);
  HostSubgraph subgraph(graph);
  Compiler* made = nullptr;
  HostOpList list;
  ASSERT_EQ(compiler->create(&context, &made, nullptr, nullptr), kOk);
  EXPECT_EQ(compiler->partition(made, nullptr, &subgraph, &list), kOk);
  ASSERT_EQ(list.ops.size(), 2U);
  EXPECT_EQ(list.ops[0], std::pair(&subgraph.ops[0], size_t{0}));
  EXPECT_EQ(list.ops[1], std::pair(&subgraph.ops[2], size_t{1}));
  compiler->destroy(made);
}

TEST_F(Plugin, TakesPartsOfWhatTheChipTakes) {
  const ir::Graph graph = with_softmax();
  HostSubgraph subgraph(graph);
  for (const char* soc : {static_cast<const char*>(nullptr), "rk3588"}) {
    Compiler* made = nullptr;
    HostOpList list;
    ASSERT_EQ(compiler->create(&context, &made, nullptr, nullptr), kOk);
    EXPECT_EQ(compiler->partition(made, soc, &subgraph, &list), kOk);
    ASSERT_EQ(list.ops.size(), 2u);
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(list.ops[i], std::pair(&subgraph.ops[i], size_t{0}));
    EXPECT_EQ(compiler->partition(made, "none", &subgraph, &list), kCompilation);
    compiler->destroy(made);
  }
}

// The host runs its own kernels unless a part cannot be loaded.
TEST_F(Plugin, IsAnErrorWithoutTheNpuThatIsRequired) {
  const ir::Graph graph = with_softmax();
  HostSubgraph subgraph(graph);
  HostModel model{{&subgraph}};
  setenv("SKILLET_DEVICE", "sim:toaster", 1);
  for (const bool is_required : {false, true}) {
    if (is_required) setenv("SKILLET_REQUIRE_NPU", "1", 1);
    Compiler* made = nullptr;
    HostOpList list;
    CompiledParts* parts = nullptr;
    ASSERT_EQ(compiler->create(&context, &made, nullptr, nullptr), kOk);
    EXPECT_EQ(compiler->partition(made, nullptr, &subgraph, &list), kOk);
    EXPECT_EQ(list.ops.size(), is_required ? 1U : 0U);
    EXPECT_EQ(compiler->compile(made, nullptr, &model, &parts), is_required ? kOk : kCompilation);
    EXPECT_EQ(parts != nullptr, is_required);
    if (parts != nullptr) compiler->destroy_result(parts);
    compiler->destroy(made);
  }
  EXPECT_EQ(dispatch->create_device(&runtime, nullptr, &device), kFailed);
  unsetenv("SKILLET_REQUIRE_NPU");
}

TEST_F(Plugin, ComputesWhatASessionDoes) {
  const ir::Graph graph = parsed(kPart);
  const auto target = runtime::open_target("sim:a311d").value();
  const auto session = runtime::Session::create(graph, target).value();
  Bytes input(512);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<uint8_t>(i * 37);
  const std::vector<std::span<const uint8_t>> inputs = {input};
  const Bytes want = session->run(inputs).value()[0];
  ASSERT_EQ(dispatch->initialize(&runtime, nullptr, nullptr), kOk);
  ASSERT_EQ(dispatch->create_device(&runtime, nullptr, &device), kOk);
  for (const char* soc : {static_cast<const char*>(nullptr), "a311d", "rk3588"}) {
    Invocation* one = nullptr;
    ASSERT_EQ(create(compiled(soc), 1, &one), kOk);
    HostBuffer in{input}, out{Bytes(512)}, small{Bytes(511)};
    HostRequirements needs;
    HostRequirements* at = &needs;
    EXPECT_EQ(dispatch->output_requirements(one, 0, nullptr, &at), kOk);
    const ir::Tensor& tensor = graph.tensor(graph.inputs[0]);
    HostTensor asked{&tensor, {}, {}, {}};
    RankedType type{};
    ASSERT_EQ(Table(&context).call(kRankedType, &asked, &type), kOk);
    EXPECT_EQ(dispatch->input_requirements(one, 0, &type, &at), kOk);
    RankedType free = type, resized = type, retyped = type;
    free.dims[0] = -1;
    EXPECT_EQ(dispatch->input_requirements(one, 0, &free, &at), kOk);
    resized.dims[0] = 2;
    EXPECT_EQ(dispatch->input_requirements(one, 0, &resized, &at), kUnsupported) << "the host has resized it";
    constexpr int kInt8 = 9;  // TensorFlow Lite's number; as many bytes as a uint8
    retyped.element_type = kInt8;
    EXPECT_EQ(dispatch->input_requirements(one, 0, &retyped, &at), kUnsupported);
    EXPECT_EQ(dispatch->output_requirements(one, 0, &retyped, &at), kUnsupported);
    EXPECT_EQ(needs.bytes, 512u);
    uint64_t handle = 0;
    EXPECT_EQ(dispatch->register_buffer(device, &small, &handle), kOk);
    EXPECT_NE(dispatch->attach_input(one, 0, handle), kOk);
    EXPECT_EQ(dispatch->register_buffer(device, &in, &handle), kOk);
    EXPECT_EQ(dispatch->attach_input(one, 0, handle), kOk);
    for (const int index : {-1, 1, 2, INT_MAX}) {  // the network has one input and one output
      EXPECT_EQ(dispatch->input_requirements(one, index, nullptr, &at), kInvalid) << index;
      EXPECT_EQ(dispatch->output_requirements(one, index, nullptr, &at), kInvalid) << index;
      EXPECT_EQ(dispatch->attach_input(one, index, handle), kInvalid) << index;
      EXPECT_EQ(dispatch->attach_output(one, index, handle), kInvalid) << index;
      EXPECT_EQ(dispatch->detach_input(one, index, handle), kInvalid) << index;
      EXPECT_EQ(dispatch->detach_output(one, index, handle), kInvalid) << index;
    }
    EXPECT_EQ(dispatch->invoke(one), kFailed) << "no output is attached";
    EXPECT_EQ(dispatch->register_buffer(device, &out, &handle), kOk);
    EXPECT_EQ(dispatch->attach_output(one, 0, handle), kOk);
    EXPECT_EQ(dispatch->invoke(one), kOk);
    EXPECT_EQ(out.bytes, want);
    EXPECT_EQ(in.locks + out.locks, 0);
    EXPECT_EQ(dispatch->destroy_invocation(one), kOk);
  }
  dispatch->destroy_device(device);
}

TEST_F(Plugin, RefusesWhatItDoesNotKnow) {
  ASSERT_EQ(dispatch->create_device(&runtime, nullptr, &device), kOk);
  Invocation* one = nullptr;
  Bytes bytes = compiled(nullptr);
  EXPECT_EQ(create(bytes, 2, &one), kWrongBytes);
  for (const int outputs : {0, 2}) EXPECT_EQ(create(bytes, 1, &one, "skillet_0", outputs), kWrongBytes);
  bytes.pop_back();
  EXPECT_EQ(create(bytes, 1, &one), kWrongBytes);
  EXPECT_EQ(create({}, 1, &one), kWrongBytes);
  EXPECT_EQ(create(compiled(nullptr), 1, &one, "skillet_1"), kWrongBytes) << "of another part of the model";
  EXPECT_EQ(one, nullptr);
  dispatch->destroy_device(device);
  context.header.major = runtime.header.major = kMajor + 1;
  Compiler* made = nullptr;
  EXPECT_EQ(compiler->create(&context, &made, nullptr, nullptr), kWrongVersion);
  EXPECT_EQ(dispatch->initialize(&runtime, nullptr, nullptr), kWrongVersion);
  EXPECT_EQ(dispatch->create_device(&runtime, nullptr, &device), kWrongVersion);
  const void* table = nullptr;
  EXPECT_EQ(LiteRtCompilerPluginQueryInterface(1, kQueryVersion, &table), kUnsupported);
  EXPECT_EQ(LiteRtDispatchQueryInterface(kBasicInterface, {0, 9, 0}, &table), kUnsupported);
  DispatchApi api{};
  EXPECT_EQ(LiteRtDispatchGetApi(&api), kWrongVersion) << "older hosts give no header";
}

}  // namespace
}  // namespace skillet::litert
