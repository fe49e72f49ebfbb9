#include "initial.h"

#include <string.h>

#include "sha256.h"

enum {
  SALT_BYTES = 20,
  MAX_LABEL_BYTES = 32,
  SAMPLE_OFFSET = 4, /* RFC 9001 section 5.4.2 */
  PROTECTED_BITS = 0x0f,
  NUMBER_BYTES_MASK = 3,
};

/* What differs between the versions: RFC 9001 section 5.2, RFC 9369 section 3.3. */
struct derivation {
  uint8_t salt[SALT_BYTES];
  const char *key, *iv, *header;
};

static const struct derivation FIRST = {
    {0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17,
     0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a},
    "tls13 quic key", "tls13 quic iv", "tls13 quic hp",
};
static const struct derivation SECOND = {
    {0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93,
     0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9},
    "tls13 quicv2 key", "tls13 quicv2 iv", "tls13 quicv2 hp",
};

/* HKDF-Expand-Label without a context (RFC 8446 section 7.1), of at most one block. */
static void expand_label(const struct hmac_key *secret, const char *label, uint8_t length, uint8_t *out) {
  uint8_t text[MAX_LABEL_BYTES + 5], block[SHA256_BYTES], size = (uint8_t)strlen(label);
  text[0] = 0;
  text[1] = length;
  text[2] = size;
  memcpy(text + 3, label, size);
  text[3 + size] = 0;
  text[4 + size] = 1;
  hmac_sha256(secret, text, 5u + size, block);
  memcpy(out, block, length);
}

static const struct hmac_key *salt_of(const struct derivation *derivation) {
  static struct {
    bool is_begun;
    struct hmac_key key;
  } salts[2];
  unsigned at = derivation == &SECOND;
  if (!salts[at].is_begun) hmac_begin(&salts[at].key, derivation->salt, SALT_BYTES);
  salts[at].is_begun = true;
  return &salts[at].key;
}

void initial_derive(struct initial_keys *keys, uint32_t version, struct id id, enum side side) {
  const struct derivation *with = version == QUIC_VERSION_2 ? &SECOND : &FIRST;
  struct hmac_key secret;
  uint8_t bytes[SHA256_BYTES];
  hmac_sha256(salt_of(with), id.bytes, id.length, bytes);
  hmac_begin(&secret, bytes, SHA256_BYTES);
  expand_label(&secret, side == SIDE_CLIENT ? "tls13 client in" : "tls13 server in", SHA256_BYTES, bytes);
  hmac_begin(&secret, bytes, SHA256_BYTES);
  expand_label(&secret, with->key, AES_BYTES, bytes);
  gcm_expand(&keys->key, bytes);
  expand_label(&secret, with->header, AES_BYTES, bytes);
  aes_expand(&keys->header, bytes);
  expand_label(&secret, with->iv, GCM_NONCE_BYTES, keys->iv);
}

/* RFC 9001 section 5.3. */
static void make_nonce(const struct initial_keys *keys, uint32_t number, uint8_t nonce[GCM_NONCE_BYTES]) {
  memcpy(nonce, keys->iv, GCM_NONCE_BYTES);
  for (unsigned i = 0; i < 4; i++) nonce[GCM_NONCE_BYTES - 1 - i] ^= (uint8_t)(number >> 8 * i);
}

void initial_mask(const struct initial_keys *keys, uint8_t *first_byte, uint8_t *number, uint32_t number_bytes) {
  uint8_t mask[AES_BYTES];
  aes_encrypt(&keys->header, number + SAMPLE_OFFSET, mask);
  *first_byte ^= mask[0] & PROTECTED_BITS;
  for (uint32_t i = 0; i < number_bytes; i++) number[i] ^= mask[1 + i];
}

int32_t initial_open(const struct initial_keys *keys, const uint8_t *bytes, const struct packet *packet, uint8_t *out) {
  static uint8_t header[MAX_DATAGRAM_BYTES];
  uint8_t mask[AES_BYTES], nonce[GCM_NONCE_BYTES];
  uint32_t rest = packet->end - packet->number_at;
  if (rest < SAMPLE_OFFSET + AES_BYTES) return -1;
  aes_encrypt(&keys->header, bytes + packet->number_at + SAMPLE_OFFSET, mask);
  uint8_t first = bytes[0] ^ (mask[0] & PROTECTED_BITS);
  uint32_t number_bytes = 1u + (first & NUMBER_BYTES_MASK), number = 0;
  struct gcm_message message = {.nonce = nonce, .header = header, .header_length = packet->number_at + number_bytes};
  if (rest < number_bytes + GCM_TAG_BYTES) return -1;
  message.in = bytes + message.header_length;
  message.length = rest - number_bytes - GCM_TAG_BYTES;
  memcpy(header, bytes, message.header_length);
  header[0] = first;
  /* Nothing was acknowledged before: what is there of the number is all of it (RFC 9000 appendix A.2). */
  for (uint32_t i = 0; i < number_bytes; i++)
    number = number << 8 | (header[packet->number_at + i] ^= mask[1 + i]);
  make_nonce(keys, number, nonce);
  return gcm_open(&keys->key, &message, out) ? (int32_t)message.length : -1;
}
