// Models and devices of the C interface in a child of fork().
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/threads_in_children.h"
#include "frontend/c_api/testing/device.h"
#include "skillet/skillet.h"

namespace {

using skillet::c_api::test::Device, skillet::c_api::test::kCase, skillet::c_api::test::kModel;

std::vector<char> bytes_of(const std::string& name) {
  std::ifstream in(kCase + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The thread of the run does not exist in the child.
TEST(CApi, AChildOfForkCanOnlyCloseAModelThatRuns) {
  for (const char* name : {"cpu", "sim:a311d"}) {
    const Device npu(name);
    skillet_model* model = nullptr;
    ASSERT_EQ(skillet_load_file(npu.device, kModel.c_str(), nullptr, &model), SKILLET_OK);
    ASSERT_EQ(skillet_start(model), SKILLET_OK) << skillet_last_error();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      const bool refused =
          skillet_wait(model) == SKILLET_INVALID_ARGUMENT && skillet_run(model) == SKILLET_INVALID_ARGUMENT;
      skillet_close_model(model);
      ::syscall(SYS_exit_group, refused ? 0 : 1);  // a sanitizer would look for the missing thread
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << name;
    EXPECT_EQ(skillet_wait(model), SKILLET_OK) << skillet_last_error();
    skillet_close_model(model);
  }
}

// A device belongs to the process that opened it, on boards and on simulated chips; the child opens its own.
int use_in_child(const Device& npu, const char* name, skillet_model* model, const std::vector<char>& input,
                 const std::vector<char>& expected, bool may_run) {
  const auto refused = [](skillet_status status) {
    return status == SKILLET_INVALID_ARGUMENT &&
           std::string(skillet_last_error()).find("before a fork()") != std::string::npos;
  };
  std::vector<char> output(expected.size());
  const void* const inputs[] = {input.data()};
  void* const outputs[] = {output.data()};
  const auto runs = [&](skillet_model* one) {
    return skillet_run_on(one, inputs, outputs) == SKILLET_OK && output == expected;
  };
  if (may_run) return runs(model) ? 0 : 1;
  if (!refused(skillet_run(model)) || !refused(skillet_run_on(model, inputs, outputs))) return 2;
  skillet_model* another = nullptr;
  if (!refused(skillet_load_file(npu.device, kModel.c_str(), nullptr, &another))) return 3;
  void* data = nullptr;
  if (!refused(skillet_buffer_alloc(npu.device, 64, &data, nullptr))) return 4;
  skillet_close_model(model);
  const Device own(name);
  if (skillet_load_file(own.device, kModel.c_str(), nullptr, &another) != SKILLET_OK || !runs(another)) return 5;
  skillet_close_model(another);
  return 0;
}

TEST(CApi, AChildOfForkOpensItsOwnDevice) {
  const std::vector<char> input = bytes_of("input_0.bin");
  for (const char* name : {"cpu", "sim:a311d", "sim:rk3588"}) {
    const bool has_threads = std::string_view(name) == "sim:rk3588";  // one for each simulated core
    if (has_threads && !skillet::testing::kChildrenMayHaveThreads) continue;
    const Device npu(name);
    skillet_model* model = nullptr;
    const skillet_options options{.struct_bytes = sizeof(skillet_options), .allow_unproven = 1};
    ASSERT_EQ(skillet_load_file(npu.device, kModel.c_str(), &options, &model), SKILLET_OK) << skillet_last_error();
    ASSERT_EQ(skillet_set_input(model, 0, input.data(), input.size()), SKILLET_OK);
    ASSERT_EQ(skillet_run(model), SKILLET_OK) << skillet_last_error();
    std::vector<char> expected(bytes_of("output_0.bin").size());
    ASSERT_EQ(skillet_get_output(model, 0, expected.data(), expected.size()), SKILLET_OK);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      const int failed = use_in_child(npu, name, model, input, expected, std::string(name) == "cpu");
      ::syscall(SYS_exit_group, failed);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << name;
    std::vector<char> output(expected.size());
    EXPECT_EQ(skillet_run(model), SKILLET_OK) << skillet_last_error();
    EXPECT_EQ(skillet_get_output(model, 0, output.data(), output.size()), SKILLET_OK);
    EXPECT_EQ(output, expected) << name;
    skillet_close_model(model);
  }
}

}  // namespace
