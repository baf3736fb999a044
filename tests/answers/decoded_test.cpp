// All forms in which `skillet decode` prints a job, its weights, and what `skillet diff` says of the job beside the
// original, for recorded jobs with one word changed, a buffer moved, shortened or left out. See graphs_test.cpp.
#include <cstring>
#include <nlohmann/json.hpp>

#include "answers/lines.h"
#include "answers/small_graph.h"
#include "base/log.h"
#include "lab/compare/compare.h"
#include "npu/driver.h"
#include "runtime/record_program.h"
#include "runtime/trial.h"
#include "tools/jobs/decode_print.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr size_t kWordsOfList = 120;

constexpr const char* kSum = R"(graph "sum"
tensor 0 "a" int8 1x4x5x16 scale=0.05 zero=0
tensor 1 "b" int8 1x4x5x16 scale=0.07 zero=0
tensor 2 "y" int8 1x4x5x16 scale=0.1 zero=0
inputs 0 1
outputs 2
op 0 ADD in=[0 1] out=[2]
)";

class Forms {
 public:
  Forms(const std::string& chip, Hash& decoded, Hash& compared)
      : chip_(npu::find_chip(chip).value()),
        driver_(*npu::driver_of(chip_).value()),
        decoded_(decoded),
        compared_(compared) {}

  void take(const ir::Graph& graph) {
    const auto program = driver_.compile(chip_, graph, {.unproven = npu::Unproven::take});
    if (!program.ok()) return decoded_.add(program.error().message);
    good_ = runtime::record_programs(chip_.name, {{*program, &graph, runtime::trial_inputs(graph, 0)}}).value().capture;
    ask(good_);
    for (size_t at = 0; at < good_.submissions.size(); ++at) {
      change_words(at);
      change_buffers(at);
    }
  }

 private:
  void ask(const capture::Capture& capture) {
    tools::RecordedMemory memory;
    for (const capture::Submission& one : capture.submissions) {
      if (const auto added = memory.add(one); !added.ok()) decoded_.add(added.error().message);
      auto fields = driver_.decode(chip_, one);
      if (!fields.ok()) {
        decoded_.add(fields.error().message);
        continue;
      }
      tools::Decoded decoded{
          .fields = std::move(fields).value(), .submission = one, .index = 0, .ops = {}, .weights = {}};
      decoded_.add(print_operations(decoded) + tools::print_buffers(decoded.fields, one) +
                   tools::print_source(decoded.fields, one));
      decoded_.add(tools::print_all_fields(decoded.fields, one));
      auto weights = tools::weights_of(chip_.name, one, memory);
      if (weights.ok()) decoded.weights = std::move(weights).value();
      decoded_.add(tools::to_json(decoded).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    compare(good_, capture);
    compare(capture, good_);
  }
  void compare(const capture::Capture& a, const capture::Capture& b) {
    const auto compared = npu::compare(driver_, chip_, {.reader = capture::Reader::of(a), .tensors = {}},
                                       {.reader = capture::Reader::of(b), .tensors = {}});
    if (!compared.ok()) return compared_.add(compared.error().message);
    for (const npu::Difference& one : compared->differences)
      compared_.add(fmt::format("{} {} {} {} {}", static_cast<int>(one.kind), one.submission, one.path, one.a, one.b));
    for (const npu::MatchedMemory& one : compared->memory)
      compared_.add(fmt::format("{} {} {}", one.handle_a, one.handle_b, one.distance));
    for (const std::string& one : compared->jobs) compared_.add(one);
  }

  void change_words(size_t at) {
    for (size_t job = 0; job < good_.submissions[at].jobs.size(); ++job) {
      for (size_t list = 0; list < good_.submissions[at].jobs[job].commands.size(); ++list) {
        capture::Capture changed = good_;
        std::vector<uint32_t>& words = changed.submissions[at].jobs[job].commands[list].words;
        for (size_t i = 0; i < words.size(); i += 1 + words.size() / kWordsOfList) {
          const uint32_t old = words[i];
          for (const uint32_t other : {old ^ 1U << next_bit_++ % 32, old + 64, 0U}) {
            words[i] = other;
            ask(changed);
          }
          words[i] = old;
        }
      }
    }
  }
  void change_buffers(size_t at) {
    using Change = std::function<void(capture::BufferSnapshot&)>;
    const Change changes[] = {
        [](auto& one) { one.address += 64; },
        [](auto& one) { one.address = 0; },
        [](auto& one) { one.size_bytes -= 1; },
        [](auto& one) { one.size_bytes /= 2; },
        [](auto& one) { one.size_bytes += 4096; },
        [](auto& one) { one.listed = !one.listed; },
        [](auto& one) { one.read = !one.read; },
        [](auto& one) { one.write = !one.write; },
        [](auto& one) { one.holds_input = !one.holds_input; },
        [](auto& one) { one.handle += 100; },
        [](auto& one) { one.content = capture::Content::unknown; },
        [](auto& one) { one.content = capture::Content::zero; },
    };
    for (size_t i = 0; i < good_.submissions[at].buffers.size(); ++i) {
      for (const Change& change : changes) {
        capture::Capture changed = good_;
        change(changed.submissions[at].buffers[i]);
        ask(changed);
      }
      capture::Capture less = good_, more = good_, turned = good_;
      auto& buffers = less.submissions[at].buffers;
      buffers.erase(buffers.begin() + static_cast<std::ptrdiff_t>(i));
      ask(less);
      more.submissions[at].buffers.push_back(more.submissions[at].buffers[i]);
      more.submissions[at].buffers.back().handle += 200;
      more.submissions[at].buffers.back().address += uint64_t{1} << 28;
      ask(more);
      std::swap(turned.submissions[at].buffers[i], turned.submissions[at].buffers[0]);
      ask(turned);
    }
  }

  npu::Chip chip_;
  const npu::Driver& driver_;
  Hash &decoded_, &compared_;
  capture::Capture good_;
  uint32_t next_bit_ = 0;
};

TEST(Answers, OfDecodedFormsAndDifferences) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> decoded, compared;
  for (const char* chip : {"a311d", "imx8mp", "rk3588", "rk3576", "imx93"}) {
    Forms forms(chip, decoded[chip], compared[chip]);
    forms.take(small_graph());
    forms.take(ir::parse(kSum).value());
  }
  expect_hashes(kFile, "decoded_forms ", decoded);
  expect_hashes(kFile, "differences ", compared);
}

}  // namespace
}  // namespace skillet::answers
