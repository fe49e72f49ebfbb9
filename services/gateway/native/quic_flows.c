#include "quic_flows.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "loop.h"
#include "memory.h"
#include "options.h"
#include "outcomes.h"
#include "quic_access.h"
#include "quic_allowance.h"
#include "quic_backlog.h"
#include "quic_early.h"
#include "quic_index.h"
#include "quic_lists.h"
#include "quic_turn.h"
#include "quic_upload.h"
#include "refusal.h"
#include "stats.h"
#include "tokens.h"

enum {
  DATAGRAMS_PER_TURN = 64,
  BEGINNINGS_PER_TURN = 16, /* each takes some 20 us: what else there is to do waits no longer than that */
  MAX_UNDECIDED = 1024, /* each takes some 26 KB */
  CROWDING_PARTS = 64,  /* who has one of so many parts of them is one of a crowd */
  UNPROVEN_MS = 30 * 1000,
  PROVEN_MS = 120 * 1000, /* RFC 4787 section 4.3 */
  TOUCH_MS = 1000,
  ANSWERING_S = 1,                /* an instance that has said nothing for longer may be one that never does */
};

/* A datagram of a client. */
struct heard {
  const struct quic_peer *peer;
  const uint8_t *bytes;
  uint32_t length;
  struct packet packet;
};

static uint32_t timeout_of(enum quic_state state) {
  switch (state) {
    case FLOW_UNDECIDED: return options.hello_timeout_ms;
    case FLOW_UNANSWERED: return options.answer_timeout_ms;
    case FLOW_UNPROVEN: return UNPROVEN_MS;
    default: return PROVEN_MS;
  }
}

static void count(const struct quic_peer *peer, enum quic_outcome outcome) { outcome_count_quic(&peer->address, outcome); }

static void count_flow(struct quic_flow *flow, enum quic_outcome outcome) {
  quic_access_outcome(flow, outcome);
  count(&flow->peer, outcome);
}

static void give_up(struct quic_flow *flow, enum quic_outcome outcome) {
  count_flow(flow, outcome);
  quic_lists_end(flow);
}

static struct id id_of(const struct quic_id *id) { return (struct id){id->length, id->bytes}; }

static void answer_with(const struct quic_peer *peer, const uint8_t *bytes, uint32_t length) {
  quic_answer(peer, (struct quic_batch){bytes, length, length});
}

/* Ends it, and tells the client, which else would wait. */
static void refuse(struct quic_flow *flow, enum quic_outcome outcome, enum quic_error error) {
  uint8_t answer[MAX_REFUSAL_BYTES];
  const struct first_packet first = {flow->version, id_of(&flow->first), id_of(&flow->source)};
  /* Who has heard of it finds it counted. */
  count_flow(flow, outcome);
  if (refusal_may_go(&flow->peer)) answer_with(&flow->peer, answer, refusal_close(&first, error, answer));
  quic_lists_end(flow);
}

static void forward(struct quic_flow *flow, const uint8_t *bytes, uint32_t length) {
  quic_upload_send(flow, (struct quic_batch){bytes, length, length});
}

/* A socket for each who asks an instance that answers nobody would cost more than anything else that a stranger can ask for. */
static bool may_open(struct route *route) {
  if (unix_seconds() - route->answered_at <= ANSWERING_S || tokens_take(&route->unanswered, options.unanswered)) return true;
  route->refused_at = unix_seconds();
  return false;
}

/* What was answered is counted already. */
static void crowd_out(struct quic_flow *flow) {
  if (flow->state <= FLOW_UNANSWERED) give_up(flow, QUIC_CROWDED_OUT);
  else quic_lists_end(flow);
}

