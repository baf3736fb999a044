// The delegate and libskillet_c.so in one process, each with its own device: tensors in memory of the C interface. The
// C library is loaded at run time, as from Python: the delegate does not link to it.
#include "frontend/tflite_delegate/c_api_buffers.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/testing/in_tree.h"
#include "frontend/tflite_delegate/plugin.h"
#include "frontend/tflite_delegate/testing/allocations.h"
#include "frontend/tflite_delegate/testing/fake_host.h"
#include "graph/import/import.h"
#include "kernels/fake/simulated.h"

namespace skillet::delegate {
namespace {

constexpr size_t kGap = 1024;  // between input and output

struct CApi {
  void* library = ::dlopen(SKILLET_C_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  skillet_device* device = nullptr;

  CApi() { EXPECT_EQ(get<decltype(skillet_open)>("skillet_open")("sim:a311d", &device), SKILLET_OK); }
  ~CApi() {
    get<decltype(skillet_close)>("skillet_close")(device);
    ::dlclose(library);
  }
  CApi(const CApi&) = delete;
  CApi& operator=(const CApi&) = delete;
  template <typename F>
  F* get(const char* name) const {
    EXPECT_NE(library, nullptr) << SKILLET_C_LIBRARY;
    return reinterpret_cast<F*>(::dlsym(library, name));
  }
  uint8_t* alloc(size_t bytes) const {
    void* data = nullptr;
    EXPECT_EQ(get<decltype(skillet_buffer_alloc)>("skillet_buffer_alloc")(device, bytes, &data, nullptr), SKILLET_OK);
    return static_cast<uint8_t*>(data);
  }
  void free(void* data) const {
    EXPECT_EQ(get<decltype(skillet_buffer_free)>("skillet_buffer_free")(device, data), SKILLET_OK);
  }
};

// A model of one input, one output and one partition behind the delegate.
struct OnHost {
  ir::Graph graph;
  TfLiteDelegate* delegate = nullptr;
  std::unique_ptr<FakeHost> host, own;  // `own`: the same model, with tensors in the host's memory

  explicit OnHost(const std::string& model) {
    auto read = tflite::import_file(skillet::in_tree("tests/") + model);
    EXPECT_TRUE(read.ok()) << read.error().message;
    graph = std::move(read).value();
    const char* keys[] = {"device", "min_macs_per_byte", "log"};
    const char* values[] = {"sim:a311d", "0", "debug"};
    delegate = create(keys, values, 3, nullptr);
    host = apply();
    own = apply();
  }
  ~OnHost() {
    host.reset(), own.reset();
    destroy(delegate);
  }
  std::unique_ptr<FakeHost> apply() const {
    auto made = std::make_unique<FakeHost>(graph);
    EXPECT_EQ(made->apply(delegate), kTfLiteOk);
    EXPECT_EQ(made->partitions(), 1U);
    return made;
  }
  size_t in_bytes() const { return static_cast<size_t>(graph.tensor(graph.inputs[0]).bytes()); }
  size_t out_bytes() const { return static_cast<size_t>(graph.tensor(graph.outputs[0]).bytes()); }
  size_t both() const { return in_bytes() + kGap + out_bytes(); }

