#include "gcm.h"

#include <string.h>

/* An element of the field as GCM writes it, the first byte highest: its lowest coefficient is the highest bit. */
struct element {
  uint64_t high, low;
};

static uint64_t uint64_at(const uint8_t *bytes) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return __builtin_bswap64(value);
}

static void put_uint64(uint8_t *bytes, uint64_t value) {
  value = __builtin_bswap64(value);
  memcpy(bytes, &value, sizeof value);
}

/* The product of two polynomials over bits, four bits of `a` at a time. */
static struct element multiply_portably(uint64_t a, uint64_t b) {
  struct element multiples[16] = {{0, 0}, {0, b}}, product = {0, 0};
  for (unsigned i = 2; i < 16; i += 2) {
    struct element half = multiples[i / 2];
    multiples[i] = (struct element){half.high << 1 | half.low >> 63, half.low << 1};
    multiples[i + 1] = (struct element){multiples[i].high, multiples[i].low ^ b};
  }
  for (int shift = 60; shift >= 0; shift -= 4) {
    struct element part = multiples[a >> shift & 15];
    product.high = (product.high << 4 | product.low >> 60) ^ part.high;
    product.low = product.low << 4 ^ part.low;
  }
  return product;
}

#if defined(__x86_64__) && !defined(PORTABLE_ONLY)
#include <immintrin.h>

static __attribute__((target("pclmul"))) struct element multiply_here(uint64_t a, uint64_t b) {
  __m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, (long long)a), _mm_set_epi64x(0, (long long)b), 0);
  return (struct element){(uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(product, product)),
                          (uint64_t)_mm_cvtsi128_si64(product)};
}

static struct element multiply_words(uint64_t a, uint64_t b) {
  return __builtin_cpu_supports("pclmul") ? multiply_here(a, b) : multiply_portably(a, b);
}
#else
static struct element multiply_words(uint64_t a, uint64_t b) { return multiply_portably(a, b); }
#endif

/* The product in the field. Bits are in reverse, so the 255 of the product stand one place too low; then what is beyond the
 * field is brought back by its polynomial, x^128 + x^7 + x^2 + x + 1. */
static struct element multiply(struct element a, struct element b) {
  struct element highs = multiply_words(a.high, b.high), lows = multiply_words(a.low, b.low);
  struct element one = multiply_words(a.high, b.low), other = multiply_words(a.low, b.high);
  uint64_t w0 = lows.low, w1 = lows.high ^ one.low ^ other.low;
  uint64_t w2 = highs.low ^ one.high ^ other.high, w3 = highs.high;
  w3 = w3 << 1 | w2 >> 63;
  w2 = w2 << 1 | w1 >> 63;
  w1 = w1 << 1 | w0 >> 63;
  w0 <<= 1;
  w1 ^= w0 << 63 ^ w0 << 62 ^ w0 << 57;
  w2 ^= w0 ^ (w0 >> 1 | w1 << 63) ^ (w0 >> 2 | w1 << 62) ^ (w0 >> 7 | w1 << 57);
  w3 ^= w1 ^ w1 >> 1 ^ w1 >> 2 ^ w1 >> 7;
  return (struct element){w3, w2};
}

/* Adds bytes to the sum, the last block filled up with zeros. */
static struct element hash(const struct gcm_key *key, struct element sum, const uint8_t *bytes, uint32_t length) {
  uint8_t block[AES_BYTES];
  for (uint32_t at = 0; at < length; at += AES_BYTES) {
    const uint8_t *from = bytes + at;
    if (length - at < AES_BYTES) {
      memset(block, 0, sizeof block);
      memcpy(block, from, length - at);
      from = block;
    }
    sum.high ^= uint64_at(from);
    sum.low ^= uint64_at(from + 8);
    sum = multiply(sum, (struct element){key->high, key->low});
  }
  return sum;
}

static void set_counter(uint8_t counter[AES_BYTES], const uint8_t *nonce, uint32_t value) {
  uint32_t big = __builtin_bswap32(value);
  memcpy(counter, nonce, GCM_NONCE_BYTES);
  memcpy(counter + GCM_NONCE_BYTES, &big, sizeof big);
}

static void make_tag(const struct gcm_key *key, const struct gcm_message *message, const uint8_t *sealed,
                     uint8_t tag[GCM_TAG_BYTES]) {
  uint8_t counter[AES_BYTES], lengths[AES_BYTES];
  struct element sum = hash(key, (struct element){0, 0}, message->header, message->header_length);
  sum = hash(key, sum, sealed, message->length);
  put_uint64(lengths, (uint64_t)message->header_length * 8);
  put_uint64(lengths + 8, (uint64_t)message->length * 8);
  sum = hash(key, sum, lengths, sizeof lengths);
  set_counter(counter, message->nonce, 1);
  aes_encrypt(&key->aes, counter, tag);
  put_uint64(tag, uint64_at(tag) ^ sum.high);
  put_uint64(tag + 8, uint64_at(tag + 8) ^ sum.low);
}

static void apply_cipher(const struct gcm_key *key, const struct gcm_message *message, uint8_t *out) {
  uint8_t counter[AES_BYTES], stream[AES_BYTES];
  for (uint32_t at = 0, number = 2; at < message->length; at += AES_BYTES, number++) {
    uint32_t left = message->length - at, part = left < AES_BYTES ? left : AES_BYTES;
    set_counter(counter, message->nonce, number);
    aes_encrypt(&key->aes, counter, stream);
    for (uint32_t i = 0; i < part; i++) out[at + i] = message->in[at + i] ^ stream[i];
  }
}

void gcm_expand(struct gcm_key *key, const uint8_t bytes[AES_BYTES]) {
  uint8_t zeros[AES_BYTES] = {0};
  aes_expand(&key->aes, bytes);
  aes_encrypt(&key->aes, zeros, zeros);
  key->high = uint64_at(zeros);
  key->low = uint64_at(zeros + 8);
}

bool gcm_open(const struct gcm_key *key, const struct gcm_message *message, uint8_t *out) {
  uint8_t tag[GCM_TAG_BYTES];
  make_tag(key, message, message->in, tag);
  if (memcmp(tag, message->in + message->length, sizeof tag) != 0) return false;
  apply_cipher(key, message, out);
  return true;
}

void gcm_seal(const struct gcm_key *key, const struct gcm_message *message, uint8_t *out) {
  apply_cipher(key, message, out);
  make_tag(key, message, out, out + message->length);
}
