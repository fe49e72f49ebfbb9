/* Finds the flow that a client's datagram belongs to: by where it comes from and the connection id. */
#pragma once
#include "quic_flow.h"

/* Flows of one address and port: a browser has one for each name. */
enum { MAX_FLOWS_PER_PEER = 64 };

/* False where the client has too many from this port. */
bool quic_index_add(struct quic_flow *flow);
void quic_index_remove(struct quic_flow *flow);
/* NULL where there is none, or several that it could belong to. */
struct quic_flow *quic_index_find(const struct quic_peer *peer, const struct packet *packet, const uint8_t *bytes, uint32_t length);
