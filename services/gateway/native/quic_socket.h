/* The UDP sockets of QUIC: one beside each listener, where clients come, and one for each flow, towards its instance. */
#pragma once
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where a client is, and where its datagrams came to: answers must come from there. IPv4 is written as IPv6. */
struct quic_peer {
  struct in6_addr address, local;
  uint16_t port; /* in the order of the network */
  uint8_t socket;
};

/* Opens the socket of a listener, or takes it from those that are given; false with errno where that fails. */
bool quic_socket_open(unsigned index, const char *host, uint16_t port, int given[], int given_count);
void quic_socket_stop(void);
bool quic_socket_is_open(void);
/* How much the kernel keeps of what has come to each of the sockets, by its own count, and whether it is less than we wanted. */
uint32_t quic_socket_room(uint8_t *is_scarce);
/* Whether the kernel joins datagrams that come to the sockets, and tells what it dropped. They are handed over without: a release from
 * before it was done would take several for one, or have no room for what is told. Who takes them says so again. */
void quic_socket_tell_more(bool is_told);
/* The same of one socket, as far as drops are concerned, and how many there were so far. */
void quic_socket_tell_drops(int fd, int on);
uint32_t quic_socket_drops(int fd);
/* Where a socket is bound, and the socket that is bound there; -1 for none. */
struct in6_addr quic_socket_address(unsigned index);
int quic_socket_find(const struct in6_addr *address);
/* Returns how many there are. */
unsigned quic_socket_descriptors(int fds[]);

/* Datagrams of `segment` bytes each, the last of them maybe less. */
struct quic_batch {
  const uint8_t *bytes;
  uint32_t length, segment;
};

enum { MAX_BATCH_BYTES = 60 * 1024, MAX_BATCH_SEGMENTS = 64 };

/* What has come from a client, in as many datagrams of `segment` bytes as the kernel has joined; -1 where nothing has. */
ssize_t quic_receive(unsigned index, struct quic_peer *peer, uint8_t *bytes, uint32_t capacity, uint32_t *segment);
/* Sends datagrams to a client, with one call where the kernel takes them so: at most the limits above. */
void quic_answer(const struct quic_peer *peer, struct quic_batch batch);
/* The same to the instance of a flow's socket. Returns how many bytes went. */
uint32_t quic_pass_on(int fd, struct quic_batch batch);
/* What has come from an instance, in as many datagrams as the kernel has joined; -1 with errno where nothing has. `drops` are those
 * that are counted. */
ssize_t quic_receive_joined(int fd, uint32_t *drops, uint8_t *bytes, uint32_t capacity, uint32_t *segment);
/* A socket of its own for a flow, -1 with errno where there is none. */
int quic_connect(const uint8_t address[16], uint16_t port);
