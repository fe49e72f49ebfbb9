/* The flows by their state, and what each of them holds: a client's share, a place in the index, a socket, a route. */
#pragma once
#include "clients.h"
#include "quic_flow.h"
#include "table.h"

/* An undecided flow of the client's first packet; NULL without memory, or where the client has too many from its port. */
struct quic_flow *quic_lists_add(struct client *client, const struct quic_peer *peer, uint32_t version, struct id first,
                                 struct id source);
/* The client was heard now. */
void quic_lists_enter(struct quic_flow *flow, enum quic_state state);
/* Gives it the socket towards its instance, which is told of from now on; false where that fails. */
bool quic_lists_connect(struct quic_flow *flow, int fd, struct route *route);
void quic_lists_forget_undecided(struct quic_flow *flow);
void quic_lists_end(struct quic_flow *flow);
/* What ended in this turn is let go: events of the turn may still have pointed to it. */
void quic_lists_turn_ended(void);
/* The one that was silent for longest; NULL for none. */
struct quic_flow *quic_lists_first(enum quic_state state);
uint32_t quic_lists_count(enum quic_state state);
