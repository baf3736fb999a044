// Defines the table of one descriptor struct. Define SK_BITS_NAMESPACE, SK_BITS_TYPE, SK_BITS_NAME, SK_BITS_WORDS and
// SK_BITS_FILE, then include this file at namespace scope skillet::bits. Included many times on purpose: no include
// guard. Called by drivers/<v>/hw/<v>.cpp only. Must not know: any chip.
#define SK_BITS_JOIN_(a, b) a##b
#define SK_BITS_JOIN(a, b) SK_BITS_JOIN_(a, b)
#define SK_BITS_ROWS SK_BITS_JOIN(kRowsOf, SK_BITS_TYPE)

namespace {
using namespace SK_BITS_NAMESPACE;  // NOLINT: the rows name enums of the struct's namespace
constexpr std::array SK_BITS_ROWS = {
#define FIELD(name, type, codec, where, evidence, doc) \
  Row{#name, value_kind<type>(), codec, where, Evidence::evidence, doc},
#include SK_BITS_FILE
#undef FIELD
};
static_assert(rows_inside(SK_BITS_ROWS, SK_BITS_WORDS), "a row leaves its word or the descriptor");
static_assert(rows_disjoint(SK_BITS_ROWS), "two rows claim the same bit");
}  // namespace

template <>
const Descriptor& descriptor_of<SK_BITS_NAMESPACE::SK_BITS_TYPE>() {
  static constexpr Descriptor kDescriptor{SK_BITS_NAME, SK_BITS_WORDS, SK_BITS_ROWS};
  return kDescriptor;
}
template <>
std::vector<Value> to_values(const SK_BITS_NAMESPACE::SK_BITS_TYPE& fields) {
  return {
#define FIELD(name, type, codec, where, evidence, doc) to_value(fields.name),
#include SK_BITS_FILE
#undef FIELD
  };
}
template <>
void from_values(std::span<const Value> values, SK_BITS_NAMESPACE::SK_BITS_TYPE& fields) {
  size_t i = 0;
#define FIELD(name, type, codec, where, evidence, doc) from_value(values[i++], fields.name);
#include SK_BITS_FILE
#undef FIELD
}
#undef SK_BITS_ROWS
#undef SK_BITS_JOIN
#undef SK_BITS_JOIN_
#undef SK_BITS_TYPE
#undef SK_BITS_NAME
#undef SK_BITS_WORDS
#undef SK_BITS_FILE
