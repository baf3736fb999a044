// Frames of GStreamer as pictures and as foreign memory.
// Called by element.cpp.
// Must not know: networks.
#pragma once

#include <gst/video/video.h>

#include "frontend/gstreamer/network.h"
#include "tools/tensors/picture.h"

namespace skillet::gstreamer {

// Formats of the pads: one plane of interleaved pixels, 8 bits a channel. videoconvert converts all others.
inline constexpr const char* kFormats = "{ RGB, BGR, RGBx, BGRx, xRGB, xBGR, RGBA, BGRA, ARGB, ABGR, GRAY8 }";

FrameMemory memory_of(const GstVideoFrame& frame);
tools::Picture picture_of(const GstVideoFrame& frame);
// Writes a picture of the same size and channels; other bytes of a pixel (alpha) stay.
void write(const tools::Picture& picture, GstVideoFrame& frame);

}  // namespace skillet::gstreamer
