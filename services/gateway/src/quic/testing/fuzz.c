/*
 * Damaged flights through the native reader, as many as a processor makes: fuzz SECONDS INPUTS SEED [FD], with the flights that
 * they grow from on standard input. Compiled with the sanitizers. One in four is read again with every datagram repeated: the
 * answer must be the same. With FD, another reader gets each flight there with the answer: a count and so many datagrams, each
 * behind its length (4 bytes), the number of the kind, the length of a name, the name. Ends after so many inputs, or, where that
 * is 0, so many seconds. Says how many there were, and how many of each kind of answer.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../native/flight.h"
#include "mutants.h"

enum { KINDS = 5, BETWEEN_CLOCKS = 1024, ONE_REPEATED_IN = 4 };

struct totals {
  uint64_t flights, datagrams, opened, kinds[KINDS];
};

static struct flight *flight; /* what an earlier flight left in its bytes must not matter */
static FILE *reader;

/* In memory of exactly its size, so that the sanitizer sees a read beyond what has come. */
static enum hello_kind read_times(const struct datagram *datagrams, uint32_t count, unsigned times,
                                  struct hello_name *name) {
  enum hello_kind kind = HELLO_NEED_MORE;
  memset(flight, 0, offsetof(struct flight, bytes));
  for (uint32_t i = 0; i < count * times && kind == HELLO_NEED_MORE; i++) {
    const struct datagram *datagram = &datagrams[i / times];
    uint8_t *exact = malloc(datagram->length ? datagram->length : 1);
    memcpy(exact, datagram->bytes, datagram->length);
    kind = flight_read(flight, exact, datagram->length, name);
    free(exact);
  }
  return kind == HELLO_NEED_MORE && !flight->is_begun ? HELLO_NOT_TLS : kind;
}

static void tell(const struct datagram *datagrams, uint32_t count, enum hello_kind kind, const struct hello_name *name) {
  fwrite(&count, 4, 1, reader);
  for (uint32_t i = 0; i < count; i++) {
    fwrite(&datagrams[i].length, 4, 1, reader);
    fwrite(datagrams[i].bytes, 1, datagrams[i].length, reader);
  }
  uint8_t length = kind == HELLO_NAME ? name->length : 0;
  putc((int)kind, reader);
  putc(length, reader);
  fwrite(name->text, 1, length, reader);
}

static void check(const struct datagram *datagrams, uint32_t count, struct totals *totals) {
  struct hello_name one = {0}, other = {0};
  enum hello_kind kind = read_times(datagrams, count, 1, &one);
  totals->flights++;
  totals->datagrams += count;
  totals->opened += flight->initials;
  totals->kinds[kind]++;
  if (reader) tell(datagrams, count, kind, &one);
  if (below(ONE_REPEATED_IN) != 0) return;
  if (kind != read_times(datagrams, count, 2, &other)) abort();
  if (kind == HELLO_NAME && (one.length == 0 || one.length != other.length || memcmp(one.text, other.text, one.length)))
    abort();
}

int main(int count, char **arguments) {
  static struct datagram datagrams[MAX_MUTANT_DATAGRAMS];
  struct totals totals = {0};
  if (count != 4 && count != 5) return 2;
  time_t end = time(NULL) + atoi(arguments[1]);
  uint64_t inputs = strtoull(arguments[2], NULL, 10);
  if (!mutants_begin(stdin, strtoull(arguments[3], NULL, 10))) return 2;
  if (count == 5 && !(reader = fdopen(atoi(arguments[4]), "w"))) return 2;
  flight = malloc(sizeof *flight);
  memset(flight->bytes, 0xa5, sizeof flight->bytes);
  while (inputs > 0 ? totals.flights < inputs : totals.flights % BETWEEN_CLOCKS != 0 || time(NULL) < end)
    check(datagrams, mutant_make(datagrams), &totals);
  free(flight);
  if (reader && fclose(reader) != 0) return 1;
  const uint64_t *kinds = totals.kinds;
  printf("%llu flights, of which an Initial packet authenticated in %llu; %llu datagrams, %llu packets opened\n",
         (unsigned long long)totals.flights, (unsigned long long)(totals.flights - kinds[HELLO_NOT_TLS]),
         (unsigned long long)totals.datagrams, (unsigned long long)totals.opened);
  printf("need_more %llu, unread %llu, server_name %llu, no_server_name %llu, malformed %llu\n",
         (unsigned long long)kinds[0], (unsigned long long)kinds[1], (unsigned long long)kinds[2],
         (unsigned long long)kinds[3], (unsigned long long)kinds[4]);
  return 0;
}