/* There is room for it. */
static void open_flow(struct quic_flow *flow, struct route *route, const uint8_t *bytes, uint32_t length) {
  if (!may_open(route)) {
    refuse(flow, QUIC_INSTANCE_SILENT, QUIC_CONNECTION_REFUSED);
    return;
  }
  struct quic_flow *yielding = quic_lists_yielding(flow);
  if (!quic_lists_connect(flow, quic_connect(route->address, options.instance_port), route)) {
    refuse(flow, QUIC_CONNECT_FAILED, QUIC_CONNECTION_REFUSED);
    return;
  }
  if (yielding) {
    stats->quic_yielded++;
    crowd_out(yielding);
  }
  quic_lists_enter(flow, FLOW_UNANSWERED);
  const struct undecided *undecided = flow->undecided;
  for (uint32_t i = 0; undecided && i < undecided->held_count; i++)
    forward(flow, undecided->held[i].bytes, undecided->held[i].length);
  forward(flow, bytes, length);
  quic_early_give(flow);
  quic_lists_forget_undecided(flow);
}

static void route_to(struct quic_flow *flow, struct route *route, const uint8_t *bytes, uint32_t length) {
  if (!route) refuse(flow, QUIC_UNKNOWN_NAME, QUIC_UNRECOGNIZED_NAME);
  else if (route->flags & ROUTE_FLAG_PROXY_HEADER) refuse(flow, QUIC_PROXY_PROTOCOL, QUIC_CONNECTION_REFUSED);
  else if (route->flows >= options.max_per_instance) refuse(flow, QUIC_INSTANCE_LIMIT, QUIC_CONNECTION_REFUSED);
  else if (!quic_lists_have_room(flow, NULL)) give_up(flow, QUIC_TOO_MANY);
  else open_flow(flow, route, bytes, length);
}

static void hold(struct quic_flow *flow, const uint8_t *bytes, uint32_t length) {
  struct undecided *undecided = flow->undecided;
  if (undecided->held_count == MAX_HELD_DATAGRAMS || length > MAX_HELD_BYTES) return;
  struct held *held = &undecided->held[undecided->held_count++];
  held->length = (uint16_t)length;
  memcpy(held->bytes, bytes, length);
}

/* The bytes of its stream are copied only as far as they are there: mostly one page. */
static bool keep(struct quic_flow *flow, const struct flight *flight) {
  if (flow->undecided) return true;
  struct undecided *undecided = memory_take(sizeof *undecided);
  if (!undecided) return false;
  uint32_t last = flight->piece_count > 0 ? flight->pieces[flight->piece_count - 1].end : 0;
  undecided->held_count = 0;
  memcpy(&undecided->flight, flight, offsetof(struct flight, bytes) + last);
  flow->undecided = undecided;
  return true;
}

static void decide(struct quic_flow *flow, struct flight *flight, const uint8_t *bytes, uint32_t length) {
  struct hello_name name;
  switch (flight_read(flight, bytes, length, &name)) {
    case HELLO_NAME: route_to(flow, control_find_route(name.text, name.length), bytes, length); break;
    case HELLO_NO_NAME: refuse(flow, QUIC_NO_SERVER_NAME, QUIC_UNRECOGNIZED_NAME); break;
    case HELLO_MALFORMED: refuse(flow, QUIC_MALFORMED, QUIC_DECODE_ERROR); break;
    default:
      /* What does not authenticate leaves no flow behind. */
      if (!flight->is_begun) quic_lists_end(flow);
      else if (!keep(flow, flight)) give_up(flow, QUIC_CROWDED_OUT);
      else hold(flow, bytes, length);
  }
}

/* A client that has its share, in all or from its port, ends a flow of its own for it that is not proven, but for the spared one; NULL to
 * spare none. */
static struct quic_flow *create(const struct quic_peer *peer, const struct packet *packet, const struct quic_flow *spared) {
  struct quic_flow *unproven = quic_lists_unproven(peer);
  if (!unproven) unproven = quic_index_crowding(peer);
  if (unproven && unproven != spared) crowd_out(unproven);
  struct quic_flow *flow = quic_lists_add(peer, packet->version, packet->destination, packet->source);
  if (!flow) count(peer, QUIC_CLIENT_LIMIT);
  return flow;
}

