/* Skillet: runs quantized TensorFlow Lite models on NPUs, through mainline Linux drivers or simulated chips.
 *
 * The only public interface. Plain C; it throws nothing and does not abort on bad models or devices.
 * One thread at a time may use an object. Different models, on one device or several, may run at the same time. The
 * models of a device share the cores of its NPU: as many models run at once as there are cores, and the others wait
 * in order of arrival.
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

/* 0 is success. After any other value skillet_last_error() returns the reason. */
typedef enum skillet_status {
  SKILLET_OK = 0,
  SKILLET_INVALID_ARGUMENT = 1, /* a null pointer, an unknown device, an index or size that does not fit */
  SKILLET_MALFORMED = 2,        /* the model file is damaged */
  SKILLET_UNSUPPORTED = 3,      /* valid, but neither the chip nor the CPU kernels can do it */
  SKILLET_OUT_OF_RANGE = 4,     /* a value does not fit a field or a buffer */
  SKILLET_IO = 5,               /* the operating system reported an error */
  SKILLET_DEVICE = 6,           /* the device reported a fault */
  SKILLET_TIMEOUT = 7,          /* the device did not finish in time */
  SKILLET_INTERNAL = 8          /* a bug in Skillet, or no memory */
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
  size_t bytes;                   /* size that skillet_set_input and skillet_get_output take */
  float scale;                    /* real = scale * (stored - zero_point); 0: not quantized */
  int32_t zero_point;
} skillet_tensor_info;

/* One option as text. skillet_options_help lists them. */
typedef struct skillet_option {
  const char* key;
  const char* value;
} skillet_option;

typedef struct skillet_options {
  size_t struct_bytes; /* sizeof(skillet_options): lets the struct grow */
  int32_t tuned;       /* 0: only jobs like those of a driver known to work on silicon; 1: also our own choices */
  int32_t no_fallback; /* when the NPU fails, 1: the run is an error; 0: the CPU runs the part, unless the
                          environment variable SKILLET_FALLBACK is set otherwise */
  uint32_t timeout_ms; /* of one run on the device; 0: the environment's SKILLET_TIMEOUT_MS, else 10 s */
  /* Later additions. struct_bytes may end before them. */
  const char* cache_dir;  /* folder of the cache of compiled programs; NULL: the environment's SKILLET_CACHE_DIR,
                             else no cache */
  int32_t allow_unproven; /* 1: the option unproven=take; 0: as in `more` or the environment's SKILLET_UNPROVEN,
                             else verify: see skillet_options_help() */
  int32_t reserved;       /* 0. Fills what is padding in older structs: no new member may be here */
  int32_t cores; /* number of NPU cores that may share one inference, in bands of rows. 1: no sharing; 2 or more:
                    wherever possible; 0: the environment's SKILLET_CORES, else where it is predicted to be faster */
  const char* per_channel;    /* weights with more scales than the chip takes. "exact": each layer is within 1 of its
                                 exact result, or runs on the CPU; "approximate": channels share scales; "strict": as
                                 "exact", and operations are rewritten only where the result has the same bits; NULL:
                                 the environment's SKILLET_PER_CHANNEL, else "exact" */
  const skillet_option* more; /* `more_count` options as text, which override the members above; NULL: none. An
                                 unknown key is an error that names the most similar key */
  size_t more_count;
  const char* tuning_file; /* result of `skillet tune` for this model, chip and build, used instead of `tuned`; NULL:
                              the environment's SKILLET_TUNING_FILE, else none */
} skillet_options;

typedef struct skillet_device skillet_device;
typedef struct skillet_model skillet_model;

/* One line for each key that skillet_options.more takes. */
SKILLET_API const char* skillet_options_help(void);

typedef struct skillet_device_list skillet_device_list;
typedef struct skillet_listed_device {
  size_t struct_bytes; /* sizeof(skillet_listed_device), set by the caller */
  const char* device;  /* name for skillet_open; all texts are valid as long as the list */
  const char* title;   /* name of the hardware; "" if not known */
  const char* kernel_driver;
  const char* note;  /* a remark, or the reason why it is not usable */
  int32_t usable;    /* 1: models run there */
  int32_t simulated; /* 1: a simulated chip in this process */
} skillet_listed_device;

/* Lists the devices of this machine that could run a model, with simulated chips and "cpu". Free the list with
 * skillet_free_list. */
SKILLET_API skillet_status skillet_list_devices(skillet_device_list** out);
SKILLET_API size_t skillet_list_count(const skillet_device_list* list); /* 0 for NULL */
SKILLET_API skillet_status skillet_list_at(const skillet_device_list* list, size_t index, skillet_listed_device* out);
SKILLET_API void skillet_free_list(skillet_device_list* list); /* NULL is fine */

