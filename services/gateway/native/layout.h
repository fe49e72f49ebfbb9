/* Generated from src/dataplane/native/layout.ts by `npm run generate`: what passes between it and this program. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Of all that follows. */
#define LAYOUT_NUMBER 2830910128u

/* What became of a connection. */
enum outcome {
  RELAYED,
  UNKNOWN_NAME,
  NO_SERVER_NAME,
  NOT_TLS,
  MALFORMED,
  HELLO_TIMEOUT,
  CROWDED_OUT,
  GONE,
  CONNECT_FAILED,
  TOO_MANY,
  CLIENT_LIMIT,
  INSTANCE_LIMIT,
  STALLED,
  OUTCOMES,
};

/* What became of a QUIC connection, or of a datagram that belongs to none. */
enum quic_outcome {
  QUIC_FORWARDED,
  QUIC_UNKNOWN_NAME,
  QUIC_NO_SERVER_NAME,
  QUIC_MALFORMED,
  QUIC_HELLO_TIMEOUT,
  QUIC_CROWDED_OUT,
  QUIC_CONNECT_FAILED,
  QUIC_UNANSWERED,
  QUIC_TOO_MANY,
  QUIC_CLIENT_LIMIT,
  QUIC_INSTANCE_LIMIT,
  QUIC_INSTANCE_SILENT,
  QUIC_PROXY_PROTOCOL,
  QUIC_MOVED,
  QUIC_UNKNOWN_VERSION,
  QUIC_STRAY,
};

/* A bit for each outcome by which a client is refused. */
#define TLS_REFUSALS 7806u
#define QUIC_REFUSALS 57150u

/* Which receivers are slow, and how much they may hold: src/dataplane/stall-rule.ts says more. */
enum stall_rule {
  STALL_RULE_FEW_BYTES = 262144,
  STALL_RULE_FEW_SCARCE_BYTES = 16384,
  STALL_RULE_SLOW_MS = 8000,
  STALL_RULE_MOVING_BYTES = 32768,
  STALL_RULE_STALLED_MS = 4000,
  STALL_RULE_TCP_PARTS = 2,
  STALL_RULE_READING_TIMES = 2,
  STALL_RULE_MEMORY_PARTS = 22,
  STALL_RULE_MOST_NETWORKS = 16,
};

enum refused_protocol {
  REFUSED_PROTOCOL_TLS = 0,
  REFUSED_PROTOCOL_QUIC = 1,
};
enum { REFUSED_PROTOCOLS = 2 };
enum command {
  COMMAND_BEGIN = 'B',
  COMMAND_CHANGE = 'P',
  COMMAND_COMMIT = 'C',
  COMMAND_LISTEN = 'L',
  COMMAND_QUESTION = 'Q',
  COMMAND_STOP = 'S',
};
enum report {
  REPORT_LISTENING = 'l',
  REPORT_NOT_LISTENING = 'e',
  REPORT_ANSWER = 'q',
  REPORT_ACCESS = 'a',
  REPORT_REFUSED = 'r',
  REPORT_HANDED_OVER = 'h',
};
enum route_flag {
  ROUTE_FLAG_PROXY_HEADER = 1,
};

struct shared_stats {
  uint64_t open;
  uint64_t bytes_to_instances;
  uint64_t bytes_to_clients;
  uint64_t yielded;
  uint64_t stalled_bytes;
  uint64_t outcomes[13];
  uint64_t quic_open;
  uint64_t quic_bytes_to_instances;
  uint64_t quic_bytes_to_clients;
  uint64_t quic_held_back;
  uint64_t quic_dropped_to_instances;
  uint64_t quic_dropped_to_clients;
  uint64_t quic_yielded;
  uint64_t quic_outcomes[16];
  uint64_t connection_bytes;
  uint64_t announced_bytes;
};
_Static_assert(sizeof(struct shared_stats) == 344, "");
_Static_assert(offsetof(struct shared_stats, open) == 0, "");
_Static_assert(offsetof(struct shared_stats, bytes_to_instances) == 8, "");
_Static_assert(offsetof(struct shared_stats, bytes_to_clients) == 16, "");
_Static_assert(offsetof(struct shared_stats, yielded) == 24, "");
_Static_assert(offsetof(struct shared_stats, stalled_bytes) == 32, "");
_Static_assert(offsetof(struct shared_stats, outcomes) == 40, "");
_Static_assert(offsetof(struct shared_stats, quic_open) == 144, "");
_Static_assert(offsetof(struct shared_stats, quic_bytes_to_instances) == 152, "");
_Static_assert(offsetof(struct shared_stats, quic_bytes_to_clients) == 160, "");
_Static_assert(offsetof(struct shared_stats, quic_held_back) == 168, "");
_Static_assert(offsetof(struct shared_stats, quic_dropped_to_instances) == 176, "");
_Static_assert(offsetof(struct shared_stats, quic_dropped_to_clients) == 184, "");
_Static_assert(offsetof(struct shared_stats, quic_yielded) == 192, "");
_Static_assert(offsetof(struct shared_stats, quic_outcomes) == 200, "");
_Static_assert(offsetof(struct shared_stats, connection_bytes) == 328, "");
_Static_assert(offsetof(struct shared_stats, announced_bytes) == 336, "");

