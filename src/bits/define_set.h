// Defines the tables of a register set. Define SK_BITS_SET (a name for the array of descriptors) and SK_BITS_FILE, then
// include this file in the structs' namespace, after `using namespace skillet::bits`. Included many times on purpose:
// no include guard. Called by npus/<v>/hw/<v>.cpp only. Must not know: any chip.
#define REGISTER(type, name, address) \
  namespace {                         \
  namespace rows_of_##type {          \
    using Self = type;                \
    constexpr ::skillet::bits::Row kRows[] = {
#define FIELD(name, type, codec, where, evidence, doc) \
  ::skillet::bits::make_row<type>(#name, offsetof(Self, name), codec, where, ::skillet::bits::Evidence::evidence, doc),
#define END()                                                                                    \
  }                                                                                              \
  ;                                                                                              \
  static_assert(::skillet::bits::rows_inside(kRows, Self::kWords), "a row leaves its register"); \
  static_assert(::skillet::bits::rows_disjoint(kRows), "two rows claim the same bit");           \
  }                                                                                              \
  }
#include SK_BITS_FILE
#undef REGISTER
#undef FIELD
#undef END

namespace {
#define FIELD(name, type, codec, where, evidence, doc)
#define END()
constexpr ::skillet::bits::Descriptor SK_BITS_SET[] = {
#define REGISTER(type, name, address) {name, type::kWords, rows_of_##type::kRows, address},
#include SK_BITS_FILE
#undef REGISTER
};
static_assert(::skillet::bits::addresses_ascend(SK_BITS_SET), "registers must stand in the order of their addresses");
enum : size_t {
#define REGISTER(type, name, address) kIndexOf##type,
#include SK_BITS_FILE
#undef REGISTER
};
}  // namespace

#define REGISTER(type, name, address) \
  const ::skillet::bits::Descriptor& type::descriptor() { return SK_BITS_SET[kIndexOf##type]; }
#include SK_BITS_FILE
#undef REGISTER
#undef FIELD
#undef END
#undef SK_BITS_SET
#undef SK_BITS_FILE
