// Archive: writes values to bytes, or reads them back; the same calls do both. For bytes that this program writes and
// reads on one machine.
// Called by compile/stored_result.cpp.
// Must not know: what the values mean.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace skillet {

// The largest valid value of an enum that an archive may read: a specialisation for each.
template <typename Enum>
constexpr Enum kLastOf = Enum::needs_a_specialisation;

// Values of other types need a function `visit(Archive&, T&)` that passes on all members.
class Archive {
 public:
  explicit Archive(Bytes& to) : to_(&to) {}
  explicit Archive(std::span<const uint8_t> from) : from_(from) {}

  bool reads() const { return to_ == nullptr; }
  // Bytes that are cut off or impossible make all that follows zero, and this false.
  bool ok() const { return ok_; }
  void fail() { ok_ = false; }
  bool is_at_end() const { return from_.empty(); }

  // Writing leaves the values unchanged.
  template <typename... T>
  Archive& operator()(T&... values) {
    (one(values), ...);
    return *this;
  }

 private:
  template <typename T>
  struct IsVector : std::false_type {};
  template <typename T>
  struct IsVector<std::vector<T>> : std::true_type {};
  template <typename T>
  struct IsOptional : std::false_type {};
  template <typename T>
  struct IsOptional<std::optional<T>> : std::true_type {};

  void block(void* at, size_t size_bytes) {
    if (size_bytes == 0) return;
    if (!reads()) {
      const auto* bytes = static_cast<const uint8_t*>(at);
      to_->insert(to_->end(), bytes, bytes + size_bytes);
    } else if (ok_ && size_bytes <= from_.size()) {
      std::memcpy(at, from_.data(), size_bytes);
      from_ = from_.subspan(size_bytes);
    } else {
      std::memset(at, 0, size_bytes);
      ok_ = false;
    }
  }
  // A number of values, each of at least `least_bytes`.
  size_t count(size_t now, size_t least_bytes) {
    uint64_t number = now;
    block(&number, sizeof number);
    if (!reads() || number <= from_.size() / least_bytes) return static_cast<size_t>(number);
    ok_ = false;
    return 0;
  }
  template <typename T>
  static void check(T value, bool& ok) {
    if constexpr (std::is_enum_v<T>) {
      using Number = std::underlying_type_t<T>;
      ok = ok && static_cast<Number>(value) <= static_cast<Number>(kLastOf<T>);
    }
  }

  template <typename T>
  void one(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = value ? 1 : 0;
      block(&byte, 1);
      value = byte != 0;
    } else if constexpr (std::is_same_v<T, size_t>) {
      uint64_t number = value;
      block(&number, sizeof number);
      value = static_cast<size_t>(number);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      block(&value, sizeof value);
      check(value, ok_);
      if (!ok_ && reads()) value = T{};
    } else if constexpr (std::is_same_v<T, std::string>) {
      value.resize(count(value.size(), 1));
      block(value.data(), value.size());
    } else if constexpr (IsVector<T>::value) {
      many(value);
    } else if constexpr (IsOptional<T>::value) {
      bool has = value.has_value();
      one(has);
      if (has && reads()) value.emplace();
      if (has) one(*value);
    } else {
      visit(*this, value);
    }
  }
  template <typename T>
  void many(std::vector<T>& values) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, int32_t>) {
      values.resize(count(values.size(), sizeof(T)));
      block(values.data(), values.size() * sizeof(T));
    } else if (reads()) {
      const size_t number = count(0, 1);
      values.clear();
      for (size_t i = 0; i < number && ok_; ++i) one(values.emplace_back());
    } else {
      count(values.size(), 1);
      for (T& value : values) one(value);
    }
  }

  Bytes* to_ = nullptr;
  std::span<const uint8_t> from_;
  bool ok_ = true;
};

}  // namespace skillet
