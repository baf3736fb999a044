#include "npus/vivante/compiler/byte_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>

#include "base/is_any_of.h"
#include "base/process_lock.h"
#include "graph/ref/all_bytes.h"
#include "npus/vivante/compiler/numerics.h"
#include "npus/vivante/compiler/tp.h"
#include "npus/vivante/hw/vivante.h"

namespace skillet::npus::vivante {
namespace {

namespace hw = skillet::vivante::hw;
using ir::OpKind;

// A table is read at an index of sign, exponent and four bits of mantissa, with linear interpolation: below 32 steps
// every byte has its own entry, up to 64 every second byte, up to 128 every fourth, then every eighth.
constexpr uint32_t kHalf = hw::kPwlEntries / 2;  // entries of numbers that are not negative
constexpr uint32_t kExponentBias = 15, kMantissaEntries = 16;

// The place of a number of steps (not negative) between two entries, in `width`ths of their distance.
struct Between {
  uint32_t entry = 0;
  int32_t first = 0, width = 1;  // steps at the entry, and from it to the next
};
Between between(int32_t steps) {
  if (steps == 0) return {};
  const int exponent = std::bit_width(static_cast<uint32_t>(steps)) - 1;
  const int32_t width = std::max(1 << exponent >> 4, 1), first = steps / width * width;
  const int32_t mantissa = ((first - (1 << exponent)) << 4) >> exponent;
  return {(static_cast<uint32_t>(exponent) + kExponentBias) * kMantissaEntries + static_cast<uint32_t>(mantissa), first,
          width};
}

// One sign of the table: values of the entries, in steps of the output from its zero point.
class Side {
 public:
  // wanted[n]: the result n steps from the zero point; low, high: limits of the output's bytes.
  Side(std::vector<double> wanted, double low, double high, bool improves)
      : wanted_(std::move(wanted)), low_(low), high_(high) {
    value_.assign(kHalf, wanted_[0]);
    known_.assign(kHalf, false);
    for (int32_t n = 0; n < count(); ++n) {
      const Between at = between(n);
      set(at.entry, n == at.first ? wanted_[static_cast<size_t>(n)] : value_[at.entry]);
      if (n != at.first) extend(at);
    }
    if (improves && off() > kTableOffMax) improve();
    fill();
  }

  double off() const {
    double worst = 0;
    for (int32_t n = 0; n < count(); ++n) worst = std::max(worst, off_at(n));
    return worst;
  }
  uint32_t entry(uint32_t i) const { return table_entry(static_cast<float>(value_[i])); }

 private:
  int32_t count() const { return static_cast<int32_t>(wanted_.size()); }
  void set(uint32_t entry, double value) {
    value_[entry] = value;
    known_[entry] = true;
  }
  // The next entry is past the last byte: extends the line through the last byte to it.
  void extend(const Between& at) {
    const int32_t last = count() - 1;
    if (at.first + at.width <= last) return;
    const double here = value_[at.entry];
    set(at.entry + 1, here + (wanted_[static_cast<size_t>(last)] - here) * at.width / (last - at.first));
  }

  double at(int32_t n) const {
    const Between at = between(n);
    const double here = entry_value(entry(at.entry));
    if (n == at.first) return here;
    return here + (entry_value(entry(at.entry + 1)) - here) * (n - at.first) / at.width;
  }
  // Error of one byte; how the chip rounds a half is not known.
  double off_at(int32_t n) const {
    const double result = at(n), right = wanted_[static_cast<size_t>(n)];
    const double down = std::clamp(std::ceil(result - 0.5), low_, high_);
    const double up = std::clamp(std::floor(result + 0.5), low_, high_);
    return std::max(std::abs(down - right), std::abs(up - right));
  }

  // Moves one entry after the other to where its neighbouring bytes have the least error: at bends, and at the output's
  // limits.
  void improve() {
    constexpr int kRounds = 2, kReach = 32;
    for (int round = 0; round < kRounds; ++round) {
      for (int32_t n = 32; n < count() + 8; ++n) {
        const Between at = between(n);
        if (at.first == n && known_[at.entry]) improve_entry(at, kReach);
      }
    }
  }
  void improve_entry(const Between& at, int reach) {
    const double before = value_[at.entry];
    double best = before, least = off_around(at);
    for (int i = -reach; i <= reach && least > 0.5; ++i) {
      value_[at.entry] = before + i / 4.0;
      const double off = off_around(at);
      if (off < least) best = value_[at.entry], least = off;
    }
    value_[at.entry] = best;
  }
  // The largest error, and as a tie-break the sum of the errors.
  double off_around(const Between& at) const {
    double worst = 0, sum = 0;
    for (int32_t n = at.first - at.width; n < std::min(at.first + at.width, count()); ++n) {
      const double off = off_at(n);
      worst = std::max(worst, off);
      sum += off;
    }
    return worst + sum / 1024;
  }

  // Sets entries that no byte reads.
  void fill() {
    for (uint32_t i = 1; i < kHalf; ++i) {
      if (!known_[i]) value_[i] = value_[i - 1];
    }
  }

