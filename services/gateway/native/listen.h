/* The listening sockets, one for each address. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "layout.h"
#include "options.h"

/* Opens all, or takes them over from the process that has them; on failure says why and leaves none open. */
bool listen_all(struct listening *opened, struct listen_failure *failure);
void listen_stop(void);
/* The open ones; returns how many. */
unsigned listen_descriptors(int fds[MAX_HANDED]);
/* Accepts what has come, up to a turn's share, and hands it on. */
void listen_accept(unsigned index, void (*accepted)(int fd, unsigned listener));
/* Whether it has all the connections that it may have. */
bool listen_is_full(unsigned index);
/* A connection of the listener that counts from now on, and one that has ended. */
void listen_entered(unsigned index);
void listen_left(unsigned index);
/* Accepting pauses where there are no descriptors left. */
void listen_resume_when_due(void);
uint32_t listen_resume_in_ms(void);