/*
 * Who is not proven to be where it says takes no place from those that are. Of those whose hello is not whole, one of a crowd goes; of
 * the others who was silent for longest in the state that most are in, so that a crowd of newcomers ends nobody who moved.
 */
static void make_room(void) {
  if (quic_lists_count(FLOW_UNDECIDED) > MAX_UNDECIDED) give_up(quic_lists_crowding(MAX_UNDECIDED / CROWDING_PARTS), QUIC_CROWDED_OUT);
  uint32_t unproven = 0;
  enum quic_state most = FLOW_UNANSWERED;
  for (enum quic_state state = FLOW_UNANSWERED; state <= FLOW_MOVED; state++) {
    unproven += quic_lists_count(state);
    if (quic_lists_count(state) > quic_lists_count(most)) most = state;
  }
  if (unproven > options.max_undecided) crowd_out(quic_lists_first(most));
}

/* The client goes on from another place: as another flow, so that the instance sees so, and nobody takes over the old one. */
static void move(const struct heard *heard, const struct quic_flow *old) {
  struct quic_flow *flow = create(heard->peer, &heard->packet, old);
  if (!flow) return;
  if (!quic_lists_have_room(flow, old)) {
    give_up(flow, QUIC_TOO_MANY);
    return;
  }
  flow->version = old->version;
  flow->first = old->first;
  flow->source = old->source;
  flow->delivered = old->delivered;
  quic_index_share(flow, old);
  count_flow(flow, QUIC_MOVED);
  open_flow(flow, old->route, heard->bytes, heard->length);
  if (flow->state == FLOW_UNANSWERED) quic_lists_enter(flow, FLOW_MOVED);
  make_room();
}

/* RFC 9000 section 7.2. */
static bool has_first_id(const struct heard *heard) { return heard->packet.destination.length >= MIN_FIRST_ID_BYTES; }

/* It is of no flow: of early data, there may be one soon. */
static void leave(const struct heard *heard) {
  bool is_early = heard->packet.type == PACKET_ZERO_RTT && has_first_id(heard);
  if (!is_early || !quic_early_keep(heard->peer, heard->packet.destination, heard->bytes, heard->length)) count(heard->peer, QUIC_STRAY);
}

static void begin(const struct heard *heard) {
  static struct flight flight;
  struct quic_flow *flow = create(heard->peer, &heard->packet, NULL);
  if (!flow) return;
  memset(&flight, 0, offsetof(struct flight, bytes));
  decide(flow, &flight, heard->bytes, heard->length);
  if (!flight.is_begun) leave(heard);
  make_room();
}

static void negotiate(const struct heard *heard) {
  uint8_t answer[MAX_REFUSAL_BYTES];
  const struct first_packet first = {heard->packet.version, heard->packet.destination, heard->packet.source};
  if (refusal_may_go(heard->peer)) answer_with(heard->peer, answer, refusal_negotiate(&first, answer));
  count(heard->peer, QUIC_UNKNOWN_VERSION);
}

/* Whether the client is where it says. */
static bool proves(const struct quic_flow *flow, const struct heard *heard) {
  const struct quic_id *id = quic_flow_answering(flow, &heard->packet, heard->bytes, heard->length);
  return id && (id->length >= MIN_KNOWN_BYTES || quic_allowance_is_shown(flow));
}

static void pass_on(struct quic_flow *flow, const struct heard *heard) {
  quic_allowance_heard(flow, heard->length);
  if (flow->state == FLOW_UNPROVEN && proves(flow, heard)) quic_lists_enter(flow, FLOW_PROVEN);
  else if (flow->state >= FLOW_UNPROVEN && now_ms - flow->touched_ms >= TOUCH_MS) quic_lists_enter(flow, flow->state);
  quic_upload_add(flow, heard->bytes, heard->length);
}

