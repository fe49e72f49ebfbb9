#include "refusal.h"

#include <string.h>

#include "clients.h"
#include "initial.h"
#include "options.h"

enum {
  LONG_FORM = 0x80,
  FIXED_BIT = 0x40,
  NUMBER_BYTES = 4,
  FRAME_CLOSE = 0x1c,
  PAYLOAD_BYTES = 20, /* a frame of a few bytes, and padding */
  CLIENTS = 1024,     /* whose shares are apart; of more, some have one together */
  SHARE_PARTS = 16,   /* of all that may be sent, a client has one of so many */
};

bool refusal_may_go(const struct quic_peer *peer) {
  static struct tokens all, shares[CLIENTS];
  struct rate share = {options.refusals.at_once / SHARE_PARTS, options.refusals.per_s / SHARE_PARTS};
  if (share.at_once == 0) share.at_once = 1;
  return tokens_take(&shares[client_hash(&peer->address) % CLIENTS], share) && tokens_take(&all, options.refusals);
}

static uint8_t *put_uint32(uint8_t *at, uint32_t value) {
  value = __builtin_bswap32(value);
  memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

static uint8_t *put_id(uint8_t *at, struct id id) {
  *at++ = id.length;
  memcpy(at, id.bytes, id.length);
  return at + id.length;
}

/* The head of an answer: what was the source is the destination now. */
static uint8_t *put_head(uint8_t *at, uint8_t first_byte, uint32_t version, const struct first_packet *first) {
  *at++ = first_byte;
  at = put_uint32(at, version);
  return put_id(put_id(at, first->source), first->destination);
}

uint32_t refusal_close(const struct first_packet *first, enum quic_error error, uint8_t out[MAX_REFUSAL_BYTES]) {
  uint8_t payload[PAYLOAD_BYTES] = {FRAME_CLOSE, (uint8_t)(0x40 | (unsigned)error >> 8), (uint8_t)error, 0, 0};
  uint8_t type = first->version == QUIC_VERSION_2 ? 0x10 : 0;
  struct initial_keys keys;
  initial_derive(&keys, first->version, first->destination, SIDE_SERVER);
  uint8_t *at = put_head(out, (uint8_t)(LONG_FORM | FIXED_BIT | type | (NUMBER_BYTES - 1)), first->version, first);
  *at++ = 0; /* no token */
  *at++ = NUMBER_BYTES + PAYLOAD_BYTES + GCM_TAG_BYTES;
  uint8_t *number = at;
  at = put_uint32(at, 0);
  struct gcm_message message = {keys.iv, out, payload, (uint32_t)(at - out), PAYLOAD_BYTES};
  gcm_seal(&keys.key, &message, at);
  initial_mask(&keys, out, number, NUMBER_BYTES);
  return (uint32_t)(at - out) + PAYLOAD_BYTES + GCM_TAG_BYTES;
}

uint32_t refusal_negotiate(const struct first_packet *first, uint8_t out[MAX_REFUSAL_BYTES]) {
  uint8_t *at = put_head(out, LONG_FORM | FIXED_BIT, QUIC_NEGOTIATION_VERSION, first);
  at = put_uint32(put_uint32(at, QUIC_VERSION_1), QUIC_VERSION_2);
  return (uint32_t)(at - out);
}
