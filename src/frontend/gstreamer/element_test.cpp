// The element in a harness: frames that are dma-bufs, properties that change, tensors in messages.
#include "frontend/gstreamer/element.h"

#include <gst/allocators/gstdmabuf.h>
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/testing/in_tree.h"
#include "frontend/gstreamer/frame.h"
#include "frontend/gstreamer/network.h"
#include "tools/tensors/picture.h"

namespace skillet::gstreamer {
namespace {

constexpr int kSide = 28;
constexpr size_t kFrameBytes = size_t{kSide} * kSide;

Bytes digit(int which) {
  const auto picture = tools::load_picture(in_tree(fmt::format("models/digits/{}.png", which)), 1);
  return picture.ok() ? picture->pixels : Bytes();
}

// Memory as from a camera driver; frames begin at `offset`.
class Camera {
 public:
  explicit Camera(size_t offset = 0)
      : offset_(offset), bytes_(kFrameBytes + offset), fd_(memfd_create("frame", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    EXPECT_EQ(ftruncate(fd_, 4096), 0);
  }
  ~Camera() { close(fd_); }
  Camera(const Camera&) = delete;
  Camera& operator=(const Camera&) = delete;

  void take(const Bytes& pixels) const {
    EXPECT_EQ(pwrite(fd_, pixels.data(), pixels.size(), static_cast<off_t>(offset_)),
              static_cast<ssize_t>(pixels.size()));
  }
  GstBuffer* buffer() const {
    GstAllocator* const allocator = gst_dmabuf_allocator_new();
    GstMemory* const memory = gst_dmabuf_allocator_alloc(allocator, dup(fd_), bytes_);
    gst_object_unref(allocator);
    gst_memory_resize(memory, static_cast<gssize>(offset_), kFrameBytes);
    GstBuffer* const out = gst_buffer_new();
    gst_buffer_append_memory(out, memory);
    return out;
  }
  FrameMemory memory(const Bytes& seen_by_cpu) const {
    return {seen_by_cpu.data(), kSide, kSide, 1, true, fd_, offset_};
  }

 private:
  size_t offset_, bytes_;
  int fd_;
};

class Pipeline {
 public:
  explicit Pipeline(const char* device, const std::string& labels = "", const char* model = "models/digits.tflite") {
    gst_init(nullptr, nullptr);
    gst_element_register(nullptr, "skilletinfer", GST_RANK_NONE, element_type());
    GstElement* const element = gst_element_factory_make("skilletinfer", nullptr);
    g_object_set(element, "model", in_tree(model).c_str(), "device", device, "labels", labels.c_str(), nullptr);
    bus_ = gst_bus_new();
    gst_element_set_bus(element, bus_);  // before the harness starts it
    harness_ = gst_harness_new_with_element(element, "sink", "src");
    gst_object_unref(element);
    gst_harness_set_src_caps_str(harness_, "video/x-raw,format=GRAY8,width=28,height=28,framerate=30/1");
  }
  ~Pipeline() {
    gst_bus_set_flushing(bus_, TRUE);
    gst_harness_teardown(harness_);
    gst_object_unref(bus_);
  }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  GstElement* element() { return harness_->element; }
  void set_format(const char* caps) { gst_harness_set_src_caps_str(harness_, caps); }
  // Returns the element's message for the frame; takes ownership of the buffer.
  GstStructure* push(GstBuffer* buffer) {
    EXPECT_EQ(gst_harness_push(harness_, buffer), GST_FLOW_OK);
    gst_buffer_unref(gst_harness_pull(harness_));
    GstMessage* const message = gst_bus_pop_filtered(bus_, GST_MESSAGE_ELEMENT);
    if (message == nullptr) return nullptr;
    GstStructure* const out = gst_structure_copy(gst_message_get_structure(message));
    gst_message_unref(message);
    return out;
  }
  // The next warning; empty: none.
  std::string warning() {
    GstMessage* const message = gst_bus_pop_filtered(bus_, GST_MESSAGE_WARNING);
    if (message == nullptr) return "";
    GError* error = nullptr;
    gst_message_parse_warning(message, &error, nullptr);
    const std::string out = error->message;
    g_error_free(error);
    gst_message_unref(message);
    return out;
  }
  int64_t best(GstBuffer* buffer) {
    GstStructure* const said = push(buffer);
    if (said == nullptr) return -1;
    const auto json = nlohmann::json::parse(gst_structure_get_string(said, "json"));
    gst_structure_free(said);
    return json["classes"].empty() ? -1 : json["classes"][0]["class"].get<int64_t>();
  }

