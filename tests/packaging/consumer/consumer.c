/* The smallest program that uses the installed library. */
#include <skillet/skillet.h>
#include <stdio.h>

int main(void) {
  skillet_device* device = NULL;
  if (skillet_open("cpu", &device) != SKILLET_OK) {
    fprintf(stderr, "%s\n", skillet_last_error());
    return 1;
  }
  skillet_close(device);
  printf("skillet %s\n", skillet_version());
  return 0;
}
