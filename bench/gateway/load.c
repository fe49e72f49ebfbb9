/*
 * The client and the instance of the gateway's bench: one epoll thread each, no TLS of its own but bytes of the same shape.
 *   load serve PORT                           the instance, on [::1]
 *   load conn|ping|down PORT COUNT PARALLEL NAMES
 * conn: so many new connections of two round trips; ping: so many small exchanges on kept connections; down: so many MB.
 * Prints "units seconds p50_us p99_us".
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HELLO = 517, FIRST_ANSWER = 1105, ASK = 185, ANSWER = 1305, BLOCK = 1 << 20, MAX_FDS = 65536 };
enum { MODE_CONN, MODE_PING, MODE_DOWN };

static uint8_t block[BLOCK];
static int ep;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void watch(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct epoll_event event = {EPOLLIN | EPOLLRDHUP, {.fd = fd}};
  epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event);
}

static struct { uint32_t got, stage; uint64_t left; } server[MAX_FDS];

static void stream_on(int fd) {
  while (server[fd].left > 0) {
    ssize_t n = send(fd, block, server[fd].left < BLOCK ? server[fd].left : BLOCK, MSG_NOSIGNAL);
    if (n < 0) break;
    server[fd].left -= (uint64_t)n;
  }
  struct epoll_event event = {EPOLLIN | (server[fd].left ? EPOLLOUT : 0), {.fd = fd}};
  epoll_ctl(ep, EPOLL_CTL_MOD, fd, &event);
}

/* A request's first byte says what is wanted: 'A' the small answer, 'D' and 8 bytes so many bytes. */
static void serve_event(int fd) {
  static uint8_t bytes[65536];
  ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN) { if (server[fd].left) stream_on(fd); return; }
  if (n <= 0) { close(fd); return; }
  server[fd].got += (uint32_t)n;
  if (server[fd].stage == 0 && server[fd].got >= HELLO) {
    server[fd].stage = 1;
    server[fd].got -= HELLO;
    send(fd, block, FIRST_ANSWER, MSG_NOSIGNAL);
  } else if (server[fd].stage == 1 && server[fd].got >= ASK) {
    server[fd].got -= ASK;
    if (bytes[0] == 'D') { memcpy(&server[fd].left, bytes + 1, 8); stream_on(fd); }
    else send(fd, block, ANSWER, MSG_NOSIGNAL);
  }
}

static int serve(int port) {
  int listener = socket(AF_INET6, SOCK_STREAM, 0), on = 1;
  struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_loopback};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, 4096) < 0) return 1;
  struct epoll_event event = {EPOLLIN, {.fd = listener}}, events[256];
  epoll_ctl(ep, EPOLL_CTL_ADD, listener, &event);
  puts("ready");
  fflush(stdout);
  for (;;) {
    int count = epoll_wait(ep, events, 256, -1);
    for (int i = 0; i < count; i++) {
      int fd = events[i].data.fd;
      if (fd != listener) { serve_event(fd); continue; }
      int accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
      if (accepted < 0) continue;
      memset(&server[accepted], 0, sizeof server[accepted]);
      watch(accepted);
    }
  }
}

/* A ClientHello of 517 bytes with the name of one route. */
static void make_hello(uint8_t *out, unsigned index) {
  char name[64];
  int length = snprintf(name, sizeof name, "h%u.raw.test", index);
  memset(out, 0, HELLO);
  const uint8_t head[] = {22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3};
  memcpy(out, head, sizeof head);
  int at = 43;
  out[at++] = 32; at += 32;
  out[at++] = 0; out[at++] = 2; out[at++] = 0x13; out[at++] = 1; out[at++] = 1; out[at++] = 0;
  int extensions = HELLO - at - 2;
  out[at++] = (uint8_t)(extensions >> 8); out[at++] = (uint8_t)extensions;
  const uint8_t sni[] = {0, 0, 0, (uint8_t)(length + 5), 0, (uint8_t)(length + 3), 0, 0, (uint8_t)length};
  memcpy(out + at, sni, sizeof sni); at += (int)sizeof sni;
  memcpy(out + at, name, (size_t)length); at += length;
  int padding = HELLO - at - 4;
  out[at++] = 0; out[at++] = 21; out[at++] = (uint8_t)(padding >> 8); out[at++] = (uint8_t)padding;
}

