/*
 * First flights of QUIC with damage at every level: in the hello, in how it is cut into CRYPTO frames, in the frames, and, in
 * fewer of them, in what is sealed already. The others are sealed behind the damage, so that they authenticate.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { MAX_MUTANT_DATAGRAMS = 24, MUTANT_DATAGRAM_BYTES = 2048 };

struct datagram {
  uint32_t length;
  uint8_t bytes[MUTANT_DATAGRAM_BYTES];
};

/* Flights that authenticate, from which the mutants grow: each a count and so many datagrams, each behind its length (4 bytes).
 * False where there is none, or one is not what it should be. The same number draws the same mutants. */
bool mutants_begin(FILE *flights, uint64_t seed);
/* How many datagrams there are of this mutant. */
uint32_t mutant_make(struct datagram datagrams[MAX_MUTANT_DATAGRAMS]);
/* Below the limit, by chance. */
uint32_t below(uint32_t limit);
