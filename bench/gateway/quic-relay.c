/*
 * The least that a relay of datagrams does, to measure the gateway's against: quic-relay PORT INSTANCE_PORT. What comes to PORT of
 * 127.0.0.1 goes to INSTANCE_PORT of ::1, by a socket of its own for each client's port, and back. It reads nothing.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 65536, PORTS = 65536, MOST = 4096, EVENTS = 64 };

static uint8_t bytes[ROOM];
static int upstream[PORTS]; /* by the client's port */
static uint16_t opened[MOST], clients[PORTS]; /* in a ring; and by descriptor */

static int open_upstream(int loop, uint16_t client, uint16_t instance) {
  static unsigned next;
  struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback, .sin6_port = htons(instance)};
  int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) exit(1);
  uint16_t *slot = &opened[next++ % MOST];
  if (*slot && upstream[*slot]) close(upstream[*slot]), upstream[*slot] = 0;
  *slot = client;
  clients[fd] = client;
  upstream[client] = fd;
  epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
  return fd;
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  uint16_t instance = (uint16_t)atoi(arguments[2]);
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, peer = here;
  here.sin_port = htons((uint16_t)atoi(arguments[1]));
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), loop = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd}, events[EVENTS];
  if (bind(fd, (struct sockaddr *)&here, sizeof here) < 0) return 1;
  epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
  puts("relaying");
  fflush(stdout);
  for (;;) {
    int ready = epoll_wait(loop, events, EVENTS, -1);
    for (int i = 0; i < ready; i++) {
      struct sockaddr_in from;
      socklen_t length = sizeof from;
      ssize_t got;
      while ((got = recvfrom(events[i].data.fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &length)) > 0) {
        if (events[i].data.fd == fd) {
          uint16_t client = ntohs(from.sin_port);
          send(upstream[client] ? upstream[client] : open_upstream(loop, client, instance), bytes, (size_t)got, 0);
        } else {
          peer.sin_port = htons(clients[events[i].data.fd]);
          sendto(fd, bytes, (size_t)got, 0, (struct sockaddr *)&peer, sizeof peer);
        }
        length = sizeof from;
      }
    }
  }
}
