/* An instance gives every flow the same ids: what it costs to let all of them go, the oldest first as they expire. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../../native/quic_index.h"

enum { FLOWS = 20 * 1000, ID_BYTES = 8, MOST_MS = 400 };

static struct quic_flow *flows[FLOWS];

static struct quic_flow *add(unsigned number) {
  struct quic_flow *flow = calloc(1, sizeof *flow);
  flow->peer.port = (uint16_t)(number + 1);
  flow->peer.address.s6_addr[0] = (uint8_t)(number >> 16);
  if (!quic_index_add(flow)) exit(1);
  for (uint8_t i = 0; i < MAX_LEARNT_IDS; i++) {
    const uint8_t bytes[ID_BYTES] = {i};
    quic_index_learn_id(flow, (struct id){ID_BYTES, bytes});
  }
  return flow;
}

int main(int count, char **arguments) {
  (void)arguments;
  if (count == 1) return 0;
  for (unsigned i = 0; i < FLOWS; i++) flows[i] = add(i);
  clock_t start = clock();
  for (unsigned i = 0; i < FLOWS; i++) quic_index_remove(flows[i]);
  clock_t ms = (clock() - start) * 1000 / CLOCKS_PER_SEC;
  if (ms > MOST_MS) return printf("%ld ms\n", (long)ms), 0;
  puts("all gone");
  for (unsigned i = 0; i < FLOWS; i++) free(flows[i]);
  return 0;
}
