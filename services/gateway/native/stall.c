#include "stall.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop.h"
#include "memory.h"
#include "options.h"
#include "stats.h"

enum {
  TICK_MS = 100,
  LOOK_PARTS = 2,                /* of those that are watched, a tick looks at one of so many, */
  MOST_LOOKS = 1024,             /* and at no more: each is three system calls */
  FEW_BYTES = 256 * 1024,        /* any connection may have on its way */
  SLOW_MS = 8 * 1000,            /* who would need as long for what waits is slow */
  MOVING_BYTES = 32 * 1024,      /* who does not take as much */
  STALLED_MS = 4 * 1000,         /* in this time is stalled: a phone on a bad way takes six times that */
  SLOW_WINDOW_BYTES = 64 * 1024, /* what the sender to a slow receiver may have on its way to us, */
  SLOW_UNSENT_BYTES = 64 * 1024, /* and what is kept to be sent on */
  ANY_BYTES = 1 << 30,
  TCP_PARTS = 2,                 /* of what all of TCP may have before the kernel saves, slow ones have one of so many; */
  READING_TIMES = 2,             /* so many times that with those who read: they drain, and many may be behind one address */
  BYTES_OTHERWISE = 256 * 1024 * 1024,
  MOST_NETWORKS_A_TICK = 16,     /* that connections end of */
};
/* Of SO_MEMINFO, as in quic_socket.c: what was received, and what is to be sent. */
enum { MEMORY_RECEIVED = 0, MEMORY_QUEUED = 5, MEMORY_NUMBERS = 9 };

static struct stall *first, *last;
/* Where looking, and ending, goes on, whatever is forgotten meanwhile. */
static struct stall *look_next, *end_next;
static uint32_t watched, ticked_ms;
static uint32_t paced[PACE_STALLED + 1];
static uint64_t held_by_stalled;

static uint64_t tcp_share(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/sys/net/ipv4/tcp_mem", "re");
  int found = file ? fscanf(file, "%lu", &pages) : 0;
  if (file) fclose(file);
  return found == 1 && pages > 0 ? pages * (uint64_t)sysconf(_SC_PAGESIZE) / TCP_PARTS : BYTES_OTHERWISE;
}

static uint64_t most_held(void) {
  static uint64_t most;
  if (most == 0) most = options.max_stalled_bytes > 0 ? options.max_stalled_bytes : tcp_share();
  return most;
}

static uint32_t memory_of(int fd, unsigned what) {
  uint32_t memory[MEMORY_NUMBERS] = {0};
  socklen_t length = sizeof memory;
  getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length);
  return memory[what];
}

/* What was written and is not acknowledged. */
static uint32_t unsent_of(const struct conn *conn, int from) {
  int left = 0;
  ioctl(conn->fd[1 - from], SIOCOUTQ, &left);
  return (uint32_t)left;
}

