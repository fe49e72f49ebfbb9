#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { FREE = 0, MOVED = 1, FIRST_HASH = 2, MIN_CAPACITY = 1024, MOVES_PER_CHANGE = 64 };

/* Names come from strangers: without a secret seed they could choose ones that collide. */
static uint64_t seed[2];

void table_seed(void) {
  if (getrandom(seed, sizeof seed, 0) != sizeof seed) abort();
}

static uint64_t mix(uint64_t a, uint64_t b) {
  __uint128_t product = (__uint128_t)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint32_t hash_of(const char *name, uint8_t length) {
  uint64_t hash = seed[0] ^ length;
  for (unsigned at = 0; at < length; at += 8) {
    uint64_t word = 0;
    unsigned left = length - at;
    memcpy(&word, name + at, left < 8 ? left : 8);
    hash = mix(hash ^ word, seed[1] | 1);
  }
  uint32_t short_hash = (uint32_t)(hash ^ hash >> 32);
  return short_hash < FIRST_HASH ? short_hash + FIRST_HASH : short_hash;
}

static void *must(void *memory) {
  if (!memory) abort();
  return memory;
}

static struct slots slots_of(uint64_t capacity) {
  return (struct slots){must(calloc(capacity, sizeof(uint32_t))), must(calloc(capacity, sizeof(struct route *))),
                        capacity, 0};
}

static void slots_free(struct slots *slots) {
  free(slots->hashes);
  free(slots->routes);
  *slots = (struct slots){0};
}

/* The slot of a name, or the first free one; nothing where there is neither. */
static bool slots_locate(const struct slots *slots, uint32_t hash, const char *name, uint8_t length, uint64_t *slot) {
  if (slots->capacity == 0) return false;
  for (uint64_t at = hash & (slots->capacity - 1);; at = (at + 1) & (slots->capacity - 1)) {
    struct route *route = slots->routes[at];
    if (slots->hashes[at] == FREE) return *slot = at, false;
    if (slots->hashes[at] == hash && route->length == length && memcmp(route->name, name, length) == 0)
      return *slot = at, true;
  }
}

static void slots_insert(struct slots *slots, uint32_t hash, struct route *route) {
  uint64_t at = hash & (slots->capacity - 1);
  while (slots->hashes[at] != FREE) at = (at + 1) & (slots->capacity - 1);
  slots->hashes[at] = hash;
  slots->routes[at] = route;
  slots->used++;
}

/* Closes the gap, so that no probe ends early. */
static void slots_delete(struct slots *slots, uint64_t gap) {
  uint64_t mask = slots->capacity - 1;
  for (uint64_t at = (gap + 1) & mask; slots->hashes[at] != FREE; at = (at + 1) & mask) {
    uint64_t home = slots->hashes[at] & mask;
    if (((at - home) & mask) < ((at - gap) & mask)) continue;
    slots->hashes[gap] = slots->hashes[at];
    slots->routes[gap] = slots->routes[at];
    gap = at;
  }
  slots->hashes[gap] = FREE;
  slots->routes[gap] = NULL;
  slots->used--;
}

static void move_some(struct table *table, uint64_t count) {
  struct slots *before = &table->before;
  if (before->capacity == 0) return;
  for (; count > 0 && table->moved < before->capacity; count--, table->moved++) {
    if (before->hashes[table->moved] < FIRST_HASH) continue;
    slots_insert(&table->now, before->hashes[table->moved], before->routes[table->moved]);
    before->hashes[table->moved] = MOVED;
  }
  if (table->moved == before->capacity) slots_free(before);
}

static void grow(struct table *table, uint64_t capacity) {
  move_some(table, UINT64_MAX);
  table->before = table->now;
  table->moved = 0;
  table->now = slots_of(capacity);
}

void table_reserve(struct table *table, uint64_t count) {
  uint64_t capacity = MIN_CAPACITY;
  while (capacity * 2 < count * 3) capacity *= 2;
  if (capacity > table->now.capacity) grow(table, capacity);
}

static void make_room(struct table *table) {
  move_some(table, MOVES_PER_CHANGE);
  uint64_t capacity = table->now.capacity;
  if (capacity == 0) table->now = slots_of(MIN_CAPACITY);
  else if ((table->count + 1) * 3 > capacity * 2) grow(table, capacity * 2);
}

static struct slots *locate(struct table *table, uint32_t hash, const char *name, uint8_t length, uint64_t *slot) {
  if (slots_locate(&table->now, hash, name, length, slot)) return &table->now;
  if (slots_locate(&table->before, hash, name, length, slot)) return &table->before;
  return NULL;
}

struct route *table_find(struct table *table, const char *name, uint8_t length) {
  uint64_t slot;
  struct slots *slots = locate(table, hash_of(name, length), name, length, &slot);
  return slots ? slots->routes[slot] : NULL;
}

void table_remove(struct table *table, const char *name, uint8_t length) {
  uint64_t slot;
  move_some(table, MOVES_PER_CHANGE);
  struct slots *slots = locate(table, hash_of(name, length), name, length, &slot);
  if (!slots) return;
  struct route *route = slots->routes[slot];
  if (slots == &table->now) slots_delete(slots, slot);
  else slots->hashes[slot] = MOVED;
  table->count--;
  route_release(route);
}

void table_share(struct table *table, struct route *route) {
  make_room(table);
  route->refs++;
  slots_insert(&table->now, hash_of(route->name, route->length), route);
  table->count++;
}

struct route *route_make(const char *name, uint8_t length, const uint8_t address[16], uint8_t flags) {
  struct route *route = must(calloc(1, sizeof *route + length));
  memcpy(route->name, name, length);
  memcpy(route->address, address, 16);
  route->length = length;
  route->flags = flags;
  return route;
}

void table_put(struct table *table, const char *name, uint8_t length, const uint8_t address[16], uint8_t flags) {
  /* A new record each time: open connections keep the one that they began with. */
  table_remove(table, name, length);
  table_share(table, route_make(name, length, address, flags));
}

void table_clear(struct table *table) {
  struct slots *both[] = {&table->now, &table->before};
  for (int i = 0; i < 2; i++) {
    for (uint64_t at = 0; at < both[i]->capacity; at++)
      if (both[i]->hashes[at] >= FIRST_HASH) route_release(both[i]->routes[at]);
    slots_free(both[i]);
  }
  *table = (struct table){0};
}

void route_release(struct route *route) {
  if (--route->refs > 0) return;
  free(route->traffic);
  free(route);
}

void route_count(struct route *route, uint32_t now) {
  if (!route->traffic) {
    route->traffic = calloc(1, sizeof *route->traffic);
    if (!route->traffic) return;
    route->traffic->since = now;
  }
  route->traffic->connections++;
}

void route_add(struct route *route, uint64_t to_instance, uint64_t to_client) {
  if (!route->traffic) return;
  route->traffic->to_instance += to_instance;
  route->traffic->to_client += to_client;
}
