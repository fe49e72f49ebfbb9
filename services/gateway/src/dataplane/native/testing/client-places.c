/* clients.c against a plain model of it: clients of several groups come and go at random, and a full group has one of them make room. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../native/clients.h"
#include "../../../../native/layout.h"
#include "../../../../native/memory.h"
#include "../../../../native/options.h"
#include "../../../../native/stats.h"

/* Of the clients, the last are of IPv4, the others of two networks. */
enum { STEPS = 200 * 1000, OF_NETWORK = 5, NETWORKS = 2, CLIENTS = 13, SHARE = 4, FULL = 8 };

struct options options = {.max_per_client = SHARE, .max_connections = FULL};
static struct shared_stats figures;
struct shared_stats *stats = &figures;

static const unsigned groups[] = {0, 3, GROUP_QUIC, GROUP_QUIC_UNDECIDED, GROUP_UNDECIDED, GROUP_QUIC_UNPROVEN};
enum { GROUPS_USED = sizeof groups / sizeof *groups };

/* Oldest first. */
static struct held {
  struct place place;
  unsigned client, group;
} *held[GROUPS_USED * FULL];
static unsigned count, near_yields, near_crowds;

static struct sockaddr_in6 address_of(unsigned client) {
  struct sockaddr_in6 address = {.sin6_family = AF_INET6};
  uint8_t *bytes = address.sin6_addr.s6_addr;
  if (client / OF_NETWORK >= NETWORKS) {
    bytes[10] = bytes[11] = 0xff;
    bytes[15] = (uint8_t)client;
    return address;
  }
  /* Of two in the same /64 the last bytes are their own. A /64 may be written as its network is. */
  bytes[0] = 0x20;
  bytes[5] = (uint8_t)(client / OF_NETWORK);
  bytes[7] = (uint8_t)(client % OF_NETWORK);
  bytes[15] = (uint8_t)rand();
  return address;
}

static unsigned open_of(unsigned client, unsigned group) {
  unsigned open = 0;
  for (unsigned i = 0; i < count; i++) open += held[i]->client == client && held[i]->group == group;
  return open;
}

/* Of all clients of a network, which may be more than the share of one client. */
static unsigned near_of(unsigned network, unsigned group) {
  unsigned open = 0;
  if (network >= NETWORKS) return 0;
  for (unsigned i = 0; i < OF_NETWORK; i++) open += open_of(network * OF_NETWORK + i, group);
  return open;
}

static unsigned most_near(unsigned group) {
  unsigned most = 0;
  for (unsigned network = 0; network < NETWORKS; network++)
    most = near_of(network, group) > most ? near_of(network, group) : most;
  return most;
}

static unsigned share_of(unsigned client, unsigned group) {
  if (group >= GROUP_UNDECIDED) return open_of(client, group);
  if (group < GROUP_QUIC) return open_of(client, 0) + open_of(client, 3);
  return open_of(client, GROUP_QUIC) + open_of(client, GROUP_QUIC_UNDECIDED);
}

static void let_go(unsigned index) {
  client_leave(&held[index]->place);
  free(held[index]);
  memmove(held + index, held + index + 1, (--count - index) * sizeof *held);
}

/* Whether it is the oldest of one that has most, and has several; where none has several, one of the network that has most. */
static bool may_yield(const struct place *place, unsigned group) {
  unsigned most = 0, at = 0;
  for (unsigned client = 0; client < CLIENTS; client++) most = open_of(client, group) > most ? open_of(client, group) : most;
  while (at < count && &held[at]->place != place) at++;
  if (at == count || held[at]->group != group || open_of(held[at]->client, group) != most) return false;
  if (most < 2) return near_of(held[at]->client / OF_NETWORK, group) == most_near(group);
  for (unsigned i = 0; i < at; i++)
    if (held[i]->client == held[at]->client && held[i]->group == group) return false;
  return true;
}

/* Whether the one that goes is the oldest of one that has most, or, where none has so many, one of the network that has most. */
static bool crowds_rightly(unsigned group, unsigned many) {
  unsigned most = 0, at = 0, at_least = many > 2 ? many : 2;
  for (unsigned client = 0; client < CLIENTS; client++) most = open_of(client, group) > most ? open_of(client, group) : most;
  const struct place *place = client_crowding(group, many);
  if (most < at_least && most_near(group) < at_least) return !place;
  if (!place) return false;
  if (most >= at_least) return may_yield(place, group);
  near_crowds++;
  while (at < count && &held[at]->place != place) at++;
  return at < count && held[at]->group == group && near_of(held[at]->client / OF_NETWORK, group) == most_near(group);
}

static bool come(unsigned client, unsigned group) {
  struct sockaddr_in6 address = address_of(client);
  unsigned in_group = 0, several = 0;
  for (unsigned one = 0; one < CLIENTS; one++) in_group += open_of(one, group), several += open_of(one, group) > 1;
  if (in_group == FULL) {
    struct place *place = client_yielding(&address, group);
    bool is_near = most_near(group) >= near_of(client / OF_NETWORK, group) + 2;
    bool wanted = (several > 0 || is_near) && open_of(client, group) == 0 &&
                  (group == GROUP_QUIC || share_of(client, group) < SHARE);
    if (several == 0 && wanted) near_yields++;
    if (wanted != (place != NULL) || (place && !may_yield(place, group))) return false;
    if (!place) return true;
    for (unsigned i = 0; i < count; i++)
      if (&held[i]->place == place) let_go(i--);
  }
  bool may = share_of(client, group) < SHARE;
  struct held *one = malloc(sizeof *one);
  *one = (struct held){.client = client, .group = group};
  if (client_enter(&one->place, &address, group) != may) return false;
  if (may) held[count++] = one;
  else free(one);
  return true;
}

int main(int arguments, char **values) {
  (void)values;
  if (arguments == 1) return 0;
  srand(1);
  for (int i = 0; i < STEPS; i++) {
    if (count > 0 && rand() % 4 == 0) let_go((unsigned)rand() % count);
    else if (!come((unsigned)rand() % CLIENTS, groups[rand() % GROUPS_USED])) return printf("wrong at step %d\n", i), 1;
    if (!crowds_rightly(groups[rand() % GROUPS_USED], (unsigned)rand() % 4)) return printf("wrong crowd at step %d\n", i), 1;
  }
  while (count > 0) let_go(0);
  if (near_yields == 0 || near_crowds == 0) return printf("no network ever made room\n"), 1;
  printf("%llu bytes left\n", (unsigned long long)figures.connection_bytes);
  return 0;
}
