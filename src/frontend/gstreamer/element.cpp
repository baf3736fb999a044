#include "frontend/gstreamer/element.h"

#include <gst/video/gstvideofilter.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/caught.h"
#include "base/text.h"
#include "frontend/gstreamer/frame.h"
#include "frontend/gstreamer/network.h"
#include "tools/run/found_print.h"
#include "tools/show/paint.h"

GST_DEBUG_CATEGORY_STATIC(skilletinfer_debug);
#define GST_CAT_DEFAULT skilletinfer_debug

namespace skillet::gstreamer {
namespace {

enum Property : guint { kNone, kModel, kDevice, kLabels, kTask, kThreshold, kFloatPixels, kDraw, kTensors };

// State behind the C struct: init creates it, finalize deletes it.
struct State {
  // Protected by the object lock.
  std::string model, device, labels, task, float_pixels;
  double threshold = -1;  // below 0: the default of the task
  bool draw = false, tensors = false;
  // Used by the streaming thread only.
  std::unique_ptr<Network> network;
  uint64_t frame = 0;
  bool is_misread = false, is_undrawn = false;  // already reported
};

struct SkilletInfer {
  GstVideoFilter parent;
  State* state;
};
struct SkilletInferClass {
  GstVideoFilterClass parent;
};
G_DEFINE_TYPE(SkilletInfer, skillet_infer, GST_TYPE_VIDEO_FILTER)

SkilletInfer* self_of(gpointer object) { return static_cast<SkilletInfer*>(object); }

// Holds the object lock.
class Locked {
 public:
  explicit Locked(SkilletInfer* element) : element_(element) { GST_OBJECT_LOCK(element_); }
  ~Locked() { GST_OBJECT_UNLOCK(element_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  SkilletInfer* element_;
};

std::string* text_of(State& state, guint property) {
  switch (property) {
    case kModel: return &state.model;
    case kDevice: return &state.device;
    case kLabels: return &state.labels;
    case kTask: return &state.task;
    case kFloatPixels: return &state.float_pixels;
    default: return nullptr;
  }
}

void set_property(GObject* object, guint property, const GValue* value, GParamSpec* spec) {
  SkilletInfer* const self = self_of(object);
  const Locked lock(self);
  State& state = *self->state;
  if (std::string* const text = text_of(state, property)) {
    const char* const given = g_value_get_string(value);
    *text = given == nullptr ? "" : given;
  } else if (property == kThreshold) {
    state.threshold = g_value_get_double(value);
  } else if (property == kTensors) {
    state.tensors = g_value_get_boolean(value);
  } else if (property == kDraw) {
    state.draw = g_value_get_boolean(value);
  } else {
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, property, spec);
  }
}

void get_property(GObject* object, guint property, GValue* value, GParamSpec* spec) {
  SkilletInfer* const self = self_of(object);
  const Locked lock(self);
  State& state = *self->state;
  if (const std::string* const text = text_of(state, property))
    g_value_set_string(value, text->c_str());
  else if (property == kThreshold)
    g_value_set_double(value, state.threshold);
  else if (property == kTensors)
    g_value_set_boolean(value, state.tensors);
  else if (property == kDraw)
    g_value_set_boolean(value, state.draw);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, property, spec);
}

Result<std::unique_ptr<Network>> load(SkilletInfer* self) {
  NetworkOptions options;
  std::string task;
  {
    const Locked lock(self);
    const State& state = *self->state;
    options = {state.model, state.device, state.labels, state.float_pixels, {}};
    task = state.task;
  }
  if (options.model.empty()) return error(ErrorCode::invalid_argument, "no model: set the property model");
  if (!task.empty() && !(options.task = tools::task_from_name(task)))
    return error(ErrorCode::invalid_argument, "task={}: must be one of {}", task, fmt::join(tools::kTaskNames, ", "));
  if (!options.float_pixels.empty() && std::ranges::count(tools::kFloatPixels, options.float_pixels) == 0)
    return error(ErrorCode::invalid_argument, "float-pixels={}: must be one of {}", options.float_pixels,
                 fmt::join(tools::kFloatPixels, ", "));
  return Network::create(options);
}

gboolean start(GstBaseTransform* transform) {
  SkilletInfer* const self = self_of(transform);
  const Result<void> done = caught([&]() -> Result<void> {
    SK_TRY_ASSIGN(self->state->network, load(self));
    return {};
  });
  self->state->frame = 0;
  self->state->is_misread = self->state->is_undrawn = false;
  if (done.ok()) {
    if (const std::string wrong = self->state->network->misfit_of_labels(); !wrong.empty())
      GST_ELEMENT_WARNING(self, RESOURCE, SETTINGS, ("%s", printable(wrong).c_str()), (nullptr));
    return TRUE;
  }
  GST_ELEMENT_ERROR(self, RESOURCE, SETTINGS, ("%s", printable(done.error().message).c_str()), (nullptr));
  return FALSE;
}

gboolean stop(GstBaseTransform* transform) {
  self_of(transform)->state->network.reset();
  return TRUE;
}

// Frames of another size come from another pool.
gboolean set_info(GstVideoFilter* filter, GstCaps*, GstVideoInfo*, GstCaps*, GstVideoInfo*) {
  if (Network* const network = self_of(filter)->state->network.get()) network->forget_frames();
  return TRUE;
}

// Adds a buffer for each output, in order.
void add_tensors(const Network& network, GstStructure* message) {
  GValue list = G_VALUE_INIT;
  gst_value_array_init(&list, static_cast<guint>(network.outputs().size()));
  for (const Bytes& bytes : network.outputs()) {
    GstBuffer* const buffer = gst_buffer_new_memdup(bytes.data(), bytes.size());
    GValue one = G_VALUE_INIT;
    g_value_init(&one, GST_TYPE_BUFFER);
    g_value_take_boxed(&one, buffer);
    gst_value_array_append_and_take_value(&list, &one);
  }
  gst_structure_take_value(message, "tensors", &list);
}

std::string json_of(const Network& network, const std::optional<tools::Found>& found) {
  nlohmann::json json;
  if (found) {
    json = tools::found_json(*found);
  } else {
    for (const ir::TensorId id : network.graph().outputs) {
      const ir::Tensor& tensor = network.graph().tensor(id);
      json["outputs"].push_back(
          {{"name", tensor.name}, {"type", ir::dtype_name(tensor.dtype)}, {"shape", tensor.shape.dims}});
    }
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void tell(SkilletInfer* self, const std::optional<tools::Found>& found, const GstBuffer* buffer, bool with_tensors) {
  const GstSegment& segment = GST_BASE_TRANSFORM(self)->segment;
  const GstClockTime time = GST_BUFFER_PTS(buffer);
  const bool has_times = segment.format == GST_FORMAT_TIME;  // else the source counts bytes, not time
  GstStructure* const message = gst_structure_new(
      "skilletinfer", "frame", G_TYPE_UINT64, self->state->frame, "timestamp", G_TYPE_UINT64, time, "stream-time",
      G_TYPE_UINT64, has_times ? gst_segment_to_stream_time(&segment, GST_FORMAT_TIME, time) : GST_CLOCK_TIME_NONE,
      "running-time", G_TYPE_UINT64,
      has_times ? gst_segment_to_running_time(&segment, GST_FORMAT_TIME, time) : GST_CLOCK_TIME_NONE, "duration",
      G_TYPE_UINT64, GST_BUFFER_DURATION(buffer), "json", G_TYPE_STRING, json_of(*self->state->network, found).c_str(),
      nullptr);
  if (with_tensors) add_tensors(*self->state->network, message);
  gst_element_post_message(GST_ELEMENT(self), gst_message_new_element(GST_OBJECT(self), message));
}

// An error only if the task was set by the user: a guessed task may be wrong.
Result<std::optional<tools::Found>> found_in(SkilletInfer* self, std::optional<double> threshold, bool is_asked) {
  State& state = *self->state;
  auto found = state.network->found(threshold);
  if (found.ok() || is_asked) return found;
  if (!state.is_misread)
    GST_ELEMENT_WARNING(self, STREAM, DECODE, ("%s", printable(found.error().message).c_str()), (nullptr));
  state.is_misread = true;
  return std::optional<tools::Found>();
}

Result<void> look(SkilletInfer* self, GstVideoFrame& frame) {
  State& state = *self->state;
  std::optional<double> threshold;
  bool draw = false, tensors = false, is_asked = false;
  {
    const Locked lock(self);
    if (state.threshold >= 0) threshold = state.threshold;
    draw = state.draw;
    tensors = state.tensors;
    is_asked = !state.task.empty();
  }
  draw = draw && !gst_base_transform_is_passthrough(GST_BASE_TRANSFORM(self));  // as in before_transform()
  const FrameMemory memory = memory_of(frame);
  const bool is_taken = state.network->takes(memory);
  tools::Picture picture;
  if (!is_taken || draw) picture = picture_of(frame);
  SK_TRY(is_taken ? state.network->run(memory) : state.network->run(picture));
  if (const std::string news = state.network->news_of_copies(); !news.empty())
    GST_INFO_OBJECT(self, "%s", printable(news).c_str());
  if (const std::string lost = state.network->lost(); !lost.empty())
    GST_ELEMENT_WARNING(self, RESOURCE, FAILED, ("the NPU failed, the CPU continues: %s", printable(lost).c_str()),
                        (nullptr));
  SK_TRY_ASSIGN(const std::optional<tools::Found> found, found_in(self, threshold, is_asked));
  tell(self, found, frame.buffer, tensors);
  if (draw && !state.network->task() && !std::exchange(state.is_undrawn, true))
    GST_ELEMENT_WARNING(self, STREAM, DECODE,
                        ("draw: %s", printable(tools::why_nothing_is_drawn(state.network->graph(), "task")).c_str()),
                        (nullptr));
  if (!draw || !found) return {};
  picture = tools::with_channels(picture, 3);
  tools::paint(picture, *found, threshold);
  write(tools::with_channels(picture, memory.channels), frame);
  return {};
}

GstFlowReturn transform_frame(GstVideoFilter* filter, GstVideoFrame* frame) {
  SkilletInfer* const self = self_of(filter);
  const Result<void> done = caught([&] { return look(self, *frame); });
  ++self->state->frame;
  if (done.ok()) return GST_FLOW_OK;
  GST_ELEMENT_ERROR(self, STREAM, FAILED, ("%s", printable(done.error().message).c_str()), (nullptr));
  return GST_FLOW_ERROR;
}

// Passthrough, if nothing is drawn: frames stay unchanged and keep their owner.
void before_transform(GstBaseTransform* transform, GstBuffer*) {
  SkilletInfer* const self = self_of(transform);
  bool draw = false;
  {
    const Locked lock(self);
    draw = self->state->draw;
  }
  if (gst_base_transform_is_passthrough(transform) == static_cast<gboolean>(draw))
    gst_base_transform_set_passthrough(transform, !draw);
}

void skillet_infer_init(SkilletInfer* self) {
  self->state = new State;
  gst_base_transform_set_passthrough(GST_BASE_TRANSFORM(self), TRUE);
}

void finalize(GObject* object) {
  delete self_of(object)->state;
  G_OBJECT_CLASS(skillet_infer_parent_class)->finalize(object);
}

void install_text(GObjectClass* object, Property property, const char* name, const char* help, const char* usual) {
  g_object_class_install_property(
      object, property,
      g_param_spec_string(
          name, name, help, usual,
          static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY)));
}

void install_properties(GObjectClass* object) {
  constexpr auto kAnyTime =
      static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING);
  install_text(object, kModel, "model", "The model: a .tflite or .onnx file with one picture as its input", nullptr);
  install_text(object, kDevice, "device",
               "auto (an NPU, else the CPU), npu, cpu, a device such as /dev/dri/renderD128, or sim:CHIP; default: "
               "SKILLET_DEVICE, else auto",
               nullptr);
  install_text(object, kLabels, "labels", "File of names of the classes, one a line", nullptr);
  install_text(object, kTask, "task",
               "Kind of the outputs: classes, ssd, yolov5, yolov8, nms, mask or pose; default: by their shapes",
               nullptr);
  install_text(object, kFloatPixels, "float-pixels",
               "Range of float32 inputs for pixels of 0 to 255: -1..1, 0..1 or 0..255; default: -1..1", nullptr);
  g_object_class_install_property(
      object, kThreshold,
      g_param_spec_double("threshold", "threshold", "Lowest score; -1: 0.4 for boxes, 0.3 for key points", -1, 1, -1,
                          kAnyTime));
  g_object_class_install_property(
      object, kDraw, g_param_spec_boolean("draw", "draw", "Draw the results on the frames", FALSE, kAnyTime));
  g_object_class_install_property(
      object, kTensors,
      g_param_spec_boolean("tensors", "tensors", "Messages also contain the outputs' bytes: an array of buffers", FALSE,
                           kAnyTime));
}

void skillet_infer_class_init(SkilletInferClass* klass) {
  GST_DEBUG_CATEGORY_INIT(skilletinfer_debug, "skilletinfer", 0, "networks on NPUs");
  GObjectClass* const object = G_OBJECT_CLASS(klass);
  object->set_property = set_property;
  object->get_property = get_property;
  object->finalize = finalize;
  install_properties(object);
  GstElementClass* const element = GST_ELEMENT_CLASS(klass);
  gst_element_class_set_static_metadata(
      element, "Network on an NPU", "Filter/Analyzer/Video",
      "Runs a quantized network on each frame, on an NPU, a simulated one or the CPU. Frames pass unchanged; an "
      "element message on the bus has the results as JSON",
      "Skillet");
  GstCaps* const caps = gst_caps_from_string(fmt::format("video/x-raw, format=(string){}, width=(int)[1, MAX], "
                                                         "height=(int)[1, MAX], framerate=(fraction)[0/1, MAX]",
                                                         kFormats)
                                                 .c_str());
  gst_element_class_add_pad_template(element, gst_pad_template_new("sink", GST_PAD_SINK, GST_PAD_ALWAYS, caps));
  gst_element_class_add_pad_template(element, gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, caps));
  gst_caps_unref(caps);
  GstBaseTransformClass* const transform = GST_BASE_TRANSFORM_CLASS(klass);
  transform->start = start;
  transform->stop = stop;
  transform->before_transform = before_transform;
  GST_VIDEO_FILTER_CLASS(klass)->set_info = set_info;
  GST_VIDEO_FILTER_CLASS(klass)->transform_frame_ip = transform_frame;
}

}  // namespace

GType element_type() { return skillet_infer_get_type(); }

}  // namespace skillet::gstreamer
