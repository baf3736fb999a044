// C structs and function tables of the interface between ONNX Runtime and a plug-in provider (LP64), as far as we use
// them. Included by all files here that call the host. Our own declarations: no header of ONNX Runtime is needed.
// Must not know: anything of Skillet.
//
// One binary works with 1.23 and all later versions: tables only grow at the end, and each struct holds the version
// that it was written for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace skillet::onnxruntime {

// Opaque types of the host.
struct OrtStatus;
struct OrtLogger;
struct OrtGraph;
struct OrtNode;
struct OrtValueInfo;
struct OrtValue;
struct OrtTypeInfo;
struct OrtTensorInfo;
struct OrtOpAttr;
struct OrtKeyValues;
struct OrtHardwareDevice;
struct OrtEpDevice;
struct OrtSessionOptions;
struct OrtSupportInfo;
struct OrtKernelContext;

using Table = const void* const*;
struct OrtApiBase {
  Table (*get_api)(uint32_t version);
  const char* (*get_version)();
};

constexpr uint32_t kOldestVersion = 23, kNewestVersion = 24, kOwnDevicesSince = 24;
constexpr uint32_t kNamesOfGraphsSince = 24;  // before, the parts of a graph inside a node have names of other parts
constexpr int kFail = 1, kInvalidArgument = 2, kEpFail = 11;  // status codes
constexpr int kAttributeInt = 1, kAttributeInts = 2, kAttributeFloat = 3, kAttributeFloats = 4, kAttributeString = 5;
constexpr int kLogInfo = 1, kLogWarning = 2, kLogError = 3;
constexpr int kDeviceCpu = 0, kDeviceNpu = 2;
constexpr int kElementFloat = 1, kElementUint8 = 2, kElementInt8 = 3, kElementInt32 = 6, kElementInt64 = 7;

// A function of a table: its index and its type.
template <typename F>
struct Slot {
  size_t place;
};
template <typename... Args>
using StatusSlot = Slot<OrtStatus*(Args...)>;

// Functions of OrtApi.
inline constexpr Slot<OrtStatus*(int, const char*)> kCreateStatus{0};
inline constexpr Slot<const char*(const OrtStatus*)> kGetErrorMessage{2};
inline constexpr StatusSlot<OrtValue*, void**> kGetMutableData{51};
inline constexpr StatusSlot<const OrtTypeInfo*, const OrtTensorInfo**> kCastToTensorInfo{55};
inline constexpr StatusSlot<const OrtTensorInfo*, int*> kGetElementType{60};
inline constexpr StatusSlot<const OrtTensorInfo*, size_t*> kGetDimensionsCount{61};
inline constexpr StatusSlot<const OrtTensorInfo*, int64_t*, size_t> kGetDimensions{62};
inline constexpr StatusSlot<const OrtKernelContext*, size_t*> kContextInputCount{88};
inline constexpr StatusSlot<const OrtKernelContext*, size_t*> kContextOutputCount{89};
inline constexpr StatusSlot<const OrtKernelContext*, size_t, const OrtValue**> kContextInput{90};
inline constexpr StatusSlot<OrtKernelContext*, size_t, const int64_t*, size_t, OrtValue**> kContextOutput{91};
inline constexpr Slot<void(OrtStatus*)> kReleaseStatus{93};
inline constexpr StatusSlot<const OrtLogger*, int, const char*, const char*, int, const char*> kLogMessage{247};
inline constexpr StatusSlot<const OrtOpAttr*, int, void*, size_t, size_t*> kReadAttribute{272};
inline constexpr StatusSlot<const OrtValueInfo*, const char**> kValueName{289};
inline constexpr StatusSlot<const OrtValueInfo*, const OrtTypeInfo**> kValueType{290};
inline constexpr Slot<void(OrtKeyValues**)> kCreateKeyValues{295};
inline constexpr Slot<void(OrtKeyValues*, const char*, const char*)> kAddKeyValue{296};
inline constexpr Slot<void(const OrtKeyValues*, const char* const**, const char* const**, size_t*)> kGetKeyValues{298};
inline constexpr Slot<void(OrtKeyValues*)> kReleaseKeyValues{300};
inline constexpr Slot<int(const OrtHardwareDevice*)> kDeviceType{307};
inline constexpr Slot<Table()> kGetEpApi{317};
inline constexpr StatusSlot<const OrtValue*, size_t*> kGetSizeInBytes{318};
inline constexpr StatusSlot<const OrtValueInfo*, size_t*> kValueNumConsumers{324};
inline constexpr StatusSlot<const OrtValueInfo*, const OrtValue**> kInitializerValue{326};
inline constexpr StatusSlot<const OrtValueInfo*, bool*> kIsGraphOutput{330};
inline constexpr StatusSlot<const OrtValueInfo*, bool*> kIsConstantInitializer{331};
inline constexpr StatusSlot<const OrtValueInfo*, bool*> kIsFromOutside{332};  // of the enclosing graph
inline constexpr StatusSlot<const OrtGraph*, const char**> kGraphModelPath{334};
inline constexpr StatusSlot<const OrtGraph*, size_t*> kGraphNumOutputs{340}, kGraphNumInputs{338}, kGraphNumNodes{344};
inline constexpr StatusSlot<const OrtGraph*, const OrtValueInfo**, size_t> kGraphInputs{339}, kGraphOutputs{341};
inline constexpr StatusSlot<const OrtGraph*, const OrtNode**, size_t> kGraphNodes{345};
inline constexpr StatusSlot<const OrtGraph*, const OrtNode**> kGraphParent{346};  // null: the main graph; 1.23: always
inline constexpr StatusSlot<const OrtNode*, const char**> kNodeName{349}, kNodeOp{350}, kNodeDomain{351};
inline constexpr StatusSlot<const OrtNode*, int*> kNodeSince{352};
inline constexpr StatusSlot<const OrtNode*, size_t*> kNodeNumInputs{353}, kNodeNumOutputs{355}, kNodeNumInner{357};
inline constexpr StatusSlot<const OrtNode*, const OrtValueInfo**, size_t> kNodeInputs{354}, kNodeOutputs{356},
    kNodeInner{358};  // values that graphs inside the node read
