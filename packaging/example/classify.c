/* Runs a classifier on the bytes of one input and prints its best class.
 *
 *   cc classify.c $(pkg-config --cflags --libs skillet) -o classify
 *   ./classify ../models/digits.tflite seven.raw sim:a311d     (seven.raw: 28 x 28 bytes, black 0 to white 255)
 */
#include <skillet/skillet.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, skillet_last_error());
  return 1;
}

static int best_class(skillet_model* model) {
  skillet_tensor_info info;
  unsigned char scores[4096];
  size_t best = 0;
  if (skillet_output_info(model, 0, &info) != SKILLET_OK || info.bytes > sizeof scores ||
      skillet_get_output(model, 0, scores, info.bytes) != SKILLET_OK)
    return -1;
  /* int8 scores compare as uint8 ones with the highest bit flipped. */
  const unsigned char flip = info.type == SKILLET_INT8 ? 0x80 : 0;
  for (size_t i = 1; i < info.bytes; ++i)
    if ((scores[i] ^ flip) > (scores[best] ^ flip)) best = i;
  return (int)best;
}

int main(int argc, char** argv) {
  skillet_device* device = NULL;
  skillet_model* model = NULL;
  skillet_tensor_info input;
  if (argc < 3) {
    fprintf(stderr, "usage: classify MODEL INPUT_FILE [DEVICE]\n");
    return 2;
  }
  if (skillet_open(argc > 3 ? argv[3] : "auto", &device) != SKILLET_OK) return fail("device");
  if (skillet_load_file(device, argv[1], NULL, &model) != SKILLET_OK) return fail("model");
  if (skillet_input_info(model, 0, &input) != SKILLET_OK) return fail("input");
  unsigned char* bytes = malloc(input.bytes);
  FILE* file = fopen(argv[2], "rb");
  if (bytes == NULL || file == NULL || fread(bytes, 1, input.bytes, file) != input.bytes) {
    fprintf(stderr, "%s: %zu bytes are needed\n", argv[2], input.bytes);
    return 1;
  }
  fclose(file);
  if (input.type == SKILLET_INT8)
    for (size_t i = 0; i < input.bytes; ++i) bytes[i] ^= 0x80;
  if (skillet_set_input(model, 0, bytes, input.bytes) != SKILLET_OK || skillet_run(model) != SKILLET_OK)
    return fail("run");
  printf("class %d\n%s", best_class(model), skillet_explain(model));
  free(bytes);
  skillet_close_model(model);
  skillet_close(device);
  return 0;
}
