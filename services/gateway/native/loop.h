/* One thread, one epoll: what it watches, and its clock. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

extern uint32_t now_ms; /* since the start, as of this turn of the loop */
uint32_t unix_seconds(void);

/* What an event's data says: a connection's address with the side in its lowest bit, a QUIC flow's address with its tag, or one of
 * the others with a number above. */
enum { TAG_MASK = 7, TAG_BITS = 3, TAG_LISTENER = 2, TAG_CONTROL = 3, TAG_QUIC_SOCKET = 4, TAG_QUIC_FLOW = 5 };

bool loop_open(void);
bool loop_watch(int fd, uint32_t events, uint64_t data);
bool loop_change(int fd, uint32_t events, uint64_t data);
void loop_forget(int fd);
/* Lets events gather for some 0.1 ms. */
void loop_rest(void);
/* As epoll_wait(2); the clock is read behind it. */
int loop_wait(struct epoll_event *events, int count, int wait_ms);
