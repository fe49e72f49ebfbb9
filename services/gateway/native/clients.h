/*
 * The connections of each client: an IPv4 address, or the first 64 bits of an IPv6 address, which one site has. Each client has a share
 * of them; and where a group has no place left, its clients tell which of theirs makes room.
 */
#pragma once
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "options.h"

/*
 * Each listener of TLS by its number, and QUIC: what has a limit of connections. A client's share is one of all listeners, and one of QUIC,
 * since who sends is not proven by a first packet of QUIC. A flow of QUIC has its share at once, and is in the group of those that may
 * yield or have others yield once its name is known: until then it costs a stranger nothing. A connection of TLS whose hello is not there
 * at once is in a group beside that of its listener, too, and so is a flow of QUIC of which nothing shows that the client is where it
 * says: whoever is in these has no share of them.
 */
enum { GROUP_QUIC = MAX_LISTENERS, GROUP_QUIC_UNDECIDED, GROUP_UNDECIDED, GROUP_QUIC_UNPROVEN, GROUP_QUIC_MOVED, GROUPS };

/* What a connection has among those of its client; the first thing in it, so that it is found by this. */
struct place {
  struct place *previous, *next; /* the same client's in the same group, oldest first */
  struct client *client;
};

void client_address(int fd, struct sockaddr_in6 *address);
/* Counts one more connection of the client at an address; false where that is one too many, or there is no memory. */
bool client_enter(struct place *place, const struct sockaddr_in6 *address, unsigned group);
/* Where it is in none, nothing happens. */
void client_leave(struct place *place);
/*
 * Which place goes to the client at an address, where a group has none left: the oldest of the client that has most, if that has
 * several and the one at the address has none, and its share is not taken. Where none has several, the first to come of the network that
 * has most, if the network of the address has no more than that afterwards: one customer may have a /48, which is any number of clients;
 * an IPv4 address is a network of its own. NULL for none.
 */
struct place *client_yielding(const struct sockaddr_in6 *address, unsigned group);
/*
 * Which place goes where a group has more than there may be, whoever came last: the oldest of the client that has most, or where no client
 * has `many`, the first to come of the network that has most, as above. NULL where that has fewer, too.
 */
struct place *client_crowding(unsigned group, uint32_t many);
/* Whether the client at an address has all of its share. */
bool client_has_share(const struct sockaddr_in6 *address, unsigned group);
/* The first of its places in a group that it came to; NULL for none. */
struct place *client_oldest(const struct sockaddr_in6 *address, unsigned group);
/* An address of the client that has a place: the first of its own. */
struct in6_addr client_of_place(const struct place *place);
/* What people know a client's network by: an IPv4 /24, in the form of IPv6, or an IPv6 /48. */
struct in6_addr client_network(const struct in6_addr *address);
struct in6_addr client_network_of_place(const struct place *place);
/* Of the client at an address, for who counts something else of it. */
uint32_t client_hash(const struct in6_addr *address);
