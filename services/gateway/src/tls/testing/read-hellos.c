/* The native reader alone: hellos from standard input, each cut in pieces; what each says to standard output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../native/hello.h"

enum { WRONG_INPUT = 2 };

int main(void) {
  static uint8_t wire[2 * MAX_HELLO_WIRE_BYTES];
  uint32_t length, cuts, cut;
  while (fread(&length, 4, 1, stdin) == 1 && fread(&cuts, 4, 1, stdin) == 1) {
    if (length > sizeof wire || fread(wire, 1, length, stdin) != length) return WRONG_INPUT;
    uint8_t *exact = malloc(1); /* of the bytes that came: a sanitizer sees a read beyond them */
    struct hello_reader reader = {0};
    struct hello_name name = {0};
    enum hello_kind kind = HELLO_NEED_MORE;
    uint32_t have = 0;
    for (uint32_t i = 0; i < cuts; i++) {
      if (fread(&cut, 4, 1, stdin) != 1 || cut < have || cut > length) return WRONG_INPUT;
      exact = realloc(exact, cut ? cut : 1);
      memcpy(exact + have, wire + have, cut - have);
      have = cut;
      if (kind == HELLO_NEED_MORE) kind = hello_read(&reader, exact, have, &name);
    }
    if (kind != HELLO_NAME) name.length = 0;
    putchar((int)kind);
    putchar(name.length);
    fwrite(name.text, 1, name.length, stdout);
    free(exact);
  }
  return fflush(stdout) == 0 ? 0 : 1;
}
