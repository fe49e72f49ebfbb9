#include "quic_index.h"

#include <stddef.h>
#include <string.h>
#include <sys/random.h>

enum {
  BUCKET_BITS = 14,
  BUCKETS = 1 << BUCKET_BITS,
  MAX_LOOKED_AT = 128, /* flows of one address: a client may have thousands, and to look at all of them takes as long for each datagram */
};

static struct quic_flow *near[BUCKETS], *here[BUCKETS];
static struct quic_known *known[BUCKETS];
static uint32_t known_of_length[MAX_ID_BYTES + 1];
static uint64_t seed;

static struct id id_of(const struct quic_id *id) { return (struct id){id->length, id->bytes}; }

/* Addresses and ids come from strangers: without a secret seed they could choose ones that collide. */
static uint32_t bucket_of(const void *bytes, uint32_t length, uint32_t more) {
  while (seed == 0) seed = getrandom(&seed, sizeof seed, 0) > 0 ? seed | 1 : 1;
  uint64_t hash = seed ^ more;
  for (uint32_t at = 0; at < length; at += 8) {
    uint64_t word = 0;
    memcpy(&word, (const uint8_t *)bytes + at, length - at < 8 ? length - at : 8);
    hash = (hash ^ word ^ hash >> 32) * seed;
    hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15u;
  }
  return (uint32_t)(hash >> (64 - BUCKET_BITS));
}

static uint32_t near_of(const struct quic_peer *peer) { return bucket_of(&peer->address, sizeof peer->address, peer->port); }
static uint32_t here_of(const struct quic_peer *peer) { return bucket_of(&peer->address, sizeof peer->address, 0); }
static uint32_t known_of(struct id id) { return bucket_of(id.bytes, id.length, id.length); }

/* The flow that has learnt it: a pointer of each would be a twelfth of what a flow takes. */
static struct quic_flow *flow_of(const struct quic_known *one) {
  return (struct quic_flow *)((char *)(one - one->at) - offsetof(struct quic_flow, learnt));
}

static bool is_at(const struct quic_flow *flow, const struct quic_peer *peer) {
  return memcmp(&flow->peer.address, &peer->address, sizeof peer->address) == 0;
}

bool quic_index_add(struct quic_flow *flow) {
  struct quic_flow **bucket = &near[near_of(&flow->peer)], **address = &here[here_of(&flow->peer)];
  unsigned count = 0;
  for (const struct quic_flow *other = *bucket; other; other = other->next_near)
    if (quic_peer_is(&other->peer, &flow->peer)) count++;
  if (count >= MAX_FLOWS_PER_PEER) return false;
  flow->next_near = *bucket;
  *bucket = flow;
  flow->next_here = *address;
  if (*address) (*address)->link_here = &flow->next_here;
  flow->link_here = address;
  *address = flow;
  return true;
}

struct quic_flow *quic_index_crowding(const struct quic_peer *peer) {
  struct quic_flow *oldest = NULL;
  unsigned count = 0;
  /* The last to come is the first. */
  for (struct quic_flow *flow = near[near_of(peer)]; flow; flow = flow->next_near) {
    if (!quic_peer_is(&flow->peer, peer)) continue;
    count++;
    if (flow->state < FLOW_MOVED || (flow->state == FLOW_MOVED && (!oldest || oldest->state == FLOW_MOVED))) oldest = flow;
  }
  return count >= MAX_FLOWS_PER_PEER ? oldest : NULL;
}

void quic_index_remove(struct quic_flow *flow) {
  struct quic_flow **link = &near[near_of(&flow->peer)];
  while (*link != flow) link = &(*link)->next_near;
  *link = flow->next_near;
  *flow->link_here = flow->next_here;
  if (flow->next_here) flow->next_here->link_here = flow->link_here;
  for (unsigned i = 0; i < flow->learnt_count; i++) {
    struct quic_known *gone = &flow->learnt[i];
    *gone->link = gone->next;
    if (gone->next) gone->next->link = gone->link;
    known_of_length[gone->id.length]--;
  }
}

