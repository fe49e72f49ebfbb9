/*
 * The last word to a client that is refused, then the end. What still comes is read and dropped: closing with unread bytes
 * would make the kernel reset the connection, and the client could lose our answer.
 */
#pragma once
#include "conn.h"
#include "hello.h"

/* Says why by an alert of TLS, or by nothing. Each is false where the connection has come to its end. */
bool linger_begin(const struct conn *conn, enum alert alert);
bool linger_read(struct conn *conn);