struct access_record {
  uint64_t started_unix_ms;
  uint64_t bytes_to_instance;
  uint64_t bytes_to_client;
  uint32_t duration_ms;
  uint16_t client_port;
  uint8_t client_address[16];
  uint8_t protocol;
  uint8_t outcome;
  uint8_t name_length;
} __attribute__((packed));
_Static_assert(sizeof(struct access_record) == 49, "");
_Static_assert(offsetof(struct access_record, started_unix_ms) == 0, "");
_Static_assert(offsetof(struct access_record, bytes_to_instance) == 8, "");
_Static_assert(offsetof(struct access_record, bytes_to_client) == 16, "");
_Static_assert(offsetof(struct access_record, duration_ms) == 24, "");
_Static_assert(offsetof(struct access_record, client_port) == 28, "");
_Static_assert(offsetof(struct access_record, client_address) == 30, "");
_Static_assert(offsetof(struct access_record, protocol) == 46, "");
_Static_assert(offsetof(struct access_record, outcome) == 47, "");
_Static_assert(offsetof(struct access_record, name_length) == 48, "");

struct refused_record {
  uint8_t network[16];
  uint32_t count;
  uint8_t protocol;
  uint8_t outcome;
} __attribute__((packed));
_Static_assert(sizeof(struct refused_record) == 22, "");
_Static_assert(offsetof(struct refused_record, network) == 0, "");
_Static_assert(offsetof(struct refused_record, count) == 16, "");
_Static_assert(offsetof(struct refused_record, protocol) == 20, "");
_Static_assert(offsetof(struct refused_record, outcome) == 21, "");

struct route_answer {
  uint32_t id;
  uint32_t open;
  uint32_t connected_at;
  uint32_t failed_at;
  uint32_t since;
  uint64_t connections;
  uint64_t bytes_to_instance;
  uint64_t bytes_to_client;
  uint32_t quic_answered_at;
  uint32_t quic_refused_at;
  uint8_t is_known;
  uint8_t failure;
} __attribute__((packed));
_Static_assert(sizeof(struct route_answer) == 54, "");
_Static_assert(offsetof(struct route_answer, id) == 0, "");
_Static_assert(offsetof(struct route_answer, open) == 4, "");
_Static_assert(offsetof(struct route_answer, connected_at) == 8, "");
_Static_assert(offsetof(struct route_answer, failed_at) == 12, "");
_Static_assert(offsetof(struct route_answer, since) == 16, "");
_Static_assert(offsetof(struct route_answer, connections) == 20, "");
_Static_assert(offsetof(struct route_answer, bytes_to_instance) == 28, "");
_Static_assert(offsetof(struct route_answer, bytes_to_client) == 36, "");
_Static_assert(offsetof(struct route_answer, quic_answered_at) == 44, "");
_Static_assert(offsetof(struct route_answer, quic_refused_at) == 48, "");
_Static_assert(offsetof(struct route_answer, is_known) == 52, "");
_Static_assert(offsetof(struct route_answer, failure) == 53, "");

struct listening {
  uint16_t port;
  uint8_t is_room_scarce;
  int32_t quic_error;
  uint32_t quic_room_bytes;
} __attribute__((packed));
_Static_assert(sizeof(struct listening) == 11, "");
_Static_assert(offsetof(struct listening, port) == 0, "");
_Static_assert(offsetof(struct listening, is_room_scarce) == 2, "");
_Static_assert(offsetof(struct listening, quic_error) == 3, "");
_Static_assert(offsetof(struct listening, quic_room_bytes) == 7, "");

struct listen_failure {
  int32_t error;
  uint8_t host;
} __attribute__((packed));
_Static_assert(sizeof(struct listen_failure) == 5, "");
_Static_assert(offsetof(struct listen_failure, error) == 0, "");
_Static_assert(offsetof(struct listen_failure, host) == 4, "");
