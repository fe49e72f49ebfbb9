/*
 * How much may go to a client of what its instance sends. Who sends datagrams in the name of another has us send that one no more than
 * three times as much, until the other has shown that it is there (RFC 9000 section 8); and no instance goes on sending to who is silent.
 */
#pragma once
#include "quic_flow.h"

/* So much of its client went to the instance. */
void quic_allowance_owe(struct quic_flow *flow, uint32_t bytes);
/* A datagram of the client has come. */
void quic_allowance_heard(struct quic_flow *flow, uint32_t bytes);
/* Whether the client has sent, since it was answered first, as much as a real one does with its next flight; or anything, if it moved. */
bool quic_allowance_is_shown(const struct quic_flow *flow);
uint32_t quic_allowance_for(const struct quic_flow *flow);
/* So much went to the client. */
void quic_allowance_take(struct quic_flow *flow, uint32_t bytes);
