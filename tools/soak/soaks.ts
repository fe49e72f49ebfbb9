import type { SoakOptions } from './options.ts';

type Run = (options: SoakOptions) => Promise<void>;

/** What tests do briefly, for longer. */
export interface Soak {
  /** What it shows, in a line. */
  readonly shows: string;
  /** About how long it takes on two cores; of one with `load`, with no option. */
  readonly minutes: number;
  /** Of one that runs as long as it is told: its code, loaded when it is run. Any other one is a file of tests. */
  load?(): Promise<Run>;
}

/** Every soak by its name or its file, in the order in which `all` runs them. */
export const SOAKS: Readonly<Record<string, Soak>> = {
  batches: {
    shows: 'mutated signatures get the same verdict in a batch and one by one',
    minutes: 1,
    load: async () => (await import('./batches.ts')).soakBatches,
  },
  'sanitized-batches': {
    shows: 'the same under AddressSanitizer and UBSan, with junk beside them',
    minutes: 1,
    load: async () => (await import('./batches.ts')).soakSanitizedBatches,
  },
  console: {
    shows:
      'the console in a browser with 10,000 live messages a second: no gap, nothing twice, bounded memory',
    minutes: 1,
    load: async () => (await import('./console.ts')).soakConsole,
  },
  failover: {
    shows: 'a core node on Patroni, parts of which are killed and frozen, loses nothing (root, Debian 12)',
    minutes: 5,
    load: async () => (await import('./failover.ts')).soakFailover,
  },
  flights: {
    shows: 'damaged first flights of QUIC: both readers say the same',
    minutes: 1,
    load: async () => (await import('./flights.ts')).soakFlights,
  },
  'native-flights': {
    shows: 'damaged first flights in the native reader alone, under the sanitizers',
    minutes: 1,
    load: async () => (await import('./flights-native.ts')).soakNativeFlights,
  },
  hellos: {
    shows: 'damaged ClientHellos: both readers say the same',
    minutes: 1,
    load: async () => (await import('./hellos.ts')).soakHellos,
  },
  'native-hellos': {
    shows: 'damaged ClientHellos in the native reader alone, under the sanitizers',
    minutes: 1,
    load: async () => (await import('./hellos-native.ts')).soakNativeHellos,
  },
  'http-heads': {
    shows: 'damaged HTTP requests: instances see nothing but sound ones',
    minutes: 1,
    load: async () => (await import('./http-heads.ts')).soakHttpHeads,
  },
  orders: {
    shows: 'worlds of messages that forget, permit and change each other end the same in whatever order',
    minutes: 1,
    load: async () => (await import('./orders.ts')).soakOrders,
  },
  plane: {
    shows: 'clients of every kind against the native data plane, under the sanitizers',
    minutes: 1,
    load: async () => (await import('./plane.ts')).soakPlane,
  },
  lying: {
    shows: 'core nodes with a peer that lies end with what they have without it, from fresh seeds',
    minutes: 1,
    load: async () => (await import('./seeds/lying.ts')).soakLying,
  },
  sim: {
    shows: 'core nodes with hostile clocks, networks and chains agree in the end, from fresh seeds',
    minutes: 1,
    load: async () => (await import('./seeds/sim.ts')).soakSim,
  },
  sockets: {
    shows: '10,000 WebSocket readers on one core node: no gap, nothing twice, bounded memory',
    minutes: 3,
    load: async () => (await import('./sockets.ts')).soakSockets,
  },
  'apps/cli/src/certificates.soak.test.ts': {
    shows: 'Caddy behind each data plane and in a machine gets certificates of an ACME server (root)',
    minutes: 10,
  },
  'apps/cli/src/first-request.soak.test.ts': {
    shows: '20 times from `instance create --wait` to the first answer through the gateway (root)',
    minutes: 20,
  },
  'apps/cli/src/http3-vm.soak.test.ts': {
    shows: 'Chromium fetches over HTTP/3 from a machine, by its name and by a custom domain (root)',
    minutes: 8,
  },
  'apps/cli/src/scores/open-scores.soak.test.ts': {
    shows: 'nodes are measured and scored, and another core node verifies the scores',
    minutes: 5,
  },
  'apps/cli/src/scores/tour.soak.test.ts': {
    shows: "every view of the console in each width and theme, and each lie of a core node's answers",
    minutes: 2,
  },
  'apps/cli/src/strangers.soak.test.ts': {
    shows: 'ten minutes of a hostile population beside honest users (root)',
    minutes: 14,
  },
  'packages/indexer/src/crash.soak.test.ts': {
    shows: 'the indexer is killed 30 times: its tables equal a read of the chain',
    minutes: 1,
  },
  'packages/indexer/src/storm.soak.test.ts': {
    shows: 'reorganisations of 13 depths and 40 storms: the same tables again',
    minutes: 3,
  },
  'services/compute/src/hosts.soak.test.ts': {
    shows: 'a machine lives through the loss of its node process, its QEMU and its host (root)',
    minutes: 8,
  },
  'services/compute/src/images/killed-builds.soak.test.ts': {
    shows: 'the build of an image is killed at each of its steps, and leaves nothing (root)',
    minutes: 10,
  },
  'services/compute/src/vm.soak.test.ts': {
    shows:
      "machines of each image, snapshots, a full disk, a node's kills and memory, owners' commands (root)",
    minutes: 45,
  },
  'services/core/src/node/crash.soak.test.ts': {
    shows: 'a core node is killed 50 times under load, and loses nothing',
    minutes: 4,
  },
  'services/core/src/node/outage.soak.test.ts': {
    shows: 'the database server stops for 20 s under load, and nothing is lost',
    minutes: 1,
  },
  'services/core/src/notify/webhooks/crash.soak.test.ts': {
    shows: 'a core node is killed 30 times while it delivers to webhooks',
    minutes: 2,
  },
  'services/core/src/peers/sync/convergence.soak.test.ts': {
    shows: '100,000 messages, one core node killed and another cut off: the same digests in the end',
    minutes: 4,
  },
  'services/core/src/sim/sim.soak.test.ts': {
    shows: 'the simulation with up to 50 core nodes, and seeds that once failed',
    minutes: 30,
  },
  'services/gateway/src/dataplane/native/leaks.soak.test.ts': {
    shows: '170,000 badly behaved clients leave nothing behind in the native data plane',
    minutes: 5,
  },
  'services/gateway/src/http3-bulk.soak.test.ts': {
    shows: 'Chromium moves 1 GiB each way over HTTP/3, and 64 MiB on a path with losses',
    minutes: 3,
  },
  'services/gateway/src/http3-clients.soak.test.ts': {
    shows: "ngtcp2's client fetches over HTTP/3, moving and losing as clients do (root)",
    minutes: 2,
  },
  'services/gateway/src/http3-v2.soak.test.ts': {
    shows: "Chromium and ngtcp2's client fetch over version 2 of QUIC (root)",
    minutes: 2,
  },
  'services/gateway/src/http3.soak.test.ts': {
    shows: 'Chromium fetches 64 MiB over HTTP/3, also while another gateway takes over',
    minutes: 1,
  },
  'services/gateway/src/quic-crowd.soak.test.ts': {
    shows: 'a million spoofed first packets of QUIC of each of four kinds, while honest clients connect',
    minutes: 6,
  },
  'services/gateway/src/upgrade.soak.test.ts': {
    shows: '5,000 long transfers through 10,000 route changes and an upgrade: nothing breaks',
    minutes: 3,
  },
  'services/scheduler/src/planning/churn.soak.test.ts': {
    shows: 'a million instances on 10,000 nodes through 5,000 changes: planned as from the beginning',
    minutes: 3,
  },
  'tools/debian/lintian.soak.test.ts': {
    shows: "what Debian's lintian says of the packages is answered",
    minutes: 20,
  },
  'tools/guides/tls.soak.test.ts': {
    shows: "the core API behind TLS as the gateway's guide sets it up, with Caddy",
    minutes: 1,
  },
  'tools/release/bytes.soak.test.ts': {
    shows: 'the npm packages are the same, byte by byte, when they are made again',
    minutes: 2,
  },
  'tools/release/nodes.soak.test.ts': {
    shows: 'the npm packages with each Node that they promise to work with, and as publint and attw see them',
    minutes: 5,
  },
  'tools/site/site.soak.test.ts': {
    shows: 'the documentation site: the same bytes twice, no dead link, calls that compile',
    minutes: 2,
  },
  'tools/soak/image/image.soak.test.ts': {
    shows: 'the container image: the same bytes twice, its daemons, and podman in a machine (root)',
    minutes: 20,
  },
  'tools/soak/install/install.soak.test.ts': {
    shows: 'two Debian servers become a network with packages, are upgraded, lost and restored (root)',
    minutes: 25,
  },
  'tools/soak/restore/restore.soak.test.ts': {
    shows: 'docs/backup.md, followed literally under load, with the database embedded and on a server (root)',
    minutes: 3,
  },
};
