// C structs and function tables of the interface between LiteRT's CompiledModel and its plug-ins (LP64), as far as we
// use them. Included by all files here that call the host. Our own declarations: no header of LiteRT is needed.
// Must not know: anything of Skillet.
//
// One pair of libraries works with 2.2 and later: tables only grow at the end, and each begins with its size and
// version.
#pragma once

#include <cstddef>
#include <cstdint>

namespace skillet::litert {

using Status = int;
constexpr Status kOk = 0, kInvalid = 1, kFailed = 3, kUnsupported = 5, kWrongVersion = 8, kCompilation = 504,
                 kWrongBytes = 4002;

struct AbiHeader {
  uint16_t struct_size, major, minor, reserved;
};
constexpr uint16_t kMajor = 1;  // tables of another major version have other offsets
constexpr const char* kTooOld = "this LiteRT's tables differ from those Skillet supports: it needs LiteRT 2.2 or later";

struct Version {
  int major, minor, patch;
};
constexpr Version kVersion{0, 1, 0};       // hosts up to 2.3 compare it for equality
constexpr Version kQueryVersion{1, 0, 0};  // hosts from 2.4 on pass it to query functions

// Opaque types of the host.
struct HostModel;
struct HostSubgraph;
struct HostOp;
struct HostTensor;
struct HostWeights;
struct HostOpList;
struct HostBuffer;
struct HostRequirements;
struct HostOptions;
struct HostEnvironment;

struct RankedType {
  int32_t element_type;  // as TfLiteType
  uint32_t rank : 7, has_strides : 1;
  int32_t dims[8];
  uint32_t strides[8];
};
static_assert(sizeof(RankedType) == 72);
struct PerTensor {
  float scale;
  int64_t zero_point;
};
struct PerChannel {
  int32_t axis;
  uint64_t count;
  float* scales;
  int64_t* zero_points;
};
constexpr int kRanked = 0, kNotQuantized = 0, kPerTensor = 1, kPerChannel = 2;
constexpr int kHostMemory = 1, kLockRead = 0, kLockWrite = 1;
constexpr int kNpu = 4;  // a kind of hardware
constexpr int kBasicCapability = 1, kBasicInterface = 0;
constexpr uint32_t kPaddingSame = 0, kPaddingValid = 1;

// A function of a host's table: its offset in bytes and its type.
template <typename... Args>
struct Slot {
  uint16_t at;
};
// Functions of the compiler's context.
inline constexpr Slot<HostModel*, size_t*> kNumSubgraphs{8};
inline constexpr Slot<HostModel*, size_t, HostSubgraph**> kSubgraph{16};
inline constexpr Slot<HostSubgraph*, size_t*> kNumOps{24}, kNumInputs{40}, kNumOutputs{56};
inline constexpr Slot<HostSubgraph*, size_t, HostOp**> kOp{32};
inline constexpr Slot<HostSubgraph*, size_t, HostTensor**> kInput{48}, kOutput{64};
inline constexpr Slot<HostOp*, int*> kOpCode{72};
inline constexpr Slot<HostOp*, const char**> kCustomCode{80};
inline constexpr Slot<HostOp*, size_t*> kNumOpInputs{88}, kNumOpOutputs{104};
inline constexpr Slot<HostOp*, size_t, HostTensor**> kOpInput{96}, kOpOutput{112};
inline constexpr Slot<HostTensor*, const char**> kTensorName{120};
inline constexpr Slot<HostTensor*, int*> kTypeId{136}, kQuantId{160};
inline constexpr Slot<HostTensor*, RankedType*> kRankedType{144};
inline constexpr Slot<HostTensor*, PerTensor*> kQuantPerTensor{168};
inline constexpr Slot<HostTensor*, PerChannel*> kQuantPerChannel{176};
inline constexpr Slot<HostTensor*, HostWeights**> kWeights{208};
inline constexpr Slot<HostWeights*, const void**, size_t*> kWeightBytes{224};
inline constexpr Slot<HostOpList*, HostOp*, size_t> kPushOp{264};
// Functions of the runtime's context.
inline constexpr Slot<int, const int*, size_t, int, const uint32_t*, HostRequirements**> kCreateRequirements{8};
inline constexpr Slot<HostBuffer*, int*> kBufferType{184};
inline constexpr Slot<HostBuffer*, size_t*> kBufferSize{200};
inline constexpr Slot<HostBuffer*, void**, int> kLock{224};
inline constexpr Slot<HostBuffer*> kUnlock{232};

// A host's table. Functions beyond its size do not exist.
class Table {
 public:
  Table() = default;
  explicit Table(const void* held) : held_(static_cast<const AbiHeader*>(held)) {}
  // False before 2.2, which had no table: the memory then holds a pointer or zero.
  bool is_known() const {
    constexpr uint16_t kLeast = 256, kMinorMax = 255;
    return held_ != nullptr && held_->major == kMajor && held_->minor <= kMinorMax && held_->reserved == 0 &&
           held_->struct_size >= kLeast && held_->struct_size % sizeof(void*) == 0;
  }
  const AbiHeader& header() const { return *held_; }

