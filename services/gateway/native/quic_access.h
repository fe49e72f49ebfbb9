/* The access log's part of flows of QUIC: of one in so many, what became of it. */
#pragma once
#include "access.h"
#include "quic_flow.h"

/* Follows this one to its end, where it is one of those that are told of. */
void quic_access_begin(struct quic_flow *flow);
/* Where none of these is told of a flow and it has no route, it authenticated nothing, and there is nothing to tell. */
void quic_access_outcome(const struct quic_flow *flow, enum quic_outcome outcome);
void quic_access_passed(const struct quic_flow *flow, int from, uint32_t bytes);
/* It has ended. */
void quic_access_end(struct quic_flow *flow);
