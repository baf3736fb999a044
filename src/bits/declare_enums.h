// Declares enums whose values print by name. Define SK_BITS_FILE, then include this file inside the enums' namespace.
// Rows: ENUM(Type), VALUE(name, number) ..., ENUM_END().
// Included many times on purpose: no include guard. Called by npus/<v>/hw/<v>.h only.
// Must not know: any chip.
#define ENUM(type) enum class type : uint16_t {
#define VALUE(name, number) name = number,
#define ENUM_END() \
  }                \
  ;
#include SK_BITS_FILE
#undef ENUM
#undef VALUE
#undef ENUM_END

// The names are in an inline namespace per enum, so that enum_names() is found beside its enum.
#define ENUM(type)                         \
  inline namespace names_of_##type {       \
    inline constexpr char kType[] = #type; \
    using Self = type;                     \
    inline constexpr ::skillet::bits::EnumName kValues[] = {
#define VALUE(name, number) {number, #name},
#define ENUM_END()                                                                   \
  }                                                                                  \
  ;                                                                                  \
  constexpr ::skillet::bits::EnumNames enum_names(Self) { return {kType, kValues}; } \
  }
#include SK_BITS_FILE
#undef ENUM
#undef VALUE
#undef ENUM_END
#undef SK_BITS_FILE
