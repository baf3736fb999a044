// Memory that programs share with a device: whatever fails, each handle and descriptor is freed once; bytes in a buffer
// are found, and buffers of a run are kept.
#include "runtime/shared_buffer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <set>

#include "kernels/api/forwarding_device.h"
#include "runtime/toy_session.h"

namespace skillet::runtime {
namespace {

// A device with its own memory; any call can be made to fail.
class MemoryDevice : public kernels::ForwardingDevice {
 public:
  MemoryDevice() : ForwardingDevice(nullptr) {}

  int calls_left = -1;             // before one fails
  std::set<kernels::Handle> live;  // handles
  std::vector<Bytes> memory;       // by handle, from 1
  std::span<uint8_t> next_view;    // of the next import
  int not_mine = 0;                // frees of handles that were not live

  Result<kernels::Handle> alloc(uint64_t size_bytes) override {
    SK_TRY(call());
    return make(size_bytes);
  }
  Result<kernels::Handle> import_dmabuf(int) override {
    SK_TRY(call());
    return make(64);
  }
  Result<uint64_t> address(kernels::Handle handle) const override {
    SK_TRY(const_cast<MemoryDevice*>(this)->call());
    return 0x1000 * handle;
  }
  Result<std::span<uint8_t>> map(kernels::Handle handle) override {
    SK_TRY(call());
    if (!next_view.empty()) return next_view;
    return std::span<uint8_t>(memory[handle - 1]);
  }
  Result<int> export_dmabuf(kernels::Handle) override {
    SK_TRY(call());
    return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  Result<void> free(kernels::Handle handle) override {
    not_mine += live.erase(handle) == 0;
    return {};
  }

 private:
  Result<void> call() {
    if (calls_left-- == 0) return error(ErrorCode::io, "refused");
    return {};
  }
  kernels::Handle make(uint64_t size_bytes) {
    memory.emplace_back(size_bytes);
    live.insert(static_cast<kernels::Handle>(memory.size()));
    return static_cast<kernels::Handle>(memory.size());
  }
};

size_t descriptors() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST(SharedBuffers, GiveBackWhatTheyTookWhereverACallFails) {
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const size_t before = descriptors();
  MemoryDevice device;
  Bytes view(64);
  const auto take = [&](SharedBuffers& buffers, int way) -> Result<const uint8_t*> {
    if (way == 0) {
      SK_TRY_ASSIGN(const SharedBuffer one, buffers.alloc(device, 32));
      EXPECT_EQ(one.address, 0x1000U * one.handle);
      EXPECT_EQ(one.bytes.size(), 32U);
      return one.bytes.data();
    }
    if (way == 1) {
      SK_TRY_ASSIGN(const SharedBuffer one, buffers.import(device, null));
      return one.bytes.data();
    }
    SK_TRY(buffers.import(device, null, view));
    return view.data();
  };
  const int kCalls[] = {4, 3, 3};
  for (int way = 0; way < 3; ++way) {
    for (int good = 0; good <= kCalls[way]; ++good) {
      SCOPED_TRACE(fmt::format("way {}, {} calls", way, good));
      {
        SharedBuffers buffers;
        device.calls_left = good;
        const auto taken = take(buffers, way);
        EXPECT_EQ(taken.ok(), good == kCalls[way]);
        device.calls_left = -1;
        EXPECT_EQ(device.live.size(), taken.ok() ? 1U : 0U);
        EXPECT_EQ(descriptors(), before + (taken.ok() && way != 2 ? 1 : 0));
        if (taken.ok()) {
          EXPECT_FALSE(buffers.free(device, *taken + 1).ok());
          EXPECT_TRUE(buffers.free(device, *taken).ok());
          EXPECT_FALSE(buffers.free(device, *taken).ok());
        }
        EXPECT_TRUE(device.live.empty());
        EXPECT_EQ(descriptors(), before);
        EXPECT_TRUE(take(buffers, way).ok());  // frees all that is left, except the device's own
      }
      EXPECT_EQ(descriptors(), before);
      device.live.clear();
    }
  }
  EXPECT_EQ(device.not_mine, 0);
  ::close(null);
}

TEST(SharedBuffers, RefuseWhatIsTooSmallOrThereAlready) {
  MemoryDevice device;
  SharedBuffers buffers;
  Bytes view(65);
  EXPECT_FALSE(buffers.import(device, 0, view).ok()) << "the descriptor has 64 bytes";
  EXPECT_TRUE(buffers.import(device, 0, std::span(view).first(64)).ok());
  const auto one = buffers.alloc(device, 64);
  ASSERT_TRUE(one.ok());
  device.next_view = one->bytes;
  const auto again = buffers.import(device, 0);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message, "descriptor 0 is already a shared buffer of this device");
  EXPECT_EQ(device.live.size(), 2U);
}

TEST(SharedBuffers, FindWhatLiesInOne) {
  MemoryDevice device;
  SharedBuffers buffers, others;
  const std::span<uint8_t> bytes = buffers.alloc(device, 64)->bytes;
  Bytes callers(64);
  ASSERT_TRUE(others.import(device, 0, callers).ok());
  const auto found = [&](const uint8_t* start, size_t size) {
    const bool here = buffers.find({start, size}) != nullptr;
    const auto anywhere = SharedBuffers::find_anywhere({start, size});
    EXPECT_EQ(anywhere.has_value(), here) << "of the others, the caller has the view";
    if (here) {
      EXPECT_EQ(anywhere->bytes.data(), bytes.data());
    }
    return here;
  };
  EXPECT_TRUE(found(bytes.data(), 64));
  EXPECT_TRUE(found(bytes.data(), 1));
  EXPECT_TRUE(found(bytes.data() + 63, 1));
  EXPECT_TRUE(found(bytes.data() + 10, 54));
  EXPECT_FALSE(found(bytes.data() + 10, 55));
  EXPECT_FALSE(found(bytes.data(), 65));
  EXPECT_FALSE(found(bytes.data() - 1, 2));
  EXPECT_FALSE(found(bytes.data() + 65, 1));
  EXPECT_FALSE(found(callers.data(), 64));
  EXPECT_NE(others.find(callers), nullptr);
}

TEST(SharedBuffers, ARunsStays) {
  MemoryDevice device;
  SharedBuffers others, buffers, more;
  const auto one = buffers.alloc(device, 64), two = buffers.alloc(device, 64);
  EXPECT_NE(one->serial, two->serial);
  {
    HeldBuffers run, other;
    run.add(one->bytes.subspan(3, 5));
    run.add(one->bytes);
    other.add(one->bytes);
    EXPECT_EQ(buffers.free(device, one->bytes.data()).error().message,
              "a run uses this shared buffer; wait until it has ended");
    run.clear();
    run.clear();
    EXPECT_FALSE(buffers.free(device, one->bytes.data()).ok()) << "the other run";
    EXPECT_TRUE(buffers.free(device, two->bytes.data()).ok());
    Bytes not_shared(8);
    other.add(not_shared);
  }
  EXPECT_TRUE(buffers.free(device, one->bytes.data()).ok());
  EXPECT_EQ(SharedBuffers::hold(one->bytes), 0U);
}

// The parent's buffers belong to the parent, and a thread that does not exist in the child may have been changing them.
TEST(SharedBuffers, AChildOfForkBeginsWithNone) {
  MemoryDevice device;
  auto parents = std::make_unique<SharedBuffers>();
  const std::span<uint8_t> bytes = parents->alloc(device, 64).value().bytes;
  ASSERT_TRUE(SharedBuffers::find_anywhere(bytes));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    if (SharedBuffers::find_anywhere(bytes)) ::_exit(1);
    SharedBuffers own;
    const std::span<uint8_t> mine = own.alloc(device, 64).value().bytes;
    parents.reset();
    ::_exit(SharedBuffers::find_anywhere(mine) ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(SharedBuffers::find_anywhere(bytes));
}

}  // namespace
}  // namespace skillet::runtime
