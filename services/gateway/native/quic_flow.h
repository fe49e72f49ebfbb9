/* One QUIC connection: a client, and once its name is known the instance behind it. It is known by the client and the ids. */
#pragma once
#include "clients.h"
#include "flight.h"
#include "quic_socket.h"

enum quic_state {
  FLOW_UNDECIDED,  /* its hello is not whole */
  FLOW_UNANSWERED, /* the instance has not said anything */
  FLOW_UNPROVEN,   /* nothing shows yet that the client is where it says */
  FLOW_MOVED,      /* it came from elsewhere; only the instance can find out whether the client is there */
  FLOW_PROVEN,     /* it knows an id that only the instance's answer told */
  FLOW_ENDED,
  FLOW_STATES,
};

enum { MAX_LEARNT_IDS = 4, MAX_HELD_DATAGRAMS = 4, MAX_HELD_BYTES = 2048 };
enum {
  AMPLIFICATION = 3,               /* RFC 9000 section 8.1 */
  MAX_UNHEARD_BYTES = 1024 * 1024, /* so that an instance cannot aim us at whoever once was a client */
};

struct quic_id {
  uint8_t length, bytes[MAX_ID_BYTES];
};

/* An id that the instance chose, in the index of all of them. */
struct quic_known {
  struct quic_known *next, **link; /* what leads to it */
  struct quic_id id;
  uint8_t at; /* which of those that its flow has learnt */
};

/* A datagram that waits for the name. */
struct held {
  uint16_t length;
  uint8_t bytes[MAX_HELD_BYTES];
};

/* What is kept only until the name is known. */
struct undecided {
  uint32_t held_count;
  struct held held[MAX_HELD_DATAGRAMS];
  struct flight flight;
};

struct quic_flow {
  struct place place, unproven; /* among those of its client, and among those of it that are not proven */
  struct quic_flow *previous, *next; /* of the same state, the one that was silent for longest first */
  struct quic_flow *next_near, *next_here; /* in the index: by address and port, by address */
  struct quic_flow **link_here;            /* what leads to it there */
  struct route *route;
  struct undecided *undecided;
  uint32_t touched_ms, unheard; /* bytes to the client since its last datagram */
  uint32_t owed; /* bytes that may still go to a client that is not proven, for what it sent */
  uint32_t delivered; /* bytes that went to the client before its last datagram, up to MAX_UNHEARD_BYTES */
  uint32_t version;
  int fd;
  uint32_t drops; /* that the kernel has told of */
  struct quic_peer peer;
  uint8_t state, learnt_count;
  uint16_t shown; /* bytes that the client has sent since it was answered first, as far as they count */
  struct quic_id first, source; /* of the client's first packet */
  uint16_t trace; /* where the access log tells of it, else 0 */
  struct quic_known learnt[MAX_LEARNT_IDS];
};
/* With what the allocator adds, an idle flow takes less than 400 bytes. */
_Static_assert(sizeof(struct quic_flow) <= 376, "an idle flow takes more");

void quic_id_set(struct quic_id *id, struct id from);
bool quic_id_is(const struct quic_id *id, struct id other);
/* Whether both are one socket of a client, which speaks to one of ours. */
bool quic_peer_is(const struct quic_peer *peer, const struct quic_peer *other);
/* The id that the instance chose and a datagram of the client bears, the longest of them; NULL for none. */
const struct quic_id *quic_flow_answering(const struct quic_flow *flow, const struct packet *packet, const uint8_t *bytes,
                                          uint32_t length);