/* A window that was offered is not taken back: what is on its way still comes. */
static void bound(struct stall *stall, bool is_bound) {
  if (stall->is_bound == is_bound) return;
  stall->is_bound = is_bound;
  int window = is_bound ? SLOW_WINDOW_BYTES : ANY_BYTES, unsent = is_bound ? SLOW_UNSENT_BYTES : ANY_BYTES;
  const int *fd = stall->conn->fd;
  setsockopt(fd[stall->from], IPPROTO_TCP, TCP_WINDOW_CLAMP, &window, sizeof window);
  setsockopt(fd[1 - stall->from], IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

static void set_pace(struct stall *stall, enum pace pace, uint32_t held) {
  stats->stalled_bytes += (uint64_t)held - stall->held;
  if (stall->pace == PACE_STALLED) held_by_stalled -= stall->held;
  if (pace == PACE_STALLED) held_by_stalled += held;
  stall->held = held;
  paced[stall->pace]--;
  paced[pace]++;
  stall->pace = (uint8_t)pace;
}

static void append(struct stall *stall) {
  stall->previous = last;
  stall->next = NULL;
  if (last) last->next = stall;
  else first = stall;
  last = stall;
}

static void unlink_stall(struct stall *stall) {
  if (look_next == stall) look_next = stall->next;
  if (end_next == stall) end_next = stall->next;
  if (stall->previous) stall->previous->next = stall->next;
  else first = stall->next;
  if (stall->next) stall->next->previous = stall->previous;
  else last = stall->previous;
}

void stall_watch(struct stall *stall, struct conn *conn, int from, uint64_t written) {
  if (stall->is_watched) return;
  if (!first) ticked_ms = now_ms;
  *stall = (struct stall){.conn = conn, .looked_ms = now_ms, .moved_ms = now_ms, .from = (uint8_t)from, .is_watched = true};
  stall->taken = stall->moved_taken = written - unsent_of(conn, from);
  append(stall);
  watched++;
  paced[PACE_FAST]++;
}

void stall_forget(struct stall *stall) {
  if (!stall->is_watched) return;
  set_pace(stall, PACE_FAST, 0);
  paced[PACE_FAST]--;
  unlink_stall(stall);
  stall->is_watched = false;
  watched--;
}

static enum pace pace_of(const struct stall *stall, uint64_t took, uint32_t bytes) {
  if (bytes <= FEW_BYTES || took * SLOW_MS >= (uint64_t)bytes * (now_ms - stall->looked_ms)) return PACE_FAST;
  return now_ms - stall->moved_ms >= STALLED_MS ? PACE_STALLED : PACE_SLOW;
}

static void note_moved(struct stall *stall, uint64_t taken) {
  if (taken - stall->moved_taken < MOVING_BYTES) return;
  stall->moved_taken = taken;
  stall->moved_ms = now_ms;
  unlink_stall(stall);
  append(stall);
}

bool stall_is_on_its_way(const struct conn *conn, int from) { return unsent_of(conn, from) > FEW_BYTES; }

/* The end of stream is a byte that is not taken, too: what is taken never becomes less. */
static uint64_t taken_of(const struct stall *stall, uint64_t written, uint32_t unsent) {
  uint64_t taken = written - unsent;
  return (int64_t)(taken - stall->taken) > 0 ? taken : stall->taken;
}

/* False where next to nothing is on its way any more. */
static bool look(struct stall *stall, const struct stall_view *view) {
  const int *fd = stall->conn->fd;
  uint32_t unsent = unsent_of(stall->conn, stall->from);
  uint32_t received = memory_of(fd[stall->from], MEMORY_RECEIVED);
  uint32_t bytes = view->waiting + received + memory_of(fd[1 - stall->from], MEMORY_QUEUED);
  uint64_t taken = taken_of(stall, view->written, unsent);
  note_moved(stall, taken);
  /* Who was slow has drained, and takes what comes. */
  if (!view->is_blocked && bytes <= FEW_BYTES && (!stall->is_bound || unsent <= SLOW_UNSENT_BYTES / 2)) {
    bound(stall, false);
    stall_forget(stall);
    return false;
  }
  enum pace pace = pace_of(stall, taken - stall->taken, bytes);
  set_pace(stall, pace, pace == PACE_FAST ? 0 : bytes);
  if (pace != PACE_FAST) bound(stall, true);
  stall->taken = taken;
  stall->looked_ms = now_ms;
  return true;
}

/* What a network holds. */
struct share {
  struct in6_addr network;
  uint64_t held;
};

static struct share *share_in(struct share *shares, uint32_t count, const struct in6_addr *network) {
  uint32_t at = client_hash(network) & (count - 1);
  while (shares[at].held > 0 && memcmp(&shares[at].network, network, sizeof *network) != 0) at = (at + 1) & (count - 1);
  shares[at].network = *network;
  return &shares[at];
}

/* The network whose directions of a pace hold most; `other` is what the next one's hold. False where there is no memory to find out. */
static bool heaviest(enum pace pace, struct share *most, uint64_t *other) {
  uint32_t count = 2;
  while (count <= 2 * paced[pace]) count *= 2;
  struct share *shares = memory_take(count * sizeof *shares);
  if (!shares) return false;
  memset(shares, 0, count * sizeof *shares);
  for (const struct stall *stall = first; stall; stall = stall->next) {
    if (stall->pace != pace || stall->held == 0) continue;
    const struct in6_addr network = client_network_of_place(&stall->conn->place);
    share_in(shares, count, &network)->held += stall->held;
  }
  *most = (struct share){0};
  *other = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (shares[i].held > most->held) *other = most->held, *most = shares[i];
    else if (shares[i].held > *other) *other = shares[i].held;
  }
  memory_give(shares);
  return true;
}

static bool is_too_much(enum pace pace) {
  return pace == PACE_STALLED ? held_by_stalled > most_held() : stats->stalled_bytes > most_held() * READING_TIMES;
}

/* Of a network, who was stalled for longest first, until another one holds more. */
static uint32_t end_some(enum pace pace, struct share *most, uint64_t other, void (*crowding)(struct conn *conn)) {
  uint32_t ended = 0;
  for (struct stall *stall = first; stall && is_too_much(pace) && most->held >= other; stall = end_next) {
    end_next = stall->next;
    if (stall->pace != pace) continue;
    const struct in6_addr network = client_network_of_place(&stall->conn->place);
    if (memcmp(&network, &most->network, sizeof network) != 0) continue;
    most->held -= stall->held;
    crowding(stall->conn);
    ended++;
  }
  end_next = NULL;
  return ended;
}

static void end_crowding(enum pace pace, void (*crowding)(struct conn *conn)) {
  for (int networks = 0; networks < MOST_NETWORKS_A_TICK && is_too_much(pace); networks++) {
    struct share most;
    uint64_t other;
    if (!heaviest(pace, &most, &other) || end_some(pace, &most, other, crowding) == 0) return;
  }
}

static void look_at_some(struct stall_view (*view)(const struct conn *conn, int from), void (*drained)(struct conn *conn)) {
  uint32_t looks = watched / LOOK_PARTS + 1;
  for (looks = looks < MOST_LOOKS ? looks : MOST_LOOKS; looks > 0 && first; looks--) {
    struct stall *stall = look_next ? look_next : first;
    look_next = stall->next;
    const struct stall_view seen = view(stall->conn, stall->from);
    struct conn *conn = stall->conn;
    if (now_ms - stall->looked_ms >= TICK_MS && !look(stall, &seen)) drained(conn);
  }
}

void stall_tick(struct stall_view (*view)(const struct conn *conn, int from), void (*drained)(struct conn *conn),
                void (*crowding)(struct conn *conn)) {
  if (!first || now_ms - ticked_ms < TICK_MS) return;
  ticked_ms = now_ms;
  look_at_some(view, drained);
  end_crowding(PACE_STALLED, crowding);
  end_crowding(PACE_SLOW, crowding);
}

uint32_t stall_next_due_ms(void) {
  if (!first) return UINT32_MAX;
  uint32_t passed = now_ms - ticked_ms;
  return passed >= TICK_MS ? 0 : TICK_MS - passed;
}
