// Sinks for the items of one core's V7 coefficient stream, in order: one counts bits, two write them.
// Called by the V7 coefficient writer.
// Must not know: kernels, the order of items.
#pragma once

#include <array>

#include "base/bytes.h"
#include "npus/vivante/compiler/bit_writer.h"

namespace skillet::npus::vivante {

constexpr int kHeaderBits = 8 + 16;
constexpr int kValueBits = 8;
constexpr int kZrlCandidates = 9;  // zrl_bits 0..8

// True when one of the bytes of `word` is `byte`.
template <typename Word>
constexpr bool has_byte(Word word, uint8_t byte) {
  constexpr Word kOnes = static_cast<Word>(~Word{0}) / 0xff;
  const Word x = word ^ (kOnes * byte);
  return ((x - kOnes) & ~x & (kOnes << 7)) != 0;
}

// Receives the items of a stream and counts the bits that each candidate of zrl_bits would need.
// A run of n zero points before a value costs n / 2^bits full symbols and one that carries the value.
class CountSink {
 public:
  explicit CountSink(uint8_t zero_point) : zero_point_(zero_point) {}

  void values(const uint8_t* at, int count) {
    int i = 0;
    while (i < count) {
      if (run_ == 0 && i + kWordWeights <= count && !has_byte(load_le<uint64_t>(at + i), zero_point_)) {
        values_ += kWordWeights;
        i += kWordWeights;
        continue;
      }
      one(at[i++]);
    }
  }
  void zeros(int64_t count) { run_ += count; }
  // `rows` runs, each ended separately.
  void zero_rows(int64_t rows, int64_t count) {
    zeros(count);
    flush();
    for (int b = 0; b < kZrlCandidates; ++b) symbols_[b] += (rows - 1) * symbols_of(count, b);
  }
  void flush() {
    if (run_ == 0) return;
    for (int b = 0; b < kZrlCandidates; ++b) symbols_[b] += symbols_of(run_, b);
    run_ = 0;
  }
  void raw(uint32_t) { ++raws_; }

  int64_t bits(int zrl_bits) const {
    return kHeaderBits + (symbols_[zrl_bits] + values_) * (zrl_bits + kValueBits) + raws_ * 32;
  }

 private:
  static constexpr int kWordWeights = 8;

  static constexpr int64_t symbols_of(int64_t run, int bits) { return (run + (int64_t{1} << bits) - 1) >> bits; }

  void one(uint8_t value) {
    if (value == zero_point_) {
      ++run_;
      return;
    }
    if (run_ != 0) count_run();
    ++values_;
  }
  void count_run() {
    for (int b = 0; b < kZrlCandidates; ++b) symbols_[b] += run_ >> b;
    run_ = 0;
  }

  uint8_t zero_point_;
  int64_t run_ = 0, values_ = 0, raws_ = 0;
  std::array<int64_t, kZrlCandidates> symbols_{};  // symbols in addition to one per value
};

// Receives the same items and writes them with zero runs.
class EmitSink {
 public:
  EmitSink(uint8_t* at, uint8_t zero_point, int zrl_bits, int32_t kernel_count)
      : writer_(at), zero_point_(zero_point), bits_(zrl_bits), symbol_bits_(zrl_bits + kValueBits) {
    writer_.put(static_cast<uint32_t>(zrl_bits), 8);
    writer_.put(static_cast<uint32_t>(kernel_count), 16);
    const uint64_t full = symbol((int64_t{1} << bits_) - 1, zero_point_);
    for (int i = 0; i < kMany; ++i) full_symbols_[i + 1] = full_symbols_[i] << symbol_bits_ | full;
  }