  template <typename... Args, typename... Given>
  Status call(Slot<Args...> slot, Given... given) const {
    const auto function = reinterpret_cast<Status (*)(Args...)>(find(slot.at));
    return function == nullptr ? kUnsupported : function(given...);
  }

 private:
  void* find(uint16_t at) const {
    if (at + sizeof(void*) > held_->struct_size) return nullptr;
    return *reinterpret_cast<void* const*>(reinterpret_cast<const char*>(held_) + at);
  }
  const AbiHeader* held_ = nullptr;
};

// ---- tables that we export ----

struct Compiler;  // our objects behind the host's handles
struct CompiledParts;
struct CompilerTable {  // from 2.4 on; before, each is an exported function
  AbiHeader header;
  Status (*version)(Version*);
  const char* (*manufacturer)();
  Status (*create)(const void* context, Compiler**, HostEnvironment*, HostOptions*);
  void (*destroy)(Compiler*);
  Status (*hardware)(Compiler*, int*);
  Status (*num_socs)(Compiler*, size_t*);
  Status (*soc)(Compiler*, size_t, const char**);
  Status (*partition)(Compiler*, const char* soc, HostSubgraph*, HostOpList*);
  Status (*compile)(Compiler*, const char* soc, HostModel*, CompiledParts**);
  void (*destroy_result)(CompiledParts*);
  Status (*byte_code)(CompiledParts*, size_t, const void**, size_t*);
  Status (*num_byte_codes)(CompiledParts*, size_t*);
  Status (*call_info)(CompiledParts*, size_t, const void** name, size_t* size, size_t* byte_code);
  Status (*num_calls)(CompiledParts*, size_t*);
  Status (*transformations)(Compiler*, void**, size_t*);
  Status (*sdk_version)(Compiler*, const char**);
  void* result_handle;
  Status (*compatibility)(Version, Compiler*, HostEnvironment*, HostOptions*, const char* soc);
};
static_assert(sizeof(CompilerTable) == 152);

struct Device;
struct Invocation;
struct MemBuffer {
  int fd;
  const void* base;
  size_t offset, size, base_file_offset;
};
struct DispatchTable {
  Status (*initialize)(const void* context, HostEnvironment*, HostOptions*);
  Status (*vendor)(const char**);
  Status (*build)(const char**);
  Status (*capabilities)(int*);
  Status (*create_device)(const void* context, HostOptions*, Device**);
  Status (*destroy_device)(Device*);
  Status (*input_requirements)(Invocation*, int, const RankedType*, HostRequirements**);
  Status (*output_requirements)(Invocation*, int, const RankedType*, HostRequirements**);
  Status (*register_buffer)(Device*, HostBuffer*, uint64_t*);
  Status (*unregister_buffer)(Device*, uint64_t);
  Status (*create_invocation)(const void* context, Device*, int kind, const MemBuffer*, const char* function,
                              int num_inputs, int num_outputs, Invocation**);
  Status (*destroy_invocation)(Invocation*);
  Status (*set_scheduling)(Invocation*, const void*);
  Status (*attach_input)(Invocation*, int, uint64_t);
  Status (*attach_output)(Invocation*, int, uint64_t);
  Status (*detach_input)(Invocation*, int, uint64_t);
  Status (*detach_output)(Invocation*, int, uint64_t);
  Status (*invoke)(Invocation*);
  Status (*start_metrics)(Invocation*, int);
  Status (*stop_metrics)(Invocation*, void**);
  Status (*num_metrics)(void*, int*);
  Status (*metric)(void*, int, void*);
  Status (*destroy_metrics)(void*);
  Status (*compatibility)(Version, HostEnvironment*, HostOptions*);
  Status (*set_options)(Invocation*, HostOptions*);
  void* hooks;
};
static_assert(sizeof(DispatchTable) == 26 * sizeof(void*));
struct DispatchApi {  // up to 2.3
  AbiHeader header;
  Version version;
  const DispatchTable* basic;
  const void *async, *graph, *buffers;
};
static_assert(sizeof(DispatchApi) == 56);
struct DispatchQueryTable {  // from 2.4 on
  AbiHeader header;
  DispatchTable functions;
  void *attach_edge, *detach_edge;
};

}  // namespace skillet::litert