  // Invokes with the tensors at these addresses; returns the delegate's log.
  std::string run(uint8_t* in, uint8_t* out, uint8_t seed) const {
    host->tensor(graph.inputs[0]).data = in;
    host->tensor(graph.outputs[0]).data = out;
    const auto own_in = own->bytes(graph.inputs[0]);
    for (size_t i = 0; i < own_in.size(); ++i) in[i] = own_in[i] = static_cast<uint8_t>(i * 29 + seed);
    EXPECT_EQ(own->invoke_partition(0), kTfLiteOk);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(host->invoke_partition(0), kTfLiteOk) << (host->errors.empty() ? "" : host->errors[0]);
    const std::string said = ::testing::internal::GetCapturedStderr();
    const auto expected = own->bytes(graph.outputs[0]);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out)) << "seed " << int{seed};
    return said;
  }
};

std::string copies(size_t bytes) { return fmt::format("copies {} bytes", bytes); }
bool has(const std::string& said, size_t bytes) { return said.find(copies(bytes)) != std::string::npos; }

constexpr const char* kUint8 = "captures/a311d_conv1x1_relu6_u8/model.tflite";

TEST(DelegateCApiBuffers, Uint8IsNotCopied) {
  const OnHost test(kUint8);
  Bytes in(test.in_bytes()), out(test.out_bytes());
  EXPECT_TRUE(has(test.run(in.data(), out.data(), 1), in.size() + out.size())) << "the library is not there yet";

  const CApi api;
  uint8_t* data = api.alloc(test.both());
  ASSERT_EQ(test.host->prepare(), kTfLiteOk);
  EXPECT_TRUE(has(test.run(data, data + in.size() + kGap, 2), 0));
  EXPECT_EQ(data[in.size() + kGap - 1], 0) << "nothing but the tensor is written";
  EXPECT_EQ(test.run(data, data + in.size() + kGap, 3), "") << "as before";
  EXPECT_TRUE(has(test.run(in.data(), data, 4), in.size()));
  EXPECT_TRUE(has(test.run(data, out.data(), 5), out.size()));
  EXPECT_TRUE(has(test.run(data + 3, out.data(), 6), in.size() + out.size())) << "not at a multiple of 64";
  EXPECT_TRUE(has(test.run(data, data + in.size() + kGap, 7), 0)) << "back";
  api.free(data);
  EXPECT_TRUE(has(test.run(in.data(), out.data(), 8), in.size() + out.size()));
}

TEST(DelegateCApiBuffers, FreedMemoryIsForgotten) {
  const CApi api;
  const OnHost test(kUint8);
  uint8_t* first = api.alloc(test.both());
  ASSERT_EQ(test.host->prepare(), kTfLiteOk);
  const size_t out_at = test.in_bytes() + kGap;
  EXPECT_TRUE(has(test.run(first, first + out_at, 1), 0));
  // Another buffer at the same address, if the kernel selects it again; Linux does.
  api.free(first);
  uint8_t* second = api.alloc(test.both());
  if (second != first) log::write(log::Level::info, "the same address did not come again: tested without it");
  EXPECT_EQ(test.run(second, second + out_at, 2), "") << "still nothing copied";
  // Then memory of another kind.
  api.free(second);
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  void* plain = ::mmap(second, test.both(), PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (plain != second) GTEST_SKIP() << "no memory at a chosen address, as in some emulators";
  EXPECT_TRUE(has(test.run(second, second + out_at, 3), test.in_bytes() + test.out_bytes()));
  ASSERT_EQ(::munmap(plain, test.both()), 0);
}

// The application closes its device without freeing buffers, and one kernel is destroyed while another one stays.
TEST(DelegateCApiBuffers, SurviveEachOther) {
  auto api = std::make_unique<CApi>();
  const OnHost test(kUint8);
  const size_t out_at = test.in_bytes() + kGap;
  uint8_t* data = api->alloc(test.both());
  ASSERT_EQ(test.host->prepare(), kTfLiteOk);
  EXPECT_TRUE(has(test.run(data, data + out_at, 1), 0));
  test.apply().reset();
  EXPECT_EQ(test.run(data, data + out_at, 2), "") << "imported again";
  api.reset();
  Bytes in(test.in_bytes()), out(test.out_bytes());
  EXPECT_TRUE(has(test.run(in.data(), out.data(), 3), in.size() + out.size()));
}

TEST(DelegateCApiBuffers, Int8TakesOneCopy) {
  const CApi api;
  const OnHost test("models/fc64x10_i8.tflite");
  uint8_t* data = api.alloc(test.both());
  ASSERT_EQ(test.host->prepare(), kTfLiteOk);
  EXPECT_TRUE(has(test.run(data, data + test.in_bytes() + kGap, 1), test.in_bytes() + test.out_bytes()));
}

// Programs unload a library before everything is closed, while its threads may still run.
TEST(DelegateCApiBuffers, TheLibraryOutlivesItsHandle) {
  void* const library = ::dlopen(SKILLET_C_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto load = reinterpret_cast<decltype(&skillet_load_file)>(::dlsym(library, "skillet_load_file"));
  const auto run = reinterpret_cast<decltype(&skillet_run)>(::dlsym(library, "skillet_run"));
  const auto close_model = reinterpret_cast<decltype(&skillet_close_model)>(::dlsym(library, "skillet_close_model"));
  const auto close = reinterpret_cast<decltype(&skillet_close)>(::dlsym(library, "skillet_close"));
  const auto open = reinterpret_cast<decltype(&skillet_open)>(::dlsym(library, "skillet_open"));
  skillet_device* device = nullptr;
  skillet_model* model = nullptr;
  ASSERT_EQ(open("sim:a311d", &device), SKILLET_OK);
  ASSERT_EQ(load(device, (skillet::in_tree("tests/") + kUint8).c_str(), nullptr, &model), SKILLET_OK);
  ASSERT_EQ(::dlclose(library), 0);
  void* const still = ::dlopen(SKILLET_C_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(still, nullptr) << "its code is gone";
  ::dlclose(still);
  EXPECT_EQ(run(model), SKILLET_OK);
  close_model(model);
  close(device);
}

TEST(DelegateCApiBuffers, AskingAllocatesNothing) {
  const CApi api;
  const OnHost test(kUint8);
  runtime::DeviceContext context;
  context.device = std::move(fake::open_simulated("a311d")).value();
  CApiBuffers buffers;
  buffers.find_library();
  uint8_t* data = api.alloc(test.both());
  buffers.import(context, {data, test.both()});
  ASSERT_NE(context.shared.find({data, test.both()}), nullptr);
  const size_t before = allocation_count();
  for (int i = 0; i < 10; ++i) {
    buffers.drop_freed(context);
    buffers.import(context, {data, 64});
  }
  EXPECT_EQ(allocation_count() - before, 0U);
  api.free(data);
  uint8_t* again = api.alloc(test.both());  // at the same address, on Linux
  buffers.drop_freed(context);
  EXPECT_EQ(context.shared.find({data, 64}), nullptr);
  EXPECT_EQ(context.shared.find({again, 64}), nullptr);
}

}  // namespace
}  // namespace skillet::delegate
