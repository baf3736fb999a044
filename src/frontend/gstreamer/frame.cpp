#include "frontend/gstreamer/frame.h"

#include <gst/allocators/gstdmabuf.h>

#include <cstring>

namespace skillet::gstreamer {
namespace {

int channels_of(const GstVideoFrame& frame) { return GST_VIDEO_FRAME_N_COMPONENTS(&frame) == 1 ? 1 : 3; }

// True if pixels are stored as in a Picture, except for gaps between rows.
bool has_plain_rows(const GstVideoFrame& frame) {
  const GstVideoFormat format = GST_VIDEO_FRAME_FORMAT(&frame);
  return format == GST_VIDEO_FORMAT_RGB || format == GST_VIDEO_FORMAT_GRAY8;
}

// Calls `each(index of the pixel, channel, byte of the frame)` for each channel of each pixel.
template <typename Each>
void for_each_value(const GstVideoFrame& frame, Each each) {
  const int width = GST_VIDEO_FRAME_WIDTH(&frame), height = GST_VIDEO_FRAME_HEIGHT(&frame);
  for (int c = 0; c < channels_of(frame); ++c) {
    auto* const data = static_cast<uint8_t*>(GST_VIDEO_FRAME_COMP_DATA(&frame, c));
    const ptrdiff_t row = GST_VIDEO_FRAME_COMP_STRIDE(&frame, c), pixel = GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, c);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) each(static_cast<size_t>(y) * width + x, c, data[y * row + x * pixel]);
    }
  }
}

}  // namespace

FrameMemory memory_of(const GstVideoFrame& frame) {
  FrameMemory out{.data = static_cast<const uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0)),
                  .width_px = GST_VIDEO_FRAME_WIDTH(&frame),
                  .height_px = GST_VIDEO_FRAME_HEIGHT(&frame),
                  .channels = channels_of(frame)};
  out.is_packed = has_plain_rows(frame) && GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0) == out.width_px * out.channels;
  GstMemory* const memory = gst_buffer_n_memory(frame.buffer) == 1 ? gst_buffer_peek_memory(frame.buffer, 0) : nullptr;
  if (memory == nullptr || !gst_is_dmabuf_memory(memory)) return out;
  out.dmabuf = gst_dmabuf_memory_get_fd(memory);
  out.dmabuf_offset = memory->offset + GST_VIDEO_FRAME_PLANE_OFFSET(&frame, 0);
  return out;
}

tools::Picture picture_of(const GstVideoFrame& frame) {
  tools::Picture out{.width_px = GST_VIDEO_FRAME_WIDTH(&frame),
                     .height_px = GST_VIDEO_FRAME_HEIGHT(&frame),
                     .channels = channels_of(frame),
                     .pixels = {}};
  out.pixels.resize(static_cast<size_t>(out.width_px) * out.height_px * out.channels);
  if (has_plain_rows(frame)) {
    const auto row_bytes = static_cast<size_t>(out.width_px) * out.channels;
    for (int y = 0; y < out.height_px; ++y)
      std::memcpy(out.pixels.data() + y * row_bytes,
                  static_cast<const uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0)) +
                      ptrdiff_t{y} * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0),
                  row_bytes);
    return out;
  }
  for_each_value(frame, [&](size_t pixel, int c, uint8_t value) { out.pixels[pixel * out.channels + c] = value; });
  return out;
}

void write(const tools::Picture& picture, GstVideoFrame& frame) {
  for_each_value(frame,
                 [&](size_t pixel, int c, uint8_t& value) { value = picture.pixels[pixel * picture.channels + c]; });
}

}  // namespace skillet::gstreamer
