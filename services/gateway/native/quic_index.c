#include "quic_index.h"

#include <string.h>
#include <sys/random.h>

enum { BUCKET_BITS = 14, BUCKETS = 1 << BUCKET_BITS };

static struct quic_flow *buckets[BUCKETS];
static uint64_t seed;

/* Addresses come from strangers: without a secret seed they could choose ones that collide. */
static struct quic_flow **bucket_of(const struct quic_peer *peer) {
  uint64_t parts[2];
  while (seed == 0) seed = getrandom(&seed, sizeof seed, 0) > 0 ? seed | 1 : 1;
  memcpy(parts, &peer->address, sizeof parts);
  uint64_t hash = (parts[0] ^ seed) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ hash >> 32 ^ parts[1]) * seed;
  hash = (hash ^ hash >> 29 ^ peer->port) * (seed | 1);
  return &buckets[(hash ^ hash >> 32) & (BUCKETS - 1)];
}

static bool is_from(const struct quic_flow *flow, const struct quic_peer *peer) {
  return flow->peer.port == peer->port && flow->peer.socket == peer->socket &&
         memcmp(&flow->peer.address, &peer->address, sizeof peer->address) == 0;
}

bool quic_index_add(struct quic_flow *flow) {
  struct quic_flow **bucket = bucket_of(&flow->peer);
  unsigned count = 0;
  for (const struct quic_flow *other = *bucket; other; other = other->next_near)
    if (is_from(other, &flow->peer)) count++;
  if (count >= MAX_FLOWS_PER_PEER) return false;
  flow->next_near = *bucket;
  *bucket = flow;
  return true;
}

void quic_index_remove(struct quic_flow *flow) {
  struct quic_flow **link = bucket_of(&flow->peer);
  while (*link && *link != flow) link = &(*link)->next_near;
  if (*link) *link = flow->next_near;
}

static bool has_first_id(const struct quic_flow *flow, const struct packet *packet) {
  return packet->type <= PACKET_RETRY && packet->destination.length == flow->first.length &&
         memcmp(packet->destination.bytes, flow->first.bytes, flow->first.length) == 0;
}

struct quic_flow *quic_index_find(const struct quic_peer *peer, const struct packet *packet, const uint8_t *bytes, uint32_t length) {
  struct quic_flow *only = NULL;
  unsigned count = 0;
  if (packet->type > PACKET_RETRY && packet->type != PACKET_SHORT) return NULL;
  for (struct quic_flow *flow = *bucket_of(peer); flow; flow = flow->next_near) {
    if (!is_from(flow, peer)) continue;
    if (has_first_id(flow, packet) || quic_flow_is_answered_by(flow, packet, bytes, length)) return flow;
    if (flow->state == FLOW_UNDECIDED) continue;
    only = flow;
    count++;
  }
  /* Ids that come later are told in what we do not read. An Initial packet begins another connection. */
  return count == 1 && packet->type != PACKET_INITIAL && packet->type != PACKET_ZERO_RTT ? only : NULL;
}
