// Result<T>: a value, or an Error with a code, a message and the context added on the way up.
// Everything that can fail because of the outside world returns one; SK_TRY passes errors on.
// Must not know: anything above base/.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace skillet {

enum class ErrorCode : uint8_t {
  invalid_argument,  // the caller's option or call is wrong
  malformed,         // a file, stream or capture breaks its format
  unsupported,       // valid, but we or the chip cannot do it
  out_of_range,      // a value does not fit its field or buffer
  io,                // the operating system reported an error
  device,            // the device or its kernel driver refused a call
  fault,             // the device (real or simulated) stopped at a job, or lost it
  timeout,           // a wait ran out
  internal,          // a bug of Skillet
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;

  // Adds the activity that failed: "loading model.tflite: tensor 3: ...".
  Error with_context(std::string_view context) && {
    message.insert(0, fmt::format("{}: ", context));
    return std::move(*this);
  }
};

template <typename... Args>
Error error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT implicit on purpose
  Result(Error e) : error_(std::move(e)) {}      // NOLINT

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  T& value() & { return value_.value(); }
  const T& value() const& { return value_.value(); }
  T&& value() && { return std::move(value_).value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const& { return error_.value(); }
  Error&& error() && { return std::move(error_).value(); }

  Result with_context(std::string_view context) && {
    if (ok()) return std::move(*this);
    return std::move(*this).error().with_context(context);
  }

 private:
  std::optional<T> value_;
  std::optional<Error> error_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error e) : error_(std::move(e)) {}  // NOLINT implicit on purpose

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return error_.value(); }
  Error&& error() && { return std::move(*error_); }

  Result with_context(std::string_view context) && {
    if (ok()) return {};
    return std::move(*error_).with_context(context);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace skillet

#define SK_CONCAT_(a, b) a##b
#define SK_CONCAT(a, b) SK_CONCAT_(a, b)
// SK_TRY(expr): return the error of a Result<void>.  SK_TRY_ASSIGN(var, expr): var = value, or return the error.
#define SK_TRY(expr)                                                             \
  do {                                                                           \
    if (auto sk_try_ = (expr); !sk_try_.ok()) return std::move(sk_try_).error(); \
  } while (0)
// SK_TRY with context for the error; `context` is evaluated only on an error.
#define SK_TRY_IN_CONTEXT(expr, context)                                                               \
  do {                                                                                                 \
    if (auto sk_try_ = (expr); !sk_try_.ok()) return std::move(sk_try_).error().with_context(context); \
  } while (0)
// As SK_TRY_ASSIGN for a variable that exists: one statement, so it may follow `if (...)` without braces.
#define SK_TRY_INTO(var, expr)                            \
  do {                                                    \
    auto sk_try_ = (expr);                                \
    if (!sk_try_.ok()) return std::move(sk_try_).error(); \
    var = std::move(sk_try_).value();                     \
  } while (0)
#define SK_TRY_ASSIGN(var, expr)                                                                        \
  auto SK_CONCAT(sk_result_, __LINE__) = (expr);                                                        \
  if (!SK_CONCAT(sk_result_, __LINE__).ok()) return std::move(SK_CONCAT(sk_result_, __LINE__)).error(); \
  var = std::move(SK_CONCAT(sk_result_, __LINE__)).value()
