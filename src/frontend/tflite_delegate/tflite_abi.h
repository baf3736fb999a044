// C structs of the interface between TensorFlow Lite and a delegate, in the newest layout (LiteRT 2.x, LP64). Included
// by all files of this folder. Our own declarations: no TFLite header or library is needed to build.
// Must not know: anything of Skillet.
//
// One binary works with TFLite 2.9 and later, because structs only grow at the end. Structs that we pass are zeroed and
// have the newest size. Of structs that we receive, nothing beyond the oldest layout is read. Later fields of builtin
// parameters are read by the op's version (builtin_params.h).
#pragma once

#include <cstddef>
#include <cstdint>

// TfLiteContext::profiler of all hosts since TFLite 2.9 is a C++ object with this vtable, in this order. Times are in
// microseconds; `type` is kDelegateProfiledOperator.
class TfLiteProfiler {
 public:
  virtual ~TfLiteProfiler() = default;
  virtual uint32_t BeginEvent(const char* tag, int type, int64_t metadata1, int64_t metadata2) = 0;
  virtual void EndEvent(uint32_t event, int64_t metadata1, int64_t metadata2) = 0;
  virtual void EndEvent(uint32_t event) = 0;
  virtual void AddEvent(const char* tag, int type, uint64_t us, int64_t metadata1, int64_t metadata2) = 0;
  virtual void AddEventWithData(const char* tag, int type, const void* data) = 0;
};
constexpr int kDelegateProfiledOperator = 8;

extern "C" {

enum TfLiteStatus : int { kTfLiteOk = 0, kTfLiteError = 1, kTfLiteDelegateError = 2, kTfLiteApplicationError = 3 };

// TfLiteType, TfLiteAllocationType and so on are plain ints here: hosts may use values unknown to us.
using TfLiteEnum = int;

constexpr TfLiteEnum kTfLiteMemNone = 0, kTfLiteMmapRo = 1, kTfLiteDynamic = 4, kTfLitePersistentRo = 5,
                     kTfLiteVariantObject = 7, kTfLiteNonCpu = 8;
constexpr TfLiteEnum kTfLiteAffineQuantization = 1;              // other kinds have other parameters
constexpr int64_t kTfLiteDelegateFlagsPerOperatorProfiling = 4;  // since 2.12
constexpr int kTfLiteOptionalTensor = -1;
constexpr int64_t kTfLiteDelegateFlagsAllowDynamicTensors = 1;
constexpr int kTfLiteBuiltinCustom = 32, kTfLiteBuiltinDelegate = 51;

// Followed by `size` elements.
struct TfLiteIntArray {
  int size;
  const int* data() const { return reinterpret_cast<const int*>(this + 1); }
  int* data() { return reinterpret_cast<int*>(this + 1); }
};
struct TfLiteFloatArray {
  int size;
  const float* data() const { return reinterpret_cast<const float*>(this + 1); }
};

struct TfLiteAffineQuantization {
  TfLiteFloatArray* scale;
  TfLiteIntArray* zero_point;
  int32_t quantized_dimension;
};

struct TfLiteQuantization {
  TfLiteEnum type;
  void* params;
};

struct TfLiteDelegate;

struct TfLiteTensor {
  TfLiteEnum type;
  void* data;
  TfLiteIntArray* dims;
  struct {
    float scale;
    int32_t zero_point;
  } params;  // replaced by `quantization`
  TfLiteEnum allocation_type;
  size_t bytes;
  const void* allocation;
  const char* name;
  TfLiteDelegate* delegate;
  int buffer_handle;
  bool data_is_stale;
  bool is_variable;
  TfLiteQuantization quantization;
  void* sparsity;
  const TfLiteIntArray* dims_signature;
};

struct TfLiteNode {
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
  TfLiteIntArray* intermediates;
  TfLiteIntArray* temporaries;
  void* user_data;
  void* builtin_data;
  const void* custom_initial_data;
  int custom_initial_data_size;
  TfLiteDelegate* delegate;
  bool might_have_side_effect;
};

struct TfLiteContext;

struct TfLiteDelegateParams {
  TfLiteDelegate* delegate;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
};

// Passed by value to ReplaceNodeSubsetsWithDelegateKernels: newer hosts read the whole struct.
struct TfLiteRegistration {
  void* (*init)(TfLiteContext* context, const char* buffer, size_t length);
  void (*free)(TfLiteContext* context, void* buffer);
  TfLiteStatus (*prepare)(TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);
  const char* (*profiling_string)(const TfLiteContext* context, const TfLiteNode* node);
  int32_t builtin_code;
  const char* custom_name;
  int version;
  void* registration_external;                                      // since 2.10
  void* (*async_kernel)(TfLiteContext* context, TfLiteNode* node);  // since 2.13
  uint64_t inplace_operator;                                        // since 2.14
};

struct TfLiteContext {
  size_t tensors_size;
  TfLiteStatus (*GetExecutionPlan)(TfLiteContext* context, TfLiteIntArray** execution_plan);
  TfLiteTensor* tensors;  // moves when tensors are added
  void* impl;
  TfLiteStatus (*ResizeTensor)(TfLiteContext* context, TfLiteTensor* tensor, TfLiteIntArray* new_size);
  void (*ReportError)(TfLiteContext* context, const char* format, ...);
  TfLiteStatus (*AddTensors)(TfLiteContext* context, int tensors_to_add, int* first_new_tensor_index);
  TfLiteStatus (*GetNodeAndRegistration)(TfLiteContext* context, int node_index, TfLiteNode** node,
                                         TfLiteRegistration** registration);
  TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(TfLiteContext* context, TfLiteRegistration registration,
                                                        const TfLiteIntArray* nodes_to_replace,
                                                        TfLiteDelegate* delegate);
  int recommended_num_threads;
  void* GetExternalContext;
  void* SetExternalContext;
  bool allow_fp32_relax_to_fp16;
  void* profiler;
  void* AllocatePersistentBuffer;
  void* AllocateBufferForEval;
  void* RequestScratchBufferInArena;
  void* GetScratchBuffer;
  void* ResizeTensorExplicit;
  TfLiteStatus (*PreviewDelegatePartitioning)(TfLiteContext* context, const TfLiteIntArray* nodes_to_replace,
                                              TfLiteDelegateParams** partition_params_array, int* num_partitions);
  void* GetTensor;
  void* GetEvalTensor;
  TfLiteStatus (*GetModelMetadata)(const TfLiteContext* context, const char* name, const char** bytes, size_t* size);
  void* AcquireSubgraphContext;  // since 2.14: do not read
  void* ReleaseSubgraphContext;  // since 2.14: do not read
};

// Allocated larger than this and zeroed (plugin.cpp).
struct TfLiteDelegate {
  void* data;
  TfLiteStatus (*Prepare)(TfLiteContext* context, TfLiteDelegate* delegate);
  TfLiteStatus (*CopyFromBufferHandle)(TfLiteContext* context, TfLiteDelegate* delegate, int handle,
                                       TfLiteTensor* tensor);
  TfLiteStatus (*CopyToBufferHandle)(TfLiteContext* context, TfLiteDelegate* delegate, int handle,
                                     TfLiteTensor* tensor);
  void (*FreeBufferHandle)(TfLiteContext* context, TfLiteDelegate* delegate, int* handle);
  int64_t flags;
  void* opaque_delegate_builder;  // since 2.11
};

}  // extern "C"