 private:
  GstHarness* harness_ = nullptr;
  GstBus* bus_ = nullptr;
};

TEST(Element, FramesInDmaBufsAreReadAsTheyAreNow) {
  for (const char* const device : {"sim:a311d", "sim:rk3588", "cpu"}) {
    Pipeline pipeline(device);
    const Camera cameras[] = {Camera(), Camera(64), Camera(7)};
    for (int i = 0; i < 9; ++i) {
      const Camera& camera = cameras[i % 3];  // each memory three times, with different pixels
      camera.take(digit(i));
      EXPECT_EQ(pipeline.best(camera.buffer()), i) << device;
    }
  }
}

TEST(Element, MoreMemoryThanIsKeptAndMemoryThatWentAway) {
  Pipeline pipeline("sim:a311d");
  for (int i = 0; i < 70; ++i) {
    const Camera camera;
    camera.take(digit(i % 10));
    EXPECT_EQ(pipeline.best(camera.buffer()), i % 10) << i;
  }
}

// Number of frames mapped in this process.
size_t mapped_frames() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("/memfd:frame") != std::string::npos ? 1 : 0;
  return count;
}

TEST(Element, FramesOfAnotherFormatFreeTheMemoryOfThoseBefore) {
  Pipeline pipeline("sim:a311d");
  const Camera camera;
  camera.take(digit(3));
  EXPECT_EQ(pipeline.best(camera.buffer()), 3);
  EXPECT_GT(mapped_frames(), 0U);
  pipeline.set_format("video/x-raw,format=GRAY8,width=28,height=28,framerate=15/1");
  EXPECT_EQ(pipeline.best(gst_buffer_new_memdup(digit(4).data(), kFrameBytes)), 4);
  EXPECT_EQ(mapped_frames(), 0U);
}

TEST(Frame, MemoryIsThatOfThePlane) {
  gst_init(nullptr, nullptr);
  constexpr size_t kMemory = 64;
  const struct {
    size_t offset;
    int stride;
    bool is_packed;
  } cases[] = {{0, kSide, true}, {16, kSide, true}, {0, kSide + 4, false}, {16, kSide + 4, false}};
  for (auto [offset, stride, is_packed] : cases) {
    const Camera camera(kMemory);
    GstBuffer* const buffer = camera.buffer();
    gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8, kSide, kSide, 1, &offset,
                                   &stride);
    GstVideoInfo info;
    gst_video_info_set_format(&info, GST_VIDEO_FORMAT_GRAY8, kSide, kSide);
    GstVideoFrame frame;
    ASSERT_TRUE(gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ));
    const FrameMemory memory = memory_of(frame);
    EXPECT_EQ(memory.is_packed, is_packed) << stride;
    EXPECT_EQ(memory.dmabuf_offset, kMemory + offset);
    gst_video_frame_unmap(&frame);
    gst_buffer_unref(buffer);
  }
}

