// A program that drives an etnaviv node: prints each call with its result, and whether a recorded job computes the
// right output. Needs only the node, so it also runs on other machines and under emulation.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "node.h"

namespace skillet::interpose_test {
namespace {

constexpr int64_t kPatienceMs = 300;

void print(const char* call, int failure) {
  std::printf("%s %s\n", call, failure == 0 ? "fine" : ::strerrorname_np(failure));
}

const char* judge(const RecordedJob& job) {
  const std::vector<uint8_t> output = job.output();
  bool is_zero = true, is_right = true;
  for (size_t i = 0; i < output.size(); ++i) {
    is_zero = is_zero && output[i] == 0;
    is_right = is_right && std::abs(output[i] - job.expected()[i]) <= 1;
  }
  return is_right ? "right" : is_zero ? "unwritten" : "wrong";
}

void run_once(const Node& node, const RecordedJob& job) {
  job.clear_output();
  uint32_t fence = 0;
  print("submit", job.submit(node, 0, fence));
  print("wait_fence", node.wait(fence, kPatienceMs));
  print("gem_cpu_prep", node.prepare(job.output_handle(), abi::kPrepRead, kPatienceMs));
  abi::GemCpuFini finish{.handle = job.output_handle(), .flags = 0};
  print("gem_cpu_fini", node.call(abi::kGemCpuFini, finish));
  std::printf("output %s\n", judge(job));
}

void ask(const Node& node) {
  char name[16] = {};
  drm::Version version{};
  version.name = name;
  version.name_len = sizeof name - 1;
  print("version", node.call(drm::kVersion, version));
  abi::GetParam param{.pipe = 0, .param = abi::kParamModel, .value = 0};
  print("get_param", node.call(abi::kGetParam, param));
}

int run(const std::string& folder, bool crashes) {
  auto job = RecordedJob::load(folder);
  if (!job.ok()) {
    std::fprintf(stderr, "%s\n", job.error().message.c_str());
    return 2;
  }
  const Node node;
  print("open", node.open_error());
  if (node.open_error() != 0) return 0;
  ask(node);
  const std::string failed = job->allocate(node);
  std::printf("allocate %s\n", failed.empty() ? "fine" : failed.c_str());
  if (!failed.empty()) return 0;
  run_once(node, *job);
  if (crashes) {
    std::fflush(stdout);
    std::abort();
  }
  run_once(node, *job);
  drm::PrimeHandle prime{.handle = job->input_handle(), .flags = 0, .fd = -1};
  print("prime_handle_to_fd", node.call(drm::kPrimeHandleToFd, prime));
  print("gem_close", node.close_buffer(job->input_handle()));
  return 0;
}

}  // namespace
}  // namespace skillet::interpose_test

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER-OF-A-RECORDED-JOB [--crash]\n", argv[0]);
    return 2;
  }
  return skillet::interpose_test::run(argv[1], argc > 2 && std::strcmp(argv[2], "--crash") == 0);
}
