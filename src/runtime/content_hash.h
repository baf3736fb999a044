// ContentHash: 128 bits of XXH3 over bytes that are added in pieces.
// Called by the program cache and by code that shares constants.
// Must not know: what is hashed.
#pragma once

#include <fmt/format.h>
#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace skillet::runtime {

class ContentHash {
 public:
  explicit ContentHash(uint64_t seed = 0) : state_(XXH3_createState()) {
    if (state_ == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset_withSeed(state_.get(), seed);
  }
  void add(const void* bytes, size_t size_bytes) { XXH3_128bits_update(state_.get(), bytes, size_bytes); }
  // The upper half first.
  std::pair<uint64_t, uint64_t> value() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return {hash.high64, hash.low64};
  }
  // 32 hexadecimal digits.
  std::string text() const {
    const auto [high, low] = value();
    return fmt::format("{:016x}{:016x}", high, low);
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

// The hash of bytes, or of a text.
template <typename Bytes>
std::string hash_text(const Bytes& bytes) {
  static_assert(sizeof(*bytes.data()) == 1);
  ContentHash hash;
  hash.add(bytes.data(), bytes.size());
  return hash.text();
}

}  // namespace skillet::runtime
