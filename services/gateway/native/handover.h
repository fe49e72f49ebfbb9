/* Listeners that pass from a process to the one that replaces it, through a socket in the file system. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "options.h"

/* The listening sockets of the process that serves now, which goes on accepting until it hears that they are taken; returns how many. */
int handover_take(int fds[MAX_HANDED]);
/* Tells it whether they are. False where they were taken and it has not stopped: then they are not ours. */
bool handover_finish(bool taken);
/* What passes once the listeners have: it is written to a socket by who gives, and read from it by who takes. */
void handover_carries(void (*give)(int fd), void (*take)(int fd));
/* Offers ours; events of the offer have `data`. */
void handover_serve(uint64_t data);
void handover_stop(void);
/* Answers who asks. Whether they are taken: then accepting is the other's, and what is open here ends here. */
bool handover_give(const int fds[], unsigned count, bool is_orphan);
