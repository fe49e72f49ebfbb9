/* The life of connections: lists by state, timeouts, the end. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"

enum { LINGER_MS = 2000, TOUCHES_PER_TIMEOUT = 16 };

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

void conn_enter(struct conn *conn, enum state state) {
  unlink_conn(conn);
  conn->state = state;
  conn->touched_ms = now_ms;
  append_conn(conn);
}

/* Something moved: it is not idle. The list stays in order since every one of a state has the same timeout. */
void conn_touch(struct conn *conn) {
  if (conn->state != OPEN || now_ms - conn->touched_ms < options.idle_timeout_ms / TOUCHES_PER_TIMEOUT) return;
  conn_enter(conn, OPEN);
}

struct conn *conn_oldest(enum state state) { return lists[state].first; }
uint32_t conn_count(enum state state) { return lists[state].count; }

/* It has more to do than one turn allows. */
void conn_again(struct conn *conn) {
  if (conn->is_ready) return;
  conn->is_ready = 1;
  conn->next_ready = NULL;
  *ready_end = conn;
  ready_end = &conn->next_ready;
}

void conn_mute(struct conn *conn, int side, bool muted) {
  uint32_t input = muted ? 0 : EPOLLIN;
  struct epoll_event event = {input | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.u64 = (uintptr_t)conn | (unsigned)side}};
  if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, conn->fd[side], &event) < 0) return;
  conn->flags[side] = (uint8_t)(muted ? conn->flags[side] | MUTED : conn->flags[side] & ~MUTED);
}

bool conns_want_another_turn(void) { return ready_first != NULL; }

void conn_accepted(int fd, unsigned listener) {
  struct sockaddr_in6 address;
  struct client *client = client_enter(fd, &address);
  struct conn *conn = client ? memory_take(sizeof *conn) : NULL;
  if (!conn) {
    if (client) client_leave(client);
    stats->outcomes[CLIENT_LIMIT]++;
    close(fd);
    return;
  }
  *conn = (struct conn){.client = client, .fd = {fd, -1}, .state = UNDECIDED, .listener = (uint8_t)listener};
  conn->started_ms = conn->touched_ms = now_ms;
  conn->outcome = OUTCOMES;
  static uint32_t since_logged;
  if (log_every && ++since_logged >= log_every && (conn->trace = memory_take(sizeof *conn->trace))) {
    since_logged = 0;
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    *conn->trace = (struct trace){(uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000, address};
  }
  stats->open++;
  listeners[listener].open++;
  append_conn(conn);
  conn->flags[CLIENT] = WRITABLE;
  /* Watched only after the first read: what is read at once would be told of a second time. */
  decide_read(conn);
  struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.ptr = conn}};
  if (conn->state != CLOSED && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) conn_reset(conn);
  if (conn_count(UNDECIDED) > options.max_undecided) decide_give_up(conn_oldest(UNDECIDED), CROWDED_OUT);
}

struct access_record {
  uint64_t started_unix_ms, bytes_to_instance, bytes_to_client;
  uint32_t duration_ms;
  uint16_t client_port;
  uint8_t client_address[16];
  uint8_t outcome, name_length;
} __attribute__((packed));

static void tell_access(const struct conn *conn) {
  uint8_t line[sizeof(struct access_record) + MAX_NAME_BYTES];
  struct access_record record = {
      .started_unix_ms = conn->trace->started_unix_ms,
      .bytes_to_instance = conn->bytes[CLIENT],
      .bytes_to_client = conn->bytes[INSTANCE],
      .duration_ms = now_ms - conn->started_ms,
      .client_port = ntohs(conn->trace->client.sin6_port),
      .outcome = conn->outcome,
      .name_length = conn->route ? conn->route->length : 0,
  };
  memcpy(record.client_address, &conn->trace->client.sin6_addr, 16);
  memcpy(line, &record, sizeof record);
  if (conn->route) memcpy(line + sizeof record, conn->route->name, conn->route->length);
  control_tell('a', line, (uint32_t)sizeof record + record.name_length);
}