  void values(const uint8_t* at, int count) {
    int i = 0;
    while (i < count) {
      if (run_ == 0 && i + kGroup <= count && !has_byte(load_le<uint32_t>(at + i), zero_point_)) {
        put_group(at + i);
        i += kGroup;
        continue;
      }
      one(at[i++]);
    }
  }
  void zeros(int64_t count) { run_ += count; }
  void zero_rows(int64_t rows, int64_t count) {
    for (; rows > 0 && (rows < 2 * kRowsOfBytes || !writer_.at_byte() || run_ > 0); --rows) zero_row(count);
    if (rows == 0) return;
    const uint8_t* const start = writer_.at();
    for (int i = 0; i < kRowsOfBytes; ++i) zero_row(count);
    const auto size = static_cast<size_t>(writer_.at() - start);
    for (rows -= kRowsOfBytes; rows >= kRowsOfBytes; rows -= kRowsOfBytes) writer_.put_bytes(start, size);
    for (; rows > 0; --rows) zero_row(count);
  }
  void flush() {
    if (run_ >> bits_ != 0) put_full_symbols();
    if (run_ > 0) writer_.put(symbol(run_ - 1, zero_point_), symbol_bits_);
    run_ = 0;
  }
  void raw(uint32_t word) { writer_.put(word, 32); }

 private:
  static constexpr int kGroup = 4;        // weights checked together
  static constexpr int kRowsOfBytes = 8;  // this number of equal rows is a whole number of bytes
  static constexpr int kMany = 3;         // full symbols written together
  static_assert(kMany * (kZrlCandidates - 1 + kValueBits) <= BitWriter::kMaxBits);
  static_assert(2 * (kZrlCandidates - 1 + kValueBits) <= BitWriter::kMaxBits, "symbols go out in pairs");

  uint64_t symbol(int64_t run, uint8_t value) const { return static_cast<uint64_t>(run) | (uint64_t{value} << bits_); }

  void one(uint8_t value) {
    if (value == zero_point_) {
      ++run_;
      return;
    }
    if (run_ >> bits_ != 0) put_full_symbols();
    writer_.put(symbol(run_, value), symbol_bits_);
    run_ = 0;
  }
  void zero_row(int64_t count) {
    zeros(count);
    flush();
  }
  // Four symbols without runs.
  void put_group(const uint8_t* at) {
    const uint64_t low = uint64_t{at[0]} | uint64_t{at[1]} << symbol_bits_;
    const uint64_t high = uint64_t{at[2]} | uint64_t{at[3]} << symbol_bits_;
    put_pair(low << bits_);
    put_pair(high << bits_);
  }
  void put_pair(uint64_t pair) { writer_.put(pair, 2 * symbol_bits_); }
  void put_full_symbols() {
    int64_t symbols = run_ >> bits_;
    run_ -= symbols << bits_;
    for (; symbols >= kMany; symbols -= kMany) writer_.put(full_symbols_[kMany], kMany * symbol_bits_);
    writer_.put(full_symbols_[symbols], static_cast<int>(symbols) * symbol_bits_);
  }

  BitWriter writer_;
  uint8_t zero_point_;
  int bits_, symbol_bits_;
  std::array<uint64_t, kMany + 1> full_symbols_{};  // by number of full symbols
  int64_t run_ = 0;
};

// Receives the same items and writes them with zrl_bits 0: every item is whole bytes.
class PlainEmitSink {
 public:
  PlainEmitSink(uint8_t* at, uint8_t zero_point, int32_t kernel_count) : writer_(at), zero_point_(zero_point) {
    writer_.put(0, 8);
    writer_.put(static_cast<uint32_t>(kernel_count), 16);
  }
  void values(const uint8_t* at, int count) { writer_.put_bytes(at, static_cast<size_t>(count)); }
  void zeros(int64_t count) { writer_.put_bytes(zero_point_, static_cast<size_t>(count)); }
  void zero_rows(int64_t rows, int64_t count) { zeros(rows * count); }
  void flush() {}
  void raw(uint32_t word) { writer_.put_bytes(reinterpret_cast<const uint8_t*>(&word), sizeof word); }

 private:
  BitWriter writer_;
  uint8_t zero_point_;
};

}  // namespace skillet::npus::vivante
