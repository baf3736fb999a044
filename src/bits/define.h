// Defines the table of one descriptor struct. Define SK_BITS_TYPE, SK_BITS_NAME and SK_BITS_FILE, then include this
// file in the struct's namespace, after `using namespace skillet::bits`. Included many times on purpose: no include
// guard. Called by npus/<v>/hw/<v>.cpp only. Must not know: any chip.
#define SK_BITS_JOIN_(a, b) a##b
#define SK_BITS_JOIN(a, b) SK_BITS_JOIN_(a, b)
#define SK_BITS_ROWS SK_BITS_JOIN(kRowsOf, SK_BITS_TYPE)

namespace {
constexpr ::skillet::bits::Row SK_BITS_ROWS[] = {
#define FIELD(name, type, codec, where, evidence, doc)                               \
  ::skillet::bits::make_row<type>(#name, offsetof(SK_BITS_TYPE, name), codec, where, \
                                  ::skillet::bits::Evidence::evidence, doc),
#include SK_BITS_FILE
#undef FIELD
};
static_assert(::skillet::bits::rows_inside(SK_BITS_ROWS, SK_BITS_TYPE::kWords),
              "a row leaves its word or the descriptor");
static_assert(::skillet::bits::rows_disjoint(SK_BITS_ROWS), "two rows claim the same bit");
}  // namespace

const ::skillet::bits::Descriptor& SK_BITS_TYPE::descriptor() {
  static constexpr ::skillet::bits::Descriptor kDescriptor{SK_BITS_NAME, kWords, SK_BITS_ROWS};
  return kDescriptor;
}
#undef SK_BITS_ROWS
#undef SK_BITS_JOIN
#undef SK_BITS_JOIN_
#undef SK_BITS_TYPE
#undef SK_BITS_NAME
#undef SK_BITS_FILE
