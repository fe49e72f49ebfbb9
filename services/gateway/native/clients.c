#include "clients.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "memory.h"

enum { BUCKETS = 1 << 14, FEWEST_OF_MANY = 2 };

/* A client in one group. */
struct client {
  struct client *next; /* in its bucket */
  struct client *previous_equal, *next_equal; /* that have as many */
  struct place *first, *last;
  uint64_t prefix; /* of an IPv6 address the first 64 bits, of an IPv4 address all */
  uint32_t open;
  uint8_t group;
  bool is_ipv4;
};

static struct client *buckets[BUCKETS];
static uint64_t seed;
static struct {
  struct client **by_count; /* up to the share of one */
  uint32_t most;
} groups[GROUPS];

/* Addresses are chosen by strangers: without a secret seed they could choose ones that collide. */
static uint32_t hash_of(uint64_t prefix) {
  while (seed == 0) seed = getrandom(&seed, sizeof seed, 0) > 0 ? seed | 1 : 1;
  uint64_t hash = (prefix ^ seed) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ hash >> 32) * seed;
  return (uint32_t)(hash >> 32);
}

static struct client **bucket_of(uint64_t prefix) { return &buckets[hash_of(prefix) % BUCKETS]; }

static uint64_t prefix_of(const struct in6_addr *address) {
  uint64_t prefix;
  memcpy(&prefix, address->s6_addr + (IN6_IS_ADDR_V4MAPPED(address) ? 8 : 0), sizeof prefix);
  return prefix;
}

uint32_t client_hash(const struct in6_addr *address) { return hash_of(prefix_of(address)); }

void client_address(int fd, struct sockaddr_in6 *address) {
  struct sockaddr_storage raw = {0};
  socklen_t length = sizeof raw;
  getpeername(fd, (struct sockaddr *)&raw, &length);
  *address = (struct sockaddr_in6){.sin6_family = AF_INET6};
  if (raw.ss_family == AF_INET6) memcpy(address, &raw, sizeof *address);
  else {
    const struct sockaddr_in *four = (const struct sockaddr_in *)&raw;
    address->sin6_addr.s6_addr[10] = address->sin6_addr.s6_addr[11] = 0xff;
    memcpy(address->sin6_addr.s6_addr + 12, &four->sin_addr, 4);
    address->sin6_port = four->sin_port;
  }
}

/* The client in its group; NULL for none. `open` is of all groups that its share is of. */
static struct client *find(const struct in6_addr *address, unsigned group, uint32_t *open) {
  bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(address);
  uint64_t prefix = prefix_of(address);
  struct client *found = NULL;
  *open = 0;
  for (struct client *client = *bucket_of(prefix); client; client = client->next) {
    if (client->prefix != prefix || client->is_ipv4 != is_ipv4) continue;
    if (client->group == group) found = client;
    if ((client->group >= GROUP_QUIC) == (group >= GROUP_QUIC)) *open += client->open;
  }
  return found;
}

static struct client *make(const struct in6_addr *address, unsigned group) {
  if (!groups[group].by_count) groups[group].by_count = calloc((size_t)options.max_per_client + 1, sizeof(struct client *));
  struct client *client = groups[group].by_count ? memory_take(sizeof *client) : NULL;
  if (!client) return NULL;
  struct client **bucket = bucket_of(prefix_of(address));
  *client = (struct client){.next = *bucket, .prefix = prefix_of(address), .group = (uint8_t)group,
                            .is_ipv4 = IN6_IS_ADDR_V4MAPPED(address)};
  return *bucket = client;
}

static void forget(struct client *client) {
  struct client **link = bucket_of(client->prefix);
  while (*link != client) link = &(*link)->next;
  *link = client->next;
  memory_give(client);
}

/* One more or one less: whoever has most is known without a look at all. */
static void set_open(struct client *client, uint32_t open) {
  struct client **by_count = groups[client->group].by_count;
  uint32_t *most = &groups[client->group].most;
  if (client->open > 0) {
    if (client->previous_equal) client->previous_equal->next_equal = client->next_equal;
    else by_count[client->open] = client->next_equal;
    if (client->next_equal) client->next_equal->previous_equal = client->previous_equal;
  }
  client->open = open;
  if (open > 0) {
    client->previous_equal = NULL;
    if ((client->next_equal = by_count[open])) by_count[open]->previous_equal = client;
    by_count[open] = client;
    if (open > *most) *most = open;
  }
  while (*most > 0 && !by_count[*most]) --*most;
}

bool client_enter(struct place *place, const struct sockaddr_in6 *address, unsigned group) {
  uint32_t open;
  struct client *client = find(&address->sin6_addr, group, &open);
  if (open >= options.max_per_client || (!client && !(client = make(&address->sin6_addr, group)))) return false;
  *place = (struct place){.previous = client->last, .client = client};
  if (client->last) client->last->next = place;
  else client->first = place;
  client->last = place;
  set_open(client, client->open + 1);
  return true;
}

void client_leave(struct place *place) {
  struct client *client = place->client;
  if (!client) return;
  place->client = NULL;
  if (place->previous) place->previous->next = place->next;
  else client->first = place->next;
  if (place->next) place->next->previous = place->previous;
  else client->last = place->previous;
  set_open(client, client->open - 1);
  if (client->open == 0) forget(client);
}

struct place *client_yielding(const struct sockaddr_in6 *address, unsigned group) {
  uint32_t open;
  if (groups[group].most < FEWEST_OF_MANY) return NULL;
  if (find(&address->sin6_addr, group, &open)) return NULL;
  /* Of a flow, the share holds it already. */
  if (group != GROUP_QUIC && open >= options.max_per_client) return NULL;
  return groups[group].by_count[groups[group].most]->first;
}
