/*
 * Directions of connections with much on its way. What a receiver does not take is the kernel's memory, up to tens of MB in two sockets; once
 * all of TCP has more than the kernel likes (tcp_mem in tcp(7)), every connection of the machine gets next to nothing. So a slow direction is
 * given little from then on, and what all slow ones hold together has a limit: beyond it, connections of the network whose stalled ones hold most end.
 */
#pragma once
#include "conn.h"

/* How a receiver takes what waits for it; what it does not take fast counts as held. */
enum pace { PACE_FAST, PACE_SLOW, PACE_STALLED };

struct stall {
  struct stall *next, *previous; /* in the order of `moved_ms` */
  struct conn *conn;
  uint64_t taken, moved_taken; /* by its receiver: when it was last looked at, and when it last took so much that it moves */
  uint32_t looked_ms, moved_ms;
  uint32_t held;
  uint8_t from, pace;
  bool is_watched, is_bound;
};

/* Of a direction: how much was written to its receiver, what waits in this process, and whether that waits for the receiver. */
struct stall_view {
  uint64_t written;
  uint32_t waiting;
  bool is_blocked;
};

/* Looks at a direction from now on, until next to nothing is on its way. Where that happens already, nothing changes. */
void stall_watch(struct stall *stall, struct conn *conn, int from, uint64_t written);
void stall_forget(struct stall *stall);
/* Whether a receiver has yet to take so much that its connection cannot be left to the kernel, where nobody counts it. */
bool stall_is_on_its_way(const struct conn *conn, int from);
/*
 * Once a second: whether TCP and this process have more than stalled receivers may have. From then on any connection may have little on its
 * way, and whoever calls has every direction watched of which stall_is_on_its_way is true.
 */
bool stall_measure(void);
uint32_t stall_measure_due_ms(void);
/*
 * Looks at some of them, if it is time; `drained` learns of a connection with next to nothing on its way in a direction, and `crowding` ends
 * those that hold too much.
 */
void stall_tick(struct stall_view (*view)(const struct conn *conn, int from), void (*drained)(struct conn *conn),
                void (*crowding)(struct conn *conn));
uint32_t stall_next_due_ms(void);
