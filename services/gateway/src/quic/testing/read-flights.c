/* The native reader of QUIC's Initial packets alone: flights from standard input, each a count and so many datagrams, each behind
 * its length (4 bytes); what each flight says to standard output. */
#include <stdio.h>
#include <stdlib.h>

#include "../../../native/flight.h"

enum { WRONG_INPUT = 2, MAX_DATAGRAMS = 1 << 16 };

static enum hello_kind read_flight(struct flight *flight, uint32_t datagrams, struct hello_name *name) {
  enum hello_kind kind = HELLO_NEED_MORE;
  for (uint32_t length; datagrams > 0; datagrams--) {
    if (fread(&length, 4, 1, stdin) != 1 || length > MAX_DATAGRAM_BYTES) exit(WRONG_INPUT);
    uint8_t *exact = malloc(length ? length : 1); /* a sanitizer sees a read beyond it */
    if (fread(exact, 1, length, stdin) != length) exit(WRONG_INPUT);
    if (kind == HELLO_NEED_MORE) kind = flight_read(flight, exact, length, name);
    free(exact);
  }
  return kind;
}

int main(void) {
  uint32_t datagrams;
  while (fread(&datagrams, 4, 1, stdin) == 1) {
    if (datagrams > MAX_DATAGRAMS) return WRONG_INPUT;
    struct flight *flight = calloc(1, sizeof *flight);
    struct hello_name name = {0};
    enum hello_kind kind = read_flight(flight, datagrams, &name);
    if (kind != HELLO_NAME) name.length = 0;
    putchar(kind == HELLO_NEED_MORE && !flight->is_begun ? HELLO_NOT_TLS : (int)kind);
    putchar(name.length);
    fwrite(name.text, 1, name.length, stdout);
    free(flight);
  }
  return fflush(stdout) == 0 ? 0 : 1;
}
