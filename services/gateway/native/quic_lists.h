/* The flows by their state, and what each of them holds: a client's share, a place in the index, a socket, a route. */
#pragma once
#include "quic_flow.h"
#include "table.h"

/* An undecided flow of the client's first packet; NULL without memory, or where the client has too many, in all or from its port. */
struct quic_flow *quic_lists_add(const struct quic_peer *peer, uint32_t version, struct id first, struct id source);
/*
 * Where there is no room for more flows: a few clients cannot keep all others out, so who has none gets the place of the client that has
 * most. Who comes in the names of others takes no more so than flows may be unproven. False where nobody makes room.
 */
bool quic_lists_make_room(const struct quic_peer *peer);
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
