/*
 * A crowd of QUIC clients that say that they are somewhere else: crowd PORT COUNT PER_SECOND, with one datagram on standard input.
 * It goes to 127.0.0.1, each time from another address of loopback. Says how many were sent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_DATAGRAM = 65536, SLICES_PER_SECOND = 200, FIRST_ADDRESS = 0x7f010000, ADDRESSES = 0xfe0000 };

int main(int count, char **arguments) {
  static uint8_t bytes[MAX_DATAGRAM];
  if (count != 4) return 2;
  size_t length = fread(bytes, 1, sizeof bytes, stdin);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[1]))};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  long wanted = atol(arguments[2]), slice = atol(arguments[3]) / SLICES_PER_SECOND, sent = 0;
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0 || slice < 1) return 1;
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
  } origin = {.header = {.cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo)), .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO}};
  struct iovec part = {bytes, length};
  struct msghdr message = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &part, .msg_iovlen = 1,
                           .msg_control = &origin, .msg_controllen = sizeof origin};
  for (long i = 0; i < wanted; i++) {
    struct in_pktinfo info = {.ipi_spec_dst.s_addr = htonl(FIRST_ADDRESS + (uint32_t)i % ADDRESSES)};
    memcpy(CMSG_DATA(&origin.header), &info, sizeof info);
    if (sendmsg(fd, &message, 0) >= 0) sent++;
    const struct timespec pause = {0, 1000000000L / SLICES_PER_SECOND};
    if (i % slice == 0) nanosleep(&pause, NULL);
  }
  printf("%ld\n", sent);
  return 0;
}
