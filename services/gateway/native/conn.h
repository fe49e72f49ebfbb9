/* One connection: a client, and once its name is known the instance behind it. */
#pragma once
#include "memory.h"
#include "plane.h"

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

enum { COPY_BYTES = 64 * 1024, PIPE_BYTES = 1024 * 1024 };

/* Bytes read from one side that the other has not taken yet. */
struct chunk {
  uint32_t start, length;
  uint8_t bytes[];
};

/* An incomplete ClientHello. */
struct pending_hello {
  struct hello_reader reader;
  uint32_t length, capacity;
  uint8_t bytes[];
};

/* What a direction needs only while much is moving. */
struct flow {
  struct conn *conn;
  struct flow *next, **previous; /* among those whose reads wait for a larger amount */
  int pipe[2];
  uint32_t in_pipe;
  uint32_t since_ms;
  uint64_t bytes_then;
  uint8_t from, slow_ticks;
  bool coalescing;
};

/* What the access log tells; only where it is asked for. */
struct trace {
  uint64_t started_unix_ms;
  struct sockaddr_in6 client;
};

struct client {
  struct client *next;
  uint64_t prefix; /* of an IPv6 address the first 64 bits, of an IPv4 address all */
  bool is_ipv4;
  uint32_t open;
};

struct conn {
  struct conn *previous, *next; /* in the list of its state, oldest first */
  struct route *route;
  struct client *client;
  struct trace *trace;
  union {
    struct pending_hello *hello; /* UNDECIDED */
    struct flow *flow[2];
  };
  struct chunk *waiting[2]; /* by the side that the bytes came from */
  uint64_t bytes[2];
  int fd[2];
  uint32_t started_ms, touched_ms, lingered;
  uint8_t state, listener, outcome, is_ready;
  uint8_t flags[2], full_reads[2];
  struct conn *next_ready;
};

extern uint8_t copy_buffer[COPY_BYTES];

/* connection.c */
void conn_enter(struct conn *conn, enum state state);
void conn_end(struct conn *conn);
/* Ends it so that whoever is left learns that the stream is cut. */
void conn_reset(struct conn *conn);
void conn_touch(struct conn *conn);
void conn_again(struct conn *conn);
/* Whether the loop is told of what a side sends. */
void conn_mute(struct conn *conn, int side, bool muted);
struct conn *conn_oldest(enum state state);
uint32_t conn_count(enum state state);

/* decide.c: from bytes to a connected instance */
void decide_read(struct conn *conn);
void decide_connected(struct conn *conn);
void decide_give_up(struct conn *conn, enum outcome outcome);
void decide_connect_failed(struct conn *conn, int error);
void linger_read(struct conn *conn);

/* relay.c */
void relay_both(struct conn *conn);
void relay_from(struct conn *conn, int from);
void relay_release(struct conn *conn);
/* Whether what one side sends has to wait, since the other has not taken what came before. */
bool relay_is_blocked(const struct conn *conn, int from);
void relay_tick(void);
bool relay_is_coalescing(void);

/* clients.c */
struct client *client_enter(int fd, struct sockaddr_in6 *address);
void client_leave(struct client *client);

/* proxy.c: the PROXY protocol, version 2; returns its length */
enum { MAX_PROXY_HEADER_BYTES = 16 + 36 };
uint32_t proxy_header(int client_fd, uint8_t out[MAX_PROXY_HEADER_BYTES]);
