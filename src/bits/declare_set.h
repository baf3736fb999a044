// Declares one struct per register of a set. Define SK_BITS_FILE, then include this file inside the structs' namespace.
// Rows: REGISTER(Type, "block.name", address), its FIELD rows (bits/bits.h) in word 0, END(); ascending addresses.
// Included many times on purpose: no include guard. Called by npus/<v>/hw/<v>.h only.
// Must not know: any chip.
#define REGISTER(type, name, address)                       \
  struct type {                                             \
    static constexpr int kWords = 1;                        \
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
#undef SK_BITS_FILE
