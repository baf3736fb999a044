// What the emulated kernel drivers answer after one word of one call's argument was changed, and what the client and
// the runtime make of it: error numbers, reasons, results. See graphs_test.cpp.
#include <thread>

#include "answers/lines.h"
#include "answers/small_graph.h"
#include "base/log.h"
#include "compile/compile.h"
#include "kernels/api/forwarding_calls.h"
#include "kernels/api/kernels.h"
#include "kernels/ethosu/abi.h"
#include "kernels/etnaviv/abi.h"
#include "kernels/fake/in_process.h"
#include "kernels/fake/kernels.h"
#include "kernels/rocket/abi.h"
#include "npu/driver.h"
#include "runtime/loaded_program.h"
#include "runtime/trial.h"
#include "sim/sim.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr size_t kPadding = 1 << 16;  // zeros behind each array, for counts that are too large
constexpr size_t kWordsOfArray = 10;  // that are changed

namespace etnaviv = kernels::etnaviv;
namespace rocket = kernels::rocket;
namespace ethosu = kernels::ethosu;

// The change of a run: a word of a call, both counted from 0, and the number of the change.
struct Change {
  size_t call = SIZE_MAX, word = 0, kind = 0;
};
constexpr size_t kKinds = 8;
uint32_t changed(uint32_t old, size_t kind) {
  const std::array<uint32_t, kKinds> others = {0, 1, 3, old + 1, old - 1, ~uint32_t{0}, old ^ 0x80000000, old * 2};
  return others[kind];
}

// Copies of a call's argument and of the arrays that it points to, with one word changed.
class Copied {
 public:
  Copied(unsigned long request, void* argument) : request_(request), argument_(static_cast<uint8_t*>(argument)) {
    size_ = _IOC_SIZE(request);
    own_ = add(argument, size_);
    if (request == etnaviv::kGemSubmit) {
      auto& args = *reinterpret_cast<etnaviv::GemSubmit*>(own_);
      follow(args.bos, args.nr_bos * sizeof(etnaviv::SubmitBo)), follow(args.stream, args.stream_size);
      follow(args.relocs, args.nr_relocs * sizeof(etnaviv::SubmitReloc)), follow(args.pmrs, 0);
      words(own_, {0, 1, 2, 3, 4, 5, 12, 13, 16, 17});
    } else if (request == rocket::kSubmit && size_ == sizeof(rocket::Submit) && _IOC_DIR(request) == _IOC_WRITE) {
      auto& args = *reinterpret_cast<rocket::Submit*>(own_);
      const uint32_t count = args.job_count;
      auto* const jobs =
          reinterpret_cast<rocket::SubmitJob*>(follow(args.jobs, count * sizeof(rocket::SubmitJob), false));
      for (uint32_t i = 0; i < count; ++i) {
        follow(jobs[i].tasks, jobs[i].task_count * sizeof(rocket::Task));
        follow(jobs[i].in_bo_handles, jobs[i].in_bo_handle_count * sizeof(uint32_t));
        follow(jobs[i].out_bo_handles, jobs[i].out_bo_handle_count * sizeof(uint32_t));
        words(reinterpret_cast<uint8_t*>(&jobs[i]), {6, 7, 8, 9});
      }
      words(own_, {2, 3, 4, 5});
    } else if (request == ethosu::kSubmit) {
      auto& args = *reinterpret_cast<ethosu::Submit*>(own_);
      follow(args.jobs, args.job_count * sizeof(ethosu::SubmitJob));
      words(own_, {2, 3});
    } else if (request == ethosu::kCmdstreamBoCreate) {
      auto& args = *reinterpret_cast<ethosu::CmdstreamBoCreate*>(own_);
      follow(args.data, args.size);
      words(own_, {0, 1, 4, 5});
    } else if (request == ethosu::kDevQuery) {
      words(own_, {0, 1});
    } else if (request != kernels::drm::kVersion) {
      for (size_t i = 0; i < size_ / 4; ++i)
        if (!is_time(request, i) && !is_offset(request, i)) words(own_, {i});
    }
  }

