// Lists of devices and operations, options as text, imported memory, the log.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/own_folder.h"
#include "frontend/c_api/testing/device.h"
#include "skillet/skillet.h"

namespace {

using skillet::c_api::test::Device, skillet::c_api::test::kModel;

const std::string kDigits = skillet::in_tree("models/digits.tflite");

using Pairs = std::vector<skillet_option>;

// Loads with these options, closes the model and returns the status.
skillet_status load_with(const Device& device, const Pairs& pairs, const std::string& path = kModel) {
  const skillet_options options{
      .struct_bytes = sizeof(skillet_options), .more = pairs.data(), .more_count = pairs.size()};
  skillet_model* model = nullptr;
  const skillet_status status = skillet_load_file(device.device, path.c_str(), &options, &model);
  EXPECT_EQ(model != nullptr, status == SKILLET_OK);
  skillet_close_model(model);
  return status;
}

TEST(CApiDevices, AreListed) {
  skillet_device_list* list = nullptr;
  ASSERT_EQ(skillet_list_devices(&list), SKILLET_OK) << skillet_last_error();
  const size_t count = skillet_list_count(list);
  size_t simulated = 0;
  for (size_t i = 0; i < count; ++i) {
    skillet_listed_device one{.struct_bytes = sizeof one};
    ASSERT_EQ(skillet_list_at(list, i, &one), SKILLET_OK);
    EXPECT_EQ(one.simulated == 1, std::string(one.device).starts_with("sim:")) << one.device;
    if (one.usable == 1) const Device opens(one.device);
    simulated += one.simulated == 1 ? 1 : 0;
    if (i + 1 == count) {
      EXPECT_STREQ(one.device, "cpu");
    }
  }
  EXPECT_GT(simulated, 2U);
  skillet_listed_device one{.struct_bytes = sizeof one};
  EXPECT_EQ(skillet_list_at(list, count, &one), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_list_at(list, 0, nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_list_at(nullptr, 0, &one), SKILLET_INVALID_ARGUMENT);
  one.struct_bytes = 5;
  EXPECT_EQ(skillet_list_at(list, 0, &one), SKILLET_INVALID_ARGUMENT);
  EXPECT_STREQ(skillet_last_error(), ("out: struct_bytes is 5, not " + std::to_string(sizeof one)).c_str());
  skillet_free_list(list);
  EXPECT_EQ(skillet_list_devices(nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_list_count(nullptr), 0U);
  skillet_free_list(nullptr);
}

struct KeyCase {
  const char *key, *value, *error;  // "": no error
};

TEST(CApiOptions, AreTakenAsText) {
  const Device sim("sim:a311d");
  const KeyCase cases[] = {
      {"tuning", "tuned", ""},
      {"tuning", "proven", ""},
      {"tuning", "recorded", "option tuning: 'recorded' is not a valid value; proven: only"},
      {"allow_unproven", "yes", ""},
      {"allow_unproven", "maybe", "option allow_unproven: 'maybe'"},
      {"verify_every", "3", ""},
      {"verify_every", "x", "option verify_every: 'x'"},
      {"per_channel", "approximate", ""},
      {"per_channel", "", "option per_channel: ''"},
      {"cores", "auto", ""},
      {"cores", "2", ""},
      {"cores", "0", "option cores: '0'"},
      {"fallback", "0", ""},
      {"fallback", "2", "option fallback: '2'"},
      {"min_macs_per_byte", "4", ""},
      {"min_macs_per_byte", "-1", "option min_macs_per_byte: '-1'"},
      {"partition", "predicted", ""},
      {"partition", "work", ""},
      {"partition", "all", ""},
      {"host_threads", "1", ""},
      {"host_threads", "0", "option host_threads: '0'"},
      {"partition", "auto", "option partition: 'auto' is not a valid value; which parts "},
      {"timeout_ms", "500", ""},
      {"timeout_ms", "0", "option timeout_ms: '0'"},
      {"timeout_ms", "99999999999999999999", "option timeout_ms: '9999"},
      {"cache_dir", "", ""},
      {"switches", "no_such_switch", "no_such_switch"},
      {"cahce_dir", "/x", "there is no option 'cahce_dir'; did you mean 'cache_dir'?"},
      {"timeout", "5", "there is no option 'timeout'"},
      {"\033[2J", "5", "there is no option '?[2J'"},
      {"", "", "there is no option ''"},
      {nullptr, "1", "options: a key or value of more is null"},
      {"cores", nullptr, "options: a key or value of more is null"},
  };
  for (const KeyCase& one : cases) {
    const std::string what = std::string(one.key ? one.key : "null") + "=" + (one.value ? one.value : "null");
    const bool is_fine = *one.error == '\0';
    EXPECT_EQ(load_with(sim, {{one.key, one.value}}) == SKILLET_OK, is_fine) << what << ": " << skillet_last_error();
    if (!is_fine) {
      EXPECT_NE(std::string(skillet_last_error()).find(one.error), std::string::npos)
          << what << ": " << skillet_last_error();
    }
  }
  const skillet_options none{.struct_bytes = sizeof none, .more = nullptr, .more_count = 1};
  skillet_model* model = nullptr;
  EXPECT_EQ(skillet_load_file(sim.device, kModel.c_str(), &none, &model), SKILLET_INVALID_ARGUMENT);
  EXPECT_STREQ(skillet_last_error(), "options: more is null");
  for (const char* key :
       {"tuning", "switches", "unproven", "allow_unproven", "per_channel", "cache_dir", "cores", "fallback",
        "min_macs_per_byte", "partition", "host_threads", "timeout_ms", "verify_every", "trace"})
    EXPECT_NE(("\n" + std::string(skillet_options_help())).find(std::string("\n") + key + " "), std::string::npos)
        << key;
}

TEST(CApiOptions, TextHasAnEffectAndWinsOverMembers) {
  const Device sim("sim:a311d");
  const std::filesystem::path folder = skillet::own_path("cache");
  std::filesystem::remove_all(folder);
  EXPECT_EQ(load_with(sim, {{"cache_dir", folder.c_str()}}), SKILLET_OK) << skillet_last_error();
  EXPECT_FALSE(std::filesystem::is_empty(folder)) << "the compiled program";
  std::filesystem::remove_all(folder);

  skillet_model* model = nullptr;
  const skillet_option far_more[] = {{"partition", "work"}, {"min_macs_per_byte", "1000000000"}};
  const skillet_options options{.struct_bytes = sizeof options, .more = far_more, .more_count = 2};
  ASSERT_EQ(skillet_load_file(sim.device, kModel.c_str(), &options, &model), SKILLET_OK) << skillet_last_error();
  EXPECT_TRUE(std::string(skillet_explain(model)).starts_with("0 of 1 operation on the NPU")) << skillet_explain(model);
  skillet_close_model(model);

  const skillet_option bad[] = {{"per_channel", "approximate"}};
  const skillet_options wins{.struct_bytes = sizeof wins, .per_channel = "exact", .more = bad, .more_count = 1};
  EXPECT_EQ(skillet_load_file(sim.device, kModel.c_str(), &wins, &model), SKILLET_OK) << skillet_last_error();
  skillet_close_model(model);
}

// Structs of programs that were built with older headers.
TEST(CApiOptions, OlderStructsAreTaken) {
  const Device cpu("cpu");
  const size_t sizes[] = {offsetof(skillet_options, cache_dir), offsetof(skillet_options, reserved) + 4,
                          offsetof(skillet_options, per_channel), offsetof(skillet_options, more),
                          sizeof(skillet_options)};
  for (const size_t size : sizes) {
    skillet_options options;
    std::memset(&options, 0xff, sizeof options);  // memory after an older struct is arbitrary
    std::memset(&options, 0, size);
    options.struct_bytes = size;
    skillet_model* model = nullptr;
    EXPECT_EQ(skillet_load_file(cpu.device, kModel.c_str(), &options, &model), SKILLET_OK)
        << size << ": " << skillet_last_error();
    skillet_close_model(model);
  }
}

TEST(CApiOptions, FlagsAreZeroOrOne) {
  const Device cpu("cpu");
  struct Case {
    int32_t skillet_options::*member;
    int32_t value;
    const char* message;  // null: no error
  };
  const Case kCases[] = {{&skillet_options::tuned, 1, nullptr},
                         {&skillet_options::tuned, 77, "options: tuned is 77, not 0 or 1"},
                         {&skillet_options::no_fallback, -1, "options: no_fallback is -1, not 0 or 1"},
                         {&skillet_options::allow_unproven, 2, "options: allow_unproven is 2, not 0 or 1"},
                         {&skillet_options::reserved, 3, "options: reserved is 3, not 0"}};
  for (const Case& c : kCases) {
    skillet_options options{};
    options.struct_bytes = sizeof options;
    options.*c.member = c.value;
    skillet_model* model = nullptr;
    const auto status = skillet_load_file(cpu.device, kModel.c_str(), &options, &model);
    EXPECT_EQ(status == SKILLET_OK, c.message == nullptr) << skillet_last_error();
    if (c.message != nullptr) {
      EXPECT_STREQ(skillet_last_error(), c.message);
    }
    skillet_close_model(model);
  }
}

TEST(CApiOutputs, SayWhichOperationMakesThem) {
  const Device cpu("cpu");
  skillet_model* model = nullptr;
  ASSERT_EQ(skillet_load_file(cpu.device, kDigits.c_str(), nullptr, &model), SKILLET_OK) << skillet_last_error();
  skillet_maker maker{.struct_bytes = sizeof maker, .kind = nullptr, .place = 7};
  ASSERT_EQ(skillet_output_maker(model, 0, &maker), SKILLET_OK) << skillet_last_error();
  EXPECT_STREQ(maker.kind, "SOFTMAX");
  EXPECT_EQ(maker.place, 0U);
  EXPECT_EQ(skillet_output_maker(model, 1, &maker), SKILLET_INVALID_ARGUMENT);
  EXPECT_STREQ(skillet_last_error(), "no output 1; there are 1");
  EXPECT_EQ(skillet_output_maker(nullptr, 0, &maker), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_output_maker(model, 0, nullptr), SKILLET_INVALID_ARGUMENT);
  maker.struct_bytes = 1;
  EXPECT_EQ(skillet_output_maker(model, 0, &maker), SKILLET_INVALID_ARGUMENT);
  skillet_close_model(model);
}

TEST(CApiOps, SayWhereAndHowLong) {
  const Device sim("sim:a311d");
  skillet_model* model = nullptr;
  ASSERT_EQ(skillet_load_file(sim.device, kDigits.c_str(), nullptr, &model), SKILLET_OK) << skillet_last_error();
  const size_t count = skillet_op_count(model);
  ASSERT_GT(count, 2U);
  const auto ops = [&] {
    std::vector<skillet_op_info> out(count);
    for (size_t i = 0; i < count; ++i) {
      out[i].struct_bytes = sizeof out[i];
      EXPECT_EQ(skillet_op(model, i, &out[i]), SKILLET_OK) << skillet_last_error();
    }
    return out;
  };
  for (const skillet_op_info& op : ops()) {
    EXPECT_EQ(op.ms, -1) << "nothing has run";
    EXPECT_EQ(op.part_ms, -1);
  }
  ASSERT_EQ(skillet_run(model), SKILLET_OK) << skillet_last_error();
  size_t on_npu = 0;
  for (const skillet_op_info& op : ops()) {
    EXPECT_EQ(op.ms >= 0, op.on_npu == 0) << op.kind;
    EXPECT_GT(op.part_ms, 0);
    EXPECT_LE(op.ms, op.part_ms);
    const std::string_view why = op.why;
    const bool is_reason = !why.empty() && !why.starts_with("unproven") && !why.starts_with("verified on this device");
    EXPECT_EQ(is_reason, op.on_npu == 0) << op.kind << ": " << op.why;
    EXPECT_NE(*op.output, '\0');
    on_npu += op.on_npu == 1 ? 1 : 0;
  }
  skillet_use use{.struct_bytes = sizeof use};
  ASSERT_EQ(skillet_get_use(model, &use), SKILLET_OK);
  EXPECT_EQ(use.npu_ops + use.part_ops + use.folded_ops > 0, on_npu > 0);
  EXPECT_LT(use.npu_ops, use.ops);
  const std::string begin = std::to_string(use.npu_ops) + " of " + std::to_string(use.ops) + " operations on the NPU";
  EXPECT_TRUE(std::string(skillet_explain(model)).starts_with(begin)) << begin;
  EXPECT_GT(on_npu, 0U);
  EXPECT_LT(on_npu, count) << "a model with both kinds is needed here";

  EXPECT_EQ(skillet_get_use(model, nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_get_use(nullptr, &use), SKILLET_INVALID_ARGUMENT);
  use.struct_bytes = 1;
  EXPECT_EQ(skillet_get_use(model, &use), SKILLET_INVALID_ARGUMENT);
  skillet_op_info op{.struct_bytes = sizeof op};
  EXPECT_EQ(skillet_op(model, count, &op), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_op(model, 0, nullptr), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_op(nullptr, 0, &op), SKILLET_INVALID_ARGUMENT);
  op.struct_bytes = 1;
  EXPECT_EQ(skillet_op(model, 0, &op), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_op_count(nullptr), 0U);
  op.struct_bytes = sizeof op;
  ASSERT_EQ(skillet_start(model), SKILLET_OK);
  EXPECT_EQ(skillet_op(model, 0, &op), SKILLET_INVALID_ARGUMENT) << "it runs";
  EXPECT_EQ(skillet_wait(model), SKILLET_OK);
  skillet_close_model(model);
}

struct Descriptor {
  int fd;
  ~Descriptor() { ::close(fd); }
};

// Memory of one device file used by another one, as an NPU uses a camera's buffer.
TEST(CApiImport, ForeignMemoryIsUsedInPlace) {
  const Device camera("sim:a311d"), npu("sim:a311d");
  skillet_model* model = nullptr;
  ASSERT_EQ(skillet_load_file(npu.device, kModel.c_str(), nullptr, &model), SKILLET_OK) << skillet_last_error();
  skillet_tensor_info in, out;
  ASSERT_EQ(skillet_input_info(model, 0, &in), SKILLET_OK);
  ASSERT_EQ(skillet_output_info(model, 0, &out), SKILLET_OK);
  void *frame = nullptr, *seen = nullptr;
  int dmabuf = -1;
  ASSERT_EQ(skillet_buffer_alloc(camera.device, in.bytes, &frame, &dmabuf), SKILLET_OK) << skillet_last_error();
  size_t bytes = 0;
  {
    const Descriptor own{::fcntl(dmabuf, F_DUPFD_CLOEXEC, 0)};  // closed after the import
    ASSERT_EQ(skillet_buffer_import(npu.device, own.fd, &seen, &bytes), SKILLET_OK) << skillet_last_error();
  }
  EXPECT_GE(bytes, in.bytes);
  EXPECT_NE(seen, frame) << "a view of its own";
  for (size_t i = 0; i < in.bytes; ++i) static_cast<uint8_t*>(frame)[i] = static_cast<uint8_t>(i * 7);
  std::vector<uint8_t> expected(out.bytes), got(out.bytes);
  const auto run = [&](const void* input, std::vector<uint8_t>& output) {
    const void* inputs[] = {input};
    void* outputs[] = {output.data()};
    EXPECT_EQ(skillet_run_on(model, inputs, outputs), SKILLET_OK) << skillet_last_error();
    return skillet_copied_bytes(model);
  };
  EXPECT_EQ(run(frame, expected), in.bytes + out.bytes) << "of another device: copied";
  EXPECT_EQ(run(seen, got), out.bytes) << "the input is in place";
  EXPECT_EQ(got, expected);
  EXPECT_EQ(skillet_buffer_free(npu.device, seen), SKILLET_OK) << skillet_last_error();
  EXPECT_EQ(skillet_buffer_free(npu.device, seen), SKILLET_INVALID_ARGUMENT) << "twice";
  EXPECT_EQ(static_cast<uint8_t*>(frame)[3], 21) << "the exporter's memory stays";
  skillet_close_model(model);
}

TEST(CApiImport, BadCallsAreErrors) {
  const Device npu("sim:a311d"), other("sim:a311d"), cpu("cpu"), rocket("sim:rk3588");
  void *own = nullptr, *data = nullptr;
  int dmabuf = -1;
  size_t bytes = 0;
  ASSERT_EQ(skillet_buffer_alloc(npu.device, 4096, &own, &dmabuf), SKILLET_OK);
  const Descriptor file{::open(kModel.c_str(), O_RDONLY | O_CLOEXEC)}, null{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  struct Row {
    skillet_device* device;
    int fd;
    skillet_status status;
    const char* error;
  };
  const Row rows[] = {
      {npu.device, dmabuf, SKILLET_INVALID_ARGUMENT, "is already a shared buffer of this device"},
      {npu.device, -1, SKILLET_IO, "descriptor -1 is not a shared buffer: Bad file descriptor"},
      {npu.device, null.fd, SKILLET_IO, "is not a shared buffer"},
      {npu.device, file.fd, SKILLET_DEVICE, "holds nothing, or no whole pages"},
      {rocket.device, dmabuf, SKILLET_UNSUPPORTED, "shares no buffers"},
      {cpu.device, dmabuf, SKILLET_UNSUPPORTED, "device 'cpu' shares no buffers"},
      {nullptr, dmabuf, SKILLET_INVALID_ARGUMENT, "device is null"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(skillet_buffer_import(row.device, row.fd, &data, &bytes), row.status) << row.error;
    EXPECT_NE(std::string(skillet_last_error()).find(row.error), std::string::npos) << skillet_last_error();
    EXPECT_EQ(data, nullptr);
    EXPECT_EQ(bytes, 0U);
  }
  EXPECT_EQ(skillet_buffer_import(other.device, dmabuf, nullptr, &bytes), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_buffer_import(other.device, dmabuf, &data, nullptr), SKILLET_INVALID_ARGUMENT);
  std::memset(own, 1, 4096);
  EXPECT_EQ(skillet_buffer_free(npu.device, own), SKILLET_OK) << "a refused import leaves it as it was";
}

struct Lines {
  std::vector<std::pair<int, std::string>> lines;
  static void add(void* user, skillet_log_level level, const char* message) {
    static_cast<Lines*>(user)->lines.emplace_back(level, message);
  }
};

// A folder that cannot exist: loading warns and continues.
const Pairs kWarns = {{"cache_dir", "/dev/null/nowhere"}};

TEST(CApiLog, GoesToAFunction) {
  Lines first, second;
  const Device sim("sim:a311d");
  ASSERT_EQ(skillet_set_log(Lines::add, &first, SKILLET_LOG_DEBUG), SKILLET_OK);
  EXPECT_EQ(load_with(sim, kWarns), SKILLET_OK);
  ASSERT_EQ(skillet_set_log(Lines::add, &second, SKILLET_LOG_ERROR), SKILLET_OK);
  const size_t heard = first.lines.size();
  EXPECT_GT(heard, 0U);
  for (const auto& [level, message] : first.lines) {
    EXPECT_GE(level, SKILLET_LOG_ERROR);
    EXPECT_LE(level, SKILLET_LOG_DEBUG);
    EXPECT_FALSE(message.starts_with("skillet:")) << "without what a terminal needs: " << message;
  }
  EXPECT_EQ(load_with(sim, kWarns), SKILLET_OK);
  EXPECT_EQ(second.lines.size(), 0U) << "nothing that is an error";
  ASSERT_EQ(skillet_set_log(nullptr, nullptr, SKILLET_LOG_ERROR), SKILLET_OK);
  EXPECT_EQ(load_with(sim, kWarns), SKILLET_OK);
  EXPECT_EQ(first.lines.size(), heard);
  EXPECT_EQ(skillet_set_log(Lines::add, &first, static_cast<skillet_log_level>(4)), SKILLET_INVALID_ARGUMENT);
  EXPECT_EQ(skillet_set_log(Lines::add, &first, static_cast<skillet_log_level>(-1)), SKILLET_INVALID_ARGUMENT);
}

TEST(CApiLog, AFunctionMayTakeItselfAway) {
  const Device sim("sim:a311d");
  int calls = 0;
  const auto once = [](void* user, skillet_log_level, const char*) {
    ++*static_cast<int*>(user);
    EXPECT_EQ(skillet_set_log(nullptr, nullptr, SKILLET_LOG_ERROR), SKILLET_OK);
  };
  ASSERT_EQ(skillet_set_log(once, &calls, SKILLET_LOG_DEBUG), SKILLET_OK);
  EXPECT_EQ(load_with(sim, kWarns), SKILLET_OK);
  EXPECT_EQ(calls, 1);
}

}  // namespace
