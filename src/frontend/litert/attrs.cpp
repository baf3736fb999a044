#include <algorithm>
#include <string_view>

#include "frontend/litert/subgraph.h"
#include "graph/import/no_attrs.h"
#include "graph/ir/attrs_fields.h"

namespace skillet::litert {
namespace {

struct Row {
  ir::OpKind kind;
  std::string_view field;
  uint16_t at;
};
constexpr Row kRows[] = {
#define SLOT(kind, field, at) {ir::OpKind::kind, #field, at},
#include "frontend/litert/slots.def"
#undef SLOT
};

constexpr uint16_t kWeightsFormat = 536;  // field of FULLY_CONNECTED

class Reader {
 public:
  Reader(const Table& host, HostOp* op) : host_(host), op_(op) {}

  template <typename T>
  Result<void> read(const Row& row, T& field) const {
    const Status status = take(row.at, field);
    if (status == kOk) return {};
    return error(ErrorCode::unsupported, "the host does not report its {} (status {})", row.field, status);
  }
  Result<void> read(const Row& row, ir::Padding& field) const {
    uint32_t code = 0;
    SK_TRY(read(row, code));
    if (code > kPaddingValid) return error(ErrorCode::unsupported, "unknown padding {}", code);
    field = code == kPaddingSame ? ir::Padding::same : ir::Padding::valid;
    return {};
  }
  Result<void> read(const Row& row, ir::Activation& field) const {
    uint32_t code = 0;
    SK_TRY(read(row, code));
    if (code > static_cast<uint32_t>(ir::Activation::sign_bit))
      return error(ErrorCode::unsupported, "unknown activation function {}", code);
    field = static_cast<ir::Activation>(code);
    return {};
  }
  // Reads a byte, or an enumeration of two values. The local variable is at least as large as what the host writes.
  Result<void> read(const Row& row, bool& field) const {
    uint32_t value = 0;
    SK_TRY(read(row, value));
    if (value > 1) return error(ErrorCode::unsupported, "{} is {}", row.field, value);
    field = value == 1;
    return {};
  }
  // Refuses weights shuffled for one CPU's vector unit.
  Result<void> check_weights_format() const {
    uint32_t format = 0;
    SK_TRY(read({ir::OpKind::fully_connected, "weights_format", kWeightsFormat}, format));
    if (format != 0) return error(ErrorCode::unsupported, "weights format {}", format);
    return {};
  }
  Result<void> read(const Row&, std::optional<ir::RowPads>&) const { return {}; }  // no row

 private:
  template <typename T>
  Status take(uint16_t at, T& to) const {
    return host_.call(Slot<HostOp*, T*>{at}, op_, &to);
  }
  Status take(uint16_t at, std::vector<int32_t>& to) const {
    constexpr int32_t kMost = 8;
    const int32_t* first = nullptr;
    int32_t count = 0;
    const Status status = host_.call(Slot<HostOp*, const int32_t**, int32_t*>{at}, op_, &first, &count);
    if (status == kOk && first != nullptr && count > 0 && count <= kMost) to.assign(first, first + count);
    return status;
  }

  const Table& host_;
  HostOp* op_;
};

}  // namespace

Result<ir::Attrs> read_attrs(const Table& host, HostOp* op, ir::OpKind kind) {
  if (std::ranges::find(kRows, kind, &Row::kind) == std::end(kRows)) return tflite::no_attrs(kind);
  ir::Attrs attrs = ir::default_attrs(kind);
  const Reader reader(host, op);
  Result<void> done;
  const auto read_field = [&](std::string_view name, auto& field, std::string_view) {
    for (const Row& row : kRows)
      if (row.kind == kind && row.field == name && done.ok()) done = reader.read(row, field);
  };
  std::visit([&](auto& held) { ir::for_each_field(held, read_field); }, attrs);
  if (done.ok() && kind == ir::OpKind::fully_connected) done = reader.check_weights_format();
  if (!done.ok()) return std::move(done).error();
  return attrs;
}

}  // namespace skillet::litert
