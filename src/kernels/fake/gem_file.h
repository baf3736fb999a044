// GemFile: the common part of an open file of every DRM driver: handles of buffers, their addresses in the file's
// device address space, and the calls of DRM's core for them.
// Called by the files of emulated kernel drivers, which are GemFiles.
// Must not know: any single kernel driver, descriptors of the process, paths.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/address_space.h"
#include "kernels/api/drm.h"
#include "kernels/fake/kernel.h"

namespace skillet::fake {

class GemFile : public File {
 public:
  GemFile(Kernel& kernel, unsigned minor, AddressSpace addresses)
      : File(minor), addresses_(std::move(addresses)), kernel_(kernel) {}

  int find_mapping(uint64_t size_bytes, uint64_t offset, std::shared_ptr<Buffer>& out) override;
  int get_cap(kernels::drm::GetCap& args);
  // Lines of DRM's core, for drivers that have them: the client's number, and the bytes of its buffers.
  std::string memory_fdinfo(std::string_view driver);
  int gem_close(kernels::drm::GemClose& args);
  // For kernel drivers that import only buffers of their own device.
  int prime_fd_to_handle(kernels::drm::PrimeHandle& args);

 protected:
  using Lock = std::unique_lock<std::mutex>;
  struct Entry {
    std::shared_ptr<Buffer> buffer;
    std::optional<uint64_t> address;  // on the device, once it is mapped there
  };

  // All of these require Kernel::state().
  // The offset of a buffer for mmap(): the same in all files of the kernel.
  uint64_t offset_of(uint32_t handle) { return kernel_.offset_of(find(handle)->buffer); }
  Entry* find(uint32_t handle);
  // The lowest free handle, as in kernels: handles of closed buffers are reused.
  uint32_t add(Entry entry);
  // Imports the buffer of a descriptor: one memory has one handle in each file.
  int import_buffer(kernels::drm::PrimeHandle& args, const std::shared_ptr<Buffer>& buffer);
  // prime_handle_to_fd; no job may write while the memory is moved.
  int export_buffer(kernels::drm::PrimeHandle& args);
  // Frees the address of a closed buffer once no job uses it, and the kernel's worker has released it.
  void reclaim();
  virtual bool is_in_use(const Buffer& buffer) const { return buffer.busy(kernel_.jobs(), true).has_value(); }

  std::map<uint32_t, Entry> entries_;
  std::vector<Entry> closed_;  // a job still uses them
  AddressSpace addresses_;

 private:
  Kernel& kernel_;
  const uint64_t client_ = kernel_.next_client();
};

}  // namespace skillet::fake