// Sizes and offsets measured with the headers of TFLite 2.9, 2.13, 2.16 and LiteRT 2.2 (equal in all unless noted).
static_assert(sizeof(void*) != 8 || sizeof(TfLiteTensor) == 112);
static_assert(sizeof(void*) != 8 || offsetof(TfLiteTensor, allocation_type) == 32);
static_assert(sizeof(void*) != 8 || offsetof(TfLiteTensor, bytes) == 40);
static_assert(sizeof(void*) != 8 || offsetof(TfLiteTensor, buffer_handle) == 72);
static_assert(sizeof(void*) != 8 || offsetof(TfLiteTensor, quantization) == 80);
static_assert(sizeof(void*) != 8 || offsetof(TfLiteTensor, dims_signature) == 104);
static_assert(sizeof(void*) != 8 || sizeof(TfLiteNode) == 80);
static_assert(sizeof(void*) != 8 || offsetof(TfLiteNode, builtin_data) == 40);
static_assert(sizeof(void*) != 8 || sizeof(TfLiteDelegateParams) == 32);
static_assert(sizeof(void*) != 8 || sizeof(TfLiteContext) == 200);      // 184 before 2.14
static_assert(sizeof(void*) != 8 || sizeof(TfLiteRegistration) == 88);  // 64 in 2.9, 72 in 2.10, 80 in 2.13
static_assert(sizeof(void*) != 8 || offsetof(TfLiteRegistration, version) == 56);
static_assert(sizeof(void*) != 8 || offsetof(TfLiteContext, ReplaceNodeSubsetsWithDelegateKernels) == 64);
static_assert(sizeof(void*) != 8 || offsetof(TfLiteContext, PreviewDelegatePartitioning) == 152);
static_assert(sizeof(void*) != 8 || sizeof(TfLiteDelegate) == 56);  // 48 before 2.11
static_assert(sizeof(bool) == 1 && sizeof(TfLiteEnum) == 4);
