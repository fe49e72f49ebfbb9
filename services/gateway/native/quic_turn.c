#include "quic_turn.h"

#include "loop.h"

enum {
  BULK_BYTES = 64 * 1024, /* in this millisecond and the one before: fewer do not wait for others */
  ENOUGH_DATAGRAMS = 16,  /* in one turn: a rest would gain little more, and may cost throughput */
  SOME_BYTES = 1024,      /* in one turn: fewer are acknowledgements, which have nothing to wait for */
};

static uint32_t turn_datagrams, turn_bytes;
/* A millisecond, what was passed on in it, and in the one before. */
static uint32_t window_ms, window_bytes, previous_bytes;

void quic_turn_passed(struct quic_batch batch) {
  turn_datagrams += (batch.length + batch.segment - 1) / batch.segment;
  turn_bytes += batch.length;
  window_bytes += batch.length;
}

bool quic_turn_ended(void) {
  bool is_bulk = previous_bytes + window_bytes >= BULK_BYTES;
  bool rests = is_bulk && turn_bytes >= SOME_BYTES && turn_datagrams < ENOUGH_DATAGRAMS;
  if (now_ms != window_ms) {
    previous_bytes = now_ms - window_ms == 1 ? window_bytes : 0;
    window_bytes = 0;
    window_ms = now_ms;
  }
  turn_datagrams = turn_bytes = 0;
  return rests;
}