/* A datagram of no flow whose name is known. It may belong to another by now than when it came. */
static void begin_or_decide(const struct heard *heard) {
  const struct packet *packet = &heard->packet;
  struct quic_flow *flow = quic_index_find(heard->peer, packet, heard->bytes, heard->length);
  const struct quic_flow *moved;
  if (flow && flow->state != FLOW_UNDECIDED) {
    pass_on(flow, heard);
    /* What follows may end it. */
    quic_upload_flush();
  } else if (flow) decide(flow, &flow->undecided->flight, heard->bytes, heard->length);
  else if ((moved = quic_index_find_moved(heard->peer, packet, heard->bytes, heard->length))) move(heard, moved);
  else if (packet->type == PACKET_UNKNOWN_VERSION) negotiate(heard);
  else if (packet->type == PACKET_INITIAL || packet->type == PACKET_ZERO_RTT) begin(heard);
  else count(heard->peer, QUIC_STRAY);
}

/* RFC 9000 section 14.1. Early data may stand before an Initial packet in its datagram. */
static bool may_begin(const struct heard *heard) {
  if (heard->length < MIN_CLIENT_DATAGRAM_BYTES) return false;
  if (heard->packet.type == PACKET_UNKNOWN_VERSION) return true;
  if (heard->packet.type != PACKET_INITIAL && heard->packet.type != PACKET_ZERO_RTT) return false;
  return has_first_id(heard);
}

static void hear(const struct heard *heard) {
  struct quic_flow *flow = quic_index_find(heard->peer, &heard->packet, heard->bytes, heard->length);
  if (flow && flow->state != FLOW_UNDECIDED) pass_on(flow, heard);
  else if (!flow && !may_begin(heard) && !quic_index_find_moved(heard->peer, &heard->packet, heard->bytes, heard->length))
    leave(heard);
  else if (!quic_backlog_add(heard->peer, heard->bytes, heard->length)) count(heard->peer, QUIC_CROWDED_OUT);
}

static uint32_t at_most(uint64_t one, uint64_t other) { return (uint32_t)(one < other ? one : other); }

void quic_flows_heard(unsigned socket) {
  struct quic_peer peer;
  for (unsigned count = 0; count < DATAGRAMS_PER_TURN;) {
    uint32_t segment, at = 0;
    const uint8_t *bytes = quic_upload_room();
    ssize_t size = quic_receive(socket, &peer, (uint8_t *)bytes, MAX_DATAGRAM_BYTES, &segment);
    if (size < 0) break;
    /* One without a byte is one. */
    do {
      uint32_t length = at_most(segment, (uint32_t)size - at);
      hear(&(struct heard){&peer, bytes + at, length, packet_read(bytes + at, length)});
      at += segment;
      count++;
    } while (at < (uint32_t)size);
  }
  quic_upload_flush();
}

void quic_flows_begin(void) {
  const struct quic_waiting *waiting;
  for (unsigned i = 0; i < BEGINNINGS_PER_TURN && (waiting = quic_backlog_take()); i++) {
    const struct packet packet = packet_read(waiting->bytes, waiting->length);
    if (quic_socket_is_open()) begin_or_decide(&(struct heard){&waiting->peer, waiting->bytes, waiting->length, packet});
  }
}

bool quic_flows_want_another_turn(void) { return !quic_backlog_is_empty(); }

/* What the instance says before the client is proven has long headers, with the ids that it chooses. */
static void learn_from(struct quic_flow *flow, struct quic_batch batch) {
  flow->route->answered_at = unix_seconds();
  flow->route->unanswered = (struct tokens){0};
  if (flow->state == FLOW_UNANSWERED) {
    count_flow(flow, QUIC_FORWARDED);
    quic_lists_enter(flow, FLOW_UNPROVEN);
  }
  if (flow->state != FLOW_UNPROVEN) return;
  for (uint32_t at = 0; at < batch.length; at += batch.segment)
    quic_index_learn(flow, batch.bytes + at, at_most(batch.segment, batch.length - at));
}

