// The C interface on a kernel's NPU driver: device memory used in place, another driver's memory (a DMA heap, as used
// by cameras) imported, memory exported to a second opening of the device. Every output is compared with that of a run
// whose tensors are copied.
//   shared_buffers NODE MODEL CASE...     own, heap, second; refused: the kernel driver imports nothing; again: opened,
//                                         used and closed repeatedly, while the kernel still releases the last
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <skillet/skillet.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "shared_buffers: %s: %s\n", what.c_str(), skillet_last_error());
  std::exit(1);
}

void must(skillet_status status, const char* what) {
  if (status != SKILLET_OK) fail(what);
}

struct Network {
  skillet_device* device = nullptr;
  skillet_model* model = nullptr;
  size_t input_bytes = 0;
  size_t output_bytes = 0;

  Network(const char* node, const char* path) {
    must(skillet_open(node, &device), "opening the device");
    const skillet_option more[] = {{"unproven", "take"}, {"partition", "all"}};
    skillet_options options{};
    options.struct_bytes = sizeof(options);
    options.no_fallback = 1;
    options.more = more;
    options.more_count = 2;
    must(skillet_load_file(device, path, &options, &model), "loading the model");
    skillet_tensor_info info{};
    must(skillet_input_info(model, 0, &info), "input");
    input_bytes = info.bytes;
    must(skillet_output_info(model, 0, &info), "output");
    output_bytes = info.bytes;
  }
  ~Network() {
    skillet_close_model(model);
    skillet_close(device);
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Runs on this memory and returns the output.
  std::vector<uint8_t> run_on(const void* input) {
    std::vector<uint8_t> output(output_bytes);
    void* out = output.data();
    must(skillet_run_on(model, &input, &out), "running");
    return output;
  }
  uint64_t copied_bytes() const { return skillet_copied_bytes(model); }
};

void expect(bool holds, const char* what) {
  if (!holds) fail(what);
}

/// Returns a dma-buf that is not from an NPU's driver.
int dma_heap_buffer(size_t bytes) {
  const int heap = ::open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);
  dma_heap_allocation_data wanted{};
  wanted.len = bytes;
  wanted.fd_flags = O_RDWR | O_CLOEXEC;
  if (heap < 0 || ::ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &wanted) != 0) {
    std::perror("/dev/dma_heap/system");
    std::exit(77);
  }
  ::close(heap);
  return static_cast<int>(wanted.fd);
}

void use_own_memory(Network& network, const std::vector<uint8_t>& picture, const std::vector<uint8_t>& expected) {
  void* data = nullptr;
  int exported = -1;
  must(skillet_buffer_alloc(network.device, picture.size(), &data, &exported), "allocating");
  std::memcpy(data, picture.data(), picture.size());
  expect(network.run_on(data) == expected, "another output from memory of the device");
  must(skillet_buffer_free(network.device, data), "freeing");
}

void import_into(Network& network, int descriptor, const std::vector<uint8_t>& picture,
                 const std::vector<uint8_t>& expected) {
  void* data = nullptr;
  size_t bytes = 0;
  must(skillet_buffer_import(network.device, descriptor, &data, &bytes), "importing");
  expect(bytes >= picture.size(), "an imported buffer that is too small");
  for (int round = 0; round < 3; ++round) {
    std::memset(data, round, picture.size());
    (void)network.run_on(data);
    std::memcpy(data, picture.data(), picture.size());
    expect(network.run_on(data) == expected, "another output from imported memory");
    expect(network.copied_bytes() == network.output_bytes, "the imported input was copied");
  }
  must(skillet_buffer_free(network.device, data), "freeing what was imported");
}

void refuse_import(Network& network, int descriptor) {
  void* data = nullptr;
  size_t bytes = 0;
  expect(skillet_buffer_import(network.device, descriptor, &data, &bytes) != SKILLET_OK, "memory of others was taken");
  std::printf("foreign memory: %s\n", skillet_last_error());
}

/// Imports memory that another opening of the device allocates.
void import_from_second(const char* node, const char* path, Network& network, const std::vector<uint8_t>& picture,
                        const std::vector<uint8_t>& expected) {
  Network second(node, path);
  void* data = nullptr;
  int exported = -1;
  must(skillet_buffer_alloc(second.device, picture.size(), &data, &exported), "allocating to export");
  import_into(network, exported, picture, expected);
  must(skillet_buffer_free(second.device, data), "freeing what was exported");
}

/// Addresses, memory and descriptors of earlier openings do not disturb a new one.
void open_again(const char* node, const char* path, const std::vector<uint8_t>& picture,
                const std::vector<uint8_t>& expected) {
  for (int round = 0; round < 20; ++round) {
    Network network(node, path);
    for (int use = 0; use < 5; ++use) use_own_memory(network, picture, expected);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  Network network(argv[1], argv[2]);
  std::vector<uint8_t> picture(network.input_bytes);
  for (size_t at = 0; at < picture.size(); ++at) picture[at] = static_cast<uint8_t>(at * 89 >> 3);
  const std::vector<uint8_t> expected = network.run_on(picture.data());
  for (const char* const* one = argv + 3; *one != nullptr; ++one) {
    const std::string what = *one;
    if (what == "own") {
      use_own_memory(network, picture, expected);
      expect(network.copied_bytes() == network.output_bytes, "the input was copied");
    } else if (what == "second") {
      import_from_second(argv[1], argv[2], network, picture, expected);
    } else if (what == "again") {
      open_again(argv[1], argv[2], picture, expected);
    } else {
      const int heap = dma_heap_buffer(1 << 16);
      if (what == "heap") import_into(network, heap, picture, expected);
      if (what == "refused") refuse_import(network, heap);
      ::close(heap);
    }
    std::printf("%s: ok\n", what.c_str());
  }
  return 0;
}
