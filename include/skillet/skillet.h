/* Skillet: runs quantized TensorFlow Lite models on NPUs, through mainline Linux drivers or simulated chips.
 *
 * The only public interface. Plain C; nothing is thrown, nothing aborts on bad models or devices.
 * Each object is used by one thread at a time; different models, of one device or several, may run at the same time. On
 * an NPU with several cores the models of a device share the cores out among them: as many run at once as there are
 * cores, the others wait for their turn in the order in which they came.
 *
 *   skillet_device* device;
 *   skillet_model* model;
 *   if (skillet_open("sim:a311d", &device) || skillet_load_file(device, "net.tflite", NULL, &model)) ...
 *     fputs(skillet_last_error(), stderr);
 *   skillet_set_input(model, 0, pixels, pixels_bytes);
 *   skillet_run(model);
 *   skillet_get_output(model, 0, scores, scores_bytes);
 *   skillet_close_model(model);
 *   skillet_close(device);
 */
#ifndef SKILLET_SKILLET_H
#define SKILLET_SKILLET_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SKILLET_API __attribute__((visibility("default")))
#else
#define SKILLET_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* 0 is success. After any other value skillet_last_error() says more. */
typedef enum skillet_status {
  SKILLET_OK = 0,
  SKILLET_INVALID_ARGUMENT = 1, /* a null pointer, an unknown device, an index or size that does not fit */
  SKILLET_MALFORMED = 2,        /* the model file is damaged */
  SKILLET_UNSUPPORTED = 3,      /* valid, but neither the chip nor the CPU kernels can do it */
  SKILLET_OUT_OF_RANGE = 4,     /* a value does not fit a field or a buffer */
  SKILLET_IO = 5,               /* the operating system refused */
  SKILLET_DEVICE = 6,           /* the device reported a fault */
  SKILLET_TIMEOUT = 7,          /* the device did not finish in time */
  SKILLET_INTERNAL = 8          /* a bug of Skillet, or no memory */
} skillet_status;

/* Element types; the values are stable. */
typedef enum skillet_type {
  SKILLET_FLOAT32 = 0,
  SKILLET_FLOAT16 = 1,
  SKILLET_INT8 = 2,
  SKILLET_UINT8 = 3,
  SKILLET_INT16 = 4,
  SKILLET_INT32 = 5,
  SKILLET_INT64 = 6,
  SKILLET_BOOL = 7,
  SKILLET_OTHER_TYPE = 8
} skillet_type;

#define SKILLET_MAX_RANK 8

typedef struct skillet_tensor_info {
  const char* name; /* valid as long as the model */
  skillet_type type;
  int32_t rank;                   /* 0: a scalar */
  int32_t dims[SKILLET_MAX_RANK]; /* outermost first; images are N, height, width, channels */
  size_t bytes;                   /* what skillet_set_input and skillet_get_output move */
  float scale;                    /* real = scale * (stored - zero_point); 0: not quantized */
  int32_t zero_point;
} skillet_tensor_info;

/* One option as text, as skillet_options_help lists them. */
typedef struct skillet_option {
  const char* key;
  const char* value;
} skillet_option;