TEST(Element, PropertiesHaveTheirRangesAndDefaults) {
  gst_init(nullptr, nullptr);
  gst_element_register(nullptr, "skilletinfer", GST_RANK_NONE, element_type());
  GstElement* const element = gst_element_factory_make("skilletinfer", nullptr);
  ASSERT_NE(element, nullptr);
  const GParamSpec* const threshold = g_object_class_find_property(G_OBJECT_GET_CLASS(element), "threshold");
  ASSERT_NE(threshold, nullptr);
  const GParamSpecDouble* const range = G_PARAM_SPEC_DOUBLE(threshold);
  EXPECT_EQ(std::tuple(range->minimum, range->maximum, range->default_value), std::tuple(-1.0, 1.0, -1.0));
  for (const char* name : {"draw", "tensors"}) {
    const GParamSpec* const one = g_object_class_find_property(G_OBJECT_GET_CLASS(element), name);
    ASSERT_NE(one, nullptr) << name;
    EXPECT_FALSE(G_PARAM_SPEC_BOOLEAN(one)->default_value) << name;
  }
  gst_object_unref(element);
}

// Channels are read and written at the format's places; other bytes of a pixel stay.
TEST(Frame, ChannelsAreWhereTheFormatSays) {
  gst_init(nullptr, nullptr);
  struct Format {
    GstVideoFormat format;
    std::vector<int> channels;  // by byte of a pixel; -1: none
  };
  const Format formats[] = {{GST_VIDEO_FORMAT_RGB, {0, 1, 2}},      {GST_VIDEO_FORMAT_BGR, {2, 1, 0}},
                            {GST_VIDEO_FORMAT_RGBx, {0, 1, 2, -1}}, {GST_VIDEO_FORMAT_BGRx, {2, 1, 0, -1}},
                            {GST_VIDEO_FORMAT_xRGB, {-1, 0, 1, 2}}, {GST_VIDEO_FORMAT_xBGR, {-1, 2, 1, 0}},
                            {GST_VIDEO_FORMAT_RGBA, {0, 1, 2, -1}}, {GST_VIDEO_FORMAT_BGRA, {2, 1, 0, -1}},
                            {GST_VIDEO_FORMAT_ARGB, {-1, 0, 1, 2}}, {GST_VIDEO_FORMAT_ABGR, {-1, 2, 1, 0}},
                            {GST_VIDEO_FORMAT_GRAY8, {0}}};
  for (const Format& one : formats) {
    const GstVideoFormat format = one.format;
    const std::vector<int>& places = one.channels;
    constexpr int kWidth = 3, kHeight = 2;
    GstVideoInfo info;
    gst_video_info_set_format(&info, format, kWidth, kHeight);
    GstBuffer* const buffer = gst_buffer_new_allocate(nullptr, info.size, nullptr);
    GstVideoFrame frame;
    ASSERT_TRUE(gst_video_frame_map(&frame, &info, buffer, GST_MAP_READWRITE));
    auto* const bytes = static_cast<uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0));
    const int stride = GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0), channels = places.size() == 1 ? 1 : 3;
    const auto at = [&](int y, int x, size_t byte) -> uint8_t& {
      return bytes[static_cast<size_t>(y * stride) + static_cast<size_t>(x) * places.size() + byte];
    };
    const auto value = [](int y, int x, int channel) { return static_cast<uint8_t>(1 + y * 100 + x * 10 + channel); };
    std::fill_n(bytes, info.size, uint8_t{250});
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        for (size_t k = 0; k < places.size(); ++k)
          if (places[k] >= 0) at(y, x, k) = value(y, x, places[k]);
    tools::Picture picture = picture_of(frame);
    ASSERT_EQ(picture.channels, channels);
    for (size_t i = 0; i < picture.pixels.size(); ++i) {
      const int pixel = static_cast<int>(i) / channels, channel = static_cast<int>(i) % channels;
      EXPECT_EQ(picture.pixels[i], value(pixel / kWidth, pixel % kWidth, channel)) << format;
      picture.pixels[i] = static_cast<uint8_t>(picture.pixels[i] ^ 0x80);
    }
    write(picture, frame);
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        for (size_t k = 0; k < places.size(); ++k)
          EXPECT_EQ(at(y, x, k), places[k] < 0 ? 250 : value(y, x, places[k]) ^ 0x80) << format;
    gst_video_frame_unmap(&frame);
    gst_buffer_unref(buffer);
  }
}

