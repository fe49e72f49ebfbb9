#include "loop.h"

#include <time.h>

/* The kernel adds some 50 us. */
enum { REST_NS = 50 * 1000 };

uint32_t now_ms;
static int epoll_fd;

static void read_clock(void) {
  static uint64_t start_ms;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  uint64_t ms = (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
  if (start_ms == 0) start_ms = ms;
  now_ms = (uint32_t)(ms - start_ms);
}

/* The coarse clock is up to a tick behind: what has just begun would have begun a second before it was asked for. */
uint32_t unix_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (uint32_t)time.tv_sec;
}

bool loop_open(void) {
  read_clock();
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  return epoll_fd >= 0;
}

static bool control(int operation, int fd, uint32_t events, uint64_t data) {
  struct epoll_event event = {events, {.u64 = data}};
  return epoll_ctl(epoll_fd, operation, fd, &event) == 0;
}

bool loop_watch(int fd, uint32_t events, uint64_t data) { return control(EPOLL_CTL_ADD, fd, events, data); }
bool loop_change(int fd, uint32_t events, uint64_t data) { return control(EPOLL_CTL_MOD, fd, events, data); }
void loop_forget(int fd) { control(EPOLL_CTL_DEL, fd, 0, 0); }

void loop_rest(void) {
  const struct timespec rest = {0, REST_NS};
  nanosleep(&rest, NULL);
}

int loop_wait(struct epoll_event *events, int count, int wait_ms) {
  int ready = epoll_wait(epoll_fd, events, count, wait_ms);
  read_clock();
  return ready;
}
