/*
 * The server name of a QUIC connection, from the datagrams of its client: the same reading, with the same limits and answers, as
 * src/quic/initial-reader.ts.
 */
#pragma once
#include "hello.h"
#include "initial.h"

enum {
  MAX_QUIC_HELLO_BYTES = 16 * 1024,
  MAX_PIECES = 64,
  MAX_PACKETS_PER_DATAGRAM = 8,
  MAX_INITIALS = 64,
};

struct piece {
  uint32_t start, end;
};

/* All zero at first, but for `bytes`, which may be anything. */
struct flight {
  bool is_begun; /* an Initial packet authenticated; before that there is nothing to remember */
  uint8_t id_bytes[MAX_ID_BYTES], id_length;
  uint32_t version, initials, piece_count;
  struct piece pieces[MAX_PIECES + 1];
  struct initial_keys keys;
  uint8_t bytes[MAX_QUIC_HELLO_BYTES];
};

/* `datagram` is one more of the client, whole; `name` is set where the answer is HELLO_NAME. HELLO_NOT_TLS is none of the
 * answers, and what comes after another than HELLO_NEED_MORE is not to be read. */
enum hello_kind flight_read(struct flight *flight, const uint8_t *datagram, uint32_t length, struct hello_name *name);
