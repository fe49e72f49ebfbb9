/* AES-128-GCM (NIST SP 800-38D) with nonces of 12 bytes, for keys that are public. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "aes.h"

enum { GCM_NONCE_BYTES = 12, GCM_TAG_BYTES = 16 };

struct gcm_key {
  struct aes_key aes;
  uint64_t high, low; /* what authenticates: the cipher of zeros */
};

/* One message: what is authenticated only, then what is encrypted, with the tag behind it. */
struct gcm_message {
  const uint8_t *nonce, *header, *in;
  uint32_t header_length, length; /* of the text, without the tag */
};

void gcm_expand(struct gcm_key *key, const uint8_t bytes[AES_BYTES]);
/* False, with `out` as it was, where the tag does not fit. `out` has room for the text. */
bool gcm_open(const struct gcm_key *key, const struct gcm_message *message, uint8_t *out);
/* `out` has room for the text and the tag. */
void gcm_seal(const struct gcm_key *key, const struct gcm_message *message, uint8_t *out);
