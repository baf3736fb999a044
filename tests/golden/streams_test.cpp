// The output of skillet_streams for a program must not depend on the numbering or sharing of buffers, and must depend
// on everything else that a device reads.
#include "streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/testing/in_tree.h"
#include "compile_model.h"

namespace skillet::golden {
namespace {

using npu::BufferId;
using npu::BufferRole;
using npu::Program;

// A chain with a residual addition: several jobs' descriptors, coefficients, layout copies.
const CompiledModel& model() {
  static const auto model = compile_model(
      skillet::in_tree("tests/golden/small/models/gen/add_8_3_1_16_1_0_0_0_4.tflite"), *npu::find_chip("a311d"), {});
  return *model;
}
const Program& program() { return model().parts.at(0).program; }

nlohmann::json view(const Program& changed) {
  nlohmann::json seen = device_view(changed, model().parts.at(0).graph);
  seen.erase("buffers");
  return seen;
}

Bytes copy_of(const SharedBytes& bytes) { return {bytes.begin(), bytes.end()}; }

// Moves each buffer b to number to[b], offset[b] bytes further.
Program move_buffers(Program p, const std::vector<BufferId>& to, const std::vector<uint64_t>& offset, size_t count) {
  std::vector<npu::Buffer> buffers(count);
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    npu::Buffer& target = buffers[to[b]];
    target.role = p.buffers[b].role;
    target.size_bytes = std::max(target.size_bytes, offset[b] + p.buffers[b].size_bytes);
    for (npu::Relocation r : p.buffers[b].relocations) {
      r.at_byte += offset[b];
      r.target_offset_bytes += offset[r.target];
      r.target = to[r.target];
      target.relocations.push_back(r);
    }
    const SharedBytes& contents = p.buffers[b].contents;
    if (contents.empty()) continue;
    Bytes all = copy_of(target.contents);
    all.resize(std::max<size_t>(all.size(), offset[b] + contents.size()));
    std::copy(contents.begin(), contents.end(), all.begin() + static_cast<ptrdiff_t>(offset[b]));
    target.contents = std::move(all);
  }
  for (auto* jobs : {&p.init_jobs, &p.jobs}) {
    for (npu::Job& job : *jobs) {
      for (npu::ByteRange& range : job.commands) {
        range.offset_bytes += offset[range.buffer];
        range.buffer = to[range.buffer];
      }
      std::vector<npu::BufferUse> uses;
      for (npu::BufferUse use : job.uses) {
        use.buffer = to[use.buffer];
        if (std::find(uses.begin(), uses.end(), use) == uses.end()) uses.push_back(use);
      }
      job.uses = uses;
    }
  }
  for (auto* list : {&p.inputs, &p.outputs, &p.intermediates}) {
    for (npu::TensorBinding& t : *list) {
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
    const npu::Buffer& buffer = program().buffers[b];
    if (buffer.role != BufferRole::constant) {
      to[b] = next++;
      continue;
    }
    offset[b] = end;
    end += (buffer.size_bytes + 63) / 64 * 64;
  }
  ASSERT_LT(next, n - 1);
  EXPECT_EQ(view(move_buffers(program(), to, offset, next)), view(program()));
}

void flip(npu::Buffer& buffer, size_t at, uint8_t mask) {
  Bytes bytes = copy_of(buffer.contents);
  bytes.at(at) ^= mask;
  buffer.contents = std::move(bytes);
}
npu::Buffer& with_role(Program& p, BufferRole role, bool last = false) {
  const auto has_role = [role](const npu::Buffer& b) { return b.role == role; };
  return last ? *std::find_if(p.buffers.rbegin(), p.buffers.rend(), has_role)
              : *std::find_if(p.buffers.begin(), p.buffers.end(), has_role);
}
npu::Relocation& address(Program& p) { return with_role(p, BufferRole::constant).relocations[1]; }

struct Change {
  const char* what;
  std::function<void(Program&)> apply;
};
const Change kChanges[] = {
    {"a command bit", [](Program& p) { flip(with_role(p, BufferRole::commands), 36, 1); }},
    {"a command less", [](Program& p) { p.jobs[0].commands[0].size_bytes -= 4; }},
    {"the first job", [](Program& p) { p.init_jobs.clear(); }},
    {"a job twice", [](Program& p) { p.jobs.push_back(p.jobs[0]); }},
    {"a bit of the last constant", [](Program& p) { flip(with_role(p, BufferRole::constant, true), 0, 0x80); }},
    {"a bit of a descriptor", [](Program& p) { flip(with_role(p, BufferRole::constant), 0, 1); }},
    {"an address's offset", [](Program& p) { address(p).target_offset_bytes += 1; }},
    {"an address's shift", [](Program& p) { address(p).shift += 1; }},
    {"an address's width", [](Program& p) { address(p).width_bits -= 1; }},
    {"where an address stands", [](Program& p) { address(p).at_byte += 4; }},
    {"two addresses exchanged",
     [](Program& p) {
       auto& list = with_role(p, BufferRole::constant).relocations;
       std::swap(list[0].target, list[1].target);
     }},
    {"no address", [](Program& p) { with_role(p, BufferRole::constant).relocations.pop_back(); }},
    {"a buffer not listed", [](Program& p) { p.jobs[0].uses.pop_back(); }},
    {"a buffer listed otherwise", [](Program& p) { p.jobs[0].uses.back().read ^= true; }},
    {"where the output is", [](Program& p) { p.outputs[0].offset_bytes += 1; }},
    {"the order of the output",
     [](Program& p) {
       npu::TensorBinding& output = p.outputs[0];
       const ir::Graph& graph = model().parts.at(0).graph;
       output.layout = npu::planar_layout(npu::image_shape(graph.tensor(output.tensor)), output.layout.xor_byte);
     }},
    {"the sign of the input", [](Program& p) { p.inputs[0].layout.xor_byte ^= 0x80; }},
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
