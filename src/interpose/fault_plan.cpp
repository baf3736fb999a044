#include "interpose/fault_plan.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace skillet::interpose {
namespace {

constexpr std::string_view kCalls[] = {
    "open",       "mmap",        "version",  "get_unique",         "get_cap",           "gem_close",
    "get_param",  "gem_new",     "gem_info", "gem_cpu_prep",       "gem_cpu_fini",      "submit",
    "wait_fence", "gem_userptr", "gem_wait", "prime_handle_to_fd", "prime_fd_to_handle"};
constexpr std::pair<std::string_view, FaultKind> kOfJobs[] = {
    {"hang", FaultKind::hang}, {"reset", FaultKind::reset}, {"reset_before", FaultKind::reset_before}};
constexpr int kErrnoLast = 133;

std::string call_names() { return fmt::format("{}", fmt::join(kCalls, ", ")); }

int errno_by_name(std::string_view name) {
  for (int number = 1; number <= kErrnoLast; ++number) {
    const char* const one = ::strerrorname_np(number);
    if (one != nullptr && name == one) return number;
  }
  return 0;
}

Result<Fault> parse_fault(std::string_view call, std::string_view what) {
  for (const auto& [name, kind] : kOfJobs) {
    if (what != name) continue;
    if (call != "submit") return error(ErrorCode::invalid_argument, "only submit can {}", what);
    return Fault{kind, 0};
  }
  const int number = errno_by_name(what);
  if (number == 0)
    return error(ErrorCode::invalid_argument, "'{}' is no errno name such as EIO, nor hang, reset or reset_before",
                 what);
  return Fault{FaultKind::number, number};
}

}  // namespace

Result<FaultPlan::Row> FaultPlan::parse_row(std::string_view text) {
  const size_t first = text.find(':'), second = first == text.npos ? text.npos : text.find(':', first + 1);
  if (second == text.npos) return error(ErrorCode::invalid_argument, "must be CALL:N:WHAT, such as submit:3:EIO");
  Row row;
  row.call = text.substr(0, first);
  if (std::ranges::find(kCalls, row.call) == std::end(kCalls))
    return error(ErrorCode::invalid_argument, "no call '{}': there are {}", row.call, call_names());
  const std::string_view at = text.substr(first + 1, second - first - 1);
  if (at != "*") {
    const auto [end, failure] = std::from_chars(at.data(), at.data() + at.size(), row.at);
    if (failure != std::errc() || end != at.data() + at.size() || row.at == 0)
      return error(ErrorCode::invalid_argument, "'{}' must be a number from 1 up, or *", at);
  }
  SK_TRY_ASSIGN(row.fault, parse_fault(row.call, text.substr(second + 1)));
  row.count = std::make_unique<std::atomic<uint64_t>>(0);
  return row;
}

Result<FaultPlan> FaultPlan::parse(std::string_view text) {
  FaultPlan plan;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    SK_TRY_ASSIGN(Row row, parse_row(part).with_context(fmt::format("fault '{}'", part)));
    plan.rows_.push_back(std::move(row));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return plan;
}

Fault FaultPlan::next(std::string_view call) const {
  Fault fault;
  for (const Row& row : rows_) {
    if (row.call != call) continue;
    const uint64_t now = ++*row.count;
    if (fault.kind == FaultKind::none && (row.at == 0 || row.at == now)) fault = row.fault;
  }
  return fault;
}

}  // namespace skillet::interpose
