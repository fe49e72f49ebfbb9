#include "quic_backlog.h"

#include <string.h>

#include "clients.h"
#include "outcomes.h"

enum {
  PLACES = 1024,       /* some 2 MB, of which the system gives what was once needed; to work them off takes some 20 ms */
  SHARES = 4096,       /* clients are told apart by a hash */
  PLACES_OF_ONE = 64,   /* so that one client keeps the others waiting no longer than these take */
};

static struct quic_waiting places[PLACES];
static uint32_t first, count;
static uint16_t taken[SHARES];

static void leave(void) {
  taken[places[first].share]--;
  count--;
  /* From the first place on, so that few places are ever touched where few wait. */
  first = count == 0 ? 0 : (first + 1) % PLACES;
}

bool quic_backlog_add(const struct quic_peer *peer, const uint8_t *bytes, uint32_t length) {
  uint16_t share = (uint16_t)(client_hash(&peer->address) % SHARES);
  if (length > MAX_HELD_BYTES || taken[share] >= PLACES_OF_ONE) return false;
  if (count == PLACES) {
    outcome_count_quic(&places[first].peer.address, QUIC_CROWDED_OUT);
    leave();
  }
  struct quic_waiting *place = &places[(first + count++) % PLACES];
  place->peer = *peer;
  place->length = (uint16_t)length;
  place->share = share;
  memcpy(place->bytes, bytes, length);
  taken[share]++;
  return true;
}

const struct quic_waiting *quic_backlog_take(void) {
  if (count == 0) return NULL;
  const struct quic_waiting *oldest = &places[first];
  leave();
  return oldest;
}

bool quic_backlog_is_empty(void) { return count == 0; }
