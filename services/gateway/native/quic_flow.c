#include "quic_flow.h"

#include <string.h>

void quic_id_set(struct quic_id *id, struct id from) {
  id->length = from.length;
  if (from.length > 0) memcpy(id->bytes, from.bytes, from.length);
}

bool quic_id_is(const struct quic_id *id, struct id other) {
  return id->length == other.length && memcmp(id->bytes, other.bytes, id->length) == 0;
}

bool quic_peer_is(const struct quic_peer *peer, const struct quic_peer *other) {
  return peer->port == other->port && peer->socket == other->socket &&
         memcmp(&peer->address, &other->address, sizeof peer->address) == 0;
}

static bool bears(const struct packet *packet, const uint8_t *bytes, uint32_t length, const struct quic_id *id) {
  if (packet->type != PACKET_SHORT) return quic_id_is(id, packet->destination);
  /* The id follows at once; how long it is, only who chose it knows. */
  return length - 1 >= id->length && memcmp(bytes + 1, id->bytes, id->length) == 0;
}

const struct quic_id *quic_flow_answering(const struct quic_flow *flow, const struct packet *packet, const uint8_t *bytes,
                                          uint32_t length) {
  const struct quic_id *found = NULL;
  for (unsigned i = 0; i < flow->learnt_count; i++) {
    const struct quic_id *id = &flow->learnt[i].id;
    if ((!found || id->length > found->length) && bears(packet, bytes, length, id)) found = id;
  }
  return found;
}
