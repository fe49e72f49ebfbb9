/*
 * How much QUIC one turn of the loop passes on. A datagram costs little beside waking who waits for it: where many come, a few in each
 * turn, a rest lets more of them gather.
 */
#pragma once
#include <stdbool.h>

#include "quic_socket.h"

/* A batch goes on, either way. */
void quic_turn_passed(struct quic_batch batch);
/* Whether the loop is to rest before it looks again. */
bool quic_turn_ended(void);
