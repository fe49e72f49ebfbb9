/* The access log: of one in so many connections, over TCP or QUIC, what became of it. */
#pragma once
#include <netinet/in.h>

#include "conn.h"
#include "layout.h"

/* Of one that is told of. */
struct trace {
  uint64_t started_unix_ms;
  uint64_t bytes[2]; /* by the side that they came from */
  struct sockaddr_in6 client;
  uint32_t started_ms;
  uint8_t outcome;
};

/* NULL where this one is none of those that are told of; `none` stands for no outcome yet. */
struct trace *access_trace(const struct sockaddr_in6 *client, uint8_t none);
/* It has ended; the route may be NULL. */
void access_tell(struct trace *trace, enum refused_protocol protocol, const struct route *route);
/* The same of a connection over TCP. */
void access_begin(struct conn *conn, const struct sockaddr_in6 *client);
void access_end(struct conn *conn);
