// EtnavivFile: an open DRM node of etnaviv, and its ioctls with every failure put into words.
// Called by etnaviv.cpp (the device) and etnaviv_find.cpp (the search).
// Must not know: buffers of the device, address spaces, submissions in flight.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/result.h"
#include "uapi/etnaviv_uapi.h"

namespace skillet::uapi::etnaviv {

// "EBUSY"; the number for names nobody needs.
std::string errno_name(int number);
// What failed and what to do: "/dev/dri/renderD128: allocating a buffer of 4096 bytes: ENOMEM (...): advice".
Error os_error(const std::string& node, const std::string& what, int number);

// The moment `timeout` from now as the kernel wants it.
Timespec deadline(std::chrono::nanoseconds timeout);

constexpr std::chrono::seconds kPatience{2};

class File {
 public:
  static Result<File> open(const std::string& node);
  // The same; nothing when there is no such node.
  static Result<std::optional<File>> open_if_there(const std::string& node);
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  const std::string& node() const { return node_; }
  int fd() const { return fd_; }
  // One ioctl, repeated for at most `patience` while signals interrupt it. `what` names the attempt in errors.
  Result<void> call(unsigned long request, void* argument, const std::string& what,
                    std::chrono::nanoseconds patience = kPatience) const;
  // The same, with the errno (0: fine) for callers that tell failures apart.
  int try_call(unsigned long request, void* argument, std::chrono::nanoseconds patience = kPatience) const;
  Result<uint64_t> param(uint32_t pipe, Param param) const;
  // DRM driver name, such as "etnaviv"; its interface version.
  struct Version {
    std::string name;
    int major = 0, minor = 0;
  };
  Result<Version> version() const;

 private:
  File(int fd, std::string node) : fd_(fd), node_(std::move(node)) {}
  int fd_;
  std::string node_;
};

}  // namespace skillet::uapi::etnaviv
