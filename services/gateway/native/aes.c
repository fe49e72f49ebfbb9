#include "aes.h"

#include <stdbool.h>
#include <string.h>

static uint8_t boxes[256];

/* Twice as much in the field of AES. */
static uint8_t twice(uint8_t value) { return (uint8_t)(value << 1 ^ (value >> 7) * 0x1b); }

/* Each value's inverse, turned and added up (FIPS 197 section 5.1.1): 3 generates the field, and 0xf6 is its inverse. */
static void fill_boxes(void) {
  uint8_t value = 1, inverse = 1;
  do {
    value ^= twice(value);
    inverse ^= (uint8_t)(inverse << 1);
    inverse ^= (uint8_t)(inverse << 2);
    inverse ^= (uint8_t)(inverse << 4);
    inverse ^= inverse >> 7 ? 0x09 : 0;
    uint8_t mixed = inverse;
    for (unsigned by = 1; by <= 4; by++) mixed ^= (uint8_t)(inverse << by | inverse >> (8 - by));
    boxes[value] = mixed ^ 0x63;
  } while (value != 1);
  boxes[0] = 0x63;
}

void aes_expand(struct aes_key *key, const uint8_t bytes[AES_BYTES]) {
  if (boxes[0] == 0) fill_boxes();
  uint8_t constant = 1;
  memcpy(key->rounds[0], bytes, AES_BYTES);
  for (unsigned round = 1; round <= AES_ROUNDS; round++, constant = twice(constant)) {
    const uint8_t *before = key->rounds[round - 1];
    uint8_t *now = key->rounds[round];
    for (unsigned i = 0; i < 4; i++) now[i] = before[i] ^ boxes[before[12 + (i + 1) % 4]];
    now[0] ^= constant;
    for (unsigned i = 4; i < AES_BYTES; i++) now[i] = before[i] ^ now[i - 4];
  }
}

static void add_round(uint8_t state[AES_BYTES], const uint8_t round[AES_BYTES]) {
  for (unsigned i = 0; i < AES_BYTES; i++) state[i] ^= round[i];
}

static void substitute_and_shift(uint8_t state[AES_BYTES]) {
  uint8_t old[AES_BYTES];
  memcpy(old, state, AES_BYTES);
  for (unsigned i = 0; i < AES_BYTES; i++) state[i] = boxes[old[(i + 4 * (i % 4)) % AES_BYTES]];
}

static void mix_columns(uint8_t state[AES_BYTES]) {
  for (uint8_t *c = state; c < state + AES_BYTES; c += 4) {
    uint8_t all = c[0] ^ c[1] ^ c[2] ^ c[3], first = c[0];
    for (unsigned i = 0; i < 4; i++) c[i] ^= all ^ twice(c[i] ^ (i == 3 ? first : c[i + 1]));
  }
}

static void encrypt_portably(const struct aes_key *key, const uint8_t in[AES_BYTES], uint8_t out[AES_BYTES]) {
  uint8_t state[AES_BYTES];
  memcpy(state, in, AES_BYTES);
  add_round(state, key->rounds[0]);
  for (unsigned round = 1; round <= AES_ROUNDS; round++) {
    substitute_and_shift(state);
    if (round < AES_ROUNDS) mix_columns(state);
    add_round(state, key->rounds[round]);
  }
  memcpy(out, state, AES_BYTES);
}

#if defined(__x86_64__) && !defined(PORTABLE_ONLY)
#include <immintrin.h>

static __attribute__((target("aes"))) void encrypt_here(const struct aes_key *key, const uint8_t in[AES_BYTES],
                                                        uint8_t out[AES_BYTES]) {
  const __m128i *rounds = (const __m128i *)(const void *)key->rounds;
  __m128i state = _mm_loadu_si128((const __m128i *)(const void *)in) ^ _mm_loadu_si128(rounds);
  for (unsigned round = 1; round < AES_ROUNDS; round++)
    state = _mm_aesenc_si128(state, _mm_loadu_si128(rounds + round));
  state = _mm_aesenclast_si128(state, _mm_loadu_si128(rounds + AES_ROUNDS));
  _mm_storeu_si128((__m128i *)(void *)out, state);
}

void aes_encrypt(const struct aes_key *key, const uint8_t in[AES_BYTES], uint8_t out[AES_BYTES]) {
  if (__builtin_cpu_supports("aes")) encrypt_here(key, in, out);
  else encrypt_portably(key, in, out);
}
#else
void aes_encrypt(const struct aes_key *key, const uint8_t in[AES_BYTES], uint8_t out[AES_BYTES]) {
  encrypt_portably(key, in, out);
}
#endif