/* Opens "auto" (an NPU of this machine, else the CPU), "cpu", "npu" (an NPU or an error), a simulated chip such as
 * "sim:a311d", or a device node such as "/dev/dri/renderD128". NULL: the environment's SKILLET_DEVICE, else "auto".
 * With SKILLET_REQUIRE_NPU=1 in the environment, "auto" is "npu". */
SKILLET_API skillet_status skillet_open(const char* device, skillet_device** out);
/* Models of the device stay valid and may be closed later. NULL is fine. */
SKILLET_API void skillet_close(skillet_device* device);

/* Reads and compiles a .tflite model, or reads a compiled model (`skillet compile -o`). `options` may be NULL.
 * skillet_load_memory copies the bytes. */
SKILLET_API skillet_status skillet_load_file(skillet_device* device, const char* path, const skillet_options* options,
                                             skillet_model** out);
SKILLET_API skillet_status skillet_load_memory(skillet_device* device, const void* data, size_t bytes,
                                               const skillet_options* options, skillet_model** out);
/* NULL is fine. */
SKILLET_API void skillet_close_model(skillet_model* model);

/* Number of inputs or outputs; 0 for NULL. */
SKILLET_API size_t skillet_input_count(const skillet_model* model);
SKILLET_API size_t skillet_output_count(const skillet_model* model);
/* An error if there is no such index, or if the rank is above SKILLET_MAX_RANK. */
SKILLET_API skillet_status skillet_input_info(const skillet_model* model, size_t index, skillet_tensor_info* out);
SKILLET_API skillet_status skillet_output_info(const skillet_model* model, size_t index, skillet_tensor_info* out);

/* Copies `bytes` bytes, which must be the input's size, in the model's own type and NHWC order. Inputs keep their
 * values from run to run. They are zero until they are set. */
SKILLET_API skillet_status skillet_set_input(skillet_model* model, size_t index, const void* data, size_t bytes);
/* Runs the model once, to its end. */
SKILLET_API skillet_status skillet_run(skillet_model* model);
/* Starts one run in the background. Until skillet_wait() has returned, the model takes no other calls but
 * skillet_close_model, which waits too. In a child of fork() such a model can only be closed: the run ends in the
 * process that started it. A model on an NPU (also a simulated one) and its device belong to the process that opened
 * them: a child can only close them, running or not, and its other calls return SKILLET_INVALID_ARGUMENT. */
SKILLET_API skillet_status skillet_start(skillet_model* model);
/* Waits for the run that was started last. Returns the status that skillet_run would have returned. */
SKILLET_API skillet_status skillet_wait(skillet_model* model);
/* Copies output `index` of the last run; `bytes` must be the output's size. An error if that run failed. */
SKILLET_API skillet_status skillet_get_output(const skillet_model* model, size_t index, void* data, size_t bytes);

/* Runs the model once on the caller's memory: `inputs` and `outputs` hold one pointer for each input and output, to as
 * many bytes as skillet_input_info and skillet_output_info report. Memory from skillet_buffer_alloc of the same device
 * is used in place where the tensor's layout and type allow (uint8, at an offset that is a multiple of 64); other
 * memory is copied once. An input may overlap an output: it is copied first. Two outputs may not overlap, unless the
 * model returns one tensor twice, to one place. Afterwards skillet_get_output is an error until the next skillet_run.
 */
SKILLET_API skillet_status skillet_run_on(skillet_model* model, const void* const* inputs, void* const* outputs);
/* Runs in the background, as skillet_start does. The arrays may be freed at once; the memory that they point to must
 * stay valid until skillet_wait() has returned. */
SKILLET_API skillet_status skillet_start_on(skillet_model* model, const void* const* inputs, void* const* outputs);
/* Bytes of inputs and outputs that the last run copied between the caller's memory and the NPU's. */
SKILLET_API uint64_t skillet_copied_bytes(const skillet_model* model);

/* Allocates zeroed memory that the device, cameras and decoders can access: at `*data` for the CPU, and as the dma-buf
 * `*dmabuf_fd` (NULL: not wanted) for other drivers; on a simulated chip the descriptor is a memfd. Both stay valid
 * until skillet_buffer_free, which closes the descriptor. Not for the device "cpu". CPU reads may be slow. */
SKILLET_API skillet_status skillet_buffer_alloc(skillet_device* device, size_t bytes, void** data, int* dmabuf_fd);
/* Imports memory of another driver, such as a camera or decoder, by its dma-buf `dmabuf_fd`: it is at `*data` for the
 * CPU, `*bytes` long, until skillet_buffer_free. The caller keeps the descriptor and may close it. All writes to the
 * memory must be finished before a run on it begins. An error if the kernel driver cannot import memory, or if the
 * memory already is a buffer of this device. */
