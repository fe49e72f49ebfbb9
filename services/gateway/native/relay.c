#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop.h"
#include "memory.h"
#include "stall.h"

enum {
  PIPE_BYTES = 1024 * 1024,
  FULL_READS_BEFORE_SPLICE = 2,
  TURN_BYTES = 4 * 1024 * 1024, /* of one direction before others have their turn */
  MAX_SPARE_PIPES = 64,
  COALESCE_AFTER_BYTES = 1024 * 1024,
  FAST_WINDOW_MS = 4,
  FAST_WINDOW_BYTES = 256 * 1024,
  COALESCED_BYTES = PIPE_BYTES,
  SLOW_TICK_BYTES = 32 * 1024,
  MAX_SLOW_TICKS = 4,
};

/* Bytes read from one side that the other has not taken yet. */
struct chunk {
  uint32_t start, length;
  uint8_t bytes[];
};

/* What a direction needs only while much is moving. */
struct flow {
  struct stall stall;
  struct conn *conn;
  struct flow *next, **previous; /* among those whose reads wait for a larger amount */
  int pipe[2];
  uint32_t in_pipe;
  uint32_t since_ms;
  uint64_t bytes_then;
  uint8_t from, slow_ticks;
  bool coalescing;
};

static int spare_pipes[MAX_SPARE_PIPES][2];
static unsigned spare_count;
static struct flow *coalescing;

static bool take_pipe(int pipe[2]) {
  if (spare_count > 0) {
    memcpy(pipe, spare_pipes[--spare_count], 2 * sizeof(int));
    return true;
  }
  if (pipe2(pipe, O_NONBLOCK | O_CLOEXEC) < 0) return false;
  fcntl(pipe[1], F_SETPIPE_SZ, PIPE_BYTES); /* where it may not be as large, a smaller one works too */
  return true;
}

static void give_pipe(struct flow *flow) {
  if (flow->pipe[0] < 0) return;
  if (flow->in_pipe == 0 && spare_count < MAX_SPARE_PIPES)
    memcpy(spare_pipes[spare_count++], flow->pipe, 2 * sizeof(int));
  else {
    close(flow->pipe[0]);
    close(flow->pipe[1]);
  }
  flow->pipe[0] = flow->pipe[1] = -1;
  flow->in_pipe = 0;
}

static struct flow *flow_of(struct conn *conn, int from) {
  if (conn->flow[from]) return conn->flow[from];
  struct flow *flow = memory_take(sizeof *flow);
  if (!flow) return NULL;
  *flow = (struct flow){.conn = conn, .pipe = {-1, -1}, .from = (uint8_t)from, .since_ms = now_ms,
                        .bytes_then = conn->bytes[from]};
  return conn->flow[from] = flow;
}

