#include "connections.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include "access.h"
#include "connect.h"
#include "control.h"
#include "decide.h"
#include "linger.h"
#include "listen.h"
#include "loop.h"
#include "memory.h"
#include "options.h"
#include "outcomes.h"
#include "relay.h"
#include "scarcity.h"
#include "stall.h"
#include "stats.h"

enum {
  LINGER_MS = 2000,
  TOUCHES_PER_TIMEOUT = 16,
  CROWDING_PARTS = 256, /* who has one of so many parts of the places without a hello is one of a crowd */
};

struct list {
  struct conn *first, *last;
  uint32_t count;
};

static struct list lists[STATES];
/* Ended in this turn of the loop; events of the same turn may still point to them. */
static struct conn *ended;
static struct conn *ready_first, **ready_end = &ready_first;

static uint32_t timeout_of(enum state state) {
  switch (state) {
    case UNDECIDED: return options.hello_timeout_ms;
    case CONNECTING: return options.connect_timeout_ms;
    case OPEN: return options.idle_timeout_ms;
    default: return LINGER_MS;
  }
}

static void unlink_conn(struct conn *conn) {
  struct list *list = &lists[conn->state];
  if (conn->previous) conn->previous->next = conn->next;
  else list->first = conn->next;
  if (conn->next) conn->next->previous = conn->previous;
  else list->last = conn->previous;
  list->count--;
}

static void append_conn(struct conn *conn) {
  struct list *list = &lists[conn->state];
  conn->previous = list->last;
  conn->next = NULL;
  if (list->last) list->last->next = conn;
  else list->first = conn;
  list->last = conn;
  list->count++;
}

static void enter(struct conn *conn, enum state state) {
  unlink_conn(conn);
  conn->state = state;
  conn->touched_ms = now_ms;
  append_conn(conn);
}

/* Something moved: it is not idle. The list stays in order since every one of a state has the same timeout. */
static void touch(struct conn *conn) {
  if (now_ms - conn->touched_ms >= options.idle_timeout_ms / TOUCHES_PER_TIMEOUT) enter(conn, OPEN);
}

/* It has more to do than one turn allows. */
static void again(struct conn *conn) {
  if (conn->is_ready) return;
  conn->is_ready = 1;
  conn->next_ready = NULL;
  *ready_end = conn;
  ready_end = &conn->next_ready;
}

bool conns_want_another_turn(void) { return ready_first != NULL; }

static void end(struct conn *conn) {
  if (conn->state == CLOSED) return;
  access_end(conn);
  if (conn->state == UNDECIDED) memory_give(decide_end(conn));
  relay_release(conn);
  unlink_conn(conn);
  conn->state = CLOSED;
  for (int side = 0; side < 2; side++) {
    if (conn->fd[side] >= 0) close(conn->fd[side]);
    conn->fd[side] = -1;
  }
  stats->open--;
  stats->bytes_to_instances += conn->bytes[CLIENT];
  stats->bytes_to_clients += conn->bytes[INSTANCE];
  listen_left(conn->listener);
  client_leave(&conn->place);
  if (conn->route) {
    conn->route->open--;
    route_add(conn->route, conn->bytes[CLIENT], conn->bytes[INSTANCE]);
    route_release(conn->route);
  }
  conn->next = ended;
  ended = conn;
}