  size_t count() const { return words_.size(); }
  void change(const Change& change) {
    uint8_t* const at = words_[change.word];
    const auto old = load_le<uint32_t>(at);
    const bool is_size = request_ == etnaviv::kGemNew && change.word < 2;  // clients try again for some time: few bytes
    store_le(at, is_size && change.kind > 4 ? old + 4096 * (change.word == 0) : changed(old, change.kind));
  }
  void* argument() { return own_; }
  // Gives the results back, with the caller's pointers. Returns them as text.
  std::string finish() {
    std::string out;
    for (uint8_t* const word : words_)
      if (word >= own_ && word < own_ + size_) out += fmt::format(" {:x}", load_le<uint32_t>(word));
    for (const auto& [field, old] : pointers_) store_le(field, old);
    std::memcpy(argument_, own_, size_);
    return out;
  }

 private:
  // Other times would make answers depend on the host's speed.
  static bool is_time(unsigned long request, size_t word) {
    if (request == etnaviv::kGemCpuPrep) return word >= 2;
    if (request == etnaviv::kWaitFence || request == etnaviv::kGemWait) return word >= 4;
    return (request == rocket::kPrepBo || request == ethosu::kBoWait) && word >= 2;
  }
  // Offsets for mmap() are a result, and differ between runs.
  static bool is_offset(unsigned long request, size_t word) {
    return (request == rocket::kCreateBo && word >= 4) ||
           ((request == etnaviv::kGemInfo || request == ethosu::kBoMmapOffset) && word >= 2);
  }
  uint8_t* add(const void* from, size_t size_bytes) {
    Bytes& copy = *copies_.emplace_back(std::make_unique<Bytes>(size_bytes + kPadding));
    if (size_bytes != 0) std::memcpy(copy.data(), from, size_bytes);
    return copy.data();
  }
  uint8_t* follow(uint64_t& pointer, size_t size_bytes, bool is_changed = true) {
    uint8_t* const copy = add(reinterpret_cast<const void*>(pointer), size_bytes);
    pointers_.emplace_back(reinterpret_cast<uint8_t*>(&pointer), pointer);
    pointer = reinterpret_cast<uint64_t>(copy);
    for (size_t i = 0; is_changed && i < std::min(size_bytes / 4, kWordsOfArray); ++i) words(copy, {i});
    return copy;
  }
  void words(uint8_t* base, std::initializer_list<size_t> which) {
    for (const size_t i : which) words_.push_back(base + i * 4);
  }

  unsigned long request_;
  uint8_t* argument_;
  uint8_t* own_ = nullptr;
  size_t size_ = 0;
  std::vector<std::unique_ptr<Bytes>> copies_;
  std::vector<std::pair<uint8_t*, uint64_t>> pointers_;
  std::vector<uint8_t*> words_;
};

class ChangedCalls final : public kernels::ForwardingCalls {
 public:
  ChangedCalls(const std::shared_ptr<fake::InProcess>& below, const Change& change)
      : ForwardingCalls(below), kernel_(below->kernel()), change_(change) {}

  int close(int fd) override { return said("close", below_->close(fd)); }
  int ioctl(int fd, unsigned long request, void* argument) override {
    Copied copied(request, argument);
    if (counts.size() == change_.call && change_.word < copied.count()) copied.change(change_);
    counts.push_back(copied.count());
    const int result = below_->ioctl(fd, request, copied.argument());
    const std::string words = copied.finish();
    if (request == rocket::kSubmit) let_jobs_end();
    return said(fmt::format("{:x}{}", _IOC_NR(request), result == 0 ? words : " " + below_->reason()), result);
  }
  int mmap(int fd, uint64_t size_bytes, uint64_t offset, uint8_t*& bytes) override {
    const bool is_changed = counts.size() == change_.call;
    counts.push_back(1);
    if (is_changed) (change_.kind % 2 == 0 ? size_bytes : offset) += change_.kind < 3 ? 4096 : 1;
    return said("mmap", below_->mmap(fd, size_bytes, offset, bytes));
  }

  std::vector<size_t> counts;  // of words, for each call
  std::string log;

