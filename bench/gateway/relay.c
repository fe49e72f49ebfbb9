/*
 * The least that a relay of TCP does, to measure the gateway's against: relay PORT INSTANCE_PORT. What comes to PORT of 127.0.0.1
 * goes to INSTANCE_PORT of ::1 and back, as it comes; it looks for no name, and keeps neither limits nor counts.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 65536, MOST = 65536, EVENTS = 64 };

static uint8_t bytes[ROOM];
static int other[MOST]; /* by descriptor */

static void watch(int loop, int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

static void open_pair(int loop, int client, uint16_t instance) {
  struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback, .sin6_port = htons(instance)};
  int fd = socket(AF_INET6, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) exit(1);
  other[client] = fd;
  other[fd] = client;
  watch(loop, client);
  watch(loop, fd);
}

static void pass_on(int fd) {
  int to = other[fd];
  if (to == 0) return; /* closed in the same round */
  ssize_t got = recv(fd, bytes, sizeof bytes, 0);
  if (got > 0 && send(to, bytes, (size_t)got, MSG_NOSIGNAL) == got) return;
  other[fd] = other[to] = 0;
  close(fd);
  close(to);
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  uint16_t instance = (uint16_t)atoi(arguments[2]);
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  here.sin_port = htons((uint16_t)atoi(arguments[1]));
  int on = 1, door = socket(AF_INET, SOCK_STREAM, 0), loop = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = door}, events[EVENTS];
  setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(door, (struct sockaddr *)&here, sizeof here) < 0 || listen(door, 4096) < 0) return 1;
  epoll_ctl(loop, EPOLL_CTL_ADD, door, &event);
  puts("relaying");
  fflush(stdout);
  for (;;) {
    int ready = epoll_wait(loop, events, EVENTS, -1);
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd;
      if (fd != door) pass_on(fd);
      else if ((fd = accept(door, NULL, NULL)) >= 0) open_pair(loop, fd, instance);
    }
  }
}
