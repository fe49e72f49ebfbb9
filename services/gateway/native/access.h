/* The access log: of one in so many connections, what became of it. */
#pragma once
#include <netinet/in.h>

#include "conn.h"

/* Follows this one to its end, where it is one of those that are told of. */
void access_begin(struct conn *conn, const struct sockaddr_in6 *client);
/* It has ended. */
void access_end(struct conn *conn);