static void answer(struct quic_flow *flow, struct quic_batch batch) {
  uint32_t allowance = quic_allowance_for(flow), length = batch.length;
  if (length > allowance) batch.length = allowance - allowance % batch.segment;
  stats->quic_held_back += length - batch.length;
  if (batch.length == 0) return;
  quic_allowance_take(flow, batch.length);
  stats->quic_bytes_to_clients += batch.length;
  quic_access_passed(flow, INSTANCE, batch.length);
  quic_turn_passed(batch);
  quic_answer(&flow->peer, batch);
}

/* Whether more of the same size may follow: all but the last are of one size. */
static bool takes_more(struct quic_batch batch, uint32_t length, uint32_t segment) {
  return segment == batch.segment && batch.length % segment == 0 && batch.length + length <= MAX_BATCH_BYTES &&
         (batch.length + length) / segment < MAX_BATCH_SEGMENTS;
}

static void failed(struct quic_flow *flow, int error) {
  if (flow->state == FLOW_UNANSWERED) refuse(flow, QUIC_CONNECT_FAILED, QUIC_CONNECTION_REFUSED);
  else if (error == ECONNREFUSED) quic_lists_end(flow);
}

void quic_flows_answered(struct quic_flow *flow, uint32_t events) {
  static uint8_t joined[2 * MAX_DATAGRAM_BYTES];
  struct quic_batch batch = {joined, 0, 0};
  for (int i = 0; i < DATAGRAMS_PER_TURN && flow->state != FLOW_ENDED; i++) {
    uint32_t segment;
    ssize_t size = quic_receive_joined(flow->fd, &flow->drops, joined + batch.length, MAX_DATAGRAM_BYTES, &segment);
    int error = errno;
    if (size == 0) continue;
    if (size > 0 && takes_more(batch, (uint32_t)size, segment)) {
      batch.length += (uint32_t)size;
      continue;
    }
    /* What came now is another batch; it lies behind what is sent first. */
    answer(flow, batch);
    if (size > 0) {
      memmove(joined, joined + batch.length, (size_t)size);
      batch = (struct quic_batch){joined, (uint32_t)size, segment};
      learn_from(flow, batch);
      continue;
    }
    batch = (struct quic_batch){joined, 0, 0};
    if (error != EAGAIN && error != EINTR) failed(flow, error);
    else if (events & EPOLLERR) events &= ~(uint32_t)EPOLLERR;
    else return;
  }
  if (flow->state != FLOW_ENDED) answer(flow, batch);
}

void quic_flows_expire(void) {
  quic_early_expire();
  for (enum quic_state state = FLOW_UNDECIDED; state < FLOW_ENDED; state++) {
    struct quic_flow *flow;
    while ((flow = quic_lists_first(state))) {
      if (!quic_socket_is_open()) quic_lists_end(flow);
      else if (now_ms - flow->touched_ms < timeout_of(state)) break;
      else if (state == FLOW_UNDECIDED) give_up(flow, QUIC_HELLO_TIMEOUT);
      else if (state == FLOW_UNANSWERED) refuse(flow, QUIC_UNANSWERED, QUIC_CONNECTION_REFUSED);
      else quic_lists_end(flow);
    }
  }
}

uint32_t quic_flows_next_due_ms(void) {
  uint32_t due = quic_early_next_due_ms();
  for (enum quic_state state = FLOW_UNDECIDED; state < FLOW_ENDED; state++) {
    const struct quic_flow *first = quic_lists_first(state);
    if (!first) continue;
    uint32_t passed = now_ms - first->touched_ms, timeout = timeout_of(state);
    uint32_t left = passed >= timeout ? 0 : timeout - passed;
    if (left < due) due = left;
  }
  return due;
}
