/* How many connections each client has: an IPv4 address, or the first 64 bits of an IPv6 address, which one site has. */
#pragma once
#include <netinet/in.h>

struct client;

/* Counted by itself: who sends from is not proven by a first packet of QUIC. */
enum client_kind { CLIENT_TLS, CLIENT_QUIC, CLIENT_KINDS };

/* Counts one more connection of the client at the other end, and tells its address; NULL where that is one too many. */
struct client *client_enter(int fd, struct sockaddr_in6 *address);
/* The same for a kind of connection that is known by the address alone. */
struct client *client_enter_from(const struct sockaddr_in6 *address, enum client_kind kind);
/* Of the client at an address, for who counts something else of it. */
uint32_t client_hash(const struct in6_addr *address);
void client_leave(struct client *client, enum client_kind kind);
