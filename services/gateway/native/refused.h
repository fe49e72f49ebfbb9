/* Who was refused, by network, and why: told once a second, so that a flood of refusals is told of in few words. */
#pragma once
#include <netinet/in.h>
#include <stdint.h>

#include "layout.h"

/* One more, where it was the client that was refused; an outcome of the enum that belongs to the protocol. */
void refused_note(const struct in6_addr *client, enum refused_protocol protocol, uint8_t outcome);
/* When what was noted is told; UINT32_MAX where nothing was. */
uint32_t refused_due_in_ms(void);
void refused_tell_when_due(void);
/* At once, before the end. */
void refused_tell(void);