void conn_end(struct conn *conn) {
  if (conn->state == CLOSED) return;
  if (conn->trace) tell_access(conn);
  memory_give(conn->trace);
  if (conn->state == UNDECIDED) memory_give(conn->hello);
  else relay_release(conn);
  unlink_conn(conn);
  conn->state = CLOSED;
  for (int side = 0; side < 2; side++) {
    if (conn->fd[side] >= 0) close(conn->fd[side]);
    memory_give(conn->waiting[side]);
    conn->fd[side] = -1;
    conn->waiting[side] = NULL;
  }
  stats->open--;
  stats->bytes_to_instances += conn->bytes[CLIENT];
  stats->bytes_to_clients += conn->bytes[INSTANCE];
  listeners[conn->listener].open--;
  client_leave(conn->client);
  if (conn->route) {
    conn->route->open--;
    route_release(conn->route);
  }
  conn->next = ended;
  ended = conn;
}

void conn_reset(struct conn *conn) {
  struct linger abrupt = {1, 0};
  for (int side = 0; side < 2; side++)
    if (conn->fd[side] >= 0) setsockopt(conn->fd[side], SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
  conn_end(conn);
}

void conn_event(struct conn *conn, int side, uint32_t events) {
  if (events & (EPOLLIN | EPOLLERR)) conn->flags[side] |= READABLE;
  if (events & (EPOLLRDHUP | EPOLLHUP)) conn->flags[side] |= READABLE | PEER_CLOSED;
  if (events & EPOLLOUT) conn->flags[side] |= WRITABLE;
  switch (conn->state) {
    case UNDECIDED:
      decide_read(conn);
      /* Its bytes may have led to an instance before we learn that it is gone; this is told only once. */
      if ((events & EPOLLERR) && conn->state == CONNECTING) decide_give_up(conn, GONE);
      else if ((events & EPOLLERR) && conn->state == OPEN) conn_reset(conn);
      break;
    case LINGERING: linger_read(conn); break;
    case CONNECTING:
      if (side == INSTANCE) decide_connected(conn);
      else if (events & EPOLLERR) decide_give_up(conn, GONE);
      break;
    case OPEN:
      if (events & EPOLLERR) conn_reset(conn);
      else {
        /* A fast sender would wake us up for each segment until its window is full. */
        if ((events & EPOLLIN) && relay_is_blocked(conn, side)) conn_mute(conn, side, true);
        else if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) relay_from(conn, side);
        if ((events & EPOLLOUT) && conn->state == OPEN) relay_from(conn, 1 - side);
      }
      break;
    default: break;
  }
}

/* What did not come to its end in this turn goes on; what ended is let go. */
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

void conns_expire(void) {
  for (enum state state = UNDECIDED; state < CLOSED; state++) {
    struct conn *conn;
    while ((conn = lists[state].first) && now_ms - conn->touched_ms >= timeout_of(state)) {
      if (state == UNDECIDED) decide_give_up(conn, HELLO_TIMEOUT);
      else if (state == CONNECTING) decide_connect_failed(conn, ETIMEDOUT);
      else if (state == OPEN) conn_reset(conn);
      else conn_end(conn);
    }
  }
}

uint32_t conns_next_due_ms(void) {
  uint32_t due = UINT32_MAX;
  for (enum state state = UNDECIDED; state < CLOSED; state++) {
    const struct conn *conn = lists[state].first;
    if (!conn) continue;
    uint32_t passed = now_ms - conn->touched_ms, timeout = timeout_of(state);
    uint32_t left = passed >= timeout ? 0 : timeout - passed;
    if (left < due) due = left;
  }
  return due;
}

void conns_end_all(void) {
  for (enum state state = UNDECIDED; state < CLOSED; state++)
    while (lists[state].first) conn_reset(lists[state].first);
}