static void set_read_amount(const struct flow *flow, int bytes) {
  int fd = flow->conn->fd[flow->from];
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

static void start_coalescing(struct flow *flow) {
  flow->coalescing = true;
  flow->slow_ticks = 0;
  flow->since_ms = now_ms;
  flow->bytes_then = flow->conn->bytes[flow->from];
  if ((flow->next = coalescing)) coalescing->previous = &flow->next;
  flow->previous = &coalescing;
  coalescing = flow;
  set_read_amount(flow, COALESCED_BYTES);
}

static void stop_coalescing(struct flow *flow) {
  if (!flow->coalescing) return;
  flow->coalescing = false;
  *flow->previous = flow->next;
  if (flow->next) flow->next->previous = flow->previous;
}

static void release_flow(struct conn *conn, int from) {
  struct flow *flow = conn->flow[from];
  if (!flow) return;
  stop_coalescing(flow);
  stall_forget(&flow->stall);
  give_pipe(flow);
  memory_give(flow);
  conn->flow[from] = NULL;
}

void relay_release(struct conn *conn) {
  release_flow(conn, CLIENT);
  release_flow(conn, INSTANCE);
  for (int from = 0; from < 2; from++) {
    memory_give(conn->waiting[from]);
    conn->waiting[from] = NULL;
  }
}

bool relay_keep(struct conn *conn, int from, const uint8_t *bytes, uint32_t length) {
  struct chunk *chunk = memory_take(sizeof *chunk + length);
  if (!chunk) return false;
  *chunk = (struct chunk){0, length};
  memcpy(chunk->bytes, bytes, length);
  conn->waiting[from] = chunk;
  return true;
}

bool relay_is_coalescing(void) { return coalescing != NULL; }

/*
 * Once in a millisecond: what waits for more to come is read, unless enough came by itself. A direction that is not fast any
 * more is again read as soon as something comes.
 */
void relay_tick(void (*due)(struct conn *conn)) {
  struct flow *next;
  for (struct flow *flow = coalescing; flow; flow = next) {
    next = flow->next;
    struct conn *conn = flow->conn;
    uint64_t moved = conn->bytes[flow->from] - flow->bytes_then;
    if (now_ms == flow->since_ms) continue;
    flow->bytes_then = conn->bytes[flow->from];
    flow->slow_ticks = moved < SLOW_TICK_BYTES ? flow->slow_ticks + 1 : 0;
    if (moved >= COALESCED_BYTES) continue;
    if (flow->slow_ticks == MAX_SLOW_TICKS) {
      stop_coalescing(flow);
      set_read_amount(flow, 1);
      flow->since_ms = now_ms;
    }
    conn->flags[flow->from] |= READABLE;
    due(conn);
  }
}

/* A direction that has moved much, and much just now, is coalesced. */
static void judge_speed(struct conn *conn, int from) {
  if (conn->bytes[from] < COALESCE_AFTER_BYTES) return;
  struct flow *flow = flow_of(conn, from);
  if (!flow || flow->coalescing) return;
  if (now_ms - flow->since_ms > FAST_WINDOW_MS) {
    flow->since_ms = now_ms;
    flow->bytes_then = conn->bytes[from];
  } else if (conn->bytes[from] - flow->bytes_then > FAST_WINDOW_BYTES) {
    start_coalescing(flow);
  }
}

/* Whether what one side sends has to wait, since the other has not taken what came before. */
static bool is_blocked(const struct conn *conn, int from) {
  bool has_rest = conn->waiting[from] || (conn->flow[from] && conn->flow[from]->in_pipe > 0);
  return has_rest && !(conn->flags[1 - from] & WRITABLE);
}

static uint32_t waiting_of(const struct conn *conn, int from) {
  const struct chunk *chunk = conn->waiting[from];
  const struct flow *flow = conn->flow[from];
  return (chunk ? chunk->length - chunk->start : 0) + (flow ? flow->in_pipe : 0);
}

struct stall_view relay_view(const struct conn *conn, int from) {
  uint32_t waiting = waiting_of(conn, from);
  return (struct stall_view){conn->bytes[from] - waiting, waiting, is_blocked(conn, from)};
}

/* Where there is no memory for it, nobody looks. */
static void watch(struct conn *conn, int from) {
  struct flow *flow = flow_of(conn, from);
  if (flow) stall_watch(&flow->stall, conn, from, conn->bytes[from] - waiting_of(conn, from));
}

static enum relayed send_waiting(struct conn *conn, int from) {
  struct chunk *chunk = conn->waiting[from];
  int to = 1 - from;
  if (!(conn->flags[to] & WRITABLE)) return RELAY_WAITS;
  ssize_t sent = send(conn->fd[to], chunk->bytes + chunk->start, chunk->length - chunk->start, MSG_NOSIGNAL);
  if (sent < 0 && errno == EINTR) return RELAY_GOES_ON;
  if (sent < 0 && errno != EAGAIN) return RELAY_BROKEN;
  if (sent > 0) chunk->start += (uint32_t)sent;
  if (chunk->start < chunk->length) {
    conn->flags[to] &= (uint8_t)~WRITABLE;
    return RELAY_WAITS;
  }
  memory_give(chunk);
  conn->waiting[from] = NULL;
  return RELAY_GOES_ON;
}

static enum relayed splice_out(struct conn *conn, struct flow *flow) {
  int to = 1 - flow->from;
  if (!(conn->flags[to] & WRITABLE)) return RELAY_WAITS;
  ssize_t sent = splice(flow->pipe[0], NULL, conn->fd[to], NULL, flow->in_pipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (sent < 0 && errno == EINTR) return RELAY_GOES_ON;
  if (sent < 0 && errno != EAGAIN) return RELAY_BROKEN;
  if (sent <= 0) {
    conn->flags[to] &= (uint8_t)~WRITABLE;
    return RELAY_WAITS;
  }
  flow->in_pipe -= (uint32_t)sent;
  return RELAY_GOES_ON;
}

/* Who has no flow is owed little. */
static bool is_on_its_way(const struct conn *conn) {
  return (conn->flow[CLIENT] && stall_is_on_its_way(conn, CLIENT)) || (conn->flow[INSTANCE] && stall_is_on_its_way(conn, INSTANCE));
}

/*
 * Our sending to a side ends where the other's has; with both ended all is done, and closing says so to both. But what a receiver has yet to
 * take would be the kernel's memory for minutes, without counting as anybody's: until then, it stays.
 */
static enum relayed pass_end(struct conn *conn, int from) {
  struct flow *flow = conn->flow[from];
  int to = 1 - from;
  if ((conn->flags[from] & SHUT) && !is_on_its_way(conn)) return RELAY_OVER;
  if (conn->flags[to] & SHUT) return RELAY_WAITS;
  if (shutdown(conn->fd[to], SHUT_WR) < 0 && errno != ENOTCONN) return RELAY_BROKEN;
  conn->flags[to] |= SHUT;
  if (flow) { /* what was sent may still be on its way */
    stop_coalescing(flow);
    give_pipe(flow);
  }
  return RELAY_WAITS;
}

static enum relayed copy_in(struct conn *conn, int from) {
  int to = 1 - from;
  /* Known before the read, so that a read that comes back short has taken all up to the end. */
  bool is_last = conn->flags[from] & PEER_CLOSED;
  ssize_t size = recv(conn->fd[from], copy_buffer, sizeof copy_buffer, 0);
  if (size < 0 && errno == EINTR) return RELAY_GOES_ON;
  if (size < 0 && errno != EAGAIN) return RELAY_BROKEN;
  if (size < 0) {
    conn->flags[from] &= (uint8_t)~READABLE;
    return RELAY_WAITS;
  }
  if (size == 0) {
    conn->flags[from] |= ENDED;
    return RELAY_GOES_ON;
  }
  conn->bytes[from] += (uint64_t)size;
  if (size < COPY_BYTES) {
    conn->full_reads[from] = 0;
    conn->flags[from] = (uint8_t)(is_last ? conn->flags[from] | ENDED : conn->flags[from] & ~READABLE);
  } else if (conn->full_reads[from] < FULL_READS_BEFORE_SPLICE) conn->full_reads[from]++;
  ssize_t sent = 0;
  if (conn->flags[to] & WRITABLE) {
    do sent = send(conn->fd[to], copy_buffer, (size_t)size, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN) return RELAY_BROKEN;
    if (sent < 0) sent = 0;
  }
  if (sent == size) return RELAY_GOES_ON;
  conn->flags[to] &= (uint8_t)~WRITABLE;
  return relay_keep(conn, from, copy_buffer + sent, (uint32_t)(size - sent)) ? RELAY_GOES_ON : RELAY_BROKEN;
}

static enum relayed splice_in(struct conn *conn, struct flow *flow) {
  int from = flow->from;
  ssize_t size = splice(conn->fd[from], NULL, flow->pipe[1], NULL, PIPE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (size < 0 && errno == EINTR) return RELAY_GOES_ON;
  if (size < 0 && errno != EAGAIN) return RELAY_BROKEN;
  if (size > 0) {
    conn->bytes[from] += (uint64_t)size;
    flow->in_pipe += (uint32_t)size;
    if (!flow->coalescing) {
      if (size < COPY_BYTES / 4) conn->full_reads[from] = 0;
    }
    return RELAY_GOES_ON;
  }
  if (size == 0) conn->flags[from] |= ENDED;
  else conn->flags[from] &= (uint8_t)~READABLE;
  give_pipe(flow);
  return size == 0 ? RELAY_GOES_ON : RELAY_WAITS;
}

static enum relayed step_from(struct conn *conn, int from) {
  struct flow *flow = conn->flow[from];
  if (conn->waiting[from]) return send_waiting(conn, from);
  if (flow && flow->in_pipe > 0) return splice_out(conn, flow);
  if (conn->flags[from] & MUTED) conn_mute(conn, from, false);
  if (conn->flags[from] & ENDED) return pass_end(conn, from);
  if (!(conn->flags[from] & READABLE)) return RELAY_WAITS;
  judge_speed(conn, from);
  flow = conn->flow[from];
  if (conn->full_reads[from] >= FULL_READS_BEFORE_SPLICE || (flow && flow->coalescing)) {
    if (!flow) flow = flow_of(conn, from);
    if (flow && (flow->pipe[0] >= 0 || take_pipe(flow->pipe))) return splice_in(conn, flow);
  }
  if (flow) give_pipe(flow);
  return copy_in(conn, from);
}

enum relayed relay_from(struct conn *conn, int from) {
  uint64_t limit = conn->bytes[from] + TURN_BYTES;
  enum relayed step;
  do step = step_from(conn, from);
  while (step == RELAY_GOES_ON && conn->bytes[from] < limit);
  /* Who has no flow has moved little, and that at once. */
  if (step == RELAY_WAITS && (conn->flow[from] || is_blocked(conn, from))) watch(conn, from);
  return step;
}

void relay_watch(struct conn *conn) {
  for (int from = 0; from < 2; from++)
    if (stall_is_on_its_way(conn, from)) watch(conn, from);
}

enum relayed relay_sent(struct conn *conn, int from) {
  if (!is_blocked(conn, from)) return relay_from(conn, from);
  /* A fast sender would wake us up for each segment until its window is full. */
  conn_mute(conn, from, true);
  return RELAY_WAITS;
}
