#include "kernels/fake/fault_plan.h"

#include <algorithm>
#include <cstring>

#include "base/parse_number.h"
#include "kernels/fake/kernels.h"

namespace skillet::fake {
namespace {

constexpr std::pair<std::string_view, FaultKind> kOfJobs[] = {{"hang", FaultKind::hang},
                                                              {"reset", FaultKind::reset},
                                                              {"reset_before", FaultKind::reset_before},
                                                              {"drop", FaultKind::drop},
                                                              {"late", FaultKind::late}};
constexpr int kErrnoLast = 133;

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
    if (kind == FaultKind::drop && call != "job") return error(ErrorCode::invalid_argument, "only job can drop");
    if (call != "submit" && call != "job") return error(ErrorCode::invalid_argument, "only submit can {}", what);
    return Fault{kind, 0};
  }
  if (call == "job")
    return error(ErrorCode::invalid_argument,
                 "'{}' is not one of hang, reset, reset_before, drop, late: a job has no errno", what);
  const int number = errno_by_name(what);
  if (number == 0)
    return error(ErrorCode::invalid_argument,
                 "'{}' is not an errno name such as EIO, nor hang, reset, reset_before or late", what);
  return Fault{FaultKind::number, number};
}

Result<uint64_t> parse_count(std::string_view text) {
  if (const uint64_t count = parse_number<uint64_t>(text).value_or(0); count != 0) return count;
  return error(ErrorCode::invalid_argument, "'{}' must be a number from 1 up, a range such as 2-5 or 2-*, or *", text);
}

Result<void> parse_range(std::string_view text, uint64_t& first, uint64_t& last) {
  if (text == "*") return {};
  const size_t dash = std::min(text.find('-'), text.size());
  SK_TRY_ASSIGN(first, parse_count(text.substr(0, dash)));
  last = first;
  if (dash == text.size()) return {};
  last = UINT64_MAX;
  if (text.substr(dash + 1) == "*") return {};
  SK_TRY_ASSIGN(last, parse_count(text.substr(dash + 1)));
  if (last < first) return error(ErrorCode::invalid_argument, "'{}' ends before it begins", text);
  return {};
}

}  // namespace

Result<FaultPlan::Row> FaultPlan::parse_row(std::string_view text, const std::string& chip) {
  const size_t first = text.find(':'), second = first == text.npos ? text.npos : text.find(':', first + 1);
  if (second == text.npos) return error(ErrorCode::invalid_argument, "must be CALL:N:WHAT, such as submit:3:EIO");
  Row row;
  row.call = text.substr(0, first);
  const std::vector<std::string_view> names = call_names(chip);
  if (std::ranges::find(names, row.call) == names.end())
    return error(ErrorCode::invalid_argument, "no call '{}'{}{}: there are {}", row.call,
                 chip.empty() ? "" : " in the kernel of ", chip, fmt::join(names, ", "));
  SK_TRY(parse_range(text.substr(first + 1, second - first - 1), row.first, row.last));
  SK_TRY_ASSIGN(row.fault, parse_fault(row.call, text.substr(second + 1)));
  row.count = std::make_unique<std::atomic<uint64_t>>(0);
  return row;
}

Result<FaultPlan> FaultPlan::parse(std::string_view text, const std::string& chip) {
  FaultPlan plan;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    SK_TRY_INTO(plan.rows_.emplace_back(), parse_row(part, chip).with_context(fmt::format("fault '{}'", part)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return plan;
}

Fault FaultPlan::next(std::string_view call) const {
  Fault fault;
  for (const Row& row : rows_) {
    if (row.call != call) continue;
    const uint64_t now = ++*row.count;
    if (fault.kind == FaultKind::none && row.first <= now && now <= row.last) fault = row.fault;
  }
  return fault;
}

}  // namespace skillet::fake
