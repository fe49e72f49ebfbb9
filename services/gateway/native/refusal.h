/* What a gateway says to a QUIC client whose connection leads nowhere, so that it tries TCP at once. Always less than it sent. */
#pragma once
#include "packet.h"
#include "quic_socket.h"

enum { MAX_REFUSAL_BYTES = 600 };

/* Why a connection ends (RFC 9000 section 20): an alert of TLS, or that it is not taken. */
enum quic_error {
  QUIC_CONNECTION_REFUSED = 0x02,
  QUIC_DECODE_ERROR = 0x100 + 50,
  QUIC_UNRECOGNIZED_NAME = 0x100 + 112,
};

/* Of a client's first Initial packet: the version and both ids. */
struct first_packet {
  uint32_t version;
  struct id destination, source;
};

/* Whether one more may be sent now: whoever sends us first packets in the name of others has us send at most so much to them. */
bool refusal_may_go(const struct quic_peer *peer);
/* A server's Initial packet that closes the connection (RFC 9000 section 10.2.3). Both give the length. */
uint32_t refusal_close(const struct first_packet *first, enum quic_error error, uint8_t out[MAX_REFUSAL_BYTES]);
/* The versions that we read (RFC 8999 section 6); ids of other versions may have 255 bytes. */
uint32_t refusal_negotiate(const struct first_packet *first, uint8_t out[MAX_REFUSAL_BYTES]);