typedef struct skillet_options {
  size_t struct_bytes; /* sizeof(skillet_options): lets the struct grow */
  int32_t tuned;       /* 0: only jobs as a driver known to work on silicon makes them; 1: our own choices */
  int32_t no_fallback; /* 1: an error instead of running an NPU part on the CPU when the NPU fails; 0: what the
                          environment's SKILLET_FALLBACK says, else the CPU runs it */
  uint32_t timeout_ms; /* of one run on the device; 0: what the environment's SKILLET_TIMEOUT_MS says, else 10 s */
  /* Later additions: a struct_bytes that ends before them is fine too. */
  const char* cache_dir;  /* folder where compiled programs are kept; NULL: what the environment's SKILLET_CACHE_DIR
                             says, else none */
  int32_t allow_unproven; /* 1: the option unproven=take; 0: what `more` or the environment's SKILLET_UNPROVEN says,
                             else verify: see skillet_options_help() */
  int32_t reserved;       /* 0: no new member may be where older structs have padding */
  int32_t cores; /* of an NPU with several, how many may share one inference, in bands of rows: 1: none; 2 or more:
                    wherever it can be done; 0: what the environment's SKILLET_CORES says, else where it is predicted to
                    pay */
  const char* per_channel; /* weights with more scales than the chip takes: "exact": each layer is within 1 of its own
                              result, or on the CPU; "approximate": channels share scales; "strict": as "exact", and
                              operations are only rewritten to what gives the same bits; NULL: what the environment's
                              SKILLET_PER_CHANNEL says, else "exact" */
  const skillet_option* more; /* `more_count` options as text, which win over the members above; NULL: none. An unknown
                                 key is an error that names the one that may have been meant */
  size_t more_count;
  const char* tuning_file; /* what `skillet tune` found for this model, chip and build, which stands for `tuned`; NULL:
                              what the environment's SKILLET_TUNING_FILE says, else none */
} skillet_options;

typedef struct skillet_device skillet_device;
typedef struct skillet_model skillet_model;

/* One line for each key that skillet_options.more takes. */
SKILLET_API const char* skillet_options_help(void);

typedef struct skillet_device_list skillet_device_list;
typedef struct skillet_listed_device {
  size_t struct_bytes; /* sizeof(skillet_listed_device), set by the caller */
  const char* device;  /* what skillet_open takes; all texts are valid as long as the list */
  const char* title;   /* what it is; "" where nobody knows */
  const char* kernel_driver;
  const char* note;  /* what is to be said about it, or why it is not usable */
  int32_t usable;    /* 1: models run there */
  int32_t simulated; /* 1: a simulated chip in this process */
} skillet_listed_device;

/* What this machine has that could run a model, simulated chips and "cpu" among them. Free it with skillet_free_list.
 */
SKILLET_API skillet_status skillet_list_devices(skillet_device_list** out);
SKILLET_API size_t skillet_list_count(const skillet_device_list* list); /* 0 for NULL */
SKILLET_API skillet_status skillet_list_at(const skillet_device_list* list, size_t index, skillet_listed_device* out);
SKILLET_API void skillet_free_list(skillet_device_list* list); /* NULL is fine */

/* Opens "auto" (an NPU of this machine, else the CPU), "cpu", "npu" (an NPU or an error), a simulated chip such as
 * "sim:a311d", or a device node such as "/dev/dri/renderD128". NULL: what the environment's SKILLET_DEVICE says, else
 * "auto". With SKILLET_REQUIRE_NPU=1 in the environment, "auto" is "npu". */
SKILLET_API skillet_status skillet_open(const char* device, skillet_device** out);
/* Models of the device may be closed later; they keep what they need. NULL is fine. */
SKILLET_API void skillet_close(skillet_device* device);

/* Reads and compiles a .tflite model, or reads what `skillet compile -o` wrote. `options` may be NULL. The bytes of
 * skillet_load_memory are copied. */
SKILLET_API skillet_status skillet_load_file(skillet_device* device, const char* path, const skillet_options* options,
                                             skillet_model** out);
SKILLET_API skillet_status skillet_load_memory(skillet_device* device, const void* data, size_t bytes,
                                               const skillet_options* options, skillet_model** out);
/* NULL is fine. */
SKILLET_API void skillet_close_model(skillet_model* model);

/* Numbers of inputs and outputs; 0 for NULL. */
SKILLET_API size_t skillet_input_count(const skillet_model* model);
SKILLET_API size_t skillet_output_count(const skillet_model* model);
/* Error: no such index, or a rank above SKILLET_MAX_RANK. */
SKILLET_API skillet_status skillet_input_info(const skillet_model* model, size_t index, skillet_tensor_info* out);
SKILLET_API skillet_status skillet_output_info(const skillet_model* model, size_t index, skillet_tensor_info* out);

