// Frames of GStreamer as pictures and as memory of others.
// Called by element.cpp.
// Must not know: networks.
#pragma once

#include <gst/video/video.h>

#include "frontend/gstreamer/network.h"
#include "tools/tensors/picture.h"

namespace skillet::gstreamer {

// What the pads take: one plane of interleaved pixels, 8 bits a channel. videoconvert makes it of all others.
inline constexpr const char* kFormats = "{ RGB, BGR, RGBx, BGRx, xRGB, xBGR, RGBA, BGRA, ARGB, ABGR, GRAY8 }";

FrameMemory memory_of(const GstVideoFrame& frame);
tools::Picture picture_of(const GstVideoFrame& frame);
// The same size and channels; what else a pixel has stays.
void write(const tools::Picture& picture, GstVideoFrame& frame);

}  // namespace skillet::gstreamer
