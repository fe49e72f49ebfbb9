/* The data plane of the gateway for TLS: one thread, one epoll. src/dataplane/native/ starts it and tells it what to do. */
#include <signal.h>
#include <sys/resource.h>

#include "connections.h"
#include "control.h"
#include "handover.h"
#include "listen.h"
#include "loop.h"
#include "options.h"
#include "quic_flows.h"
#include "quic_handover.h"
#include "quic_lists.h"
#include "quic_turn.h"
#include "refused.h"
#include "relay.h"
#include "stats.h"

enum { MAX_EVENTS = 512 };
enum { USAGE = 2, FOREIGN = 3 };

static void raise_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static uint32_t least(uint32_t one, uint32_t other) { return one < other ? one : other; }

static int wait_ms(void) {
  if (conns_want_another_turn() || quic_flows_want_another_turn()) return 0;
  if (relay_is_coalescing()) return 1;
  uint32_t due = least(least(conns_next_due_ms(), quic_flows_next_due_ms()), least(control_due_in_ms(), listen_resume_in_ms()));
  due = least(due, refused_due_in_ms());
  return due == UINT32_MAX ? -1 : (int)least(due, 60000);
}

static void dispatch(const struct epoll_event *event) {
  uint64_t data = event->data.u64;
  switch (data & TAG_MASK) {
    case TAG_LISTENER: listen_accept((unsigned)(data >> TAG_BITS), conns_accepted); break;
    case TAG_CONTROL: control_event((unsigned)(data >> TAG_BITS)); break;
    case TAG_QUIC_SOCKET: quic_flows_heard((unsigned)(data >> TAG_BITS)); break;
    case TAG_QUIC_FLOW: quic_flows_answered((struct quic_flow *)(uintptr_t)(data & ~(uint64_t)TAG_MASK), event->events); break;
    default: conns_event((struct conn *)(uintptr_t)(data & ~(uint64_t)TAG_MASK), (int)(data & TAG_MASK), event->events);
  }
}

static void run(void) {
  static struct epoll_event events[MAX_EVENTS];
  uint32_t ticked_ms = 0;
  while (!control_is_over()) {
    int count = loop_wait(events, MAX_EVENTS, wait_ms());
    for (int i = 0; i < count; i++) dispatch(&events[i]);
    quic_flows_begin();
    if (relay_is_coalescing() && now_ms != ticked_ms) {
      conns_tick();
      ticked_ms = now_ms;
    }
    conns_expire();
    quic_flows_expire();
    listen_resume_when_due();
    refused_tell_when_due();
    conns_turn_ended();
    quic_lists_turn_ended();
    bool has_more = conns_want_another_turn() || quic_flows_want_another_turn();
    if (quic_turn_ended() && !has_more) loop_rest();
  }
}

int main(int count, char **arguments) {
  if (!options_read(count - 1, arguments + 1)) return USAGE;
  if (options.is_foreign) return FOREIGN;
  if (options.host_count == 0) return USAGE;
  signal(SIGPIPE, SIG_IGN);
  /* Signals to a terminal's or a service's whole group are for the TypeScript side, which says when to stop. */
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  raise_descriptor_limit();
  handover_carries(quic_handover_give, quic_handover_take);
  if (!stats_map() || !loop_open() || !control_open()) return 1;
  run();
  conns_end_all();
  refused_tell();
  control_finish();
  return 0;
}
