// What skillet_streams prints of a program must not depend on how buffers are numbered or shared, and on everything
// else that a device sees.
#include "streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "compile_model.h"

namespace skillet::golden {
namespace {

using driver::BufferId;
using driver::BufferRole;
using driver::Program;

// A chain with a residual addition: several jobs' descriptors, coefficients, layout copies.
const CompiledModel& model() {
  static const auto model =
      compile_model(std::string(SKILLET_SOURCE_DIR) + "/tests/golden/small/models/gen/add_8_3_1_16_1_0_0_0_4.tflite",
                    *driver::find_chip("a311d"), {});
  return *model;
}
const Program& program() { return model().parts.at(0).program; }

nlohmann::json view(const Program& changed) {
  nlohmann::json seen = device_view(changed, model().parts.at(0).graph);
  seen.erase("buffers");
  return seen;
}

void for_each_relocation(Program& p, const std::function<void(uint32_t& at, driver::Relocation& r)>& visit) {
  for (auto* jobs : {&p.init_jobs, &p.jobs}) {
    for (driver::Job& job : *jobs) {
      uint32_t unused = 0;
      for (driver::Relocation& r : job.relocations) visit(unused, r);
    }
  }
  for (driver::BufferRelocations& list : p.buffer_relocations) {
    for (driver::Relocation& r : list.relocations) visit(list.buffer, r);
  }
}

// Buffer b becomes number to[b], moved by offset[b] bytes.
Program move_buffers(Program p, const std::vector<BufferId>& to, const std::vector<uint64_t>& offset, size_t count) {
  std::vector<driver::Buffer> buffers(count);
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    driver::Buffer& target = buffers[to[b]];
    target.role = p.buffers[b].role;
    target.size_bytes = std::max(target.size_bytes, offset[b] + p.buffers[b].size_bytes);
    const Bytes& contents = p.buffers[b].contents;
    if (contents.empty()) continue;
    target.contents.resize(std::max<size_t>(target.contents.size(), offset[b] + contents.size()));
    std::copy(contents.begin(), contents.end(), target.contents.begin() + static_cast<ptrdiff_t>(offset[b]));
  }
  for_each_relocation(p, [&](uint32_t&, driver::Relocation& r) {
    r.target_offset_bytes += offset[r.target];
    r.target = to[r.target];
  });
  for (driver::BufferRelocations& list : p.buffer_relocations) {
    for (driver::Relocation& r : list.relocations) r.word_offset_bytes += static_cast<uint32_t>(offset[list.buffer]);
    list.buffer = to[list.buffer];
  }
  for (driver::Job& job : p.jobs) {
    std::vector<driver::BufferUse> uses;
    for (driver::BufferUse use : job.buffers) {
      use.buffer = to[use.buffer];
      if (std::find(uses.begin(), uses.end(), use) == uses.end()) uses.push_back(use);
    }
    job.buffers = uses;
  }
  for (auto* list : {&p.inputs, &p.outputs, &p.intermediates}) {
    for (driver::TensorBinding& t : *list) {
      t.offset_bytes += offset[t.buffer];
      t.buffer = to[t.buffer];
    }
  }
  p.buffers = std::move(buffers);
  return p;
}

TEST(Streams, BufferNumbersAreNotSeen) {
  const size_t n = program().buffers.size();
  std::vector<BufferId> to(n);
  std::iota(to.rbegin(), to.rend(), BufferId{0});
  const Program moved = move_buffers(program(), to, std::vector<uint64_t>(n, 0), n);
  EXPECT_NE(moved, program());
  EXPECT_EQ(view(moved), view(program()));
}

TEST(Streams, SharedConstantsAreNotSeen) {
  const size_t n = program().buffers.size();
  std::vector<BufferId> to(n);
  std::vector<uint64_t> offset(n, 0);
  BufferId next = 1;
  uint64_t end = 0;
  for (size_t b = 0; b < n; ++b) {
    const driver::Buffer& buffer = program().buffers[b];
    if (buffer.role != BufferRole::constant) {
      to[b] = next++;
      continue;
    }
    offset[b] = end;
    end += (buffer.size_bytes + 63) / 64 * 64;
  }
  ASSERT_LT(next, n - 1);
  Program moved = move_buffers(program(), to, offset, next);
  driver::BufferRelocations merged;
  for (const driver::BufferRelocations& list : moved.buffer_relocations)
    merged.relocations.insert(merged.relocations.end(), list.relocations.begin(), list.relocations.end());
  moved.buffer_relocations = {merged};
  EXPECT_EQ(view(moved), view(program()));
}

struct Change {
  const char* what;
  std::function<void(Program&)> apply;
};
const Change kChanges[] = {
    {"a command bit", [](Program& p) { p.jobs[0].stream[9] ^= 1; }},
    {"a command more", [](Program& p) { p.jobs[0].stream.push_back(0); }},
    {"the first job", [](Program& p) { p.init_jobs.clear(); }},
    {"a job twice", [](Program& p) { p.jobs.push_back(p.jobs[0]); }},
    {"a bit of the last constant", [](Program& p) { p.buffers.back().contents.at(0) ^= 0x80; }},
    {"a bit of a descriptor", [](Program& p) { p.buffers[0].contents.at(0) ^= 1; }},
    {"an address's offset", [](Program& p) { p.buffer_relocations[0].relocations[1].target_offset_bytes += 1; }},
    {"an address's shift", [](Program& p) { p.buffer_relocations[0].relocations[1].shift += 1; }},
    {"an address's width", [](Program& p) { p.buffer_relocations[0].relocations[1].width -= 1; }},
    {"where an address stands", [](Program& p) { p.buffer_relocations[0].relocations[1].word_offset_bytes += 4; }},
    {"two addresses exchanged",
     [](Program& p) {
       auto& list = p.buffer_relocations[0].relocations;
       std::swap(list[0].target, list[1].target);
     }},
    {"no address", [](Program& p) { p.buffer_relocations[0].relocations.pop_back(); }},
    {"a buffer not listed", [](Program& p) { p.jobs[0].buffers.pop_back(); }},
    {"a buffer listed otherwise", [](Program& p) { p.jobs[0].buffers.back().read ^= true; }},
    {"where the output lies", [](Program& p) { p.outputs[0].offset_bytes += 1; }},
    {"the order of the output", [](Program& p) { p.outputs[0].layout = driver::Layout::nchw_planar; }},
    {"the sign of the input", [](Program& p) { p.inputs[0].xor_byte ^= 0x80; }},
    {"input and output exchanged", [](Program& p) { std::swap(p.inputs[0].buffer, p.outputs[0].buffer); }},
};

TEST(Streams, EverythingElseIsSeen) {
  for (const Change& change : kChanges) {
    Program changed = program();
    change.apply(changed);
    EXPECT_NE(view(changed), view(program())) << change.what;
  }
}

}  // namespace
}  // namespace skillet::golden
