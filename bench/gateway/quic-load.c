/*
 * The client and the instance of the gateway's bench of QUIC: datagrams of QUIC's shape, and nothing encrypted in them but the
 * client's first, which is given.
 *   quic-load serve PORT                      the instance, on [::1]
 *   quic-load down PORT INITIAL MEGABYTES GSO a download, sent by the instance in datagrams joined for the kernel (1) or one by one (0)
 *   quic-load up PORT INITIAL MEGABYTES GSO   the other way round
 *   quic-load first PORT INITIAL ROUNDS       from a first datagram to its answer, each from a port of its own
 * INITIAL is in hexadecimal. `down` and `up` print the seconds that it took, `first` the microseconds of each round. Both take PORT of
 * 127.0.0.1, or, where it is negative, of ::1.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { DATAGRAM = 1200, ID = 8, BURST = 32, WINDOW = 4 * BURST * DATAGRAM, ROOM = 65536, BUFFER = 4 << 20, WAIT_US = 100000 };
enum { LONG_FORM = 0x80, HANDSHAKE = 0xe0, SHORT = 0x41, UPLOAD = 0x43, ANSWER = 200 };
enum { MAX_TRIES = 200 };

/* What a short packet says behind the id: how far the client has come, and how it wants the rest; without a total it asks how far its upload has come. */
struct wish {
  uint64_t total, received;
  uint8_t is_joined, is_repeat;
} __attribute__((packed));

static uint8_t bytes[ROOM];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int must(int value, const char *what) {
  if (value < 0) {
    perror(what);
    exit(1);
  }
  return value;
}

/* The answer to a first packet: a long header to the client's id, from an id of ours. */
static void answer_first(int fd, const struct sockaddr_in6 *to) {
  uint8_t answer[ANSWER] = {HANDSHAKE, 0, 0, 0, 1};
  const uint8_t *source = bytes + 6 + bytes[5];
  uint32_t at = 5;
  answer[at++] = source[0];
  memcpy(answer + at, source + 1, source[0]);
  at += source[0];
  answer[at++] = ID;
  memcpy(answer + at, &to->sin6_port, sizeof to->sin6_port);
  at += ID;
  uint32_t left = ANSWER - at - 2;
  answer[at++] = (uint8_t)(0x40 | left >> 8);
  answer[at] = (uint8_t)left;
  sendto(fd, answer, sizeof answer, 0, (const struct sockaddr *)to, sizeof *to);
}

/* Without an address to where the socket leads. */
static void send_joined(int fd, const struct sockaddr_in6 *to, const uint8_t *from, size_t length) {
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(uint16_t))];
  } size = {.header = {.cmsg_len = CMSG_LEN(sizeof(uint16_t)), .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT}};
  uint16_t segment = DATAGRAM;
  struct iovec part = {(void *)from, length};
  struct msghdr message = {.msg_name = (void *)to, .msg_namelen = to ? sizeof *to : 0, .msg_iov = &part, .msg_iovlen = 1,
                           .msg_control = &size, .msg_controllen = sizeof size};
  memcpy(CMSG_DATA(&size.header), &segment, sizeof segment);
  if (length <= DATAGRAM) message.msg_control = NULL, message.msg_controllen = 0;
  sendmsg(fd, &message, 0);
}

/* How much of an upload has come. */
struct upload {
  uint64_t received, told;
};

static void tell(int fd, const struct sockaddr_in6 *to, struct upload *upload) {
  uint8_t packet[1 + ID + sizeof upload->received] = {SHORT};
  upload->told = upload->received;
  memcpy(packet + 1 + ID, &upload->received, sizeof upload->received);
  sendto(fd, packet, sizeof packet, 0, (const struct sockaddr *)to, sizeof *to);
}

/* A server starts slowly (RFC 9002 section 7.3.1): what it may have on its way grows by what has come. */
static uint64_t window_after(uint64_t received) {
  uint64_t most = BURST * DATAGRAM + received;
  return most < WINDOW ? most : WINDOW;
}

static void serve(uint16_t port) {
  static const uint8_t content[BURST * DATAGRAM] = {SHORT};
  struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback, .sin6_port = htons(port)}, from;
  int fd = must(socket(AF_INET6, SOCK_DGRAM, 0), "socket"), size = BUFFER, on = 1;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on);
  must(bind(fd, (struct sockaddr *)&address, sizeof address), "bind");
  puts("serving");
  fflush(stdout);
  uint64_t sent = 0;
  struct upload upload = {0, 0};
  for (;;) {
    socklen_t length = sizeof from;
    ssize_t got = recvfrom(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &length);
    if (got <= 0) continue;
    if (bytes[0] & LONG_FORM) {
      answer_first(fd, &from);
      sent = 0;
      upload = (struct upload){0, 0};
      continue;
    }
    if (bytes[0] == UPLOAD) {
      upload.received += (uint64_t)got;
      if (upload.received - upload.told >= BURST * DATAGRAM) tell(fd, &from, &upload);
      continue;
    }
    struct wish wish;
    if ((size_t)got < 1 + ID + sizeof wish) continue;
    /* The last of those that the kernel has joined. */
    memcpy(&wish, bytes + (size_t)got - sizeof wish, sizeof wish);
    if (wish.total == 0) tell(fd, &from, &upload);
    if (wish.is_repeat) sent = wish.received;
    while (sent < wish.total && sent < wish.received + window_after(wish.received)) {
      uint64_t left = wish.total - sent, most = wish.is_joined ? BURST * DATAGRAM : DATAGRAM;
      uint64_t part = left < most ? left : most;
      send_joined(fd, &from, content, part);
      sent += part;
    }
  }
}

