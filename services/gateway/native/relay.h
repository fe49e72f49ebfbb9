/*
 * Bytes both ways. Little is copied through one buffer; much is spliced, so that the kernel does the copying and this process
 * never sees the bytes. A direction that moves a lot is read when a pipe would be full, or once in a millisecond: TLS comes in
 * records of 16 KiB, and waking up for each of them costs more than moving it.
 */
#pragma once
#include "conn.h"
#include "stall.h"

/* Of one direction: it has more to do than a turn allows; it waits for the loop; both directions are over; it is broken. */
enum relayed { RELAY_GOES_ON, RELAY_WAITS, RELAY_OVER, RELAY_BROKEN };

/* Moves what there is from one side to the other. */
enum relayed relay_from(struct conn *conn, int from);
/* The same where the loop tells that the side has sent something. */
enum relayed relay_sent(struct conn *conn, int from);
/* Keeps bytes of one side until the other takes them, ahead of all that is still to be read. False where there is no memory. */
bool relay_keep(struct conn *conn, int from, const uint8_t *bytes, uint32_t length);
void relay_release(struct conn *conn);

/* Whether a read of some connection waits until more is there. Then the tick is due each millisecond. */
bool relay_is_coalescing(void);
/* How a direction stands with its receiver. */
struct stall_view relay_view(const struct conn *conn, int from);
/* Has both directions looked at where their receivers have yet to take more than any may. */
void relay_watch(struct conn *conn);
/* Hands on the connections whose reads are due. */
void relay_tick(void (*due)(struct conn *conn));
