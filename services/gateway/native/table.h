/* Host name to address. A change costs the same whatever the size: growing moves a few routes with each change. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "tokens.h"

/* Of the connections to an instance, from the first one on. Most names have none, so it is not in the route itself. */
struct traffic {
  uint64_t connections, to_instance, to_client;
  uint32_t since; /* Unix seconds */
};

struct route {
  uint32_t refs; /* the table and each open connection */
  uint32_t open; /* connections to the instance */
  uint32_t flows; /* of QUIC */
  uint32_t connected_at, failed_at; /* Unix seconds of the last attempts, 0 for never */
  uint32_t answered_at, refused_at; /* of flows: when it last said something, and when one was last refused since it does not */
  struct tokens unanswered; /* flows that began since it last said something */
  struct traffic *traffic; /* NULL before the first connection */
  uint8_t failure; /* errno of the last failed attempt */
  uint8_t flags; /* of enum route_flag */
  uint8_t length;
  uint8_t address[16];
  char name[];
};

struct slots {
  uint32_t *hashes; /* 0 is free, 1 is moved away */
  struct route **routes;
  uint64_t capacity, used;
};

struct table {
  struct slots now, before;
  uint64_t moved; /* slots of `before` that are done */
  uint64_t count;
};

void table_seed(void);
void table_reserve(struct table *table, uint64_t count);
struct route *table_find(struct table *table, const char *name, uint8_t length);
void table_put(struct table *table, const char *name, uint8_t length, const uint8_t address[16], uint8_t flags);
/* Takes a route that another table has too. */
void table_share(struct table *table, struct route *route);
void table_remove(struct table *table, const char *name, uint8_t length);
void table_clear(struct table *table);
/* One that no table has, and that nobody holds. */
struct route *route_make(const char *name, uint8_t length, const uint8_t address[16], uint8_t flags);
void route_release(struct route *route);
/* A connection came about. */
void route_count(struct route *route, uint32_t now);
/* Bytes of one that has ended. */
void route_add(struct route *route, uint64_t to_instance, uint64_t to_client);
