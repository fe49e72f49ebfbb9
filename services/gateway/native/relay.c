/*
 * Bytes both ways. Little is copied through one buffer; much is spliced, so that the kernel does the copying and this process
 * never sees the bytes. A direction that moves a lot is read when a pipe would be full, or once in a millisecond: TLS comes in
 * records of 16 KiB, and waking up for each of them costs more than moving it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"

enum {
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

uint8_t copy_buffer[COPY_BYTES];

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
  give_pipe(flow);
  memory_give(flow);
  conn->flow[from] = NULL;
}

void relay_release(struct conn *conn) {
  release_flow(conn, CLIENT);
  release_flow(conn, INSTANCE);
}

bool relay_is_coalescing(void) { return coalescing != NULL; }

/*
 * Once in a millisecond: what waits for more to come is read, unless enough came by itself. A direction that is not fast any
 * more is again read as soon as something comes.
 */
void relay_tick(void) {
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
    conn_again(conn);
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

bool relay_is_blocked(const struct conn *conn, int from) {
  bool has_rest = conn->waiting[from] || (conn->flow[from] && conn->flow[from]->in_pipe > 0);
  return has_rest && !(conn->flags[1 - from] & WRITABLE);
}

enum step { GO_ON, WAIT, BROKEN };

static enum step send_waiting(struct conn *conn, int from) {
  struct chunk *chunk = conn->waiting[from];
  int to = 1 - from;
  if (!(conn->flags[to] & WRITABLE)) return WAIT;
  ssize_t sent = send(conn->fd[to], chunk->bytes + chunk->start, chunk->length - chunk->start, MSG_NOSIGNAL);
  if (sent < 0 && errno == EINTR) return GO_ON;
  if (sent < 0 && errno != EAGAIN) return BROKEN;
  if (sent > 0) chunk->start += (uint32_t)sent;
  if (chunk->start < chunk->length) {
    conn->flags[to] &= (uint8_t)~WRITABLE;
    return WAIT;
  }
  memory_give(chunk);
  conn->waiting[from] = NULL;
  return GO_ON;
}

static enum step splice_out(struct conn *conn, struct flow *flow) {
  int to = 1 - flow->from;
  if (!(conn->flags[to] & WRITABLE)) return WAIT;
  ssize_t sent = splice(flow->pipe[0], NULL, conn->fd[to], NULL, flow->in_pipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (sent < 0 && errno == EINTR) return GO_ON;
  if (sent < 0 && errno != EAGAIN) return BROKEN;
  if (sent <= 0) {
    conn->flags[to] &= (uint8_t)~WRITABLE;
    return WAIT;
  }
  flow->in_pipe -= (uint32_t)sent;
  return GO_ON;
}

/* Our sending to a side ends where the other's has; with both ended all is done, and closing says so to both. */
static enum step pass_end(struct conn *conn, int from) {
  int to = 1 - from;
  if (conn->flags[to] & SHUT) return WAIT;
  if (conn->flags[from] & SHUT) {
    conn_end(conn);
    return WAIT;
  }
  if (shutdown(conn->fd[to], SHUT_WR) < 0 && errno != ENOTCONN) return BROKEN;
  conn->flags[to] |= SHUT;
  release_flow(conn, from);
  return WAIT;
}

static enum step copy_in(struct conn *conn, int from) {
  int to = 1 - from;
  /* Known before the read, so that a read that comes back short has taken all up to the end. */
  bool is_last = conn->flags[from] & PEER_CLOSED;
  ssize_t size = recv(conn->fd[from], copy_buffer, sizeof copy_buffer, 0);
  if (size < 0 && errno == EINTR) return GO_ON;
  if (size < 0 && errno != EAGAIN) return BROKEN;
  if (size < 0) {
    conn->flags[from] &= (uint8_t)~READABLE;
    return WAIT;
  }
  if (size == 0) {
    conn->flags[from] |= ENDED;
    return GO_ON;
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
    if (sent < 0 && errno != EAGAIN) return BROKEN;
    if (sent < 0) sent = 0;
  }
  if (sent == size) return GO_ON;
  conn->flags[to] &= (uint8_t)~WRITABLE;
  uint32_t rest = (uint32_t)(size - sent);
  struct chunk *chunk = memory_take(sizeof *chunk + rest);
  if (!chunk) return BROKEN;
  *chunk = (struct chunk){0, rest};
  memcpy(chunk->bytes, copy_buffer + sent, rest);
  conn->waiting[from] = chunk;
  return GO_ON;
}

static enum step splice_in(struct conn *conn, struct flow *flow) {
  int from = flow->from;
  ssize_t size = splice(conn->fd[from], NULL, flow->pipe[1], NULL, PIPE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (size < 0 && errno == EINTR) return GO_ON;
  if (size < 0 && errno != EAGAIN) return BROKEN;
  if (size > 0) {
    conn->bytes[from] += (uint64_t)size;
    flow->in_pipe += (uint32_t)size;
    if (!flow->coalescing) {
      if (size < COPY_BYTES / 4) conn->full_reads[from] = 0;
    }
    return GO_ON;
  }
  if (size == 0) conn->flags[from] |= ENDED;
  else conn->flags[from] &= (uint8_t)~READABLE;
  give_pipe(flow);
  return size == 0 ? GO_ON : WAIT;
}

static enum step step_from(struct conn *conn, int from) {
  struct flow *flow = conn->flow[from];
  if (conn->waiting[from]) return send_waiting(conn, from);
  if (flow && flow->in_pipe > 0) return splice_out(conn, flow);
  if (conn->flags[from] & MUTED) conn_mute(conn, from, false);
  if (conn->flags[from] & ENDED) return pass_end(conn, from);
  if (!(conn->flags[from] & READABLE)) return WAIT;
  judge_speed(conn, from);
  flow = conn->flow[from];
  if (conn->full_reads[from] >= FULL_READS_BEFORE_SPLICE || (flow && flow->coalescing)) {
    if (!flow) flow = flow_of(conn, from);
    if (flow && (flow->pipe[0] >= 0 || take_pipe(flow->pipe))) return splice_in(conn, flow);
  }
  if (flow) give_pipe(flow);
  return copy_in(conn, from);
}

void relay_from(struct conn *conn, int from) {
  uint64_t limit = conn->bytes[from] + TURN_BYTES;
  conn_touch(conn);
  for (;;) {
    enum step step = step_from(conn, from);
    if (step == BROKEN) {
      conn_reset(conn);
      return;
    }
    if (step == WAIT) return;
    if (conn->bytes[from] >= limit) {
      conn_again(conn);
      return;
    }
  }
}

void relay_both(struct conn *conn) {
  relay_from(conn, CLIENT);
  if (conn->state == OPEN) relay_from(conn, INSTANCE);
}
