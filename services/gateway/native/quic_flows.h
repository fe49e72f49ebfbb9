/* All QUIC flows, from a client's first datagram to their end. Everything that is forwarded passes here, and stays sealed. */
#pragma once
#include <stdint.h>
#include <sys/epoll.h>

#include "quic_flow.h"

/* Datagrams of clients have come to a socket; an instance of a flow has sent some, or is not there. */
void quic_flows_heard(unsigned socket);
void quic_flows_answered(struct quic_flow *flow, uint32_t events);
/* Ends what has been silent for too long, and all where the sockets are gone. */
void quic_flows_expire(void);
uint32_t quic_flows_next_due_ms(void);
