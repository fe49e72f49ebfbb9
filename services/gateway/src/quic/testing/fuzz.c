/*
 * Damaged flights through the native reader, as many as a processor makes: fuzz SECONDS SEED, with whole datagrams on standard
 * input, each behind its length (4 bytes). Compiled with the sanitizers. What is inside an Initial packet is damaged too, and
 * sealed again. Each flight is read twice, the second time with every datagram repeated: both must give the same answer. Says
 * how many there were, and how many of each kind of answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../native/flight.h"

enum { MAX_CORPUS = 64, MAX_FLIGHT = 4, MAX_DAMAGE = 5, HEAD_BYTES = 60, KINDS = 5, BETWEEN_CLOCKS = 1024 };

struct datagram {
  uint32_t length;
  uint8_t bytes[2048];
};

static struct datagram corpus[MAX_CORPUS];
static uint32_t corpus_count;
static uint64_t state;

/* xorshift64* */
static uint32_t below(uint32_t limit) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (uint32_t)((state * 0x2545f4914f6cdd1du >> 32) % limit);
}

static uint8_t telling_byte(void) {
  static const uint8_t bytes[] = {0, 1, 2, 3, 6, 0x1c, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
  return below(4) ? bytes[below(sizeof bytes)] : (uint8_t)below(256);
}

static void damage(uint8_t *bytes, uint32_t length) {
  for (uint32_t left = below(MAX_DAMAGE); left > 0 && length > 0; left--) bytes[below(length)] = telling_byte();
}

/* Damages the frames of the first packet where it is an Initial one, and seals it again. */
static void damage_inside(struct datagram *datagram) {
  static uint8_t payload[MAX_DATAGRAM_BYTES];
  struct packet packet = packet_read(datagram->bytes, datagram->length);
  struct initial_keys keys;
  if (packet.type != PACKET_INITIAL) return;
  initial_derive(&keys, packet.version, packet.destination, SIDE_CLIENT);
  int32_t length = initial_open(&keys, datagram->bytes, &packet, payload);
  if (length < 0) return;
  damage(payload, below(2) ? 40 : (uint32_t)length);
  uint32_t number_bytes = packet.end - packet.number_at - (uint32_t)length - GCM_TAG_BYTES;
  uint8_t nonce[GCM_NONCE_BYTES], *number = datagram->bytes + packet.number_at;
  initial_mask(&keys, datagram->bytes, number, number_bytes);
  memcpy(nonce, keys.iv, sizeof nonce);
  for (uint32_t i = 0; i < number_bytes; i++) nonce[sizeof nonce - number_bytes + i] ^= number[i];
  struct gcm_message message = {nonce, datagram->bytes, payload, packet.number_at + number_bytes, (uint32_t)length};
  gcm_seal(&keys.key, &message, number + number_bytes);
  initial_mask(&keys, datagram->bytes, number, number_bytes);
}

/* In memory of exactly its size, so that the sanitizer sees a read beyond what has come. */
static enum hello_kind read_times(const struct datagram *datagrams, uint32_t count, unsigned times,
                                  struct hello_name *name) {
  struct flight *flight = calloc(1, sizeof *flight);
  enum hello_kind kind = HELLO_NEED_MORE;
  for (uint32_t i = 0; i < count * times && kind == HELLO_NEED_MORE; i++) {
    const struct datagram *datagram = &datagrams[i / times];
    uint8_t *exact = malloc(datagram->length ? datagram->length : 1);
    memcpy(exact, datagram->bytes, datagram->length);
    kind = flight_read(flight, exact, datagram->length, name);
    free(exact);
  }
  if (kind == HELLO_NEED_MORE && !flight->is_begun) kind = HELLO_NOT_TLS;
  free(flight);
  return kind;
}

static void check(const struct datagram *datagrams, uint32_t count, uint64_t kinds[KINDS]) {
  struct hello_name one = {0}, other = {0};
  enum hello_kind kind = read_times(datagrams, count, 1, &one);
  if (kind != read_times(datagrams, count, 2, &other)) abort();
  if (kind == HELLO_NAME && (one.length == 0 || one.length != other.length || memcmp(one.text, other.text, one.length)))
    abort();
  kinds[kind]++;
}

int main(int count, char **arguments) {
  static struct datagram flight[MAX_FLIGHT];
  uint64_t kinds[KINDS] = {0}, total = 0;
  if (count != 3) return 2;
  time_t end = time(NULL) + atoi(arguments[1]);
  state = strtoull(arguments[2], NULL, 10) * 2 + 1;
  for (uint32_t length; corpus_count < MAX_CORPUS && fread(&length, 4, 1, stdin) == 1; corpus_count++) {
    if (length > sizeof corpus->bytes || fread(corpus[corpus_count].bytes, 1, length, stdin) != length) return 2;
    corpus[corpus_count].length = length;
  }
  if (corpus_count < 2) return 2;
  while (total % BETWEEN_CLOCKS != 0 || time(NULL) < end) {
    uint32_t datagrams = 1 + below(MAX_FLIGHT), first = below(corpus_count);
    for (uint32_t i = 0; i < datagrams; i++) {
      flight[i] = corpus[below(8) ? (first + i) % corpus_count : below(corpus_count)];
      if (below(3) == 0) damage_inside(&flight[i]);
      if (below(6) == 0) damage(flight[i].bytes, HEAD_BYTES);
      if (below(16) == 0) flight[i].length = below(flight[i].length + 1);
    }
    check(flight, datagrams, kinds);
    total++;
  }
  printf("%llu flights: need_more %llu, unread %llu, server_name %llu, no_server_name %llu, malformed %llu\n",
         (unsigned long long)total, (unsigned long long)kinds[0], (unsigned long long)kinds[1],
         (unsigned long long)kinds[2], (unsigned long long)kinds[3], (unsigned long long)kinds[4]);
  return 0;
}
