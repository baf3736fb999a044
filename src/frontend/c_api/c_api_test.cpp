#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "skillet/skillet.h"

namespace {

const std::string kCase = SKILLET_SOURCE_DIR "/tests/captures/a311d_conv1x1_relu6_u8/";

std::vector<char> file(const std::string& name) {
  std::ifstream in(kCase + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Device {
  skillet_device* device = nullptr;
  explicit Device(const char* name) { EXPECT_EQ(skillet_open(name, &device), SKILLET_OK) << skillet_last_error(); }
  ~Device() { skillet_close(device); }
};

TEST(CApi, RunsAModelFromItsFile) {
  const Device cpu("cpu");
  skillet_model* model = nullptr;
  ASSERT_EQ(skillet_load_file(cpu.device, (kCase + "model.tflite").c_str(), nullptr, &model), SKILLET_OK)
      << skillet_last_error();
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

// The chip rounds in its own way: at most one step away from the reference, in few places.
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
  EXPECT_TRUE(std::string(skillet_explain(model)).starts_with("1 of 1 ops on the NPU")) << skillet_explain(model);
  skillet_close_model(model);
}

TEST(CApi, BadCallsAreErrors) {
  skillet_device* device = nullptr;
  skillet_model* model = nullptr;
  EXPECT_EQ(skillet_open("toaster", &device), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(device, nullptr);
  EXPECT_NE(std::string(skillet_last_error()).find("toaster"), std::string::npos);
  EXPECT_EQ(skillet_open(nullptr, &device), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_open("cpu", nullptr), SKILLET_INVALID_ARGUMENT);
  const Device cpu("cpu");
  EXPECT_EQ(skillet_load_file(cpu.device, "/nonexistent.tflite", nullptr, &model), SKILLET_IO);
  EXPECT_NE(std::string(skillet_last_error()).find("/nonexistent.tflite"), std::string::npos);
  EXPECT_EQ(skillet_load_memory(cpu.device, "garbage", 7, nullptr, &model), SKILLET_MALFORMED);
  EXPECT_EQ(skillet_load_memory(nullptr, "garbage", 7, nullptr, &model), SKILLET_INVALID_ARGUMENT);
  const skillet_options old{.struct_bytes = 3};
  EXPECT_EQ(skillet_load_file(cpu.device, (kCase + "model.tflite").c_str(), &old, &model), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(skillet_run(nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_input_info(nullptr, 0, nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_input_count(nullptr), 0u);
  EXPECT_STREQ(skillet_explain(nullptr), "");
  skillet_close(nullptr);
  skillet_close_model(nullptr);
}

TEST(CApi, HasAVersion) { EXPECT_STRNE(skillet_version(), ""); }

}  // namespace
