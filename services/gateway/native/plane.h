/* The data plane of the gateway for TLS: one thread, one epoll. src/dataplane/native/ starts it and tells it what to do. */
#pragma once
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hello.h"
#include "table.h"

/* What became of connections; the order is that of TLS_OUTCOMES in src/dataplane/port.ts. */
enum outcome {
  RELAYED, UNKNOWN_NAME, NO_SERVER_NAME, NOT_TLS, MALFORMED, HELLO_TIMEOUT, CROWDED_OUT, GONE, CONNECT_FAILED,
  TOO_MANY, CLIENT_LIMIT, INSTANCE_LIMIT, OUTCOMES,
};

enum { MAX_LISTENERS = 16, MAX_PATH_BYTES = 100 };

struct options {
  const char *hosts[MAX_LISTENERS];
  unsigned host_count;
  uint16_t port, instance_port;
  bool share_port, replace;
  const char *handover_path; /* NULL for none */
  uint32_t max_connections, max_undecided, max_per_client, max_per_instance;
  uint32_t hello_timeout_ms, connect_timeout_ms, idle_timeout_ms;
  uint32_t orphan_ms, upgrade_drain_ms;
};
extern struct options options;

/* A file in memory that the TypeScript side reads; the layout is that of src/dataplane/native/shared-stats.ts. */
struct shared_stats {
  uint64_t open, bytes_to_instances, bytes_to_clients, routes, connection_bytes;
  uint64_t outcomes[OUTCOMES];
  uint64_t announced_bytes; /* the one that the TypeScript side writes: what it has said so far on standard input */
};
extern struct shared_stats *stats;

extern struct table routes;
extern int epoll_fd;
extern uint32_t now_ms; /* since the start, as of this turn of the loop */
extern bool draining;

/* What an event's data says: a connection's address with the side in its lowest bit, or one of these. */
enum { TAG_MASK = 3, TAG_LISTENER = 2, TAG_CONTROL = 3 };
enum { CONTROL_INPUT = 0, CONTROL_OUTPUT = 1, CONTROL_HANDOVER = 2 };

/* listen.c */
struct listener {
  int fd; /* -1 for none */
  uint32_t open;
};
extern struct listener listeners[MAX_LISTENERS];
/* Opens all, or takes them over from the process that has them; on failure says why and leaves none open. */
bool listen_all(uint16_t *port, int *error, unsigned *failed_host);
void listen_stop(void);
void listen_pause(void);
void listen_resume_when_due(void);
uint32_t listen_resume_in_ms(void);
void handover_serve(void);
bool handover_give(bool is_orphan);


void accept_from(unsigned index);

/* connection.c: what all connections have */
struct conn;
void conn_event(struct conn *conn, int side, uint32_t events);
void conns_turn_ended(void);
uint32_t conns_next_due_ms(void);
void conns_expire(void);
bool conns_want_another_turn(void);
void conns_end_all(void);
void conn_accepted(int fd, unsigned listener);

/* control.c */
bool control_open(void);
void control_event(unsigned which);
/* Takes what was said before now: a connection that was opened after a change shall see it. */
void control_catch_up(void);
void control_tell(uint8_t type, const void *payload, uint32_t length);
void control_start_draining(uint32_t ms);
bool control_is_over(void);
uint32_t control_due_in_ms(void);
extern uint32_t log_every; /* one of so many connections has its line; 0 for none */
