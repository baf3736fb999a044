// For the unit tests of npus/vivante/sim: device memory that owns its bytes, and a writer of V7 coefficient buffers
// made from specification 6.2 (for the tests only; it shares nothing with the decoder).
#pragma once

#include <algorithm>
#include <cstring>
#include <list>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/int_math.h"
#include "base/splitmix64.h"
#include "npus/vivante/hw/vivante.h"
#include "sim/sim.h"

namespace skillet::sim::vivante::test {

namespace hw = ::skillet::vivante::hw;

class Random : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;
  int64_t in(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return in(0, 99) < percent; }
  Bytes bytes(size_t count) {
    Bytes all(count);
    for (uint8_t& byte : all) byte = static_cast<uint8_t>(next());
    return all;
  }
};

class TestMemory {
 public:
  std::span<uint8_t> add(uint64_t address, Bytes bytes, std::string name) {
    SK_CHECK(memory_.map(address, buffers_.emplace_back(std::move(bytes)), std::move(name)).ok());
    return buffers_.back();
  }
  std::span<uint8_t> add_words(uint64_t address, const std::vector<uint32_t>& words, std::string name) {
    const auto bytes = as_bytes(words);
    return add(address, Bytes(bytes.begin(), bytes.end()), std::move(name));
  }
  const Memory& get() const { return memory_; }

 private:
  std::list<Bytes> buffers_;
  Memory memory_;
};

struct TestKernel {
  Bytes weights;  // [plane][row][column]
  int32_t bias = 0;
  uint32_t offset = 0;
};

struct TestShape {
  int width = 1, height = 1, planes = 1;
  int kernels_per_core = 1;  // per superblock
  uint8_t zero_point = 0;
  int zrl_bits = 0;
  int group = 1;        // planes at a time: 1, 6, or all
  bool patches = true;  // 3x2 patches, or row by row
};

class StreamWriter {
 public:
  explicit StreamWriter(const TestShape& shape) : shape_(shape) {}

  Bytes write(const std::vector<TestKernel>& kernels) {
    put_bits(static_cast<uint32_t>(shape_.zrl_bits), 8);
    put_bits(static_cast<uint32_t>(kernels.size()), 16);
    for (size_t first = 0; first < kernels.size(); first += static_cast<size_t>(shape_.kernels_per_core)) {
      const size_t end = std::min(first + static_cast<size_t>(shape_.kernels_per_core), kernels.size());
      for (int z0 = 0; z0 < shape_.planes; z0 += shape_.group)
        for (size_t k = first; k < end; ++k)
          for (int z = z0; z < std::min(z0 + shape_.group, shape_.planes); ++z) put_plane(kernels[k], z);
    }
    flush();
    Bytes bytes;
    for (size_t i = 0; i < bits_.size(); ++i) {
      if (i % 8 == 0) bytes.push_back(0);
      bytes.back() = static_cast<uint8_t>(bytes.back() | bits_[i] << i % 8);
    }
    bytes.resize(align_up(bytes.size(), 64));
    return bytes;
  }

 private:
  void put_plane(const TestKernel& kernel, int z) {
    bool first = z == 0;
    const int patch_width = shape_.patches ? 3 : shape_.width, patch_height = shape_.patches ? 2 : 1;
    for (int r0 = 0; r0 < shape_.height; r0 += patch_height)
      for (int c0 = 0; c0 < shape_.width; c0 += patch_width)
        for (int r = r0; r < std::min(r0 + patch_height, shape_.height); ++r)
          for (int c = c0; c < std::min(c0 + patch_width, shape_.width); ++c) {
            put(kernel.weights[static_cast<size_t>((z * shape_.height + r) * shape_.width + c)]);
            if (first) put_word(static_cast<uint32_t>(kernel.bias));
            first = false;
          }
    if (z == shape_.planes - 1) put_word(kernel.offset);
  }
  void put_word(uint32_t value) {
    flush();
    put_bits(value, 32);
  }
  void put(uint8_t value) {
    const uint32_t longest = (1U << shape_.zrl_bits) - 1;
    if (shape_.zrl_bits == 0 || run_ == longest || value != shape_.zero_point) return symbol(value);
    ++run_;
  }
  void symbol(uint8_t value) {
    put_bits(run_, shape_.zrl_bits);
    put_bits(value, 8);
    run_ = 0;
  }
  void flush() {
    if (run_ == 0) return;
    --run_;
    symbol(shape_.zero_point);
  }
  void put_bits(uint32_t value, int count) {
    for (int i = 0; i < count; ++i) bits_.push_back(value >> i & 1);
  }

  TestShape shape_;
  std::vector<uint8_t> bits_;
  uint32_t run_ = 0;
};

// Kernels in core order: core 0 has the first `per_core`, and so on.
inline Bytes write_coefficients(const TestShape& shape, const std::vector<TestKernel>& kernels, int per_core,
                                int nn_cores = 8) {
  Bytes buffer(static_cast<size_t>(align_up(4 * nn_cores, 64)));
  for (size_t core = 0; core * static_cast<size_t>(per_core) < kernels.size(); ++core) {
    const auto first = kernels.begin() + static_cast<ptrdiff_t>(core) * per_core;
    const Bytes stream = StreamWriter(shape).write({first, first + per_core});
    store_le(buffer.data() + core * 4, static_cast<uint32_t>(stream.size()));
    buffer.insert(buffer.end(), stream.begin(), stream.end());
  }
  return buffer;
}

}  // namespace skillet::sim::vivante::test
