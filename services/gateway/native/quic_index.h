/* Finds the flow that a client's datagram belongs to: by where it comes from and the connection id. Clients move: then by either. */
#pragma once
#include "quic_flow.h"

/* Flows of one address and port: a browser has one for each name. */
enum { MAX_FLOWS_PER_PEER = 64 };
/* Shorter ids are not looked for elsewhere: an instance could choose all of them, and be taken for every other. Nor do they prove anything
 * alone: they can be guessed. */
enum { MIN_KNOWN_BYTES = 4 };

/* False where the client has too many from this port. */
bool quic_index_add(struct quic_flow *flow);
/* Which of them makes room where there are as many as may be: the first to come that is not proven, one that moved only where there is no
 * other. Anybody can send first packets in its name. NULL for none. */
struct quic_flow *quic_index_crowding(const struct quic_peer *peer);
void quic_index_remove(struct quic_flow *flow);
/* Keeps the source id of the instance's long header; the client answers with it. */
void quic_index_learn(struct quic_flow *flow, const uint8_t *bytes, uint32_t length);
/* One that is known already. */
void quic_index_learn_id(struct quic_flow *flow, struct id id);
/* The ids of a flow are those of one that moved, too. */
void quic_index_share(struct quic_flow *flow, const struct quic_flow *moved);
/* The flow that moved here, where no other is found: one whose id it bears, or one of the address, whose flows all lead to one
 * instance; ids that come later are told in what we do not read. */
const struct quic_flow *quic_index_find_moved(const struct quic_peer *peer, const struct packet *packet, const uint8_t *bytes,
                                              uint32_t length);
/* NULL where there is none, or several that it could belong to. */
struct quic_flow *quic_index_find(const struct quic_peer *peer, const struct packet *packet, const uint8_t *bytes, uint32_t length);
