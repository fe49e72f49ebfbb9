/*
 * Damaged ClientHellos through the native reader, as many as a processor makes: fuzz SECONDS SEED, with whole ones on
 * standard input, each behind its length (4 bytes). Compiled with the sanitizers. Each is read whole and in pieces; both must
 * give the same answer. Says how many there were, and how many of each kind of answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../native/hello.h"

enum { MAX_CORPUS = 64, MAX_BYTES = 80 * 1024, MAX_DAMAGE = 6, MAX_PIECES = 8, KINDS = 5, BETWEEN_CLOCKS = 4096 };

static struct { uint8_t *bytes; uint32_t length; } corpus[MAX_CORPUS];
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
  static const uint8_t bytes[] = {0, 1, 2, 3, 22, 0x10, 0x3f, 0x40, 0x7f, 0x80, 0xfe, 0xff};
  return below(4) ? bytes[below(sizeof bytes)] : (uint8_t)below(256);
}

static uint32_t damage(uint8_t *wire, uint32_t length) {
  uint32_t at = length == 0 ? 0 : below(2) ? below(length < 200 ? length : 200) : below(length), count;
  switch (below(6)) {
    case 0: return at;
    case 1:
      if (length + 1 > MAX_BYTES) return length;
      memmove(wire + at + 1, wire + at, length - at);
      wire[at] = telling_byte();
      return length + 1;
    case 2:
      count = below(4) + 1;
      if (at + count > length) return at;
      memmove(wire + at, wire + at + count, length - at - count);
      return length - count;
    default:
      if (at < length) wire[at] = telling_byte();
      return length;
  }
}

/* In memory of exactly its size, so that the sanitizer sees a read beyond what has come. */
static enum hello_kind read_in(const uint8_t *wire, uint32_t length, uint32_t pieces, struct hello_name *name) {
  struct hello_reader reader = {0};
  enum hello_kind kind = HELLO_NEED_MORE;
  for (uint32_t piece = 1, end = 0; piece <= pieces && kind == HELLO_NEED_MORE; piece++) {
    end = piece == pieces ? length : end + below(length - end + 1);
    uint8_t *exact = malloc(end ? end : 1);
    memcpy(exact, wire, end);
    kind = hello_read(&reader, exact, end, name);
    free(exact);
  }
  return kind;
}

static void check(const uint8_t *wire, uint32_t length, uint64_t kinds[KINDS]) {
  struct hello_name one = {0}, other = {0};
  enum hello_kind kind = read_in(wire, length, 1, &one);
  if (kind != read_in(wire, length, 1 + below(MAX_PIECES), &other)) abort();
  if (kind == HELLO_NAME && (one.length == 0 || one.length != other.length || memcmp(one.text, other.text, one.length)))
    abort();
  kinds[kind]++;
}

int main(int count, char **arguments) {
  static uint8_t wire[MAX_BYTES + 1];
  uint64_t kinds[KINDS] = {0}, total = 0;
  if (count != 3) return 2;
  time_t end = time(NULL) + atoi(arguments[1]);
  state = strtoull(arguments[2], NULL, 10) * 2 + 1;
  for (uint32_t length; corpus_count < MAX_CORPUS && fread(&length, 4, 1, stdin) == 1; corpus_count++) {
    if (length > MAX_BYTES) return 2;
    corpus[corpus_count].bytes = malloc(length ? length : 1);
    corpus[corpus_count].length = length;
    if (fread(corpus[corpus_count].bytes, 1, length, stdin) != length) return 2;
  }
  if (corpus_count == 0) return 2;
  while (total % BETWEEN_CLOCKS != 0 || time(NULL) < end) {
    uint32_t which = below(corpus_count), length = corpus[which].length;
    memcpy(wire, corpus[which].bytes, length);
    for (uint32_t left = below(MAX_DAMAGE + 1); left > 0; left--) length = damage(wire, length);
    check(wire, length, kinds);
    total++;
  }
  printf("%llu hellos: need_more %llu, not_tls %llu, server_name %llu, no_server_name %llu, malformed %llu\n",
         (unsigned long long)total, (unsigned long long)kinds[0], (unsigned long long)kinds[1],
         (unsigned long long)kinds[2], (unsigned long long)kinds[3], (unsigned long long)kinds[4]);
  return 0;
}
