#include "base/result.h"

namespace skillet {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid argument";
    case ErrorCode::malformed: return "malformed";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::out_of_range: return "out of range";
    case ErrorCode::io: return "i/o";
    case ErrorCode::device: return "device";
    case ErrorCode::fault: return "fault";
    case ErrorCode::timeout: return "timeout";
    case ErrorCode::internal: return "internal";
  }
  return "?";
}

}  // namespace skillet
