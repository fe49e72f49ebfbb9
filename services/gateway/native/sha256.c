#include "sha256.h"

#include <string.h>

enum { BLOCK_BYTES = 64, ROUNDS = 64, INNER = 0x36, OUTER = 0x5c };

struct sha256 {
  uint32_t state[8], filled;
  uint64_t bytes;
  uint8_t block[BLOCK_BYTES];
};

static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
static const uint32_t CONSTANTS[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t word, unsigned by) { return word >> by | word << (32 - by); }

static void compress(uint32_t state[8], const uint8_t block[BLOCK_BYTES]) {
  uint32_t w[ROUNDS], s[8];
  for (unsigned i = 0; i < 16; i++) {
    uint32_t word;
    memcpy(&word, block + 4 * i, 4);
    w[i] = __builtin_bswap32(word);
  }
  for (unsigned i = 16; i < ROUNDS; i++) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
  }
  memcpy(s, state, sizeof s);
  for (unsigned i = 0; i < ROUNDS; i++) {
    uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]), majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    uint32_t one = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + choice + CONSTANTS[i] + w[i];
    uint32_t other = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + majority;
    s[7] = s[6], s[6] = s[5], s[5] = s[4], s[4] = s[3] + one;
    s[3] = s[2], s[2] = s[1], s[1] = s[0], s[0] = one + other;
  }
  for (unsigned i = 0; i < 8; i++) state[i] += s[i];
}

static void start(struct sha256 *hash) {
  memcpy(hash->state, START, sizeof START);
  hash->filled = 0;
  hash->bytes = 0;
}

static void add(struct sha256 *hash, const uint8_t *bytes, uint32_t length) {
  hash->bytes += length;
  while (length > 0) {
    uint32_t room = BLOCK_BYTES - hash->filled, part = length < room ? length : room;
    memcpy(hash->block + hash->filled, bytes, part);
    hash->filled += part;
    bytes += part;
    length -= part;
    if (hash->filled < BLOCK_BYTES) return;
    compress(hash->state, hash->block);
    hash->filled = 0;
  }
}

static void finish(struct sha256 *hash, uint8_t out[SHA256_BYTES]) {
  static const uint8_t padding[BLOCK_BYTES] = {0x80};
  uint64_t bits = __builtin_bswap64(hash->bytes * 8);
  uint32_t length_at = BLOCK_BYTES - sizeof bits;
  add(hash, padding, 1 + (2 * BLOCK_BYTES + length_at - 1 - hash->filled) % BLOCK_BYTES);
  add(hash, (const uint8_t *)&bits, sizeof bits);
  for (unsigned i = 0; i < 8; i++) {
    uint32_t word = __builtin_bswap32(hash->state[i]);
    memcpy(out + 4 * i, &word, 4);
  }
}

/* Starts with the key, in the form that the inner or the outer hash begins with. */
static void start_with(struct sha256 *hash, const uint8_t *key, uint32_t length, uint8_t mask) {
  uint8_t block[BLOCK_BYTES] = {0};
  memcpy(block, key, length);
  for (unsigned i = 0; i < BLOCK_BYTES; i++) block[i] ^= mask;
  start(hash);
  add(hash, block, BLOCK_BYTES);
}

void hmac_sha256(const uint8_t *key, uint32_t key_length, const uint8_t *text, uint32_t length,
                 uint8_t out[SHA256_BYTES]) {
  struct sha256 hash;
  uint8_t inner[SHA256_BYTES];
  start_with(&hash, key, key_length, INNER);
  add(&hash, text, length);
  finish(&hash, inner);
  start_with(&hash, key, key_length, OUTER);
  add(&hash, inner, sizeof inner);
  finish(&hash, out);
}
