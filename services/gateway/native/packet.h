/* Packets of QUIC as far as nothing protects them: the same reading as src/quic/packet.ts. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* RFC 9000, RFC 9369. */
enum quic_version { QUIC_NEGOTIATION_VERSION = 0, QUIC_VERSION_1 = 1, QUIC_VERSION_2 = 0x6b3343cf };

enum {
  MAX_DATAGRAM_BYTES = 0xffff,
  MIN_CLIENT_DATAGRAM_BYTES = 1200, /* with an Initial packet: RFC 9000 section 14.1 */
  MIN_FIRST_ID_BYTES = 8,           /* section 7.2 */
  MAX_ID_BYTES = 20,                /* section 17.2 */
};

enum packet_type {
  PACKET_INITIAL,
  PACKET_ZERO_RTT,
  PACKET_HANDSHAKE,
  PACKET_RETRY,
  PACKET_NEGOTIATION,
  PACKET_UNKNOWN_VERSION,
  PACKET_SHORT,
  PACKET_MALFORMED,
};

struct id {
  uint8_t length;
  const uint8_t *bytes;
};

struct packet {
  enum packet_type type;
  uint32_t version;
  struct id destination, source; /* of packets with a long header, all but the malformed */
  uint32_t number_at, end;       /* of the first three types: where the number begins, and where the packet ends */
};

struct packet packet_read(const uint8_t *bytes, uint32_t length);
/* A number of RFC 9000 section 16 at `at`, which is moved behind it; false where it does not fit. */
bool varint_read(const uint8_t *bytes, uint32_t length, uint32_t *at, uint64_t *value);
