#include "refused.h"

#include <stdbool.h>
#include <string.h>

#include "clients.h"
#include "control.h"
#include "loop.h"

enum {
  TELL_MS = 1000,
  SETS = 256,
  WAYS = 4, /* a set holds so many; of more, whoever has fewest is told of together with the others like it */
  PLACES = SETS * WAYS,
  MOST_OUTCOMES = 32,
};
_Static_assert(TLS_REFUSALS >> OUTCOMES == 0, "");
/* Those of QUIC have the last of theirs. */
_Static_assert((int)OUTCOMES <= (int)MOST_OUTCOMES && (int)QUIC_STRAY < (int)MOST_OUTCOMES, "");

static struct refused_record places[PLACES];
/* Of networks that lost their place; their address is zero. */
static uint32_t others[REFUSED_PROTOCOLS][MOST_OUTCOMES];
static bool has_any;
static uint32_t first_ms;

/* The place of a network and an outcome: its own, or a free one, or that of whoever has fewest in the set. */
static struct refused_record *place_of(const struct in6_addr *network, uint8_t protocol, uint8_t outcome) {
  struct refused_record *set = &places[client_hash(network) % SETS * WAYS], *fewest = set;
  for (struct refused_record *place = set; place < set + WAYS; place++) {
    if (place->count > 0 && place->protocol == protocol && place->outcome == outcome &&
        memcmp(place->network, network, sizeof *network) == 0)
      return place;
    if (place->count < fewest->count) fewest = place;
  }
  if (fewest->count > 0) others[fewest->protocol][fewest->outcome] += fewest->count;
  *fewest = (struct refused_record){.protocol = protocol, .outcome = outcome};
  memcpy(fewest->network, network, sizeof *network);
  return fewest;
}

void refused_note(const struct in6_addr *client, enum refused_protocol protocol, uint8_t outcome) {
  uint32_t refusals = protocol == REFUSED_PROTOCOL_TLS ? TLS_REFUSALS : QUIC_REFUSALS;
  if (!(refusals >> outcome & 1)) return;
  const struct in6_addr network = client_network(client);
  place_of(&network, (uint8_t)protocol, outcome)->count++;
  if (!has_any) first_ms = now_ms;
  has_any = true;
}

uint32_t refused_due_in_ms(void) {
  if (!has_any) return UINT32_MAX;
  uint32_t passed = now_ms - first_ms;
  return passed >= TELL_MS ? 0 : TELL_MS - passed;
}

void refused_tell(void) {
  static struct refused_record told[PLACES + REFUSED_PROTOCOLS * MOST_OUTCOMES];
  if (!has_any) return;
  uint32_t count = 0;
  for (uint32_t i = 0; i < PLACES; i++)
    if (places[i].count > 0) told[count++] = places[i];
  for (uint8_t protocol = 0; protocol < REFUSED_PROTOCOLS; protocol++)
    for (uint8_t outcome = 0; outcome < MOST_OUTCOMES; outcome++)
      if (others[protocol][outcome] > 0)
        told[count++] = (struct refused_record){.protocol = protocol, .outcome = outcome, .count = others[protocol][outcome]};
  control_tell(REPORT_REFUSED, told, count * (uint32_t)sizeof *told);
  memset(places, 0, sizeof places);
  memset(others, 0, sizeof others);
  has_any = false;
}

void refused_tell_when_due(void) {
  if (refused_due_in_ms() == 0) refused_tell();
}
