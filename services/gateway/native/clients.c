#include "clients.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "memory.h"
#include "options.h"

enum { BUCKETS = 1 << 14 };

struct client {
  struct client *next;
  uint64_t prefix; /* of an IPv6 address the first 64 bits, of an IPv4 address all */
  bool is_ipv4;
  uint32_t open[CLIENT_KINDS];
};

static struct client *buckets[BUCKETS];
static uint64_t seed;

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

struct client *client_enter(int fd, struct sockaddr_in6 *address) {
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
  return client_enter_from(address, CLIENT_TLS);
}

struct client *client_enter_from(const struct sockaddr_in6 *address, enum client_kind kind) {
  bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(&address->sin6_addr);
  uint64_t prefix = prefix_of(&address->sin6_addr);
  struct client **bucket = bucket_of(prefix), *client = *bucket;
  while (client && (client->prefix != prefix || client->is_ipv4 != is_ipv4)) client = client->next;
  if (!client) {
    if (!(client = memory_take(sizeof *client))) return NULL;
    *client = (struct client){*bucket, prefix, is_ipv4, {0}};
    *bucket = client;
  }
  if (client->open[kind] >= options.max_per_client) return NULL;
  client->open[kind]++;
  return client;
}

void client_leave(struct client *client, enum client_kind kind) {
  client->open[kind]--;
  for (unsigned i = 0; i < CLIENT_KINDS; i++)
    if (client->open[i] > 0) return;
  struct client **link = bucket_of(client->prefix);
  while (*link != client) link = &(*link)->next;
  *link = client->next;
  memory_give(client);
}
