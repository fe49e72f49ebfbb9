/* What the plane is told at its start, as KEY=VALUE arguments. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "tokens.h"

/* Handed over are the listeners for TLS and as many sockets for QUIC. */
enum { MAX_LISTENERS = 16, MAX_HANDED = 2 * MAX_LISTENERS, MAX_PATH_BYTES = 100 };

/* Whether QUIC is forwarded: where it can be, or else nothing is listened to. */
enum quic_wish { QUIC_NO, QUIC_IF_POSSIBLE, QUIC_YES };

struct options {
  const char *hosts[MAX_LISTENERS];
  unsigned host_count;
  uint16_t port, instance_port;
  bool share_port, replace;
  enum quic_wish quic;
  bool is_foreign; /* who starts it was made for another layout (layout.h) */
  const char *handover_path; /* NULL for none */
  uint32_t max_connections, max_undecided, max_per_client, max_per_instance;
  uint32_t hello_timeout_ms, connect_timeout_ms, answer_timeout_ms, idle_timeout_ms;
  struct rate refusals; /* of QUIC, to everybody */
  struct rate unanswered; /* QUIC flows to an instance that answers none */
  uint64_t max_stalled_bytes; /* 0 for a part of what TCP may have here */
  uint32_t orphan_ms, upgrade_drain_ms;
  uint32_t access_every; /* one of so many connections has its line in the access log; 0 for none */
};
extern struct options options;

/* False where an argument is none of these. */
bool options_read(int count, char **arguments);
