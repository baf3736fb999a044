// The element skilletinfer: frames pass through, and a message on the bus reports what a network found in each.
// Called by plugin.cpp.
// Must not know: how a network runs.
#pragma once

#include <gst/gst.h>

namespace skillet::gstreamer {

GType element_type();

}  // namespace skillet::gstreamer