void quic_index_learn_id(struct quic_flow *flow, struct id id) {
  struct quic_known *added = &flow->learnt[flow->learnt_count], **bucket = &known[known_of(id)];
  quic_id_set(&added->id, id);
  added->at = flow->learnt_count++;
  /* An instance may give all its flows one id: nothing may depend on how many have it. */
  if ((added->next = *bucket)) added->next->link = &added->next;
  added->link = bucket;
  *bucket = added;
  known_of_length[id.length]++;
}

void quic_index_learn(struct quic_flow *flow, const uint8_t *bytes, uint32_t length) {
  struct packet packet = packet_read(bytes, length);
  if (packet.type > PACKET_RETRY || flow->learnt_count == MAX_LEARNT_IDS) return;
  /* What the client chose itself shows nothing about where it is. */
  if (quic_id_is(&flow->first, packet.source)) return;
  for (unsigned i = 0; i < flow->learnt_count; i++)
    if (quic_id_is(&flow->learnt[i].id, packet.source)) return;
  quic_index_learn_id(flow, packet.source);
}

void quic_index_share(struct quic_flow *flow, const struct quic_flow *moved) {
  for (unsigned i = 0; i < moved->learnt_count; i++) quic_index_learn_id(flow, id_of(&moved->learnt[i].id));
}

static bool has_first_id(const struct quic_flow *flow, const struct packet *packet) {
  return packet->type <= PACKET_RETRY && quic_id_is(&flow->first, packet->destination);
}

struct quic_flow *quic_index_find(const struct quic_peer *peer, const struct packet *packet, const uint8_t *bytes, uint32_t length) {
  struct quic_flow *only = NULL;
  unsigned count = 0;
  if (packet->type > PACKET_RETRY && packet->type != PACKET_SHORT) return NULL;
  for (struct quic_flow *flow = near[near_of(peer)]; flow; flow = flow->next_near) {
    if (!quic_peer_is(&flow->peer, peer)) continue;
    if (has_first_id(flow, packet) || quic_flow_answering(flow, packet, bytes, length)) return flow;
    if (flow->state == FLOW_UNDECIDED) continue;
    only = flow;
    count++;
  }
  /* Ids that come later are told in what we do not read. An Initial packet begins another connection. */
  return count == 1 && packet->type != PACKET_INITIAL && packet->type != PACKET_ZERO_RTT ? only : NULL;
}

static const struct quic_flow *find_known(struct id id) {
  for (const struct quic_known *at = known[known_of(id)]; at; at = at->next)
    if (quic_id_is(&at->id, id)) return flow_of(at);
  return NULL;
}

/* The flow that is had by an address alone; NULL where its flows lead to several instances, or are too many to look at. */
static const struct quic_flow *find_here(const struct quic_peer *peer) {
  const struct quic_flow *found = NULL;
  unsigned looked_at = 0;
  for (const struct quic_flow *flow = here[here_of(peer)]; flow; flow = flow->next_here) {
    if (++looked_at > MAX_LOOKED_AT) return NULL;
    if (!is_at(flow, peer) || flow->state < FLOW_UNPROVEN) continue;
    if (found && found->route != flow->route) return NULL;
    found = flow;
  }
  return found;
}

const struct quic_flow *quic_index_find_moved(const struct quic_peer *peer, const struct packet *packet, const uint8_t *bytes,
                                              uint32_t length) {
  if (packet->type <= PACKET_HANDSHAKE)
    return packet->destination.length >= MIN_KNOWN_BYTES ? find_known(packet->destination) : NULL;
  if (packet->type != PACKET_SHORT) return NULL;
  /* The id follows at once; how long it is, only who chose it knows. */
  for (uint8_t size = MAX_ID_BYTES; size >= MIN_KNOWN_BYTES; size--) {
    if (known_of_length[size] == 0 || length - 1 < size) continue;
    const struct quic_flow *flow = find_known((struct id){size, bytes + 1});
    if (flow) return flow;
  }
  return find_here(peer);
}
