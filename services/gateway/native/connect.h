/* The way to an instance: a connection to it, and the client's first bytes. */
#pragma once
#include "conn.h"

/*
 * Each is 0 where the instance has taken the connection, EINPROGRESS where that is still to come, and otherwise an errno that
 * says why there is none. What of the first bytes is not on its way waits for the relay.
 */
int connect_begin(struct conn *conn, const uint8_t *bytes, uint32_t length);
/* To be asked when the loop tells of the instance's side. */
int connect_finish(const struct conn *conn);
