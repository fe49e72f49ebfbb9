/* Starts the plane: settings as KEY=VALUE arguments, the shared figures on descriptor 3. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"

enum { MAX_EVENTS = 512, STATS_FD = 3, USAGE = 2 };

struct options options;
struct shared_stats *stats;
struct table routes;
int epoll_fd;
uint32_t now_ms;

static void read_clock(void) {
  static uint64_t start_ms;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  uint64_t ms = (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
  if (start_ms == 0) start_ms = ms;
  now_ms = (uint32_t)(ms - start_ms);
}

static bool read_option(const char *key, const char *value) {
  const struct { const char *key; uint32_t *to; } numbers[] = {
      {"max_connections", &options.max_connections}, {"max_undecided", &options.max_undecided},
      {"max_per_client", &options.max_per_client}, {"max_per_instance", &options.max_per_instance},
      {"hello_timeout_ms", &options.hello_timeout_ms}, {"connect_timeout_ms", &options.connect_timeout_ms},
      {"idle_timeout_ms", &options.idle_timeout_ms}, {"orphan_ms", &options.orphan_ms},
      {"upgrade_drain_ms", &options.upgrade_drain_ms},
  };
  unsigned long number = strtoul(value, NULL, 10);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (strcmp(key, numbers[i].key) == 0) return *numbers[i].to = (uint32_t)number, true;
  if (strcmp(key, "port") == 0) return options.port = (uint16_t)number, true;
  if (strcmp(key, "instance_port") == 0) return options.instance_port = (uint16_t)number, true;
  if (strcmp(key, "share_port") == 0) return options.share_port = number != 0, true;
  if (strcmp(key, "replace") == 0) return options.replace = number != 0, true;
  if (strcmp(key, "handover") == 0) return options.handover_path = value, strlen(value) < MAX_PATH_BYTES;
  if (strcmp(key, "host") == 0 && options.host_count < MAX_LISTENERS)
    return options.hosts[options.host_count++] = value, true;
  return false;
}

/* For the tests: hellos from standard input, each cut in pieces, what each says to standard output. */
static int read_hellos(void) {
  static uint8_t wire[2 * MAX_HELLO_WIRE_BYTES];
  uint32_t length, cuts, cut;
  while (fread(&length, 4, 1, stdin) == 1 && fread(&cuts, 4, 1, stdin) == 1) {
    if (length > sizeof wire) return USAGE;
    uint8_t *exact = malloc(length ? length : 1); /* so that a sanitizer sees a read beyond it */
    struct hello_reader reader = {0};
    struct hello_name name = {0};
    enum hello_kind kind = HELLO_NEED_MORE;
    uint32_t have = 0;
    if (fread(wire, 1, length, stdin) != length) return USAGE;
    for (uint32_t i = 0; i < cuts; i++) {
      if (fread(&cut, 4, 1, stdin) != 1 || cut < have || cut > length) return USAGE;
      exact = realloc(exact, cut ? cut : 1);
      memcpy(exact + have, wire + have, cut - have);
      have = cut;
      if (kind == HELLO_NEED_MORE) kind = hello_read(&reader, exact, have, &name);
    }
    if (kind != HELLO_NAME) name.length = 0;
    putchar((int)kind);
    putchar(name.length);
    fwrite(name.text, 1, name.length, stdout);
    free(exact);
  }
  return fflush(stdout) == 0 ? 0 : 1;
}

static void raise_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static uint32_t least(uint32_t one, uint32_t other) { return one < other ? one : other; }

static int wait_ms(void) {
  if (conns_want_another_turn()) return 0;
  if (relay_is_coalescing()) return 1;
  uint32_t due = least(least(conns_next_due_ms(), control_due_in_ms()), listen_resume_in_ms());
  return due == UINT32_MAX ? -1 : (int)least(due, 60000);
}

static void dispatch(const struct epoll_event *event) {
  uint64_t data = event->data.u64;
  switch (data & TAG_MASK) {
    case TAG_LISTENER: accept_from((unsigned)(data >> 2)); break;
    case TAG_CONTROL: control_event((unsigned)(data >> 2)); break;
    default: conn_event((struct conn *)(uintptr_t)(data & ~(uint64_t)TAG_MASK), (int)(data & TAG_MASK), event->events);
  }
}

static void run(void) {
  static struct epoll_event events[MAX_EVENTS];
  uint32_t ticked_ms = 0;
  while (!control_is_over()) {
    int count = epoll_wait(epoll_fd, events, MAX_EVENTS, wait_ms());
    read_clock();
    for (int i = 0; i < count; i++) dispatch(&events[i]);
    if (relay_is_coalescing() && now_ms != ticked_ms) {
      relay_tick();
      ticked_ms = now_ms;
    }
    conns_expire();
    listen_resume_when_due();
    conns_turn_ended();
  }
}

int main(int count, char **arguments) {
  if (count == 2 && strcmp(arguments[1], "read-hellos") == 0) return read_hellos();
  for (int i = 1; i < count; i++) {
    char *equals = strchr(arguments[i], '=');
    if (!equals) return USAGE;
    *equals = 0;
    if (!read_option(arguments[i], equals + 1)) return USAGE;
  }
  signal(SIGPIPE, SIG_IGN);
  /* Signals to a terminal's or a service's whole group are for the TypeScript side, which says when to stop. */
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  stats = mmap(NULL, sizeof *stats, PROT_READ | PROT_WRITE, MAP_SHARED, STATS_FD, 0);
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (stats == MAP_FAILED || epoll_fd < 0) return 1;
  close(STATS_FD);
  stats->open = stats->routes = stats->connection_bytes = 0;
  raise_descriptor_limit();
  table_seed();
  read_clock();
  if (!control_open()) return 1;
  run();
  conns_end_all();
  return 0;
}
