/* What a client's first bytes lead to: to its instance, or to a refusal. */
#pragma once
#include "conn.h"
#include "hello.h"
#include "stats.h"
#include "table.h"

struct decision {
  enum { WAIT_FOR_MORE, GIVE_UP, REFUSE, CONNECT } kind;
  enum outcome outcome;       /* of what is given up or refused */
  enum alert alert;           /* of what is refused */
  struct route *route;        /* where to connect */
  const uint8_t *bytes;       /* what the client has said: until something else is read, and its hello is given back */
  uint32_t length;
};

typedef struct route *find_route(const char *name, uint8_t length);

/* Reads what an UNDECIDED connection has. */
struct decision decide_read(struct conn *conn, find_route *find);
/* It is UNDECIDED no more: returns what was kept of its hello, NULL for nothing, to be given back when that is sent on. */
struct pending_hello *decide_end(struct conn *conn);
