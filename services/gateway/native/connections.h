/*
 * All connections, from their accepting to their end. What is to be done with one is said by decide, connect, relay and linger;
 * it is done here alone.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "conn.h"

void conns_accepted(int fd, unsigned listener);
void conns_event(struct conn *conn, int side, uint32_t events);
/* What did not come to its end in this turn goes on; what ended is let go. */
void conns_turn_ended(void);
/* Whether something has more to do than the last turn allowed. */
bool conns_want_another_turn(void);
/* Ends what has taken too long. */
void conns_expire(void);
uint32_t conns_next_due_ms(void);
/* Reads that wait for more to come are due, once in a millisecond. */
void conns_tick(void);
void conns_end_all(void);
