#include "kernels/etnaviv/fake/counters.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace skillet::fake::etnaviv {
namespace {

struct Counter {
  std::string_view domain, name;
};
constexpr Counter kCounters[] = {
#define COUNTER(domain, name) {#domain, #name},
#include "kernels/etnaviv/fake/counters.def"
#undef COUNTER
};

struct Domain {
  const Counter *begin, *end;
};

// Counters of a domain are adjacent in the table.
std::optional<Domain> domain_at(size_t number) {
  const Counter* begin = std::begin(kCounters);
  for (;; --number) {
    if (begin == std::end(kCounters)) return std::nullopt;
    const Counter* const end =
        std::find_if(begin, std::end(kCounters), [&](const Counter& one) { return one.domain != begin->domain; });
    if (number == 0) return Domain{begin, end};
    begin = end;
  }
}

template <typename Args>
void describe_as(Args& args, size_t number, std::string_view name, bool is_last) {
  using Number = decltype(args.iter);
  args.id = static_cast<decltype(args.id)>(number);
  args.iter = is_last ? static_cast<Number>(-1) : static_cast<Number>(number + 1);
  std::memset(args.name, 0, sizeof args.name);
  std::memcpy(args.name, name.data(), std::min(name.size(), sizeof args.name - 1));
}

}  // namespace

bool describe_domain(kernels::etnaviv::PmDomain& args) {
  const auto domain = domain_at(args.iter);
  if (!domain) return false;
  args.signal_count = static_cast<uint16_t>(domain->end - domain->begin);
  describe_as(args, args.iter, domain->begin->domain, domain->end == std::end(kCounters));
  return true;
}

bool has_signal(uint32_t domain, uint32_t signal) {
  const auto found = domain_at(domain);
  return found && signal < static_cast<size_t>(found->end - found->begin);
}

bool describe_signal(kernels::etnaviv::PmSignal& args) {
  const auto domain = domain_at(args.domain);
  if (!domain || args.iter >= domain->end - domain->begin) return false;
  const Counter* const signal = domain->begin + args.iter;
  describe_as(args, args.iter, signal->name, signal + 1 == domain->end);
  return true;
}

}  // namespace skillet::fake::etnaviv
