#include "quic_allowance.h"

enum {
  /*
   * After one datagram a client may get so much, and as much more as it got before that one, up to a ceiling: no more than a server that
   * starts slowly has on its way (RFC 9002 section 7.3.1). One that is spoofed is answered by little.
   */
  FIRST_UNHEARD_BYTES = 64 * 1024,
  MAX_MOVED_UNHEARD_BYTES = 256 * 1024, /* to where a client says it is */
  SHOWN_BYTES = MIN_CLIENT_DATAGRAM_BYTES, /* a first flight fills a datagram: RFC 9000 section 14.1 */
};

static uint32_t at_most(uint64_t one, uint64_t other) { return (uint32_t)(one < other ? one : other); }

void quic_allowance_owe(struct quic_flow *flow, uint32_t bytes) {
  flow->owed = at_most(flow->owed + (uint64_t)bytes * AMPLIFICATION, MAX_UNHEARD_BYTES);
}

void quic_allowance_heard(struct quic_flow *flow, uint32_t bytes) {
  /* Who answers a challenge should fill a datagram, too (section 8.2.2), but not all do who do not know that a NAT has moved them. */
  uint64_t shows = flow->state == FLOW_MOVED ? SHOWN_BYTES : bytes;
  if (flow->unheard > 0 || flow->shown > 0) flow->shown = (uint16_t)at_most(flow->shown + shows, SHOWN_BYTES);
  flow->delivered = at_most((uint64_t)flow->delivered + flow->unheard, MAX_UNHEARD_BYTES);
  flow->unheard = 0;
}

bool quic_allowance_is_shown(const struct quic_flow *flow) { return flow->shown >= SHOWN_BYTES; }

uint32_t quic_allowance_for(const struct quic_flow *flow) {
  uint32_t most = flow->state == FLOW_MOVED ? MAX_MOVED_UNHEARD_BYTES : MAX_UNHEARD_BYTES;
  uint32_t ceiling = at_most((uint64_t)flow->delivered + FIRST_UNHEARD_BYTES, most);
  uint32_t left = ceiling > flow->unheard ? ceiling - flow->unheard : 0;
  bool is_there = flow->state == FLOW_PROVEN || (flow->state == FLOW_MOVED && quic_allowance_is_shown(flow));
  return is_there ? left : at_most(left, flow->owed);
}

void quic_allowance_take(struct quic_flow *flow, uint32_t bytes) {
  flow->unheard += bytes;
  flow->owed -= at_most(flow->owed, bytes);
}
