#include "kernels/api/device.h"

namespace skillet::kernels {

Result<int> Device::export_dmabuf(Handle handle) {
  return error(ErrorCode::unsupported, "{} shares no buffers: cannot export buffer {}", info().node, handle);
}

Result<Handle> Device::import_dmabuf(int fd) {
  return error(ErrorCode::unsupported, "{} shares no buffers: cannot import descriptor {}", info().node, fd);
}

}  // namespace skillet::kernels
