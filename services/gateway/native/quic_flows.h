/* All QUIC flows, from a client's first datagram to their end. Everything that is forwarded passes here, and stays sealed. */
#pragma once
#include <stdint.h>
#include <sys/epoll.h>

#include "quic_flow.h"

/* Datagrams of clients have come to a socket. Those of flows whose name is known are passed on; the others wait for
 * quic_flows_begin, which takes some of them in each turn. */
void quic_flows_heard(unsigned socket);
void quic_flows_begin(void);
bool quic_flows_want_another_turn(void);
/* An instance of a flow has sent some, or is not there. */
void quic_flows_answered(struct quic_flow *flow, uint32_t events);
/* Ends what has been silent for too long, and all where the sockets are gone. */
void quic_flows_expire(void);
uint32_t quic_flows_next_due_ms(void);