 private:
  int said(const std::string& call, int result) {
    const std::string line = fmt::format("{}: {}\n", call, result);
    if (!log.ends_with(line)) log += line;  // clients try again for some time
    return result;
  }
  // Jobs of rocket run in threads: later calls depend on whether they have ended.
  void let_jobs_end() {
    for (int i = 0; i < 200; ++i) {
      if (const std::lock_guard lock(kernel_.state()); kernel_.jobs().all_finished()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  fake::Kernel& kernel_;
  Change change_;
};

// Loads a program, runs it twice and closes the device, with one change. Returns the calls' log.
class Session {
 public:
  explicit Session(const char* name) : chip_(npu::find_chip(name).value()) {
    program_ = npu::driver_of(chip_).value()->compile(chip_, graph_, {.unproven = npu::Unproven::take}).value();
  }

  std::string run(const Change& change, std::vector<size_t>* counts) const {
    const std::string node = "sim:" + chip_.name;
    auto kernel = fake::create_kernel(chip_.name, sim::create(chip_.name).value(),
                                      {.faults = {},
                                       .is_own_process = true,
                                       .checks_lists = true,
                                       .on_misuse = fake::OnMisuse::report,
                                       .clock = nullptr});
    const auto fake = std::make_shared<fake::InProcess>(std::move(kernel), node);
    const auto calls = std::make_shared<ChangedCalls>(fake, change);
    std::string said = use(node, calls);
    if (counts != nullptr) *counts = calls->counts;
    return calls->log + said;
  }

 private:
  std::string use(const std::string& node, const std::shared_ptr<ChangedCalls>& calls) const {
    const auto report = kernels::ask_node(node, calls);
    if (!report.ok()) return report.error().message;
    if (report->cores.empty()) return "no cores";
    auto device = kernels::open_core(report->cores[0], calls);
    if (!device.ok()) return device.error().message;
    auto context = std::make_shared<runtime::DeviceContext>();
    context->device = std::move(*device);
    context->chip = chip_.name;
    const bool is_threaded = chip_.family != "vivante";  // else jobs run within the call
    auto loaded = runtime::LoadedProgram::load(
        context, program_, graph_, is_threaded ? std::chrono::milliseconds(3000) : std::chrono::milliseconds(60));
    if (!loaded.ok()) return loaded.error().message;
    Bytes input = runtime::trial_inputs(graph_, 0).at(0), output(graph_.tensor(3).shape.elems());
    std::string out;
    for (int i = 0; i < 2; ++i) {
      std::ranges::fill(output, uint8_t{0});
      const auto ran = (*loaded)->run([&](ir::TensorId id) { return std::span(id == 0 ? input : output); });
      out += ran.ok() ? fmt::format("{:x}\n", XXH3_64bits(output.data(), output.size())) : ran.error().message;
    }
    return out;
  }

  const npu::Chip chip_;
  const ir::Graph graph_ = small_graph();
  npu::Program program_;
};

std::string hashes_of(const char* chip, size_t step) {
  const log::ScopedLevel quiet(log::Level::error);
  const Session session(chip);
  std::vector<size_t> counts;
  Hash hash;
  hash.add(session.run({}, &counts));
  size_t next = 0;
  testing::internal::CaptureStderr();  // reports of misuse
  for (size_t call = 0; call < counts.size(); ++call)
    for (size_t word = 0; word < counts[call]; ++word)
      for (size_t kind = 0; kind < kKinds; ++kind)
        if (next++ % step == 0) hash.add(session.run({call, word, kind}, nullptr));
  testing::internal::GetCapturedStderr();
  return fmt::format("{} said {}", hash.count(), hash.text());
}

// Clients of etnaviv wait for seconds in some cases, so it is a long test.
TEST(Answers, OfCallsWithAWordChanged) {
  Lines now;
  for (const char* chip : {"rk3588", "imx93"}) now[fmt::format("calls {}", chip)] = hashes_of(chip, 13);
  expect_lines(kFile, "calls ", now);
}
TEST(Answers, OfManyCallsWithAWordChanged) {
  Lines now;
  for (const auto& [chip, step] : {std::pair("a311d", 3), {"rk3588", 1}, {"imx93", 1}})
    now[fmt::format("many_calls {}", chip)] = hashes_of(chip, static_cast<size_t>(step));
  expect_lines(kFile, "many_calls ", now);
}

}  // namespace
}  // namespace skillet::answers
