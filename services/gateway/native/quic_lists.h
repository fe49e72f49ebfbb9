/* The flows by their state, and what each of them holds: a client's share, a place in the index, a socket, a route. */
#pragma once
#include "quic_flow.h"
#include "table.h"

/* An undecided flow of the client's first packet; NULL without memory, or where the client has too many, in all or from its port. */
struct quic_flow *quic_lists_add(const struct quic_peer *peer, uint32_t version, struct id first, struct id source);
/*
 * Which one ends where there is no room for an undecided one that is connected: a few clients cannot keep all others out, so a client that
 * has none gets the place of the client that has most. NULL where there is room, or nobody makes any. The undecided ones take no room and
 * make none, since what authenticates nothing must not end another; they have a limit of their own.
 */
struct quic_flow *quic_lists_yielding(const struct quic_flow *flow);
/* Whether there is room for an undecided one, or another than the spared one makes it; NULL to spare none. */
bool quic_lists_have_room(const struct quic_flow *flow, const struct quic_flow *spared);
/*
 * Which flow ends where a client has its share: the one of its own that is not proven and came first, one that moved only where there is
 * no other. Anybody can send first packets in its name. NULL where it has none, or not its share.
 */
struct quic_flow *quic_lists_unproven(const struct quic_peer *peer);
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
/* Which undecided one goes where there are too many: the oldest of a client or network that has `many`, or else the oldest. NULL for none. */
struct quic_flow *quic_lists_crowding(uint32_t many);
