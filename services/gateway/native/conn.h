/* One connection: a client, and once its name is known the instance behind it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "clients.h"

enum { CLIENT = 0, INSTANCE = 1 };
enum state { UNDECIDED, CONNECTING, OPEN, LINGERING, CLOSED, STATES };

/* Of each side. */
enum {
  READABLE = 1,
  WRITABLE = 2,
  PEER_CLOSED = 4, /* its end of stream has arrived, maybe behind bytes that are not read yet */
  ENDED = 8,       /* its end of stream is read */
  SHUT = 16,       /* we have ended our sending to it */
  MUTED = 32,      /* what it sends is not told of, since the other side takes nothing */
};

struct conn {
  struct place place;
  struct conn *previous, *next; /* in the list of its state, oldest first */
  struct route *route;
  struct trace *trace; /* only where the access log tells of it */
  union {
    struct { /* UNDECIDED */
      struct pending_hello *hello;
      struct place undecided; /* among those of its client whose hello was not there at once */
    };
    struct {
      struct flow *flow[2];
      struct chunk *waiting[2]; /* by the side that the bytes came from */
    };
  };
  uint64_t bytes[2];
  int fd[2];
  uint32_t started_ms, touched_ms, lingered;
  uint8_t state, listener, outcome, is_ready;
  uint8_t flags[2], full_reads[2];
  struct conn *next_ready;
};

/* Has the loop tell of a side. */
bool conn_watch(struct conn *conn, int side);
/* Whether it is told of what the side sends. */
void conn_mute(struct conn *conn, int side, bool muted);
