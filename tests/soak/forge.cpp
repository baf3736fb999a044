#include "forge.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace skillet::soak {
namespace {

using npu::Buffer;
using npu::Job;
using npu::Program;
using npu::Relocation;

class Forger {
 public:
  Forger(Program& program, std::mt19937& random) : p_(program), random_(random) {}

  void change() {
    switch (below(12)) {
      case 0: return relocation_offset();
      case 1: return relocation_target();
      case 2: return relocation_bits();
      case 3: return no_relocation();
      case 4: return buffer_size();
      case 5: return job();
      default: return word();
    }
  }

 private:
  uint64_t below(uint64_t count) { return count == 0 ? 0 : random_() % count; }
  template <typename T>
  T& any_of(std::vector<T>& from) {
    return from[below(from.size())];
  }

  // Chooses a buffer with relocations in seven of eight draws: changes of descriptors and commands find more than
  // changes of weights.
  Buffer* any_buffer() {
    std::vector<Buffer*> led, plain;
    for (Buffer& one : p_.buffers) {
      if (!one.contents.empty())
        (one.relocations.empty() && !(one.role == npu::BufferRole::commands) ? plain : led).push_back(&one);
    }
    std::vector<Buffer*>& from = !led.empty() && (plain.empty() || below(8) != 0) ? led : plain;
    return from.empty() ? nullptr : any_of(from);
  }

  uint64_t other(uint64_t value, int bits) {
    const uint64_t ones = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
    switch (below(9)) {
      case 0: return 0;
      case 1: return ones;
      case 2: return ones >> 1;
      case 3: return value + 1 + below(4);
      case 4: return value - 1 - below(4);
      case 5: return value << 1;
      case 6: return value >> 1;
      case 7: return (uint64_t{random_()} << 32 | random_()) & ones >> below(static_cast<uint64_t>(bits));
      default: return value ^ (uint64_t{1} << below(static_cast<uint64_t>(bits)));
    }
  }

  // Changes a byte, half a word, a word, or some bits of it. In one of four draws near the start: headers of weights.
  void word() {
    Buffer* const buffer = any_buffer();
    if (buffer == nullptr) return;
    Bytes bytes(buffer->contents.begin(), buffer->contents.end());
    constexpr std::array<size_t, 4> kSizes = {1, 2, 4, 4};
    const size_t size = std::min(kSizes[below(4)], bytes.size());
    const size_t room = below(4) == 0 ? std::min<size_t>(bytes.size(), 256) : bytes.size();
    const size_t at = below(room / size) * size;
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, size);
    const int bits = static_cast<int>(size) * 8,
              lsb = static_cast<int>(below(2) == 0 ? 0 : below(static_cast<uint64_t>(bits)));
    const uint32_t high = static_cast<uint32_t>(other(value >> lsb, bits - lsb)) << lsb;
    value = high | (value & ((uint32_t{1} << lsb) - 1));
    std::memcpy(bytes.data() + at, &value, size);
    buffer->contents = std::move(bytes);
  }

  Relocation* any_relocation() {
    std::vector<Relocation*> all;
    for (Buffer& one : p_.buffers) {
      for (Relocation& r : one.relocations) all.push_back(&r);
    }
    return all.empty() ? nullptr : any_of(all);
  }
  void relocation_offset() {
    Relocation* const r = any_relocation();
    if (r == nullptr) return;
    const uint64_t size = p_.buffers[r->target].size_bytes,
                   unit = uint64_t{1} << std::max<int>(r->shift, static_cast<int>(4 * below(3)));
    switch (below(4)) {
      case 0: r->target_offset_bytes = below(size / unit + 1) * unit; break;
      case 1: r->target_offset_bytes = size - std::min(size, unit * below(64)); break;
      case 2: r->target_offset_bytes += unit * (1 + below(16)); break;
      default: r->target_offset_bytes -= std::min(r->target_offset_bytes, unit * (1 + below(16)));
    }
    if (below(2) == 0) r->target_offset_bytes = r->target_offset_bytes / unit * unit;
  }
  void relocation_target() {
    Relocation* const r = any_relocation();
    if (r != nullptr) r->target = static_cast<npu::BufferId>(below(p_.buffers.size()));
  }
  void relocation_bits() {
    Relocation* const r = any_relocation();
    if (r == nullptr) return;
    switch (below(4)) {
      case 0: r->at_byte += 4; break;
      case 1: r->shift = static_cast<uint8_t>(below(8)); break;
      case 2: r->lsb = static_cast<uint8_t>(below(33)); break;
      default: r->width_bits = static_cast<uint8_t>(1 + below(32));
    }
  }
  void no_relocation() {
    Buffer& buffer = any_of(p_.buffers);
    if (buffer.relocations.empty()) return;
    buffer.relocations.erase(buffer.relocations.begin() +
                             static_cast<std::ptrdiff_t>(below(buffer.relocations.size())));
  }

  void buffer_size() {
    Buffer& buffer = any_of(p_.buffers);
    const uint64_t size = buffer.size_bytes;
    const uint64_t step = uint64_t{1} << below(12);
    buffer.size_bytes = below(3) != 0 ? std::max<uint64_t>(size - std::min(size, step), 1) : size + step;
    if (below(4) == 0) buffer.size_bytes = 1 + below(size);
    if (buffer.contents.size() > buffer.size_bytes)
      buffer.contents =
          Bytes(buffer.contents.begin(), buffer.contents.begin() + static_cast<std::ptrdiff_t>(buffer.size_bytes));
    if (buffer.role == npu::BufferRole::commands) {
      Bytes bytes(buffer.contents.begin(), buffer.contents.end());
      bytes.resize(buffer.size_bytes);
      buffer.contents = std::move(bytes);
    }
  }

  void job() {
    if (p_.jobs.empty()) return;
    Job& one = any_of(p_.jobs);
    Job& another = any_of(p_.jobs);
    if (one.commands.empty() || another.commands.empty()) return;
    switch (below(8)) {
      case 0:
        if (!one.uses.empty()) any_of(one.uses).write ^= true;
        return;
      case 1:
        if (!one.uses.empty()) one.uses.erase(one.uses.begin() + static_cast<std::ptrdiff_t>(below(one.uses.size())));
        return;
      case 2: any_of(one.commands).offset_bytes += 8 * (1 + below(4)); return;
      case 3:
        any_of(one.commands).size_bytes -= std::min<uint64_t>(any_of(one.commands).size_bytes, 8 * below(16));
        return;
      case 4: any_of(one.commands).size_bytes += 8 * below(16); return;
      case 5: std::swap(one.commands, another.commands); return;
      case 6: std::swap(any_of(one.commands), any_of(another.commands)); return;
      default: one.commands.erase(one.commands.begin() + static_cast<std::ptrdiff_t>(below(one.commands.size())));
    }
  }

  Program& p_;
  std::mt19937& random_;
};

}  // namespace

Program forge(const Program& program, std::mt19937& random) {
  Program out = program;
  for (uint32_t changes = 1 + random() % 4; changes > 0; --changes) Forger(out, random).change();
  return out;
}

}  // namespace skillet::soak
