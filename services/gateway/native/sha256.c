#include "sha256.h"

#include <stdbool.h>
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

static void compress_portably(uint32_t state[8], const uint8_t block[BLOCK_BYTES]) {
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

#if defined(__x86_64__) && !defined(PORTABLE_ONLY)
#include <cpuid.h>
#include <immintrin.h>

/* Not every compiler knows this instruction by name in __builtin_cpu_supports. */
static bool has_instructions(void) {
  enum { UNKNOWN, ABSENT, PRESENT };
  static int known;
  if (known == UNKNOWN) {
    unsigned eax, ebx = 0, ecx, edx;
    bool is_listed = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && ebx & bit_SHA;
    known = is_listed && __builtin_cpu_supports("sse4.1") ? PRESENT : ABSENT;
  }
  return known == PRESENT;
}

/* The instructions want the state in two halves, ABEF and CDGH, and take two rounds at once. */
static __attribute__((target("sha,sse4.1"))) void compress_here(uint32_t state[8], const uint8_t block[BLOCK_BYTES]) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i *halves = (__m128i *)(void *)state, w[4];
  __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(halves), 0xb1), hgfe = _mm_shuffle_epi32(_mm_loadu_si128(halves + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
  const __m128i abef_before = abef, cdgh_before = cdgh;
  for (unsigned i = 0; i < 4; i++)
    w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)block + i), big_endian);
#pragma GCC unroll 16
  for (unsigned i = 0; i < ROUNDS / 4; i++) {
    __m128i sum = _mm_add_epi32(w[i % 4], _mm_loadu_si128((const __m128i *)(const void *)CONSTANTS + i));
    __m128i before = w[(i + 3) % 4], next = _mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]);
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    next = _mm_add_epi32(next, _mm_alignr_epi8(before, w[(i + 2) % 4], 4));
    w[i % 4] = _mm_sha256msg2_epu32(next, before);
  }
  __m128i feba = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1b);
  __m128i dchg = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xb1);
  _mm_storeu_si128(halves, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(halves + 1, _mm_alignr_epi8(dchg, feba, 8));
}

static void compress(uint32_t state[8], const uint8_t block[BLOCK_BYTES]) {
  if (has_instructions()) compress_here(state, block);
  else compress_portably(state, block);
}
#else
static void compress(uint32_t state[8], const uint8_t block[BLOCK_BYTES]) { compress_portably(state, block); }
#endif

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

/* What the inner or the outer hash is after the key. */
static void hash_key(uint32_t state[8], const uint8_t *key, uint32_t length, uint8_t mask) {
  uint8_t block[BLOCK_BYTES] = {0};
  memcpy(block, key, length);
  for (unsigned i = 0; i < BLOCK_BYTES; i++) block[i] ^= mask;
  memcpy(state, START, sizeof START);
  compress(state, block);
}

void hmac_begin(struct hmac_key *begun, const uint8_t *key, uint32_t length) {
  hash_key(begun->inner, key, length, INNER);
  hash_key(begun->outer, key, length, OUTER);
}

static void hash_on(const uint32_t state[8], const uint8_t *text, uint32_t length, uint8_t out[SHA256_BYTES]) {
  struct sha256 hash = {.bytes = BLOCK_BYTES};
  memcpy(hash.state, state, sizeof hash.state);
  add(&hash, text, length);
  finish(&hash, out);
}

void hmac_sha256(const struct hmac_key *key, const uint8_t *text, uint32_t length, uint8_t out[SHA256_BYTES]) {
  uint8_t inner[SHA256_BYTES];
  hash_on(key->inner, text, length, inner);
  hash_on(key->outer, inner, sizeof inner, out);
}
