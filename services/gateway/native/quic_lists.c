#include "quic_lists.h"

#include <stddef.h>
#include <unistd.h>

#include "loop.h"
#include "memory.h"
#include "options.h"
#include "quic_access.h"
#include "quic_index.h"
#include "stats.h"

struct list {
  struct quic_flow *first, *last;
  uint32_t count;
};

static struct list lists[FLOW_STATES];
static struct quic_flow *ended;

static void unlink_flow(struct quic_flow *flow) {
  struct list *list = &lists[flow->state];
  if (flow->previous) flow->previous->next = flow->next;
  else list->first = flow->next;
  if (flow->next) flow->next->previous = flow->previous;
  else list->last = flow->previous;
  list->count--;
}

static void append_flow(struct quic_flow *flow, enum quic_state state) {
  struct list *list = &lists[state];
  flow->state = (uint8_t)state;
  flow->touched_ms = now_ms;
  flow->previous = list->last;
  flow->next = NULL;
  if (list->last) list->last->next = flow;
  else list->first = flow;
  list->last = flow;
  list->count++;
}

static struct sockaddr_in6 address_of(const struct quic_peer *peer) {
  return (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = peer->address};
}

struct quic_flow *quic_lists_add(const struct quic_peer *peer, uint32_t version, struct id first, struct id source) {
  const struct sockaddr_in6 address = address_of(peer);
  struct quic_flow *flow = memory_take(sizeof *flow);
  if (!flow) return NULL;
  *flow = (struct quic_flow){.fd = -1, .version = version, .peer = *peer};
  quic_id_set(&flow->first, first);
  quic_id_set(&flow->source, source);
  if (!client_enter(&flow->place, &address, GROUP_QUIC_UNDECIDED)) return memory_give(flow), NULL;
  if (!quic_index_add(flow)) {
    client_leave(&flow->place);
    return memory_give(flow), NULL;
  }
  client_enter(&flow->unproven, &address, GROUP_QUIC_UNPROVEN);
  quic_access_begin(flow);
  append_flow(flow, FLOW_UNDECIDED);
  stats->quic_open++;
  return flow;
}

void quic_lists_enter(struct quic_flow *flow, enum quic_state state) {
  unlink_flow(flow);
  append_flow(flow, state);
  if (state < FLOW_MOVED) return;
  client_leave(&flow->unproven);
  const struct sockaddr_in6 address = address_of(&flow->peer);
  if (state == FLOW_MOVED) client_enter(&flow->unproven, &address, GROUP_QUIC_MOVED);
}

struct quic_flow *quic_lists_unproven(const struct quic_peer *peer) {
  const struct sockaddr_in6 address = address_of(peer);
  if (!client_has_share(&address, GROUP_QUIC)) return NULL;
  struct place *place = client_oldest(&address, GROUP_QUIC_UNPROVEN);
  if (!place) place = client_oldest(&address, GROUP_QUIC_MOVED);
  return place ? (struct quic_flow *)((char *)place - offsetof(struct quic_flow, unproven)) : NULL;
}

bool quic_lists_connect(struct quic_flow *flow, int fd, struct route *route) {
  const struct sockaddr_in6 address = address_of(&flow->peer);
  flow->fd = fd;
  if (fd < 0 || !loop_watch(fd, EPOLLIN, (uintptr_t)flow | TAG_QUIC_FLOW)) return false;
  client_leave(&flow->place);
  if (!client_enter(&flow->place, &address, GROUP_QUIC)) return false;
  flow->route = route;
  route->refs++;
  route->flows++;
  return true;
}

void quic_lists_forget_undecided(struct quic_flow *flow) {
  memory_give(flow->undecided);
  flow->undecided = NULL;
}

void quic_lists_end(struct quic_flow *flow) {
  quic_access_end(flow);
  quic_lists_forget_undecided(flow);
  quic_index_remove(flow);
  unlink_flow(flow);
  flow->state = FLOW_ENDED;
  if (flow->fd >= 0) close(flow->fd);
  client_leave(&flow->place);
  client_leave(&flow->unproven);
  if (flow->route) {
    flow->route->flows--;
    route_release(flow->route);
  }
  stats->quic_open--;
  flow->next = ended;
  ended = flow;
}

static bool are_full(void) { return stats->quic_open - lists[FLOW_UNDECIDED].count >= options.max_connections; }

struct quic_flow *quic_lists_yielding(const struct quic_flow *flow) {
  const struct sockaddr_in6 address = address_of(&flow->peer);
  return are_full() ? (struct quic_flow *)client_yielding(&address, GROUP_QUIC) : NULL;
}

bool quic_lists_have_room(const struct quic_flow *flow, const struct quic_flow *spared) {
  const struct quic_flow *yielding = quic_lists_yielding(flow);
  return yielding ? yielding != spared : !are_full();
}

void quic_lists_turn_ended(void) {
  while (ended) {
    struct quic_flow *flow = ended;
    ended = flow->next;
    memory_give(flow);
  }
}

struct quic_flow *quic_lists_first(enum quic_state state) { return lists[state].first; }
uint32_t quic_lists_count(enum quic_state state) { return lists[state].count; }

struct quic_flow *quic_lists_crowding(uint32_t many) {
  struct place *crowding = client_crowding(GROUP_QUIC_UNDECIDED, many);
  return crowding ? (struct quic_flow *)crowding : lists[FLOW_UNDECIDED].first;
}