/* Copies `bytes` bytes, which must be the input's size, in the model's own type and NHWC order. Inputs keep their value
 * from run to run, and are zero before the first set. */
SKILLET_API skillet_status skillet_set_input(skillet_model* model, size_t index, const void* data, size_t bytes);
/* Runs the model once, to its end. */
SKILLET_API skillet_status skillet_run(skillet_model* model);
/* Starts one run in the background. Until skillet_wait() has returned, the model takes no other calls but
 * skillet_close_model, which waits too. In a child of fork() such a model can only be closed: the run ends in the
 * process that started it. So can each model on an NPU, simulated ones too, whether it runs or not, and its device:
 * they are of the process that opened them, and calls in a child are SKILLET_INVALID_ARGUMENT. */
SKILLET_API skillet_status skillet_start(skillet_model* model);
/* Waits for the run that was started last; what it came to is what skillet_run would have returned. */
SKILLET_API skillet_status skillet_wait(skillet_model* model);
/* Copies output `index` of the last run, an error when that failed; `bytes` must be the output's size. */
SKILLET_API skillet_status skillet_get_output(const skillet_model* model, size_t index, void* data, size_t bytes);

/* Runs the model once on memory of the caller: `inputs` and `outputs` hold one pointer for each input and output, to as
 * many bytes as skillet_input_info and skillet_output_info say. Memory from skillet_buffer_alloc of the same device is
 * used in place where the tensor's layout and type allow (uint8, at an offset that is a multiple of 64); other memory
 * is copied once. An input may be in the memory of an output; it is copied first. Two outputs may not, unless the
 * model returns one tensor twice, to one place. Afterwards skillet_get_output is an error until the next skillet_run.
 */
SKILLET_API skillet_status skillet_run_on(skillet_model* model, const void* const* inputs, void* const* outputs);
/* The same as skillet_start: the arrays may go, the memory that they point to stays until skillet_wait() has returned.
 */
SKILLET_API skillet_status skillet_start_on(skillet_model* model, const void* const* inputs, void* const* outputs);
/* Bytes of inputs and outputs that the last run copied between the caller's memory and the NPU's. */
SKILLET_API uint64_t skillet_copied_bytes(const skillet_model* model);

/* Memory that the device, cameras and decoders reach: zeroed, at `*data` for the CPU and as dma-buf `*dmabuf_fd` (NULL:
 * not wanted) for other drivers; on a simulated chip the descriptor is a memfd. Both stay valid until
 * skillet_buffer_free; the descriptor is closed by that. Not for the device "cpu". Reading it with the CPU may be slow.
 */
SKILLET_API skillet_status skillet_buffer_alloc(skillet_device* device, size_t bytes, void** data, int* dmabuf_fd);
/* The same for memory of another driver, a camera or decoder, that is at hand as the dma-buf `dmabuf_fd`: at `*data`
 * for the CPU, `*bytes` long, until skillet_buffer_free. The descriptor stays the caller's, and may be closed. Who
 * writes to the memory has finished before a run on it begins. An error where the kernel driver takes no foreign
 * memory, and for memory that is a buffer of this device already. */
SKILLET_API skillet_status skillet_buffer_import(skillet_device* device, int dmabuf_fd, void** data, size_t* bytes);
/* `data` as skillet_buffer_alloc or skillet_buffer_import gave it. An error, and the buffer stays, while a run on it
 * has been started and not been waited for. */
SKILLET_API skillet_status skillet_buffer_free(skillet_device* device, void* data);

typedef struct skillet_buffer_info {
  size_t struct_bytes; /* sizeof(skillet_buffer_info), set by the caller */
  void* data;          /* the buffer's first byte */
  size_t bytes;
  int dmabuf_fd;   /* stays the library's */
  uint64_t serial; /* another one for each buffer, also when the address is that of a freed buffer */
} skillet_buffer_info;

