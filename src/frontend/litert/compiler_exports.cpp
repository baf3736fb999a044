// Exports of the compiler plug-in: single functions for hosts up to 2.3, a table of the same functions for later ones.
#include <vector>

#include "base/leaked.h"
#include "frontend/litert/compiler.h"
#include "frontend/litert/guarded.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

using namespace skillet::litert;  // NOLINT: the exports are outside

namespace {

template <typename T>
bool has(const std::vector<T>& all, size_t index) {
  return index < all.size();
}

// Names of the chips.
const std::vector<const char*>& socs() {
  return skillet::leaked([] {
    std::vector<const char*> names;
    for (const skillet::npu::Driver* driver : skillet::npu::drivers())
      for (const skillet::npu::Chip& chip : driver->chips()) names.push_back(chip.name.c_str());
    return names;
  });
}

}  // namespace

EXPORTED Status LiteRtGetCompilerPluginVersion(Version* version) {
  if (version == nullptr) return kInvalid;
  *version = kVersion;
  return kOk;
}

EXPORTED const char* LiteRtGetCompilerPluginSocManufacturer() { return "Skillet"; }

EXPORTED Status LiteRtCreateCompilerPlugin(const void* context, Compiler** out, HostEnvironment*, HostOptions*) {
  // Older hosts pass other parameters: do not write to them.
  if (!Table(context).is_known()) return refused(kTooOld);
  return guarded(kInvalid, [&]() -> skillet::Result<void> {
    SK_TRY_ASSIGN(auto made, make_compiler(context));
    *out = made.release();
    return {};
  });
}

EXPORTED void LiteRtDestroyCompilerPlugin(Compiler* compiler) { delete compiler; }

EXPORTED Status LiteRtGetCompilerPluginSupportedHardware(Compiler*, int* out) {
  if (out == nullptr) return kInvalid;
  *out = kNpu;
  return kOk;
}

EXPORTED Status LiteRtGetNumCompilerPluginSupportedSocModels(Compiler*, size_t* out) {
  if (out == nullptr) return kInvalid;
  *out = socs().size();
  return kOk;
}

EXPORTED Status LiteRtGetCompilerPluginSupportedSocModel(Compiler*, size_t index, const char** out) {
  if (out == nullptr || !has(socs(), index)) return kInvalid;
  *out = socs()[index];
  return kOk;
}

EXPORTED Status LiteRtCompilerPluginPartition(Compiler* compiler, const char* soc, HostSubgraph* subgraph,
                                              HostOpList* list) {
  if (compiler == nullptr) return kInvalid;
  return guarded(kCompilation, [&] { return partition(*compiler, soc, subgraph, list); });
}

EXPORTED Status LiteRtCompilerPluginCompile(Compiler* compiler, const char* soc, HostModel* model,
                                            CompiledParts** out) {
  if (compiler == nullptr || out == nullptr) return kInvalid;
  *out = nullptr;
  return guarded(kCompilation, [&]() -> skillet::Result<void> {
    SK_TRY_ASSIGN(auto made, compile(*compiler, soc, model));
    *out = made.release();
    return {};
  });
}

EXPORTED void LiteRtDestroyCompiledResult(CompiledParts* parts) { delete parts; }

EXPORTED Status LiteRtCompiledResultNumByteCodeModules(CompiledParts* parts, size_t* out) {
  if (parts == nullptr || out == nullptr) return kInvalid;
  *out = parts->bytes.size();
  return kOk;
}

EXPORTED Status LiteRtGetCompiledResultByteCode(CompiledParts* parts, size_t index, const void** out, size_t* size) {
  if (parts == nullptr || out == nullptr || size == nullptr || !has(parts->bytes, index)) return kInvalid;
  *out = parts->bytes[index].data();
  *size = parts->bytes[index].size();
  return kOk;
}

EXPORTED Status LiteRtGetCompiledResultCallInfo(CompiledParts* parts, size_t index, const void** name, size_t* size,
                                                size_t* byte_code) {
  if (parts == nullptr || name == nullptr || size == nullptr || byte_code == nullptr || !has(parts->calls, index))
    return kInvalid;
  *name = parts->calls[index].data();
  *size = parts->calls[index].size();
  *byte_code = index;
  return kOk;
}

EXPORTED Status LiteRtGetNumCompiledResultCalls(CompiledParts* parts, size_t* out) {
  if (parts == nullptr || out == nullptr) return kInvalid;
  *out = parts->calls.size();
  return kOk;
}

EXPORTED Status LiteRtCompilerPluginRegisterAllTransformations(Compiler*, void** out, size_t* count) {
  if (out != nullptr) *out = nullptr;
  if (count != nullptr) *count = 0;
  return kOk;
}

EXPORTED Status LiteRtGetCompilerPluginSDKVersion(Compiler*, const char** out) {
  if (out == nullptr) return kInvalid;
  *out = SKILLET_VERSION;
  return kOk;
}

EXPORTED Status LiteRtCompilerPluginCheckCompilerCompatibility(Version, Compiler*, HostEnvironment*, HostOptions*,
                                                               const char*) {
  return kOk;
}

EXPORTED Status LiteRtCompilerPluginQueryInterface(int id, Version version, const void** out) {
  static constexpr CompilerTable kTable{{sizeof(CompilerTable), kMajor, 0, 0},
                                        LiteRtGetCompilerPluginVersion,
                                        LiteRtGetCompilerPluginSocManufacturer,
                                        LiteRtCreateCompilerPlugin,
                                        LiteRtDestroyCompilerPlugin,
                                        LiteRtGetCompilerPluginSupportedHardware,
                                        LiteRtGetNumCompilerPluginSupportedSocModels,
                                        LiteRtGetCompilerPluginSupportedSocModel,
                                        LiteRtCompilerPluginPartition,
                                        LiteRtCompilerPluginCompile,
                                        LiteRtDestroyCompiledResult,
                                        LiteRtGetCompiledResultByteCode,
                                        LiteRtCompiledResultNumByteCodeModules,
                                        LiteRtGetCompiledResultCallInfo,
                                        LiteRtGetNumCompiledResultCalls,
                                        LiteRtCompilerPluginRegisterAllTransformations,
                                        LiteRtGetCompilerPluginSDKVersion,
                                        nullptr,
                                        LiteRtCompilerPluginCheckCompilerCompatibility};
  if (out == nullptr) return kInvalid;
  if (id != kBasicInterface || version.major < kQueryVersion.major) return kUnsupported;
  *out = &kTable;
  return kOk;
}