/* Ends it so that whoever is left learns that the stream is cut. */
static void cut(struct conn *conn) {
  struct linger abrupt = {1, 0};
  for (int side = 0; side < 2; side++)
    if (conn->fd[side] >= 0) setsockopt(conn->fd[side], SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
  end(conn);
}

static void count(struct conn *conn, enum outcome outcome) {
  const struct in6_addr client = client_of_place(&conn->place);
  conn->outcome = (uint8_t)outcome;
  outcome_count(&client, outcome);
}

static void give_up(struct conn *conn, enum outcome outcome) {
  count(conn, outcome);
  end(conn);
}

static void act(struct conn *conn, enum relayed relayed) {
  touch(conn);
  switch (relayed) {
    case RELAY_WAITS: break;
    case RELAY_GOES_ON: again(conn); break;
    case RELAY_OVER: end(conn); break;
    case RELAY_BROKEN: cut(conn); break;
  }
}

static void relay_both(struct conn *conn) {
  act(conn, relay_from(conn, CLIENT));
  if (conn->state == OPEN) act(conn, relay_from(conn, INSTANCE));
}

/* How the way to the instance stands; see connect.h. */
static void connected(struct conn *conn, int error) {
  if (error == EINPROGRESS) return;
  if (error == 0) {
    count(conn, RELAYED);
    conn->route->connected_at = unix_seconds();
    route_count(conn->route, conn->route->connected_at);
    enter(conn, OPEN);
    relay_both(conn);
  } else {
    count(conn, CONNECT_FAILED);
    /* What we lack ourselves is no failure of the instance's. */
    if (!scarcity_note(error)) {
      conn->route->failed_at = unix_seconds();
      conn->route->failure = (uint8_t)error;
    }
    cut(conn);
  }
}

static void connect_to(struct conn *conn, const struct decision *decision) {
  conn->route = decision->route;
  conn->route->refs++;
  conn->route->open++;
  struct pending_hello *hello = decide_end(conn);
  int error = connect_begin(conn, decision->bytes, decision->length);
  memory_give(hello);
  enter(conn, CONNECTING);
  connected(conn, error);
}

static void drop_rest(struct conn *conn) {
  if (!linger_read(conn)) end(conn);
}

static void refuse(struct conn *conn, const struct decision *decision) {
  count(conn, decision->outcome);
  bool has_client = linger_begin(conn, decision->alert);
  memory_give(decide_end(conn));
  enter(conn, LINGERING);
  if (has_client) drop_rest(conn);
  else end(conn);
}

static void hear(struct conn *conn) {
  struct decision decision = decide_read(conn, control_find_route);
  switch (decision.kind) {
    case WAIT_FOR_MORE: break;
    case GIVE_UP: give_up(conn, decision.outcome); break;
    case REFUSE: refuse(conn, &decision); break;
    case CONNECT: connect_to(conn, &decision); break;
  }
}

/* NULL where it may not be, or where there is no memory for it. */
static struct conn *create(int fd, const struct sockaddr_in6 *address, unsigned listener) {
  struct conn *conn = memory_take(sizeof *conn);
  if (!conn) return NULL;
  *conn = (struct conn){.fd = {fd, -1}, .state = UNDECIDED, .listener = (uint8_t)listener};
  if (!client_enter(&conn->place, address, listener)) {
    memory_give(conn);
    return NULL;
  }
  conn->started_ms = conn->touched_ms = now_ms;
  conn->outcome = OUTCOMES;
  conn->flags[CLIENT] = WRITABLE;
  access_begin(conn, address);
  stats->open++;
  listen_entered(listener);
  append_conn(conn);
  return conn;
}

/* A few clients cannot keep all others out of a listener: who has nothing there gets a place of the one that has most. */
static bool make_room(const struct sockaddr_in6 *address, unsigned listener) {
  struct conn *conn = (struct conn *)client_yielding(address, listener);
  if (!conn) return false;
  stats->yielded++;
  if (conn->state == UNDECIDED || conn->state == CONNECTING) count(conn, CROWDED_OUT);
  cut(conn);
  return true;
}

static void turn_away(int fd, const struct sockaddr_in6 *address, enum outcome outcome) {
  outcome_count(&address->sin6_addr, outcome);
  close(fd);
}

static struct conn *conn_of_undecided(struct place *place) {
  return (struct conn *)((char *)place - offsetof(struct conn, undecided));
}

/* Its hello is not there at once. Where too many wait so, one of a crowd goes, or else whoever has waited for longest. */
static void wait_for_hello(struct conn *conn, const struct sockaddr_in6 *address) {
  if (!client_enter(&conn->undecided, address, GROUP_UNDECIDED)) {
    give_up(conn, GONE);
    return;
  }
  if (lists[UNDECIDED].count <= options.max_undecided) return;
  struct place *crowding = client_crowding(GROUP_UNDECIDED, options.max_undecided / CROWDING_PARTS);
  give_up(crowding ? conn_of_undecided(crowding) : lists[UNDECIDED].first, CROWDED_OUT);
}

void conns_accepted(int fd, unsigned listener) {
  struct sockaddr_in6 address;
  client_address(fd, &address);
  if (listen_is_full(listener) && !make_room(&address, listener)) {
    turn_away(fd, &address, TOO_MANY);
    return;
  }
  struct conn *conn = create(fd, &address, listener);
  if (!conn) {
    turn_away(fd, &address, CLIENT_LIMIT);
    return;
  }
  /* Watched only after the first read: what is read at once would be told of a second time. */
  hear(conn);
  if (conn->state != CLOSED && !conn_watch(conn, CLIENT)) cut(conn);
  if (conn->state == UNDECIDED) wait_for_hello(conn, &address);
}

static void open_event(struct conn *conn, int side, uint32_t events) {
  if (events & EPOLLERR) cut(conn);
  else if (events & EPOLLIN) act(conn, relay_sent(conn, side));
  else if (events & (EPOLLRDHUP | EPOLLHUP)) act(conn, relay_from(conn, side));
  if ((events & EPOLLOUT) && conn->state == OPEN) act(conn, relay_from(conn, 1 - side));
}

void conns_event(struct conn *conn, int side, uint32_t events) {
  if (events & (EPOLLIN | EPOLLERR)) conn->flags[side] |= READABLE;
  if (events & (EPOLLRDHUP | EPOLLHUP)) conn->flags[side] |= READABLE | PEER_CLOSED;
  if (events & EPOLLOUT) conn->flags[side] |= WRITABLE;
  switch (conn->state) {
    case UNDECIDED:
      hear(conn);
      /* Its bytes may have led to an instance before we learn that it is gone; this is told only once. */
      if ((events & EPOLLERR) && conn->state == CONNECTING) give_up(conn, GONE);
      else if ((events & EPOLLERR) && conn->state == OPEN) cut(conn);
      break;
    case LINGERING: drop_rest(conn); break;
    case CONNECTING:
      if (side == INSTANCE) connected(conn, connect_finish(conn));
      else if (events & EPOLLERR) give_up(conn, GONE);
      break;
    case OPEN: open_event(conn, side, events); break;
    default: break;
  }
}

void conns_turn_ended(void) {
  struct conn *ready = ready_first;
  ready_first = NULL;
  ready_end = &ready_first;
  while (ready) {
    struct conn *conn = ready;
    ready = conn->next_ready;
    conn->is_ready = 0;
    if (conn->state == OPEN) relay_both(conn);
  }
  struct conn *kept = NULL;
  while (ended) {
    struct conn *conn = ended;
    ended = conn->next;
    if (!conn->is_ready) memory_give(conn);
    else { /* still in the list of those that are ready: a turn later */
      conn->next = kept;
      kept = conn;
    }
  }
  ended = kept;
}

/* It counts as relayed already. */
static void end_stalled(struct conn *conn) {
  count(conn, STALLED);
  cut(conn);
}

/* Where both sides have ended, that was all. */
static void end_drained(struct conn *conn) {
  if (conn->flags[CLIENT] & conn->flags[INSTANCE] & SHUT) act(conn, relay_from(conn, CLIENT));
}

/* Little of each of many is much, too. */
static void watch_all(void) {
  for (struct conn *conn = lists[OPEN].first; conn; conn = conn->next) relay_watch(conn);
}

void conns_expire(void) {
  if (lists[OPEN].count > 0 && stall_measure()) watch_all();
  stall_tick(relay_view, end_drained, end_stalled);
  for (enum state state = UNDECIDED; state < CLOSED; state++) {
    struct conn *conn;
    while ((conn = lists[state].first) && now_ms - conn->touched_ms >= timeout_of(state)) {
      if (state == UNDECIDED) give_up(conn, HELLO_TIMEOUT);
      else if (state == CONNECTING) connected(conn, ETIMEDOUT);
      else if (state == OPEN) cut(conn);
      else end(conn);
    }
  }
}

uint32_t conns_next_due_ms(void) {
  uint32_t due = stall_next_due_ms();
  uint32_t measure = stall_measure_due_ms();
  if (lists[OPEN].count > 0 && measure < due) due = measure;
  for (enum state state = UNDECIDED; state < CLOSED; state++) {
    const struct conn *conn = lists[state].first;
    if (!conn) continue;
    uint32_t passed = now_ms - conn->touched_ms, timeout = timeout_of(state);
    uint32_t left = passed >= timeout ? 0 : timeout - passed;
    if (left < due) due = left;
  }
  return due;
}

void conns_tick(void) { relay_tick(again); }

void conns_end_all(void) {
  for (enum state state = UNDECIDED; state < CLOSED; state++)
    while (lists[state].first) cut(lists[state].first);
}
