#include "clients.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "memory.h"

enum { BUCKETS = 1 << 14, FEWEST_OF_MANY = 2, IPV4_NETWORK_BYTES = 15, IPV6_NETWORK_BYTES = 6 };

/* A client in one group, or a network: any number of clients of that group, in a group of networks of its own. */
struct client {
  struct client *next; /* in its bucket */
  struct client *previous_equal, *next_equal; /* that have as many */
  struct place *first, *last; /* a client's */
  struct client *network; /* a client's; NULL where its address is IPv4 */
  struct client *previous_near, *next_near; /* clients of the same network, the first to come first */
  struct client *first_near, *last_near; /* a network's */
  uint64_t prefix; /* of an IPv6 address the first 64 bits, of a network's the first 48, of an IPv4 address all */
  uint32_t open;
  uint8_t group;
  bool is_ipv4;
};

static struct client *buckets[BUCKETS];
static uint64_t seed;
static struct {
  struct client **by_count; /* up to what one may have (most_of) */
  uint32_t most;
} groups[2 * GROUPS]; /* the second half are those of networks */

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

struct in6_addr client_of_place(const struct place *place) {
  struct in6_addr address = {0};
  const struct client *client = place->client;
  memcpy(address.s6_addr + (client->is_ipv4 ? 8 : 0), &client->prefix, sizeof client->prefix);
  return address;
}

struct in6_addr client_network(const struct in6_addr *address) {
  size_t bytes = IN6_IS_ADDR_V4MAPPED(address) ? IPV4_NETWORK_BYTES : IPV6_NETWORK_BYTES;
  struct in6_addr network = {0};
  memcpy(&network, address, bytes);
  return network;
}

struct in6_addr client_network_of_place(const struct place *place) {
  const struct in6_addr client = client_of_place(place);
  return client_network(&client);
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

static uint64_t network_prefix_of(const struct in6_addr *address) {
  uint64_t prefix = prefix_of(address);
  memset((uint8_t *)&prefix + 6, 0, 2);
  return prefix;
}

static struct client *find_network(const struct in6_addr *address, unsigned group) {
  uint64_t prefix = network_prefix_of(address);
  struct client *client = *bucket_of(prefix);
  while (client && (client->prefix != prefix || client->group != group + GROUPS)) client = client->next;
  return client;
}

/* One group of all that have a share together; a group beside those counts by itself. */
static unsigned share_of(unsigned group) {
  if (group >= GROUP_UNDECIDED) return group;
  return group >= GROUP_QUIC ? GROUP_QUIC : 0;
}

/* The client in its group; NULL for none. `open` is of all groups that its share is of. */
static struct client *find(const struct in6_addr *address, unsigned group, uint32_t *open) {
  bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(address);
  uint64_t prefix = prefix_of(address);
  struct client *found = NULL;
  *open = 0;
  for (struct client *client = *bucket_of(prefix); client; client = client->next) {
    if (client->prefix != prefix || client->is_ipv4 != is_ipv4 || client->group >= GROUPS) continue;
    if (client->group == group) found = client;
    if (share_of(client->group) == share_of(group)) *open += client->open;
  }
  return found;
}

/* A client has its share; a network, which is any number of clients, may have all places. */
static uint32_t most_of(unsigned group) { return group < GROUPS ? options.max_per_client : options.max_connections; }

static struct client *make_one(uint64_t prefix, bool is_ipv4, unsigned group) {
  if (!groups[group].by_count) groups[group].by_count = calloc((size_t)most_of(group) + 1, sizeof(struct client *));
  struct client *client = groups[group].by_count ? memory_take(sizeof *client) : NULL;
  if (!client) return NULL;
  struct client **bucket = bucket_of(prefix);
  *client = (struct client){.next = *bucket, .prefix = prefix, .group = (uint8_t)group, .is_ipv4 = is_ipv4};
  return *bucket = client;
}

static void forget(struct client *client) {
  struct client **link = bucket_of(client->prefix);
  while (*link != client) link = &(*link)->next;
  *link = client->next;
  memory_give(client);
}

static struct client *make(const struct in6_addr *address, unsigned group) {
  bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(address);
  struct client *client = make_one(prefix_of(address), is_ipv4, group);
  if (!client || is_ipv4) return client;
  struct client *network = find_network(address, group);
  if (!network && !(network = make_one(network_prefix_of(address), false, group + GROUPS))) return forget(client), NULL;
  client->network = network;
  client->previous_near = network->last_near;
  if (network->last_near) network->last_near->next_near = client;
  else network->first_near = client;
  return network->last_near = client;
}

static void leave_network(struct client *client) {
  struct client *network = client->network;
  if (client->previous_near) client->previous_near->next_near = client->next_near;
  else network->first_near = client->next_near;
  if (client->next_near) client->next_near->previous_near = client->previous_near;
  else network->last_near = client->previous_near;
  if (!network->first_near) forget(network);
}

/* For a moment, QUIC has one flow more than there may be. */
static uint32_t counted(const struct client *client, uint32_t open) {
  uint32_t most = most_of(client->group);
  return open < most ? open : most;
}

/* One more or one less: whoever has most is known without a look at all. */
static void set_open(struct client *client, uint32_t open) {
  struct client **by_count = groups[client->group].by_count;
  uint32_t *most = &groups[client->group].most;
  uint32_t before = counted(client, client->open), after = counted(client, open);
  client->open = open;
  if (before == after) return;
  if (before > 0) {
    if (client->previous_equal) client->previous_equal->next_equal = client->next_equal;
    else by_count[before] = client->next_equal;
    if (client->next_equal) client->next_equal->previous_equal = client->previous_equal;
  }
  if (after > 0) {
    client->previous_equal = NULL;
    if ((client->next_equal = by_count[after])) by_count[after]->previous_equal = client;
    by_count[after] = client;
    if (after > *most) *most = after;
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
  if (client->network) set_open(client->network, client->network->open + 1);
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
  if (client->network) set_open(client->network, client->network->open - 1);
  if (client->open > 0) return;
  if (client->network) leave_network(client);
  forget(client);
}

struct place *client_yielding(const struct sockaddr_in6 *address, unsigned group) {
  uint32_t open, most = groups[group].most;
  if (find(&address->sin6_addr, group, &open)) return NULL;
  /* Of a flow, the share holds it already. */
  if (group != GROUP_QUIC && open >= options.max_per_client) return NULL;
  if (most >= FEWEST_OF_MANY) return groups[group].by_count[most]->first;
  /* Each client has one. */
  const struct client *own = IN6_IS_ADDR_V4MAPPED(&address->sin6_addr) ? NULL : find_network(&address->sin6_addr, group);
  most = groups[group + GROUPS].most;
  if (most < (own ? counted(own, own->open) : 0) + FEWEST_OF_MANY) return NULL;
  return groups[group + GROUPS].by_count[most]->first_near->first;
}

bool client_has_share(const struct sockaddr_in6 *address, unsigned group) {
  uint32_t open;
  find(&address->sin6_addr, group, &open);
  return open >= options.max_per_client;
}

struct place *client_oldest(const struct sockaddr_in6 *address, unsigned group) {
  uint32_t open;
  const struct client *client = find(&address->sin6_addr, group, &open);
  return client ? client->first : NULL;
}

struct place *client_crowding(unsigned group, uint32_t many) {
  uint32_t most = groups[group].most, most_near = groups[group + GROUPS].most;
  if (many < FEWEST_OF_MANY) many = FEWEST_OF_MANY;
  if (most >= many) return groups[group].by_count[most]->first;
  return most_near >= many ? groups[group + GROUPS].by_count[most_near]->first_near->first : NULL;
}
