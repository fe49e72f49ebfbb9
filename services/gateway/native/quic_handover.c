#define _GNU_SOURCE
#include "quic_handover.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "loop.h"
#include "options.h"
#include "quic_access.h"
#include "quic_index.h"
#include "quic_lists.h"

/* Of what is said below: a new one wherever that changes. Another release may be at the other end. */
enum { FORM = 1 };

struct head {
  uint32_t form, record_bytes;
};

struct record {
  uint8_t state, learnt_count, name_length;
  uint8_t name[MAX_NAME_BYTES];
  uint8_t instance[16];
  struct quic_peer peer;
  struct in6_addr bound; /* where the socket is that the client speaks to: its number may be another there */
  struct quic_id first, source, learnt[MAX_LEARNT_IDS];
  uint32_t silent_ms, unheard, version;
  uint64_t to_instance, to_client; /* bytes: what they say is in put_bytes */
};
_Static_assert(sizeof(struct record) == 488, "a change of the record is a new form");

/* Room for the one descriptor of a record. */
union right {
  struct cmsghdr header;
  char room[CMSG_SPACE(sizeof(int))];
};

static bool send_record(int fd, const struct record *record, int socket) {
  union right right = {.header = {.cmsg_len = CMSG_LEN(sizeof socket), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
  struct iovec part = {(void *)record, sizeof *record};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &right, .msg_controllen = sizeof right};
  memcpy(CMSG_DATA(&right.header), &socket, sizeof socket);
  return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *record;
}

/* The socket that came with it; -1 where there is no more, or it is not whole. */
static int receive_record(int fd, struct record *record) {
  union right right;
  struct iovec part = {record, sizeof *record};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &right, .msg_controllen = sizeof right};
  ssize_t size = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  const struct cmsghdr *header = size > 0 ? CMSG_FIRSTHDR(&message) : NULL;
  int socket;
  if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return -1;
  memcpy(&socket, CMSG_DATA(header), sizeof socket);
  if (size == (ssize_t)sizeof *record) return socket;
  close(socket);
  return -1;
}

/* Of one that is not there for certain, as few bytes as come to what is owed; of another, what it got. */
static void put_bytes(struct record *record, const struct quic_flow *flow) {
  if (flow->state < FLOW_MOVED) record->to_instance = (flow->owed + AMPLIFICATION - 1) / AMPLIFICATION;
  record->to_client = flow->state < FLOW_MOVED ? record->to_instance * AMPLIFICATION - flow->owed : flow->delivered;
}

/* One that moved has shown itself before, or gets no chance to. */
static void take_bytes(struct quic_flow *flow, const struct record *record) {
  flow->unheard = record->unheard;
  if (flow->state >= FLOW_MOVED) {
    flow->delivered = record->to_client < MAX_UNHEARD_BYTES ? (uint32_t)record->to_client : MAX_UNHEARD_BYTES;
    flow->shown = MIN_CLIENT_DATAGRAM_BYTES;
    return;
  }
  uint64_t sent = record->to_instance < MAX_UNHEARD_BYTES ? record->to_instance : MAX_UNHEARD_BYTES;
  uint64_t owed = sent * AMPLIFICATION > record->to_client ? sent * AMPLIFICATION - record->to_client : 0;
  flow->owed = owed < MAX_UNHEARD_BYTES ? (uint32_t)owed : MAX_UNHEARD_BYTES;
}

static struct record record_of(const struct quic_flow *flow) {
  const struct route *route = flow->route;
  struct record record = {
      .state = flow->state, .learnt_count = flow->learnt_count, .name_length = route->length, .peer = flow->peer,
      .bound = quic_socket_address(flow->peer.socket), .first = flow->first, .source = flow->source,
      .silent_ms = now_ms - flow->touched_ms, .unheard = flow->unheard, .version = flow->version,
  };
  put_bytes(&record, flow);
  memcpy(record.name, route->name, route->length);
  memcpy(record.instance, route->address, sizeof record.instance);
  for (unsigned i = 0; i < flow->learnt_count; i++) record.learnt[i] = flow->learnt[i].id;
  return record;
}

void quic_handover_give(int fd) {
  const struct head head = {FORM, sizeof(struct record)};
  if (!quic_socket_is_open() || send(fd, &head, sizeof head, MSG_NOSIGNAL) != (ssize_t)sizeof head) return;
  for (enum quic_state state = FLOW_UNANSWERED; state < FLOW_ENDED; state++) {
    struct quic_flow *flow;
    while ((flow = quic_lists_first(state))) {
      const struct record record = record_of(flow);
      quic_socket_tell_drops(flow->fd, false);
      if (!send_record(fd, &record, flow->fd)) return;
      /* The other has the same socket: closing alone would leave it watched. */
      loop_forget(flow->fd);
      quic_lists_end(flow);
    }
  }
}

static bool is_sound(const struct record *record) {
  if (record->state < FLOW_UNANSWERED || record->state >= FLOW_ENDED || record->learnt_count > MAX_LEARNT_IDS) return false;
  for (unsigned i = 0; i < record->learnt_count; i++)
    if (record->learnt[i].length > MAX_ID_BYTES) return false;
  return record->first.length <= MAX_ID_BYTES && record->source.length <= MAX_ID_BYTES;
}

static struct id id_of(const struct quic_id *id) { return (struct id){id->length, id->bytes}; }

/* A flow keeps the address that it began with, whatever the name leads to by now. */
static struct route *route_of(const struct record *record) {
  const char *name = (const char *)record->name;
  struct route *route = control_known_route(name, record->name_length);
  if (route && memcmp(route->address, record->instance, sizeof record->instance) == 0) return route;
  return route_make(name, record->name_length, record->instance, 0);
}

static struct quic_flow *add(const struct record *record) {
  struct quic_peer peer = record->peer;
  int index = quic_socket_find(&record->bound);
  if (index < 0 || !is_sound(record)) return NULL;
  peer.socket = (uint8_t)index;
  return quic_lists_add(&peer, record->version, id_of(&record->first), id_of(&record->source));
}

static void take_record(const struct record *record, int socket) {
  struct quic_flow *flow = add(record);
  if (!flow) {
    close(socket);
    return;
  }
  struct route *route = route_of(record);
  route->refs++;
  if (quic_lists_connect(flow, socket, route)) {
    quic_lists_enter(flow, (enum quic_state)record->state);
    if (flow->state >= FLOW_UNPROVEN) quic_access_outcome(flow, QUIC_FORWARDED);
    flow->touched_ms = now_ms - record->silent_ms;
    quic_socket_tell_drops(socket, true);
    flow->drops = quic_socket_drops(socket);
    take_bytes(flow, record);
    for (unsigned i = 0; i < record->learnt_count; i++) quic_index_learn_id(flow, id_of(&record->learnt[i]));
  } else {
    quic_lists_end(flow);
  }
  route_release(route);
}

void quic_handover_take(int fd) {
  struct head head;
  struct record record;
  int socket;
  if (!quic_socket_is_open() || recv(fd, &head, sizeof head, MSG_WAITALL) != (ssize_t)sizeof head) return;
  if (head.form != FORM || head.record_bytes != sizeof record) return;
  while ((socket = receive_record(fd, &record)) >= 0) take_record(&record, socket);
}