static int connect_to(int port) {
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback, .sin6_port = htons((uint16_t)-port)};
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
  int fd = must(socket(port < 0 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0), "socket"), size = BUFFER, on = 1;
  struct timeval wait = {0, WAIT_US};
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on);
  if (port < 0) must(connect(fd, (struct sockaddr *)&six, sizeof six), "connect");
  else must(connect(fd, (struct sockaddr *)&four, sizeof four), "connect");
  return fd;
}

/* The answer's bytes, which are in `bytes`. */
static ssize_t greet(int fd, const uint8_t *initial, size_t length) {
  for (int tries = 0; tries < MAX_TRIES; tries++) {
    send(fd, initial, length, 0);
    ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got > 0) return got;
  }
  fputs("no answer\n", stderr);
  exit(1);
}

static void wish_for(int fd, const uint8_t id[ID], const struct wish *wish) {
  uint8_t packet[1 + ID + sizeof *wish] = {SHORT};
  memcpy(packet + 1, id, ID);
  memcpy(packet + 1 + ID, wish, sizeof *wish);
  send(fd, packet, sizeof packet, 0);
}

static void download(int fd, const uint8_t *initial, size_t length, struct wish wish) {
  uint8_t id[ID];
  greet(fd, initial, length);
  memcpy(id, bytes + 7 + bytes[5], ID);
  double start = now();
  uint64_t asked = 0;
  wish_for(fd, id, &wish);
  for (int tries = 0; wish.received < wish.total && tries < MAX_TRIES;) {
    ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    wish.is_repeat = got <= 0;
    tries = got <= 0 ? tries + 1 : 0;
    if (got > 0) wish.received += (uint64_t)got;
    if (got > 0 && wish.received - asked < BURST * DATAGRAM) continue;
    asked = wish.received;
    wish_for(fd, id, &wish);
  }
  if (wish.received < wish.total) {
    fputs("the download stands still\n", stderr);
    exit(1);
  }
  printf("%f\n", now() - start);
}

/* What is not heard of in time is lost, and sent again. */
static void upload(int fd, const uint8_t *initial, size_t length, uint64_t total, bool is_joined) {
  static uint8_t content[BURST * DATAGRAM];
  const size_t part = is_joined ? sizeof content : DATAGRAM;
  uint64_t sent = 0, received = 0;
  greet(fd, initial, length);
  for (size_t at = 0; at < sizeof content; at += DATAGRAM) {
    content[at] = UPLOAD;
    memcpy(content + at + 1, bytes + 7 + bytes[5], ID);
  }
  const struct wish ask = {0, 0, 0, 0};
  double start = now();
  for (int tries = 0; received < total && tries < MAX_TRIES;) {
    for (; sent < total && sent < received + WINDOW; sent += part) send_joined(fd, NULL, content, part);
    ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got > 0) memcpy(&received, bytes + (size_t)got - sizeof received, sizeof received);
    tries = got > 0 ? 0 : tries + 1;
    if (got > 0) continue;
    sent = received;
    wish_for(fd, content + 1, &ask);
  }
  if (received < total) {
    fputs("the upload stands still\n", stderr);
    exit(1);
  }
  printf("%f\n", now() - start);
}

int main(int count, char **arguments) {
  static uint8_t initial[ROOM];
  if (count == 3 && strcmp(arguments[1], "serve") == 0) serve((uint16_t)atoi(arguments[2]));
  if (count < 5) return 2;
  int port = atoi(arguments[2]);
  size_t length = strlen(arguments[3]) / 2;
  for (size_t i = 0; i < length && i < sizeof initial; i++) sscanf(arguments[3] + 2 * i, "%2hhx", &initial[i]);
  if (strcmp(arguments[1], "down") == 0 && count == 6) {
    struct wish wish = {.total = strtoull(arguments[4], NULL, 10) * 1000000, .is_joined = arguments[5][0] == '1'};
    download(connect_to(port), initial, length, wish);
    return 0;
  }
  if (strcmp(arguments[1], "up") == 0 && count == 6) {
    upload(connect_to(port), initial, length, strtoull(arguments[4], NULL, 10) * 1000000, arguments[5][0] == '1');
    return 0;
  }
  if (strcmp(arguments[1], "first") != 0) return 2;
  for (int left = atoi(arguments[4]); left > 0; left--) {
    int fd = connect_to(port);
    double start = now();
    greet(fd, initial, length);
    printf("%.1f\n", (now() - start) * 1e6);
    close(fd);
  }
  return 0;
}