SKILLET_API skillet_status skillet_buffer_import(skillet_device* device, int dmabuf_fd, void** data, size_t* bytes);
/* Frees a buffer; `data` is the pointer from skillet_buffer_alloc or skillet_buffer_import. An error, and the buffer
 * stays, if a run on it was started and skillet_wait has not returned. */
SKILLET_API skillet_status skillet_buffer_free(skillet_device* device, void* data);

typedef struct skillet_buffer_info {
  size_t struct_bytes; /* sizeof(skillet_buffer_info), set by the caller */
  void* data;          /* the buffer's first byte */
  size_t bytes;
  int dmabuf_fd;   /* owned by the library: do not close it */
  uint64_t serial; /* unique to each buffer, even if it has the address of a freed buffer */
} skillet_buffer_info;

/* Returns 1 and fills `*out` if all of [data, data + bytes) is in one live buffer of the two calls above, of any
 * device; else 0. Callable from any thread. Allocates nothing and does not change skillet_last_error(). The TensorFlow
 * Lite delegate calls this to use such memory in place. */
SKILLET_API int skillet_buffer_find(const void* data, size_t bytes, skillet_buffer_info* out);

typedef struct skillet_maker {
  size_t struct_bytes; /* sizeof(skillet_maker), set by the caller */
  const char* kind;    /* kind of the operation: "TFLite_Detection_PostProcess"; "": no operation computes it */
  size_t place;        /* index among the operation's outputs */
} skillet_maker;

/* Finds the operation that computes output `index`. It identifies an output where names and shapes do not, such as the
 * four outputs of a detector. The text is valid as long as the model. */
SKILLET_API skillet_status skillet_output_maker(const skillet_model* model, size_t index, skillet_maker* out);

/* Reports where each operation runs, and why not on the NPU. Text for people, valid until the next call for this
 * model. */
SKILLET_API const char* skillet_explain(skillet_model* model);

typedef struct skillet_op_info {
  size_t struct_bytes; /* sizeof(skillet_op_info), set by the caller */
  const char* kind;    /* "CONV_2D"; texts are valid until the next run and as long as the model */
  const char* output;  /* "1x112x112x32", the shape of the first output */
  const char* why;     /* why not on the NPU, or why it is unproven there; "": no reason */
  const char* note;    /* a rewrite that may change the result; "": none */
  uint32_t part;       /* operations of a part run together */
  int32_t on_npu;
  int32_t unproven; /* 1: on the NPU, though no known driver ever ran it on silicon */
  int32_t failed;   /* 1: the NPU failed, so the CPU runs it; the reason is in `why` */
  double ms;        /* time in the last run; -1: not known, because an NPU runs a part as a whole, or before a run */
  double part_ms;   /* time of its part in the last run, with copies */
} skillet_op_info;

/* The rewritten operations, in the order in which they run: their number, and operation `index`. */
SKILLET_API size_t skillet_op_count(const skillet_model* model);
SKILLET_API skillet_status skillet_op(skillet_model* model, size_t index, skillet_op_info* out);

/* How many of the model file's own operations the NPU computes, as `skillet check` and the delegate count them.
 * skillet_op() lists the rewritten operations, whose number may differ. */
typedef struct skillet_use {
  size_t struct_bytes; /* sizeof(skillet_use), set by the caller */
  size_t ops;          /* in the file */
  size_t npu_ops;      /* the NPU computes each of them as a whole */
  size_t part_ops;     /* the NPU computes a part of each of them */
  size_t folded_ops;   /* removed by rewrites: constants, shapes, operations fused into others */
} skillet_use;
SKILLET_API skillet_status skillet_get_use(const skillet_model* model, skillet_use* out);

typedef enum skillet_log_level {
  SKILLET_LOG_ERROR = 0,
  SKILLET_LOG_WARNING = 1,
  SKILLET_LOG_INFO = 2,
  SKILLET_LOG_DEBUG = 3
} skillet_log_level;
typedef void (*skillet_log_function)(void* user, skillet_log_level level, const char* message);

/* Sends log lines up to `level` to `function` instead of stderr, from any thread, one at a time; NULL: to stderr again.
 * The former function is not called after this returns. `function` may call skillet_set_log, but nothing else of this
 * interface. */
SKILLET_API skillet_status skillet_set_log(skillet_log_function function, void* user, skillet_log_level level);

/* Reason of this thread's last error (a status other than SKILLET_OK); "" before the first. */
SKILLET_API const char* skillet_last_error(void);
/* Version of the library, such as "0.1.0". */
SKILLET_API const char* skillet_version(void);

#ifdef __cplusplus
}
#endif

#endif