  std::vector<double> wanted_, value_;
  std::vector<bool> known_;
  double low_, high_;
};

bool is_single(const ir::Tensor& tensor) { return tensor.is_constant() && tensor.shape.elems() == 1; }

}  // namespace

int byte_input(const ir::Graph& graph, const ir::Op& op) {
  using enum OpKind;
  if (is_any_of(op.kind, {relu6, relu_n1_to_1, relu_0_to_1, leaky_relu, tanh, hard_swish, elu, exp, gelu, log, sqrt,
                          rsqrt, square, neg, byte_table, quantize}))
    return op.input(0) != ir::kNoTensor && !graph.tensor(op.inputs[0]).is_constant() ? 0 : -1;
  if (!is_any_of(op.kind, {add, sub, mul, div, maximum, minimum, prelu, squared_difference})) return -1;
  for (const int at : {0, 1}) {
    const ir::TensorId one = op.input(static_cast<size_t>(at)), other = op.input(static_cast<size_t>(1 - at));
    if (one == ir::kNoTensor || other == ir::kNoTensor || graph.tensor(one).is_constant()) continue;
    if (is_single(graph.tensor(other)) && graph.tensor(one).shape == graph.tensor(op.outputs[0]).shape) return at;
  }
  return -1;
}

namespace {

// Results of the input's bytes from the lowest, in steps from the output's zero point.
struct Wanted {
  std::vector<double> results;
  int32_t in_zero = 0, out_zero = 0;
  auto operator<=>(const Wanted&) const = default;
};

Wanted wanted_of(const ir::Tensor& in, const ir::Tensor& out, const Bytes& results) {
  Wanted wanted{.results = {}, .in_zero = unsigned_zero_point(in), .out_zero = unsigned_zero_point(out)};
  for (size_t byte = 0; byte < 256; ++byte)
    wanted.results.push_back(
        static_cast<double>((results[byte ^ xor_byte(in.dtype)] ^ xor_byte(out.dtype)) - wanted.out_zero));
  return wanted;
}

// The table for jobs whose input has this zero point.
ByteTable fitted(const Wanted& wanted, int32_t zero_point, bool improves) {
  const double low = -wanted.out_zero, high = 255 - wanted.out_zero;
  const auto zero = wanted.results.begin() + zero_point;
  const Side positive({zero, wanted.results.end()}, low, high, improves);
  const Side negative({std::make_reverse_iterator(zero + 1), wanted.results.rend()}, low, high, improves);
  ByteTable table{
      .entries = {}, .off = std::max(positive.off(), negative.off()), .zero_point = static_cast<uint8_t>(zero_point)};
  for (uint32_t i = 0; i < kHalf; ++i) table.entries.push_back(positive.entry(i));
  for (uint32_t i = 0; i < kHalf; ++i) table.entries.push_back(negative.entry(i));
  return table;
}

// Entries are densest at the zero point. If the function bends or jumps elsewhere, another zero point may be better.
ByteTable fitted(const Wanted& wanted) {
  ByteTable own = fitted(wanted, wanted.in_zero, true);
  if (own.off <= kTableOffMax) return own;
  ByteTable best = own;
  constexpr int32_t kApart = 8;  // near enough for a jump to be within 32 steps
  for (int32_t zero_point = 0; zero_point < 256; zero_point += kApart) {
    if (ByteTable one = fitted(wanted, zero_point, false); one.off < best.off) best = std::move(one);
  }
  ByteTable improved = fitted(wanted, best.zero_point, true);
  return improved.off < own.off ? improved : own;
}

// Each pass checks each operation, and a fit takes milliseconds, so the last fits are kept. A child of fork() starts
// with none, because a thread of the parent may have been changing them.
ByteTable fitted_once(const Wanted& wanted) {
  constexpr size_t kFitsMax = 64;
  static ProcessLock lock;
  static std::map<Wanted, ByteTable>* kept = nullptr;
  const bool is_first = lock.lock_in_process();
  const std::lock_guard held(lock, std::adopt_lock);
  if (is_first) kept = new std::map<Wanted, ByteTable>();
  std::map<Wanted, ByteTable>& fits = *kept;
  if (const auto found = fits.find(wanted); found != fits.end()) return found->second;
  if (fits.size() == kFitsMax) fits.clear();
  return fits.emplace(wanted, fitted(wanted)).first->second;
}

}  // namespace

std::optional<ByteTable> byte_table(const ir::Graph& graph, const ir::Op& op) {
  const int input = byte_input(graph, op);
  if (input < 0) return std::nullopt;
  const ir::TensorId from = op.inputs[static_cast<size_t>(input)], to = op.outputs[0];
  const auto results = ref::of_each_byte(graph, {&op, 1}, from, to);
  if (!results.ok()) return std::nullopt;
  return fitted_once(wanted_of(graph.tensor(from), graph.tensor(to), *results));
}

}  // namespace skillet::npus::vivante
