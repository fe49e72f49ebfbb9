/*
 * CPU time of reading first flights of QUIC: quic-read ROUNDS, with whole datagrams of one flight on standard input, each behind
 * its length (4 bytes). Prints the microseconds of one reading.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../services/gateway/native/flight.h"

enum { MAX_DATAGRAMS = 8 };

static double cpu_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int count, char **arguments) {
  static uint8_t datagrams[MAX_DATAGRAMS][MAX_DATAGRAM_BYTES];
  static struct flight flight;
  uint32_t lengths[MAX_DATAGRAMS], held = 0;
  struct hello_name name;
  if (count != 2) return 2;
  while (held < MAX_DATAGRAMS && fread(&lengths[held], 4, 1, stdin) == 1 &&
         fread(datagrams[held], 1, lengths[held], stdin) == lengths[held])
    held++;
  int rounds = atoi(arguments[1]);
  double start = cpu_us();
  for (int round = 0; round < rounds; round++) {
    enum hello_kind kind = HELLO_NEED_MORE;
    memset(&flight, 0, offsetof(struct flight, bytes));
    for (uint32_t i = 0; i < held && kind == HELLO_NEED_MORE; i++) kind = flight_read(&flight, datagrams[i], lengths[i], &name);
  }
  printf("%f\n", (cpu_us() - start) / rounds);
  return 0;
}
