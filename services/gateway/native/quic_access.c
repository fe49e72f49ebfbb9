#include "quic_access.h"

#include "memory.h"

enum { NO_OUTCOME = UINT8_MAX, PLACES = UINT16_MAX + 1 };

/* A flow has the number of its place here, from 1 on: a pointer would cost each of them eight bytes. */
static struct trace *traces[PLACES];
static uint16_t free_places[PLACES];
static uint32_t free_count, used = 1;

void quic_access_begin(struct quic_flow *flow) {
  const struct sockaddr_in6 client = {.sin6_family = AF_INET6, .sin6_addr = flow->peer.address, .sin6_port = flow->peer.port};
  if (free_count == 0 && used == PLACES) return;
  struct trace *trace = access_trace(&client, NO_OUTCOME);
  if (!trace) return;
  flow->trace = free_count > 0 ? free_places[--free_count] : (uint16_t)used++;
  traces[flow->trace] = trace;
}

void quic_access_outcome(const struct quic_flow *flow, enum quic_outcome outcome) {
  if (flow->trace > 0) traces[flow->trace]->outcome = (uint8_t)outcome;
}

void quic_access_passed(const struct quic_flow *flow, int from, uint32_t bytes) {
  if (flow->trace > 0) traces[flow->trace]->bytes[from] += bytes;
}

void quic_access_end(struct quic_flow *flow) {
  if (flow->trace == 0) return;
  struct trace *trace = traces[flow->trace];
  free_places[free_count++] = flow->trace;
  flow->trace = 0;
  if (flow->route || trace->outcome != NO_OUTCOME) access_tell(trace, REFUSED_PROTOCOL_QUIC, flow->route);
  else memory_give(trace);
}
