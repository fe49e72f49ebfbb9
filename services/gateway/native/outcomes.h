/* Counts what became of connections, and has whoever was refused told of. */
#pragma once
#include <netinet/in.h>

#include "layout.h"

void outcome_count(const struct in6_addr *client, enum outcome outcome);
void outcome_count_quic(const struct in6_addr *client, enum quic_outcome outcome);