TEST(Network, SaysHowFramesReachTheDevice) {
  const struct {
    const char *device, *news;
  } cases[] = {{"sim:a311d", "frames are dma-bufs that the device reads; "},
               {"cpu", "frames are copied once: their dma-buf is not shared with the device"}};
  for (const auto& [device, news] : cases) {
    auto network = Network::create({.model = in_tree("models/digits.tflite"), .device = device});
    ASSERT_TRUE(network.ok()) << network.error().message;
    const Camera camera;
    const Bytes pixels = digit(3);
    camera.take(pixels);
    const FrameMemory frame = camera.memory(pixels);
    ASSERT_TRUE((*network)->takes(frame));
    ASSERT_TRUE((*network)->run(frame).ok());
    const std::string told = (*network)->news_of_copies();
    EXPECT_TRUE(told.starts_with(news)) << device << ": " << told;
    ASSERT_TRUE((*network)->run(frame).ok());
    EXPECT_EQ((*network)->news_of_copies(), "") << "is told once";
    FrameMemory plain = frame;
    plain.dmabuf = -1;
    ASSERT_TRUE((*network)->run(plain).ok());
    EXPECT_EQ((*network)->news_of_copies(), "frames are copied once: their memory is not a dma-buf");
    plain.is_packed = false;
    EXPECT_FALSE((*network)->takes(plain));
  }
}

TEST(Element, WarnsOfLabelsThatDoNotFitAndOfNothingToDraw) {
  EXPECT_EQ(Pipeline("cpu", in_tree("models/digits_labels.txt")).warning(), "");
  const std::string readme = in_tree("README.md");  // has more lines
  const std::string said = Pipeline("cpu", readme).warning();
  EXPECT_TRUE(said.starts_with(readme + ": ") && said.find(" labels for the 10 classes of '") != said.npos) << said;
  Pipeline pipeline("cpu", "", "tests/models/conv5x5_one_channel_u8.tflite");  // computes an image
  g_object_set(pipeline.element(), "draw", TRUE, nullptr);
  for (const char* const start : {"draw: only the picture is drawn: ", ""}) {
    const Bytes pixels = digit(5);
    GstStructure* const message = pipeline.push(gst_buffer_new_memdup(pixels.data(), pixels.size()));
    ASSERT_NE(message, nullptr);
    gst_structure_free(message);
    const std::string told = pipeline.warning();
    EXPECT_TRUE(told.starts_with(start) && told.empty() == (*start == 0)) << told;
  }
}

TEST(Element, TensorsAndPropertiesWhileFramesCome) {
  Pipeline pipeline("cpu");
  const Bytes pixels = digit(5);
  const auto frame = [&] { return gst_buffer_new_memdup(pixels.data(), pixels.size()); };
  GstStructure* said = pipeline.push(frame());
  ASSERT_NE(said, nullptr);
  EXPECT_FALSE(gst_structure_has_field(said, "tensors"));
  gst_structure_free(said);
  g_object_set(pipeline.element(), "tensors", TRUE, "draw", TRUE, nullptr);
  said = pipeline.push(frame());
  ASSERT_NE(said, nullptr);
  const GValue* const tensors = gst_structure_get_value(said, "tensors");
  ASSERT_NE(tensors, nullptr);
  ASSERT_EQ(gst_value_array_get_size(tensors), 1U);
  auto* const buffer = static_cast<GstBuffer*>(g_value_get_boxed(gst_value_array_get_value(tensors, 0)));
  uint8_t scores[10] = {};
  EXPECT_EQ(gst_buffer_get_size(buffer), sizeof scores);
  gst_buffer_extract(buffer, 0, scores, sizeof scores);
  EXPECT_GT(scores[5], 200);
  gst_structure_free(said);
}

}  // namespace
}  // namespace skillet::gstreamer
