/* AES with 128-bit keys (FIPS 197), one block at a time, for keys that are public: not guarded against those who measure time. */
#pragma once
#include <stdint.h>

enum { AES_BYTES = 16, AES_ROUNDS = 10 };

struct aes_key {
  uint8_t rounds[AES_ROUNDS + 1][AES_BYTES];
};

void aes_expand(struct aes_key *key, const uint8_t bytes[AES_BYTES]);
void aes_encrypt(const struct aes_key *key, const uint8_t in[AES_BYTES], uint8_t out[AES_BYTES]);