inline constexpr StatusSlot<const OrtNode*, const char*, const OrtOpAttr**> kNodeAttribute{361};
inline constexpr StatusSlot<const OrtNode*, size_t*> kNodeNumGraphs{365};      // inside the node
inline constexpr StatusSlot<const OrtNode*, const char**> kNodeProvider{368};  // empty: not assigned yet
inline constexpr StatusSlot<const OrtOpAttr*, int*> kAttributeType{363};
inline constexpr StatusSlot<const char*, const void*, int, int, OrtOpAttr**> kCreateAttribute{211};
inline constexpr Slot<void(OrtOpAttr*)> kReleaseAttribute{212};
inline constexpr Slot<Table()> kGetModelEditorApi{291};
inline constexpr StatusSlot<const OrtValue*, const void**> kGetData{378};
inline constexpr StatusSlot<const OrtSessionOptions*, OrtKeyValues**> kConfigEntries{379};
// Functions of OrtModelEditorApi.
inline constexpr StatusSlot<const char*, const char*, const char*, const char* const*, size_t, const char* const*,
                            size_t, OrtOpAttr**, size_t, OrtNode**>
    kCreateNode{6};
// Functions of OrtEpApi.
struct OrtEpFactory;
inline constexpr StatusSlot<OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValues*, const OrtKeyValues*,
                            OrtEpDevice**>
    kCreateEpDevice{0};
struct OrtFusionOptions {
  uint32_t version;
  bool drop_constants;
};
inline constexpr StatusSlot<OrtSupportInfo*, const OrtNode* const*, size_t, const OrtFusionOptions*> kAddNodesToFuse{2};
inline constexpr StatusSlot<int, uint32_t, uint32_t, const char*, const OrtKeyValues*, OrtHardwareDevice**>
    kCreateHardwareDevice{16};

struct OrtNodeComputeInfo {
  uint32_t version;
  OrtStatus* (*create_state)(OrtNodeComputeInfo*, void* context, void** state);
  OrtStatus* (*compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*);
  void (*release_state)(OrtNodeComputeInfo*, void* state);
};

// Null functions are not provided. Newer versions read `more`.
struct OrtEp {
  uint32_t version;
  const char* (*get_name)(const OrtEp*);
  OrtStatus* (*get_capability)(OrtEp*, const OrtGraph*, OrtSupportInfo*);
  OrtStatus* (*compile)(OrtEp*, const OrtGraph**, const OrtNode**, size_t count, OrtNodeComputeInfo**,
                        OrtNode** context_nodes);
  void (*release_compute_infos)(OrtEp*, OrtNodeComputeInfo**, size_t count);
  void* unused[9];  // data layout (2), dynamic options, run start and end, allocator, stream, compatibility, kernels
  OrtStatus* (*is_concurrent_run_supported)(OrtEp*, bool*);
  void* more[16];
};

struct OrtEpFactory {
  uint32_t version;
  const char* (*get_name)(const OrtEpFactory*);
  const char* (*get_vendor)(const OrtEpFactory*);
  OrtStatus* (*get_devices)(OrtEpFactory*, const OrtHardwareDevice* const*, size_t count, OrtEpDevice**, size_t most,
                            size_t* made);
  OrtStatus* (*create_ep)(OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValues* const* metadata,
                          size_t count, const OrtSessionOptions*, const OrtLogger*, OrtEp**);
  void (*release_ep)(OrtEpFactory*, OrtEp*);
  uint32_t (*get_vendor_id)(const OrtEpFactory*);
  const char* (*get_version)(const OrtEpFactory*);
  void* compatibility;
  OrtStatus* (*create_allocator)(OrtEpFactory*, const void*, const OrtKeyValues*, void**);
  void (*release_allocator)(OrtEpFactory*, void*);
  OrtStatus* (*create_data_transfer)(OrtEpFactory*, void**);
  bool (*is_stream_aware)(const OrtEpFactory*);
  void* more[16];
};

}  // namespace skillet::onnxruntime
