// Declares one descriptor struct. Define SK_BITS_TYPE, SK_BITS_WORDS and SK_BITS_FILE, then include this file inside
// the struct's namespace:
//   #define SK_BITS_TYPE NnInstruction
//   #define SK_BITS_WORDS 32
//   #define SK_BITS_FILE "npus/vivante/hw/nn_instruction.def"
//   #include "bits/declare.h"
// Included many times on purpose: no include guard. Called by npus/<v>/hw/<v>.h only.
// Must not know: any chip.
struct SK_BITS_TYPE {
  static constexpr int kWords = SK_BITS_WORDS;
  static const ::skillet::bits::Descriptor& descriptor();

#define FIELD(name, type, codec, where, evidence, doc) type name{};
#include SK_BITS_FILE
#undef FIELD
  bool operator==(const SK_BITS_TYPE&) const = default;
};
#undef SK_BITS_TYPE
#undef SK_BITS_WORDS
#undef SK_BITS_FILE
