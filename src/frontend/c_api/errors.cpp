#include "frontend/c_api/internal.h"

namespace skillet::c_api {

skillet_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return SKILLET_INVALID_ARGUMENT;
    case ErrorCode::malformed: return SKILLET_MALFORMED;
    case ErrorCode::unsupported: return SKILLET_UNSUPPORTED;
    case ErrorCode::out_of_range: return SKILLET_OUT_OF_RANGE;
    case ErrorCode::io: return SKILLET_IO;
    case ErrorCode::device:
    case ErrorCode::fault: return SKILLET_DEVICE;
    case ErrorCode::timeout: return SKILLET_TIMEOUT;
    case ErrorCode::internal: break;
  }
  return SKILLET_INTERNAL;
}

Error null_argument(const char* name) { return error(ErrorCode::invalid_argument, "{} is null", name); }

}  // namespace skillet::c_api
