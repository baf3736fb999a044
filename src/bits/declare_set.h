// Declares one struct per register of a set. Define SK_BITS_FILE, then include this file inside the structs' namespace.
// Rows: REGISTER(Type, "block.name", address), its FIELD rows (bits/bits.h), END(); ascending addresses. A register is
// one word, or SK_BITS_WORDS where that is defined. Included many times on purpose: no include guard. Called by
// npus/<v>/hw/<v>.h only. Must not know: any chip.
#ifndef SK_BITS_WORDS
#define SK_BITS_WORDS 1
#endif
#define REGISTER(type, name, address)                       \
  struct type {                                             \
    static constexpr int kWords = SK_BITS_WORDS;            \
    static constexpr uint32_t kAddress = address;           \
    static const ::skillet::bits::Descriptor& descriptor(); \
    bool operator==(const type&) const = default;
#define FIELD(name, type, codec, where, evidence, doc) type name{};
#define END() \
  }           \
  ;
#include SK_BITS_FILE
#undef REGISTER
#undef FIELD
#undef END
#undef SK_BITS_WORDS
#undef SK_BITS_FILE
