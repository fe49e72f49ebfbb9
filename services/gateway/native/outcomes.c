#include "outcomes.h"

#include "refused.h"
#include "stats.h"

void outcome_count(const struct in6_addr *client, enum outcome outcome) {
  stats->outcomes[outcome]++;
  refused_note(client, REFUSED_PROTOCOL_TLS, (uint8_t)outcome);
}

void outcome_count_quic(const struct in6_addr *client, enum quic_outcome outcome) {
  stats->quic_outcomes[outcome]++;
  refused_note(client, REFUSED_PROTOCOL_QUIC, (uint8_t)outcome);
}
