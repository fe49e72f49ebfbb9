/* How many connections each client has: an IPv4 address, or the first 64 bits of an IPv6 address, which one site has. */
#pragma once
#include <netinet/in.h>

struct client;

/* Counts one more connection of the client at the other end, and tells its address; NULL where that is one too many. */
struct client *client_enter(int fd, struct sockaddr_in6 *address);
void client_leave(struct client *client);
