#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handover.h"
#include "hello.h"
#include "listen.h"
#include "loop.h"
#include "options.h"
#include "quic_socket.h"
#include "stats.h"

enum { CONTROL_INPUT = 0, CONTROL_OUTPUT = 1, CONTROL_HANDOVER = 2 };
enum { MAX_FRAME_BYTES = 1024 * 1024, HEADER_BYTES = 5, READ_BYTES = 64 * 1024 };
/* What may wait before lines of the access log, and who was refused, are dropped. The rest is no more than answers to what was asked. */
enum { MAX_LOGGED_BYTES = 8 * 1024 * 1024 };
/* Without a byte being read. */
enum { LAST_WORDS_MS = 5000 };

static struct {
  uint8_t *bytes;
  uint32_t length, capacity;
} input, output;

static struct table routes, staged;
static bool is_staging, is_orphan, is_draining, has_deadline;
static uint32_t deadline_ms;
static uint64_t read_bytes;

static bool reserve(uint8_t **bytes, uint32_t *capacity, uint32_t wanted) {
  if (wanted <= *capacity) return true;
  uint32_t larger = *capacity ? *capacity : READ_BYTES;
  while (larger < wanted) larger *= 2;
  uint8_t *grown = realloc(*bytes, larger);
  if (!grown) return false;
  *bytes = grown;
  *capacity = larger;
  return true;
}

static void flush_output(void) {
  uint32_t sent = 0;
  while (sent < output.length) {
    ssize_t size = write(STDOUT_FILENO, output.bytes + sent, output.length - sent);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) break;
    sent += (uint32_t)size;
  }
  if (sent == 0) return;
  memmove(output.bytes, output.bytes + sent, output.length - sent);
  output.length -= sent;
}

void control_tell(enum report type, const void *payload, uint32_t length) {
  uint32_t size = length + 1;
  bool may_be_dropped = type == REPORT_ACCESS || type == REPORT_REFUSED;
  if (is_orphan || (may_be_dropped && output.length + size + 4 > MAX_LOGGED_BYTES)) return;
  if (!reserve(&output.bytes, &output.capacity, output.length + size + 4)) {
    /* Whoever asked stops waiting by itself. Without the rest it is not known what we do. */
    if (may_be_dropped || type == REPORT_ANSWER) return;
    abort();
  }
  memcpy(output.bytes + output.length, &size, 4);
  output.bytes[output.length + 4] = (uint8_t)type;
  if (length) memcpy(output.bytes + output.length + HEADER_BYTES, payload, length);
  output.length += size + 4;
  flush_output();
}

void control_finish(void) {
  struct pollfd told = {.fd = STDOUT_FILENO, .events = POLLOUT};
  for (flush_output(); !is_orphan && output.length > 0; flush_output())
    /* A socket whose reader is gone may be said to be writable for ever. */
    if (poll(&told, 1, LAST_WORDS_MS) <= 0 || (told.revents & (POLLERR | POLLHUP | POLLNVAL))) return;
}

static void set_deadline(uint32_t ms) {
  has_deadline = true;
  deadline_ms = now_ms + ms;
}

uint32_t control_due_in_ms(void) {
  if (!has_deadline) return UINT32_MAX;
  int32_t left = (int32_t)(deadline_ms - now_ms);
  return left > 0 ? (uint32_t)left : 0;
}

bool control_is_over(void) {
  if (is_draining && stats->open == 0) return true;
  return has_deadline && control_due_in_ms() == 0;
}

static uint64_t tag_of(unsigned which) { return which << TAG_BITS | TAG_CONTROL; }

static void start_draining(uint32_t ms) {
  listen_stop();
  handover_stop();
  is_draining = true;
  set_deadline(ms);
}

static void do_listen(void) {
  struct listening opened;
  struct listen_failure failure;
  if (!listen_all(&opened, &failure)) {
    control_tell(REPORT_NOT_LISTENING, &failure, sizeof failure);
    return;
  }
  handover_serve(tag_of(CONTROL_HANDOVER));
  control_tell(REPORT_LISTENING, &opened, sizeof opened);
}

static void put(const char *name, uint8_t length, const uint8_t *address, uint8_t flags) {
  if (!is_staging) {
    table_put(&routes, name, length, address, flags);
    return;
  }
  /* A route that stays the same stays the same record: its last attempts and its open connections count on. */
  struct route *same = table_find(&routes, name, length);
  if (same && same->flags == flags && memcmp(same->address, address, 16) == 0) {
    table_remove(&staged, name, length);
    table_share(&staged, same);
  } else {
    table_put(&staged, name, length, address, flags);
  }
}

/* Of each: 1 to put or 0 to remove, flags, the name's length, the name, and the address to put. */
static bool change_routes(const uint8_t *at, const uint8_t *end) {
  while (at < end) {
    if (end - at < 3) return false;
    uint8_t is_put = at[0], flags = at[1], length = at[2];
    const char *name = (const char *)at + 3;
    if (end - at < 3 + length + (is_put ? 16 : 0)) return false;
    at += 3 + length + (is_put ? 16 : 0);
    if (is_put) put(name, length, (const uint8_t *)name + length, flags);
    else table_remove(is_staging ? &staged : &routes, name, length);
  }
  return true;
}

