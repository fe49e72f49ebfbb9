/* HMAC with SHA-256 (RFC 2104, FIPS 180-4), for keys that are public: it is not guarded against those who measure time. */
#pragma once
#include <stdint.h>

enum { SHA256_BYTES = 32, HMAC_KEY_MAX_BYTES = 64 };

/* A key as its hashes begin, for any number of texts. */
struct hmac_key {
  uint32_t inner[8], outer[8];
};

/* `length` is at most HMAC_KEY_MAX_BYTES. */
void hmac_begin(struct hmac_key *begun, const uint8_t *key, uint32_t length);
void hmac_sha256(const struct hmac_key *key, const uint8_t *text, uint32_t length, uint8_t out[SHA256_BYTES]);
