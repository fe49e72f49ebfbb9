#include "quic_early.h"

#include <string.h>

#include "clients.h"
#include "loop.h"
#include "outcomes.h"
#include "quic_upload.h"

enum {
  PLACES = 64,       /* 128 KB */
  PLACES_OF_ONE = 8, /* clients are told apart by a hash */
  KEPT_MS = 500,     /* what overtook the hello on its way was not that much faster */
};

struct early {
  struct quic_peer peer;
  struct quic_id first;
  uint32_t came_ms, client;
  uint16_t length; /* 0 where it was passed on */
  uint8_t bytes[MAX_HELD_BYTES];
};

/* The oldest first. */
static struct early places[PLACES];
static uint32_t oldest, count;

static struct early *at(uint32_t index) { return &places[(oldest + index) % PLACES]; }

static void leave(void) {
  if (at(0)->length > 0) outcome_count_quic(&at(0)->peer.address, QUIC_STRAY);
  oldest = (oldest + 1) % PLACES;
  count--;
}

static uint32_t kept_of(uint32_t client) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++) kept += at(i)->length > 0 && at(i)->client == client;
  return kept;
}

bool quic_early_keep(const struct quic_peer *peer, struct id first, const uint8_t *bytes, uint32_t length) {
  uint32_t client = client_hash(&peer->address);
  if (length > MAX_HELD_BYTES || kept_of(client) >= PLACES_OF_ONE) return false;
  if (count == PLACES) leave();
  struct early *early = at(count++);
  early->peer = *peer;
  quic_id_set(&early->first, first);
  early->came_ms = now_ms;
  early->client = client;
  early->length = (uint16_t)length;
  memcpy(early->bytes, bytes, length);
  return true;
}

static bool is_of(const struct early *early, const struct quic_flow *flow) {
  return early->length > 0 && quic_peer_is(&early->peer, &flow->peer) &&
         quic_id_is(&early->first, (struct id){flow->first.length, flow->first.bytes});
}

void quic_early_give(struct quic_flow *flow) {
  for (uint32_t i = 0; i < count; i++) {
    struct early *early = at(i);
    if (!is_of(early, flow)) continue;
    quic_upload_send(flow, (struct quic_batch){early->bytes, early->length, early->length});
    early->length = 0;
  }
}

void quic_early_expire(void) {
  while (count > 0 && (at(0)->length == 0 || now_ms - at(0)->came_ms >= KEPT_MS)) leave();
}

uint32_t quic_early_next_due_ms(void) {
  if (count == 0) return UINT32_MAX;
  uint32_t passed = now_ms - at(0)->came_ms;
  return passed >= KEPT_MS ? 0 : KEPT_MS - passed;
}
