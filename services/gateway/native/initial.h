/* The protection of Initial packets (RFC 9001 section 5.2, RFC 9369): anybody who saw the first of them can undo it. */
#pragma once
#include "gcm.h"
#include "packet.h"

enum side { SIDE_CLIENT, SIDE_SERVER };

struct initial_keys {
  struct gcm_key key;
  struct aes_key header;
  uint8_t iv[GCM_NONCE_BYTES];
};

/* `id` is the destination of the client's first Initial packet, of MAX_ID_BYTES at most. */
void initial_derive(struct initial_keys *keys, uint32_t version, struct id id, enum side side);
/* Protects or bares the head of a packet that is sealed: its first byte and the bytes of its number. */
void initial_mask(const struct initial_keys *keys, uint8_t *first_byte, uint8_t *number, uint32_t number_bytes);
/* The payload goes to `out`, which has room for the packet; its length, or -1 where it does not authenticate. */
int32_t initial_open(const struct initial_keys *keys, const uint8_t *bytes, const struct packet *packet, uint8_t *out);