/* 1 and `*out` when all of [data, data + bytes) is in one buffer of the two calls above, of any device, that has not
 * been freed; else 0. From any thread; nothing is allocated, skillet_last_error() stays. The TensorFlow Lite delegate
 * asks this to use such memory in place. */
SKILLET_API int skillet_buffer_find(const void* data, size_t bytes, skillet_buffer_info* out);

typedef struct skillet_maker {
  size_t struct_bytes; /* sizeof(skillet_maker), set by the caller */
  const char* kind;    /* of the operation: "TFLite_Detection_PostProcess"; "": no operation makes it */
  size_t place;        /* which of the operation's outputs it is; 0: the first */
} skillet_maker;

/* The operation that makes output `index`. It says which is which where names and shapes do not, as of the four outputs
 * of a detector. The text is valid as long as the model. */
SKILLET_API skillet_status skillet_output_maker(const skillet_model* model, size_t index, skillet_maker* out);

/* Which operations run where, and why not on the NPU: text for people, valid until the next call for this model. */
SKILLET_API const char* skillet_explain(skillet_model* model);

typedef struct skillet_op_info {
  size_t struct_bytes; /* sizeof(skillet_op_info), set by the caller */
  const char* kind;    /* "CONV_2D"; texts are valid until the next run and as long as the model */
  const char* output;  /* "1x112x112x32", the shape of the first output */
  const char* why;     /* why not on the NPU, or why it is unproven there; "": there is nothing to say */
  const char* note;    /* what was changed that may move the result; "": nothing */
  uint32_t part;       /* operations of a part run together */
  int32_t on_npu;
  int32_t unproven; /* 1: on the NPU, though no known driver ever ran it on silicon */
  int32_t failed;   /* 1: it was to run on the NPU, which failed, so that the CPU runs it; `why` says how */
  double ms;        /* the last run's; -1: not known, because an NPU runs a part as one, or nothing has run */
  double part_ms;   /* the same of its part, copies included */
} skillet_op_info;

/* The same by operation as they are rewritten, in the order in which they run: how many, and operation `index`. */
SKILLET_API size_t skillet_op_count(const skillet_model* model);
SKILLET_API skillet_status skillet_op(skillet_model* model, size_t index, skillet_op_info* out);

/* How many of the model file's own operations the NPU computes, as `skillet check` and the delegate count them. Those
 * above are what they are rewritten to, more or fewer. */
typedef struct skillet_use {
  size_t struct_bytes; /* sizeof(skillet_use), set by the caller */
  size_t ops;          /* that the file has */
  size_t npu_ops;      /* the NPU computes all of them */
  size_t part_ops;     /* the NPU computes a part of them */
  size_t folded_ops;   /* nothing computes them any more: constants, shapes, what others took in */
} skillet_use;
SKILLET_API skillet_status skillet_get_use(const skillet_model* model, skillet_use* out);

typedef enum skillet_log_level {
  SKILLET_LOG_ERROR = 0,
  SKILLET_LOG_WARNING = 1,
  SKILLET_LOG_INFO = 2,
  SKILLET_LOG_DEBUG = 3
} skillet_log_level;
typedef void (*skillet_log_function)(void* user, skillet_log_level level, const char* message);

/* Lines of the log up to `level` go to `function` instead of stderr, from whichever thread they come, one at a time;
 * NULL: to stderr again. When this returns the former function has been called for the last time. The function may call
 * this one, and no other of these. */
SKILLET_API skillet_status skillet_set_log(skillet_log_function function, void* user, skillet_log_level level);

/* What went wrong in the last call of this thread that did not return SKILLET_OK; "" before the first. */
SKILLET_API const char* skillet_last_error(void);
/* "0.1.0" */
SKILLET_API const char* skillet_version(void);

#ifdef __cplusplus
}
#endif

#endif
