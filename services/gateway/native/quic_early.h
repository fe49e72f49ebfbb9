/*
 * Early data (0-RTT packets) that comes before the Initial packets of its connection: datagrams overtake each other, and those that wait
 * in the backlog are overtaken by what need not. Some may be kept (RFC 9000 section 5.2.2), for a moment; the rest is lost.
 */
#pragma once
#include "quic_flow.h"

/* False where it is not taken: it is larger than MAX_HELD_BYTES, or as many of its client wait as may. */
bool quic_early_keep(const struct quic_peer *peer, struct id first, const uint8_t *bytes, uint32_t length);
/* Passes on what came for the flow, in its order. */
void quic_early_give(struct quic_flow *flow);
/* Drops what has waited for too long. */
void quic_early_expire(void);
uint32_t quic_early_next_due_ms(void);
