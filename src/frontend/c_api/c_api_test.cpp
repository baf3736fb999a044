#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontend/c_api/testing/device.h"
#include "kernels/fake/testing/refused_threads.h"
#include "skillet/skillet.h"

namespace {

using skillet::c_api::test::Device, skillet::c_api::test::kCase, skillet::c_api::test::kModel;

std::vector<char> file(const std::string& name) {
  std::ifstream in(kCase + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(CApi, RunsAModelFromItsFile) {
  const Device cpu("cpu");
  skillet_model* model = nullptr;
  ASSERT_EQ(skillet_load_file(cpu.device, kModel.c_str(), nullptr, &model), SKILLET_OK) << skillet_last_error();
  EXPECT_EQ(skillet_input_count(model), 1u);
  EXPECT_EQ(skillet_output_count(model), 1u);
  skillet_tensor_info info;
  ASSERT_EQ(skillet_input_info(model, 0, &info), SKILLET_OK);
  EXPECT_STREQ(info.name, "in");
  EXPECT_EQ(info.type, SKILLET_UINT8);
  EXPECT_EQ(std::vector<int32_t>(info.dims, info.dims + info.rank), (std::vector<int32_t>{1, 16, 16, 32}));
  EXPECT_EQ(info.bytes, 8192u);
  EXPECT_EQ(info.scale, 0.0078125F);
  EXPECT_EQ(info.zero_point, 128);

  const std::vector<char> input = file("input_0.bin"), expected = file("output_0.bin");
  std::vector<char> output(expected.size());
  EXPECT_EQ(skillet_get_output(model, 0, output.data(), output.size()), SKILLET_INVALID_ARGUMENT) << "has not run";
  ASSERT_EQ(skillet_set_input(model, 0, input.data(), input.size()), SKILLET_OK);
  ASSERT_EQ(skillet_run(model), SKILLET_OK) << skillet_last_error();
  ASSERT_EQ(skillet_get_output(model, 0, output.data(), output.size()), SKILLET_OK);
  EXPECT_EQ(output, expected);
  EXPECT_NE(std::string(skillet_explain(model)).find("CONV_2D"), std::string::npos);

  EXPECT_EQ(skillet_set_input(model, 0, input.data(), 1), SKILLET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(skillet_last_error()).find("input 0: 1 bytes given"), std::string::npos);
  EXPECT_EQ(skillet_set_input(model, 1, input.data(), input.size()), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_get_output(model, 1, output.data(), output.size()), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_get_output(model, 0, output.data(), 5), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_output_info(model, 9, &info), SKILLET_INVALID_ARGUMENT);
  skillet_close_model(model);
}

// Indices just out of range, and null pointers.
TEST(CApi, EdgesAreErrorsWithTheirReason) {
  const Device cpu("cpu");
  skillet_model* model = nullptr;
  ASSERT_EQ(skillet_load_file(cpu.device, kModel.c_str(), nullptr, &model), SKILLET_OK) << skillet_last_error();
  ASSERT_EQ(skillet_run(model), SKILLET_OK);
  skillet_tensor_info info;
  char byte = 0;
  const struct {
    std::function<skillet_status()> call;
    const char* said;
  } rows[] = {
      {[&] { return skillet_input_info(model, 1, &info); }, "no tensor 1; there are 1"},
      {[&] { return skillet_output_info(model, 1, &info); }, "no tensor 1; there are 1"},
      {[&] { return skillet_input_info(nullptr, 0, &info); }, "model is null"},
      {[&] { return skillet_output_info(model, 0, nullptr); }, "out is null"},
      {[&] { return skillet_get_output(model, 0, nullptr, 0); }, "output 0 has "},
      {[&] { return skillet_get_output(model, 0, nullptr, 1); }, "data is null"},
      {[&] { return skillet_get_output(nullptr, 0, &byte, 1); }, "model is null"},
      {[&] { return skillet_set_input(model, 0, nullptr, 1); }, "data is null"},
      {[&] { return skillet_set_input(nullptr, 0, &byte, 1); }, "model is null"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(row.call(), SKILLET_INVALID_ARGUMENT) << row.said;
    EXPECT_TRUE(std::string(skillet_last_error()).starts_with(row.said)) << skillet_last_error();
  }
  EXPECT_EQ(skillet_input_count(nullptr), 0U);
  EXPECT_EQ(skillet_output_count(nullptr), 0U);
  skillet_close_model(nullptr);
  skillet_close_model(model);
}

// The chip rounds differently: at most one step from the reference, in few places.
TEST(CApi, RunsAModelFromMemoryOnASimulatedChip) {
  skillet_model* model = nullptr;
  {
    const Device npu("sim:a311d");  // closed before the model
    const std::vector<char> bytes = file("model.tflite");
    const skillet_options options{.struct_bytes = sizeof(skillet_options), .no_fallback = 1};
    ASSERT_EQ(skillet_load_memory(npu.device, bytes.data(), bytes.size(), &options, &model), SKILLET_OK)
        << skillet_last_error();
  }
  const std::vector<char> input = file("input_0.bin"), expected = file("output_0.bin");
  std::vector<char> output(expected.size());
  ASSERT_EQ(skillet_set_input(model, 0, input.data(), input.size()), SKILLET_OK);
  ASSERT_EQ(skillet_run(model), SKILLET_OK) << skillet_last_error();
  ASSERT_EQ(skillet_get_output(model, 0, output.data(), output.size()), SKILLET_OK);
  size_t differing = 0;
  for (size_t i = 0; i < output.size(); ++i) {
    const int step = static_cast<uint8_t>(output[i]) - static_cast<uint8_t>(expected[i]);
    ASSERT_LE(std::abs(step), 1) << i;
    differing += step != 0 ? 1 : 0;
  }
  EXPECT_LT(differing, output.size() / 100);
  EXPECT_TRUE(std::string(skillet_explain(model)).starts_with("1 of 1 operation on the NPU")) << skillet_explain(model);
  skillet_close_model(model);
}

// Two tensors, 1024 bytes apart, in one buffer.
struct SharedCase {
  static constexpr size_t kGap = 1024;
  Device npu{"sim:a311d"};
  skillet_model* model = nullptr;
  std::vector<char> input = file("input_0.bin"), expected;
  char* data = nullptr;
  int dmabuf = -1;

  SharedCase() {
    EXPECT_EQ(skillet_load_file(npu.device, kModel.c_str(), nullptr, &model), SKILLET_OK);
    expected.resize(file("output_0.bin").size());
    EXPECT_EQ(run(input.data(), expected.data()), input.size() + expected.size()) << "one copy each way";
    void* memory = nullptr;
    EXPECT_EQ(skillet_buffer_alloc(npu.device, input.size() + kGap + expected.size(), &memory, &dmabuf), SKILLET_OK)
        << skillet_last_error();
    data = static_cast<char*>(memory);
  }
  ~SharedCase() { skillet_close_model(model); }
  // Returns the number of copied bytes.
  uint64_t run(const char* in, char* out) {
    const void* inputs[] = {in};
    void* outputs[] = {out};
    EXPECT_EQ(skillet_run_on(model, inputs, outputs), SKILLET_OK) << skillet_last_error();
    EXPECT_EQ(std::string(skillet_explain(model)).find("fallback"), std::string::npos);
    return skillet_copied_bytes(model);
  }
  bool matches(const char* out) const { return std::memcmp(out, expected.data(), expected.size()) == 0; }
};

TEST(CApi, RunsInTheBackground) {
  const Device sim("sim:a311d");
  const std::vector<char> input = file("input_0.bin");
  std::vector<char> expected(file("output_0.bin").size());
  std::vector<skillet_model*> models(4);
  for (skillet_model*& model : models) {
    ASSERT_EQ(skillet_load_file(sim.device, kModel.c_str(), nullptr, &model), SKILLET_OK);
    ASSERT_EQ(skillet_set_input(model, 0, input.data(), input.size()), SKILLET_OK);
  }
  ASSERT_EQ(skillet_run(models[0]), SKILLET_OK);
  ASSERT_EQ(skillet_get_output(models[0], 0, expected.data(), expected.size()), SKILLET_OK);
  EXPECT_EQ(skillet_wait(models[0]), SKILLET_INVALID_ARGUMENT) << "nothing was started";
  std::vector<char> last(expected.size());
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < 3; ++i) ASSERT_EQ(skillet_start(models[i]), SKILLET_OK) << skillet_last_error();
    const void* const inputs[] = {input.data()};
    void* const outputs[] = {last.data()};
    ASSERT_EQ(skillet_start_on(models[3], inputs, outputs), SKILLET_OK) << skillet_last_error();
    EXPECT_EQ(skillet_run(models[0]), SKILLET_INVALID_ARGUMENT);
    EXPECT_EQ(skillet_start(models[0]), SKILLET_INVALID_ARGUMENT);
    EXPECT_EQ(skillet_set_input(models[0], 0, input.data(), input.size()), SKILLET_INVALID_ARGUMENT);
    EXPECT_EQ(skillet_get_output(models[0], 0, last.data(), last.size()), SKILLET_INVALID_ARGUMENT);
    EXPECT_NE(std::string(skillet_last_error()).find("skillet_wait"), std::string::npos);
    for (skillet_model* model : models) EXPECT_EQ(skillet_wait(model), SKILLET_OK) << skillet_last_error();
    EXPECT_EQ(last, expected);
    for (size_t i = 0; i < 3; ++i) {
      std::vector<char> output(expected.size());
      ASSERT_EQ(skillet_get_output(models[i], 0, output.data(), output.size()), SKILLET_OK) << skillet_last_error();
      EXPECT_EQ(output, expected);
    }
  }
  ASSERT_EQ(skillet_start(models[1]), SKILLET_OK);
  for (skillet_model* model : models) skillet_close_model(model);  // one of them is running
  EXPECT_EQ(skillet_start(nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_wait(nullptr), SKILLET_INVALID_ARGUMENT);
}

TEST(CApiSharedBuffers, TensorsInThemAreNotCopied) {
  SharedCase test;
  ASSERT_NE(test.data, nullptr);
  ASSERT_EQ(::pwrite(test.dmabuf, test.input.data(), test.input.size(), 0), static_cast<ssize_t>(test.input.size()));
  char* out = test.data + test.input.size() + SharedCase::kGap;
  EXPECT_EQ(test.run(test.data, out), 0u);
  EXPECT_TRUE(test.matches(out));
  EXPECT_EQ(out[-1], 0) << "nothing but the tensor is written";
  std::vector<char> seen(test.expected.size());
  EXPECT_EQ(::pread(test.dmabuf, seen.data(), seen.size(), out - test.data), static_cast<ssize_t>(seen.size()));
  EXPECT_TRUE(test.matches(seen.data()));

  // The memory may change from run to run: shared, other memory, partly shared, and the model's own again.
  std::vector<char> own(test.expected.size());
  EXPECT_EQ(test.run(test.data, own.data()), test.expected.size());
  EXPECT_TRUE(test.matches(own.data()));
  std::memset(out, 0, test.expected.size());
  EXPECT_EQ(test.run(test.input.data(), out), test.input.size());
  EXPECT_TRUE(test.matches(out));
  void* second = nullptr;
  ASSERT_EQ(skillet_buffer_alloc(test.npu.device, test.input.size(), &second, nullptr), SKILLET_OK);
  std::memcpy(second, test.input.data(), test.input.size());
  EXPECT_EQ(test.run(static_cast<char*>(second), out), 0u);
  EXPECT_EQ(skillet_buffer_free(test.npu.device, second), SKILLET_OK);
  std::fill(own.begin(), own.end(), 0);
  EXPECT_EQ(test.run(test.input.data(), own.data()), test.input.size() + own.size())
      << "not where the freed buffer was";
  EXPECT_TRUE(test.matches(own.data()));
}

// Another thread frees a buffer in use: refused until skillet_wait() has returned, on any device and with any result of
// the run.
TEST(CApiSharedBuffers, AreNotFreedWhileARunUsesThem) {
  SharedCase test;
  const Device other("sim:a311d");
  void* theirs = nullptr;
  ASSERT_EQ(skillet_buffer_alloc(other.device, test.expected.size(), &theirs, nullptr), SKILLET_OK);
  std::memcpy(test.data, test.input.data(), test.input.size());
  for (int round = 0; round < 3; ++round) {
    const void* const inputs[] = {test.data};
    void* const outputs[] = {theirs};
    ASSERT_EQ(skillet_start_on(test.model, inputs, outputs), SKILLET_OK) << skillet_last_error();
    std::thread([&] {
      EXPECT_EQ(skillet_buffer_free(test.npu.device, test.data), SKILLET_INVALID_ARGUMENT);
      EXPECT_NE(std::string(skillet_last_error()).find("a run uses"), std::string::npos) << skillet_last_error();
      EXPECT_EQ(skillet_buffer_free(other.device, theirs), SKILLET_INVALID_ARGUMENT);
    }).join();
    ASSERT_EQ(skillet_wait(test.model), SKILLET_OK) << skillet_last_error();
    EXPECT_TRUE(test.matches(static_cast<const char*>(theirs)));
  }
  const void* const nothing[] = {test.data};
  EXPECT_EQ(skillet_start_on(test.model, nothing, nullptr), SKILLET_INVALID_ARGUMENT) << "and holds nothing";
  if (skillet::testing::can_refuse_threads()) {
    const skillet::testing::RefusedThreads refused(0);
    void* const outputs[] = {theirs};
    EXPECT_NE(skillet_start_on(test.model, nothing, outputs), SKILLET_OK) << "nor does a run without a thread";
    EXPECT_NE(std::string(skillet_last_error()).find("cannot be started"), std::string::npos) << skillet_last_error();
  }
  EXPECT_EQ(skillet_buffer_free(other.device, theirs), SKILLET_OK) << skillet_last_error();
  const void* const inputs[] = {test.data};
  void* const outputs[] = {test.expected.data()};
  ASSERT_EQ(skillet_start_on(test.model, inputs, outputs), SKILLET_OK) << skillet_last_error();
  skillet_close_model(std::exchange(test.model, nullptr));  // waits, and releases the buffer
  EXPECT_EQ(skillet_buffer_free(test.npu.device, test.data), SKILLET_OK) << skillet_last_error();
}

TEST(CApiSharedBuffers, OddPlacesAreCopied) {
  SharedCase test;
  std::memcpy(test.data + 3, test.input.data(), test.input.size());
  std::vector<char> own(test.expected.size());
  EXPECT_EQ(test.run(test.data + 3, own.data()), test.input.size() + own.size());
  EXPECT_TRUE(test.matches(own.data()));
  char* end = test.data + test.input.size() + SharedCase::kGap;
  EXPECT_EQ(test.run(test.input.data(), end - 1), test.input.size() + own.size());
  EXPECT_TRUE(test.matches(end - 1));
}

TEST(CApiSharedBuffers, AnInputMayLieInAnOutput) {
  SharedCase test;
  ASSERT_GT(test.expected.size(), test.input.size());
  for (const size_t offset : {size_t{0}, size_t{64}, test.expected.size() - test.input.size()}) {
    ASSERT_LE(test.expected.size(), test.input.size() + SharedCase::kGap + test.expected.size());
    std::memcpy(test.data + offset, test.input.data(), test.input.size());
    EXPECT_EQ(test.run(test.data + offset, test.data), test.input.size()) << "the output is in place all the same";
    EXPECT_TRUE(test.matches(test.data)) << offset;
  }
  std::vector<char> own(test.expected.size());
  EXPECT_EQ(skillet_get_output(test.model, 0, own.data(), own.size()), SKILLET_INVALID_ARGUMENT) << "the caller has it";
}

// The hardware computes with uint8: int8 bytes are converted in the only copy.
TEST(CApiSharedBuffers, Int8TakesOneCopy) {
  const Device npu("sim:a311d"), cpu("cpu");
  const std::string path = skillet::in_tree("tests/models/fc64x10_i8.tflite");
  skillet_model *model = nullptr, *reference = nullptr;
  const skillet_options strict{.struct_bytes = sizeof(skillet_options), .no_fallback = 1};
  ASSERT_EQ(skillet_load_file(npu.device, path.c_str(), &strict, &model), SKILLET_OK) << skillet_last_error();
  ASSERT_EQ(skillet_load_file(cpu.device, path.c_str(), nullptr, &reference), SKILLET_OK);
  constexpr size_t kIn = 64, kOut = 10;
  void* data = nullptr;
  ASSERT_EQ(skillet_buffer_alloc(npu.device, kIn + kOut, &data, nullptr), SKILLET_OK);
  auto* bytes = static_cast<int8_t*>(data);
  for (size_t i = 0; i < kIn; ++i) bytes[i] = static_cast<int8_t>(i * 29 + 5);
  int8_t expected[kOut] = {};
  const void* inputs[] = {bytes};
  void *outputs[] = {bytes + kIn}, *expected_outputs[] = {expected};
  ASSERT_EQ(skillet_run_on(model, inputs, outputs), SKILLET_OK) << skillet_last_error();
  EXPECT_EQ(skillet_copied_bytes(model), kIn + kOut);
  ASSERT_EQ(skillet_run_on(reference, inputs, expected_outputs), SKILLET_OK);
  for (size_t i = 0; i < kOut; ++i) EXPECT_LE(std::abs(bytes[kIn + i] - expected[i]), 1) << i;
  skillet_close_model(model);
  skillet_close_model(reference);
}

TEST(CApiSharedBuffers, AreFoundWhileTheyLive) {
  skillet_buffer_info info{.struct_bytes = sizeof info};
  void *first = nullptr, *second = nullptr;
  int dmabuf = -1;
  {
    const Device npu("sim:a311d"), other("sim:a311d");
    ASSERT_EQ(skillet_buffer_alloc(npu.device, 8192, &first, &dmabuf), SKILLET_OK);
    ASSERT_EQ(skillet_buffer_alloc(other.device, 8192, &second, nullptr), SKILLET_OK);
    const char* bytes = static_cast<const char*>(first);
    ASSERT_EQ(skillet_buffer_find(bytes + 100, 8092, &info), 1);
    EXPECT_EQ(info.data, first);
    EXPECT_EQ(info.bytes, 8192U);
    EXPECT_EQ(info.dmabuf_fd, dmabuf);
    const uint64_t serial = info.serial;
    EXPECT_EQ(skillet_buffer_find(bytes + 100, 8093, &info), 0) << "one byte too many";
    EXPECT_EQ(skillet_buffer_find(bytes - 1, 2, &info), 0);
    EXPECT_EQ(skillet_buffer_find(bytes, SIZE_MAX, &info), 0);
    ASSERT_EQ(skillet_buffer_find(second, 8192, &info), 1) << "of any device";
    EXPECT_NE(info.serial, serial);
    EXPECT_EQ(skillet_buffer_find(nullptr, 0, &info), 0);
    EXPECT_EQ(skillet_buffer_find(first, 1, nullptr), 0);
    skillet_buffer_info old{.struct_bytes = 3};
    EXPECT_EQ(skillet_buffer_find(first, 1, &old), 0);
    ASSERT_EQ(skillet_buffer_free(npu.device, first), SKILLET_OK);
    EXPECT_EQ(skillet_buffer_find(first, 1, &info), 0) << "freed";
  }
  EXPECT_EQ(skillet_buffer_find(second, 1, &info), 0) << "gone with its device";
}

TEST(CApiSharedBuffers, BadCallsAreErrors) {
  SharedCase test;
  const Device cpu("cpu");
  void* data = nullptr;
  EXPECT_EQ(skillet_buffer_alloc(cpu.device, 64, &data, nullptr), SKILLET_UNSUPPORTED);
  EXPECT_EQ(skillet_buffer_alloc(test.npu.device, 0, &data, nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_buffer_alloc(test.npu.device, size_t{1} << 40, &data, nullptr), SKILLET_OUT_OF_RANGE);
  EXPECT_EQ(skillet_buffer_alloc(nullptr, 64, &data, nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_buffer_alloc(test.npu.device, 64, nullptr, nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_buffer_free(test.npu.device, test.data + 1), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_buffer_free(test.npu.device, nullptr), SKILLET_INVALID_ARGUMENT);
  const void* none[] = {nullptr};
  void* outputs[] = {test.data};
  EXPECT_EQ(skillet_run_on(test.model, none, outputs), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_run_on(test.model, nullptr, outputs), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_run_on(nullptr, none, outputs), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_copied_bytes(nullptr), 0u);
}

TEST(CApi, AnNpuMayBeRequired) {
  skillet_device* device = nullptr;
  const skillet_status npu = skillet_open("npu", &device);
  skillet_close(device);
  const std::string why = skillet_last_error();
  ASSERT_EQ(setenv("SKILLET_REQUIRE_NPU", "1", 1), 0);
  for (const char* const name : {static_cast<const char*>(nullptr), "auto"}) {
    EXPECT_EQ(skillet_open(name, &device), npu);
    if (npu != SKILLET_OK) {
      EXPECT_EQ(skillet_last_error(), why);
    }
    skillet_close(device);
  }
  ASSERT_EQ(setenv("SKILLET_REQUIRE_NPU", "0", 1), 0);
  EXPECT_EQ(skillet_open("auto", &device), SKILLET_OK);
  skillet_close(device);
  ASSERT_EQ(unsetenv("SKILLET_REQUIRE_NPU"), 0);
}

TEST(CApi, BadCallsAreErrors) {
  skillet_device* device = nullptr;
  skillet_model* model = nullptr;
  EXPECT_EQ(skillet_open("toaster", &device), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(device, nullptr);
  EXPECT_NE(std::string(skillet_last_error()).find("toaster"), std::string::npos);
  ASSERT_EQ(setenv("SKILLET_DEVICE", "oven", 1), 0);  // used if no device is named
  EXPECT_EQ(skillet_open(nullptr, &device), SKILLET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(skillet_last_error()).find("oven"), std::string::npos);
  ASSERT_EQ(unsetenv("SKILLET_DEVICE"), 0);
  EXPECT_EQ(skillet_open("cpu", nullptr), SKILLET_INVALID_ARGUMENT);
  const Device cpu("cpu");
  EXPECT_EQ(skillet_load_file(cpu.device, "/nonexistent.tflite", nullptr, &model), SKILLET_IO);
  EXPECT_NE(std::string(skillet_last_error()).find("/nonexistent.tflite"), std::string::npos);
  EXPECT_EQ(skillet_load_memory(cpu.device, "garbage", 7, nullptr, &model), SKILLET_MALFORMED);
  EXPECT_EQ(skillet_load_memory(nullptr, "garbage", 7, nullptr, &model), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_load_memory(cpu.device, nullptr, 7, nullptr, &model), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_load_memory(cpu.device, "garbage", 7, nullptr, nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_load_file(nullptr, kModel.c_str(), nullptr, &model), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_load_file(cpu.device, nullptr, nullptr, &model), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_load_file(cpu.device, kModel.c_str(), nullptr, nullptr), SKILLET_INVALID_ARGUMENT);
  const skillet_options old{.struct_bytes = 3};
  EXPECT_EQ(skillet_load_file(cpu.device, kModel.c_str(), &old, &model), SKILLET_INVALID_ARGUMENT);
  const skillet_options wrong{.struct_bytes = sizeof wrong, .per_channel = "roughly"};
  EXPECT_EQ(skillet_load_file(cpu.device, kModel.c_str(), &wrong, &model), SKILLET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(skillet_last_error()).find("must be exact, approximate or strict"), std::string::npos);
  const Device chip("sim:a311d");
  const skillet_options no_file{.struct_bytes = sizeof no_file, .tuning_file = "/nonexistent.json"};
  EXPECT_EQ(skillet_load_file(chip.device, kModel.c_str(), &no_file, &model), SKILLET_IO);
  EXPECT_NE(std::string(skillet_last_error()).find("/nonexistent.json"), std::string::npos);
  const skillet_options fewer_than_none{.struct_bytes = sizeof(skillet_options), .cores = -1};
  EXPECT_EQ(skillet_load_file(cpu.device, kModel.c_str(), &fewer_than_none, &model), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(skillet_run(nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_input_info(nullptr, 0, nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_input_count(nullptr), 0u);
  EXPECT_STREQ(skillet_explain(nullptr), "");
  skillet_close(nullptr);
  skillet_close_model(nullptr);
}

TEST(CApi, NullPointersAreNamed) {
  const Device cpu("cpu"), npu("sim:a311d");
  skillet_model* model = nullptr;
  ASSERT_EQ(skillet_load_file(cpu.device, kModel.c_str(), nullptr, &model), SKILLET_OK) << skillet_last_error();
  skillet_device* device = nullptr;
  skillet_op_info op{.struct_bytes = sizeof op};
  skillet_use use{.struct_bytes = sizeof use};
  skillet_maker maker{.struct_bytes = sizeof maker};
  skillet_listed_device listed{.struct_bytes = sizeof listed};
  char byte = 0;
  void *no_pointer = nullptr, *pointer = &byte;
  size_t bytes = 0;
  int file = -1;
  const void *const no_input[] = {nullptr}, *const input[] = {&byte};
  void* const no_output[] = {nullptr};
  const struct {
    std::function<skillet_status()> call;
    const char* said;
  } rows[] = {
      {[&] { return skillet_list_devices(nullptr); }, "out is null"},
      {[&] { return skillet_list_at(nullptr, 0, &listed); }, "list is null"},
      {[&] { return skillet_open("cpu", nullptr); }, "out is null"},
      {[&] { return skillet_load_file(nullptr, "", nullptr, &model); }, "device is null"},
      {[&] { return skillet_load_file(cpu.device, nullptr, nullptr, &model); }, "path is null"},
      {[&] { return skillet_load_file(cpu.device, "", nullptr, nullptr); }, "out is null"},
      {[&] { return skillet_load_memory(nullptr, "", 0, nullptr, &model); }, "device is null"},
      {[&] { return skillet_load_memory(cpu.device, nullptr, 0, nullptr, &model); }, "data is null"},
      {[&] { return skillet_load_memory(cpu.device, "", 0, nullptr, nullptr); }, "out is null"},
      {[&] { return skillet_run(nullptr); }, "model is null"},
      {[&] { return skillet_start(nullptr); }, "model is null"},
      {[&] { return skillet_wait(nullptr); }, "model is null"},
      {[&] { return skillet_wait(model); }, "no run has been started"},
      {[&] { return skillet_run_on(nullptr, input, &pointer); }, "model is null"},
      {[&] { return skillet_run_on(model, nullptr, &pointer); }, "inputs is null"},
      {[&] { return skillet_run_on(model, input, nullptr); }, "outputs is null"},
      {[&] { return skillet_run_on(model, no_input, &pointer); }, "inputs[0] is null"},
      {[&] { return skillet_run_on(model, input, no_output); }, "outputs[0] is null"},
      {[&] { return skillet_start_on(nullptr, input, &pointer); }, "model is null"},
      {[&] { return skillet_start_on(model, no_input, &pointer); }, "inputs[0] is null"},
      {[&] { return skillet_op(nullptr, 0, &op); }, "model is null"},
      {[&] { return skillet_op(model, skillet_op_count(model), &op); }, "no operation "},
      {[&] { return skillet_get_use(nullptr, &use); }, "model is null"},
      {[&] { return skillet_output_maker(nullptr, 0, &maker); }, "model is null"},
      {[&] { return skillet_output_maker(model, 1, &maker); }, "no output 1; there are 1"},
      {[&] { return skillet_buffer_alloc(nullptr, 64, &no_pointer, &file); }, "device is null"},
      {[&] { return skillet_buffer_alloc(npu.device, 64, nullptr, &file); }, "data is null"},
      {[&] { return skillet_buffer_import(npu.device, file, nullptr, &bytes); }, "data is null"},
      {[&] { return skillet_buffer_import(npu.device, file, &no_pointer, nullptr); }, "bytes is null"},
      {[&] { return skillet_buffer_free(nullptr, &byte); }, "device is null"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(row.call(), SKILLET_INVALID_ARGUMENT) << row.said;
    EXPECT_TRUE(std::string(skillet_last_error()).starts_with(row.said))
        << skillet_last_error() << ", not " << row.said;
  }
  EXPECT_EQ(skillet_op_count(nullptr), 0U);
  EXPECT_EQ(skillet_copied_bytes(nullptr), 0U);
  EXPECT_EQ(skillet_list_count(nullptr), 0U);
  skillet_free_list(nullptr);
  EXPECT_EQ(skillet_open("cpu", &device), SKILLET_OK);
  skillet_close(device);
  skillet_close_model(model);
}

TEST(CApi, AWrongWordInTheEnvironmentIsAnError) {
  const Device cpu("cpu");
  skillet_model* model = nullptr;
  const std::string path = kCase + "model.tflite";
  ASSERT_EQ(::setenv("SKILLET_ALLOW_UNPROVEN", "maybe", 1), 0);
  EXPECT_EQ(skillet_load_file(cpu.device, path.c_str(), nullptr, &model), SKILLET_INVALID_ARGUMENT);
  EXPECT_STREQ(skillet_last_error(), "SKILLET_ALLOW_UNPROVEN=maybe: must be 1 or 0");
  EXPECT_EQ(model, nullptr);
  ASSERT_EQ(::setenv("SKILLET_ALLOW_UNPROVEN", "off", 1), 0);
  EXPECT_EQ(skillet_load_file(cpu.device, path.c_str(), nullptr, &model), SKILLET_OK) << skillet_last_error();
  ::unsetenv("SKILLET_ALLOW_UNPROVEN");
  skillet_close_model(model);
}

TEST(CApi, HasAVersion) { EXPECT_STRNE(skillet_version(), ""); }

}  // namespace