static bool commit(void) {
  if (!is_staging) return false;
  struct table old = routes;
  routes = staged;
  staged = (struct table){0};
  is_staging = false;
  table_clear(&old);
  return true;
}

static void answer_question(const uint8_t *payload, uint32_t length) {
  struct route_answer answer = {0};
  if (length < 4 || length - 4 > MAX_NAME_BYTES) return;
  memcpy(&answer.id, payload, 4);
  const struct route *route = table_find(&routes, (const char *)payload + 4, (uint8_t)(length - 4));
  if (route) {
    answer.is_known = 1;
    answer.open = route->open;
    answer.connected_at = route->connected_at;
    answer.failed_at = route->failed_at;
    answer.failure = route->failure;
    answer.quic_answered_at = route->answered_at;
    answer.quic_refused_at = route->refused_at;
    if (route->traffic) {
      answer.since = route->traffic->since;
      answer.connections = route->traffic->connections;
      answer.bytes_to_instance = route->traffic->to_instance;
      answer.bytes_to_client = route->traffic->to_client;
    }
  }
  control_tell(REPORT_ANSWER, &answer, sizeof answer);
}

static uint32_t uint32_in(const uint8_t *payload, uint32_t length) {
  uint32_t value = 0;
  memcpy(&value, payload, length < 4 ? length : 4);
  return value;
}

static bool obey(uint8_t type, const uint8_t *payload, uint32_t length) {
  switch (type) {
    case COMMAND_BEGIN:
      table_clear(&staged);
      is_staging = true;
      table_reserve(&staged, uint32_in(payload, length));
      return true;
    case COMMAND_CHANGE: return change_routes(payload, payload + length);
    case COMMAND_COMMIT: return commit();
    case COMMAND_LISTEN: do_listen(); return true;
    case COMMAND_QUESTION: answer_question(payload, length); return true;
    case COMMAND_STOP: start_draining(uint32_in(payload, length)); return true;
    default: return false;
  }
}

/* Whoever told us what to do is gone. Another may come for the listeners; until then all goes on as it was. */
static void orphaned(void) {
  is_orphan = true;
  loop_forget(STDIN_FILENO);
  loop_forget(STDOUT_FILENO);
  if (!is_draining) set_deadline(options.handover_path ? options.orphan_ms : 0);
}

static void read_input(void) {
  for (;;) {
    if (is_orphan) return;
    if (!reserve(&input.bytes, &input.capacity, input.length + READ_BYTES)) abort();
    ssize_t size = read(STDIN_FILENO, input.bytes + input.length, READ_BYTES);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size <= 0) {
      orphaned();
      return;
    }
    input.length += (uint32_t)size;
    read_bytes += (uint64_t)size;
    uint32_t at = 0, frame;
    while (input.length - at >= HEADER_BYTES) {
      memcpy(&frame, input.bytes + at, 4);
      if (frame == 0 || frame > MAX_FRAME_BYTES) abort();
      if (input.length - at - 4 < frame) break;
      if (!obey(input.bytes[at + 4], input.bytes + at + HEADER_BYTES, frame - 1)) abort();
      at += 4 + frame;
    }
    memmove(input.bytes, input.bytes + at, input.length - at);
    input.length -= at;
    if (size < READ_BYTES) break;
  }
}

struct route *control_find_route(const char *name, uint8_t length) {
  /* Without a system call where nothing was said, which is nearly always. */
  if (__atomic_load_n(&stats->announced_bytes, __ATOMIC_ACQUIRE) != read_bytes) read_input();
  return table_find(&routes, name, length);
}

struct route *control_known_route(const char *name, uint8_t length) { return table_find(&routes, name, length); }

static void serve_handover(void) {
  int fds[MAX_HANDED];
  unsigned count = listen_descriptors(fds);
  quic_socket_tell_more(false);
  if (!handover_give(fds, count, is_orphan)) {
    quic_socket_tell_more(true);
    return;
  }
  control_tell(REPORT_HANDED_OVER, NULL, 0);
  start_draining(options.upgrade_drain_ms);
}

void control_event(unsigned which) {
  if (which == CONTROL_INPUT) read_input();
  else if (which == CONTROL_OUTPUT) flush_output();
  else serve_handover();
}

static bool open_pipe(int fd, uint32_t events, unsigned which) {
  return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && loop_watch(fd, events, tag_of(which));
}

bool control_open(void) {
  table_seed();
  /* Nothing waits until somebody reads what is said there. */
  fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
  return open_pipe(STDIN_FILENO, EPOLLIN, CONTROL_INPUT) &&
         open_pipe(STDOUT_FILENO, EPOLLOUT | EPOLLET, CONTROL_OUTPUT);
}