static struct { uint64_t got; int stage; double since; } client[MAX_FDS];
static uint64_t total, started, finished, per_stream, received;
static int mode, port, names, open_now;
static double *times;
static uint64_t time_count;

static void start_one(void) {
  static uint8_t hello[HELLO];
  static unsigned next;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (fd < 0 || fd >= MAX_FDS) { perror("socket"); exit(1); }
  client[fd].got = 0; client[fd].stage = 0; client[fd].since = now();
  if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS) { perror("connect"); exit(1); }
  make_hello(hello, next++ % (unsigned)names);
  if (send(fd, hello, HELLO, MSG_NOSIGNAL) != HELLO) { perror("hello"); exit(1); }
  watch(fd);
  started++; open_now++;
}

static void ask(int fd) {
  uint8_t bytes[ASK] = {mode == MODE_DOWN ? 'D' : 'A'};
  if (mode == MODE_DOWN) memcpy(bytes + 1, &per_stream, 8);
  client[fd].got = 0;
  if (mode != MODE_CONN) client[fd].since = now();
  send(fd, bytes, ASK, MSG_NOSIGNAL);
}

static void done_one(int fd) {
  times[time_count++ % (1 << 20)] = now() - client[fd].since;
  finished++;
  if (mode == MODE_PING && finished + (uint64_t)open_now <= total) { ask(fd); return; }
  close(fd);
  open_now--;
  if (mode == MODE_CONN && started < total) start_one();
}

static void client_event(int fd) {
  static uint8_t bytes[65536];
  int flags = MSG_DONTWAIT | (mode == MODE_DOWN && client[fd].stage ? MSG_TRUNC : 0);
  ssize_t n = recv(fd, bytes, flags & MSG_TRUNC ? BLOCK : sizeof bytes, flags);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) { fprintf(stderr, "cut after %llu bytes in stage %d\n", (unsigned long long)client[fd].got, client[fd].stage); exit(1); }
  client[fd].got += (uint64_t)n;
  if (client[fd].stage == 0) {
    if (client[fd].got < FIRST_ANSWER) return;
    client[fd].stage = 1;
    ask(fd);
  } else if (mode == MODE_DOWN) {
    received += (uint64_t)n;
    if (client[fd].got >= per_stream) done_one(fd);
  } else if (client[fd].got >= ANSWER) done_one(fd);
}

static int compare(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : 1; }

int main(int count, char **words) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  ep = epoll_create1(0);
  if (count == 3 && strcmp(words[1], "serve") == 0) return serve(atoi(words[2]));
  if (count != 6) return 2;
  mode = strcmp(words[1], "conn") == 0 ? MODE_CONN : strcmp(words[1], "ping") == 0 ? MODE_PING : MODE_DOWN;
  port = atoi(words[2]);
  uint64_t amount = strtoull(words[3], NULL, 10);
  int parallel = atoi(words[4]);
  names = atoi(words[5]);
  per_stream = mode == MODE_DOWN ? amount * 1000000 / (uint64_t)parallel : 0;
  total = mode == MODE_DOWN ? (uint64_t)parallel : amount;
  times = calloc(1 << 20, sizeof *times);
  double start = now();
  for (int i = 0; i < parallel; i++) start_one();
  struct epoll_event events[256];
  while (open_now > 0) {
    int ready = epoll_wait(ep, events, 256, 20000);
    if (ready == 0) { fprintf(stderr, "nothing moves: %d open\n", open_now); return 1; }
    for (int i = 0; i < ready; i++) client_event(events[i].data.fd);
  }
  if (time_count > 1 << 20) time_count = 1 << 20;
  qsort(times, time_count, sizeof *times, compare);
  printf("%llu %.6f %.1f %.1f\n", (unsigned long long)(mode == MODE_DOWN ? amount : finished), now() - start,
         times[time_count / 2] * 1e6, times[time_count * 99 / 100] * 1e6);
  return 0;
}
