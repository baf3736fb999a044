// Entry point of the GStreamer plug-in.
#include "frontend/gstreamer/element.h"

#define PACKAGE "skillet"

static gboolean register_elements(GstPlugin* plugin) {
  return gst_element_register(plugin, "skilletinfer", GST_RANK_NONE, skillet::gstreamer::element_type());
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, skillet, "Quantized networks on NPUs", register_elements,
                  SKILLET_VERSION, "MIT/X11", "Skillet", "Skillet")
