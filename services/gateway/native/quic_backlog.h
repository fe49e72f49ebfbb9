/*
 * Datagrams that begin a flow, or go on with one whose name is not known: what they ask for costs far more than passing one on, so
 * they wait until those of the other flows have passed. Under a crowd the oldest of them are lost, not what a flow sends.
 */
#pragma once
#include <stdbool.h>

#include "quic_flow.h"

struct quic_waiting {
  struct quic_peer peer;
  uint16_t length, share;
  uint8_t bytes[MAX_HELD_BYTES];
};

/* False where it is not taken: it is larger than MAX_HELD_BYTES, or as many of its client wait as may. What is taken may displace the
 * one that waits for longest, which counts as crowded out. */
bool quic_backlog_add(const struct quic_peer *peer, const uint8_t *bytes, uint32_t length);
/* The one that waits for longest, until the next call of these; NULL for none. */
const struct quic_waiting *quic_backlog_take(void);
bool quic_backlog_is_empty(void);
