/* HMAC with SHA-256 (RFC 2104, FIPS 180-4), for keys that are public: it is not guarded against those who measure time. */
#pragma once
#include <stdint.h>

enum { SHA256_BYTES = 32, HMAC_KEY_MAX_BYTES = 64 };

/* `key_length` is at most HMAC_KEY_MAX_BYTES. */
void hmac_sha256(const uint8_t *key, uint32_t key_length, const uint8_t *text, uint32_t length,
                 uint8_t out[SHA256_BYTES]);
