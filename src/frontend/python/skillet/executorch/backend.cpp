// ExecuTorch back end: runs compiled models (`skillet compile`) on the host's tensors, through the C interface.
// ExecuTorch finds it by its name. Only skillet.executorch.build_backend() builds it, against an installed package of
// ExecuTorch 1.5 or later, because the C++ interface differs between minor versions.
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/platform/log.h>
#include <skillet/skillet.h>

#include <new>
#include <vector>

namespace {

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::ArrayRef;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::BackendInterface;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Result;
using executorch::runtime::Span;

struct Part {
  skillet_device* device = nullptr;
  skillet_model* model = nullptr;
  std::vector<skillet_tensor_info> tensors;  // inputs, then outputs
  size_t inputs = 0;
  std::vector<const void*> in;
  std::vector<void*> out;

  Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() {
    skillet_close_model(model);
    skillet_close(device);
  }
};

Error refused(const char* what, Error error) {
  ET_LOG(Error, "Skillet: %s: %s", what, skillet_last_error());
  return error;
}

bool is_of_type(ScalarType type, skillet_type wanted) {
  switch (wanted) {
    case SKILLET_FLOAT32: return type == ScalarType::Float;
    case SKILLET_INT8: return type == ScalarType::Char;
    case SKILLET_UINT8: return type == ScalarType::Byte;
    default: return false;
  }
}

// Checks that the host's tensor fits the model's: type, sizes, and the order of dimensions in memory.
Error check(const EValue& value, const skillet_tensor_info& info, size_t index) {
  if (!value.isTensor()) {
    ET_LOG(Error, "Skillet: argument %zu is not a tensor", index);
    return Error::InvalidArgument;
  }
  const Tensor& tensor = value.toTensor();
  bool is_same =
      is_of_type(tensor.scalar_type(), info.type) && tensor.dim() == info.rank && tensor.nbytes() == info.bytes;
  for (int32_t i = 0; is_same && i < info.rank; ++i)
    is_same = tensor.size(i) == info.dims[i] && tensor.dim_order()[static_cast<size_t>(i)] == i;
  if (is_same) return Error::Ok;
  ET_LOG(Error,
         "Skillet: argument %zu is not the compiled part's tensor '%s': another type, size or order of dimensions",
         index, info.name);
  return Error::InvalidArgument;
}

class SkilletBackend final : public BackendInterface {
 public:
  bool is_available() const override { return true; }  // without an NPU the CPU kernels run

  Result<DelegateHandle*> init(BackendInitContext&, FreeableBuffer* processed, ArrayRef<CompileSpec>) const override {
    auto* part = new (std::nothrow) Part;
    if (part == nullptr) return Error::MemoryAllocationFailed;
    const Error error = load(*part, *processed);
    processed->Free();  // the model has a copy
    if (error == Error::Ok) return part;
    delete part;
    return error;
  }

  Error execute(BackendExecutionContext&, DelegateHandle* handle, Span<EValue*> args) const override {
    auto& part = *static_cast<Part*>(handle);
    if (args.size() != part.tensors.size()) {
      ET_LOG(Error, "Skillet: %zu arguments, the compiled part has %zu", args.size(), part.tensors.size());
      return Error::InvalidArgument;
    }
    for (size_t i = 0; i < args.size(); ++i) {
      if (const Error error = check(*args[i], part.tensors[i], i); error != Error::Ok) return error;
      if (i < part.inputs)
        part.in[i] = args[i]->toTensor().const_data_ptr();
      else
        part.out[i - part.inputs] = args[i]->toTensor().mutable_data_ptr();
    }
    if (skillet_run_on(part.model, part.in.data(), part.out.data()) != SKILLET_OK)
      return refused("the run failed", Error::DelegateInvalidHandle);
    return Error::Ok;
  }

  void destroy(DelegateHandle* handle) const override { delete static_cast<Part*>(handle); }

 private:
  static Error load(Part& part, const FreeableBuffer& processed) {
    if (skillet_open(nullptr, &part.device) != SKILLET_OK) return refused("SKILLET_DEVICE", Error::NotFound);
    if (skillet_load_memory(part.device, processed.data(), processed.size(), nullptr, &part.model) != SKILLET_OK)
      return refused("the compiled part is refused", Error::DelegateInvalidCompatibility);
    part.inputs = skillet_input_count(part.model);
    const size_t outputs = skillet_output_count(part.model);
    part.tensors.resize(part.inputs + outputs);
    for (size_t i = 0; i < part.tensors.size(); ++i) {
      auto* info = &part.tensors[i];
      const skillet_status status = i < part.inputs ? skillet_input_info(part.model, i, info)
                                                    : skillet_output_info(part.model, i - part.inputs, info);
      if (status != SKILLET_OK) return refused("the compiled part is refused", Error::DelegateInvalidCompatibility);
    }
    part.in.resize(part.inputs);
    part.out.resize(outputs);
    return Error::Ok;
  }
};

SkilletBackend backend;
[[maybe_unused]] const Error registered = executorch::runtime::register_backend({"SkilletBackend", &backend});

}  // namespace

// Identifies the library for the program that loads it.
extern "C" const char* skillet_executorch_backend() { return "SkilletBackend"; }
