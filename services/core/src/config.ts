import { type ConfigOf, defineConfig, rateSettings, type Setting, settings } from '@skerry/kit';
import { DEPLOYED_IMAGES, parseEvmAddress, parseNodeUrl } from '@skerry/protocol';
import { NETWORK_SERVICES, type NetworkService } from '@skerry/protocol/api/core/node';
import { FILES_ID, KEY_FILES } from './node/key-files.ts';
import { ROLES, type Role } from './node/processes/roles.ts';
import { isNodeMultiaddr, parsePlace } from './peers/p2p/multiaddr.ts';
import { parseEndpoint } from './store/files/s3/endpoint.ts';

const UPLOAD_LIMIT_BYTES = 4 * 1024 ** 3;
const DAY_MINUTES = 24 * 60;

const NOBODY = 'none';
const { parse: parseList } = settings.list([], '');
const { parse: parseUrl } = settings.url(undefined, '');

/** Whom the node trusts. Left open, it is whom its peers trust (docs/operating.md). */
const trusted = (describe: string): Setting<string[] | undefined> => ({
  parse: (text) => (text === NOBODY ? [] : parseList(text).map(parseEvmAddress)),
  fallback: undefined,
  required: false,
  describe: `${describe}, comma-separated; "${NOBODY}" for nobody; by default as the peers have it`,
  secret: false,
});

/** `name=URL`, comma-separated: each service once. */
const services: Setting<Partial<Record<NetworkService, string>>> = {
  parse(text) {
    const pairs = parseList(text).map((part) => {
      const [, name, url = ''] = /^([^=]*)=(.*)$/.exec(part) ?? [];
      const service = NETWORK_SERVICES.find((one) => one === name?.trim());
      if (service === undefined)
        throw new Error(`expected NAME=URL with one of the names ${NETWORK_SERVICES.join(', ')}`);
      return [service, parseUrl(url.trim())] as const;
    });
    return Object.fromEntries(pairs);
  },
  fallback: {},
  required: false,
  describe: `services of the network that clients are told of: NAME=URL, comma-separated (${NETWORK_SERVICES.join(', ')})`,
  secret: false,
};

/** Each as `parseNodeUrl` spells it. */
const ownUrls: Setting<readonly string[]> = settings.listOf(
  parseNodeUrl,
  [],
  'where others reach this node, http(s)://host[:port], comma-separated: it proves its key there, also behind a proxy; by default at the address and port that it is asked at',
);

/** A URL is told to everybody (GET /api/v0/sync/status): it has no password. Spelled as `parseNodeUrl` does. */
function parsePeer(text: string): string {
  if (isNodeMultiaddr(text)) return text;
  try {
    return parseNodeUrl(text);
  } catch {
    throw new Error(
      'expected http(s)://host:port, without user name, password or query, or a multiaddr such as /dns4/HOST/tcp/PORT/p2p/ID',
    );
  }
}

/** Each once, in the order of `ROLES`. */
const roles: Setting<readonly Role[]> = {
  parse(text) {
    const given = parseList(text);
    const unknown = given.find((one) => !ROLES.some((role) => role === one));
    if (unknown !== undefined || given.length === 0)
      throw new Error(`expected one or more of ${ROLES.join(', ')}, comma-separated`);
    return ROLES.filter((role) => given.includes(role));
  },
  fallback: ROLES,
  required: false,
  describe: `what this process does, of several on one database: ${ROLES.join(', ')}, comma-separated (docs/roles.md)`,
  secret: false,
};

const keyFiles: readonly string[] = [...Object.values(KEY_FILES), FILES_ID];

const lostKeys = settings.listOf(
  (name) => {
    if (!keyFiles.includes(name))
      throw new Error(`expected one or more of ${keyFiles.join(', ')}, comma-separated`);
    return name;
  },
  [],
  `key files that are lost for good, and are made anew although the database is of a node that had them, and ${FILES_ID} for its files: ${keyFiles.join(', ')}, comma-separated (docs/backup.md)`,
);

/** Settings of the core node. */
export const coreConfig = defineConfig('SKERRY_CORE', {
  port: settings.port(4024, 'HTTP port'),
  host: settings.host(),
  roles,
  name: settings.text('skerry', 'name of this node'),
  urls: ownUrls,
  services,
  dataDir: settings.directory('data', 'core', 'directory for the database and the files'),
  databaseUrl: settings.optionalDatabase(
    'a PostgreSQL server to use instead of the embedded one (postgres://...); of several, the one that takes writes (postgres://one,two/...)',
    'DATABASE_URL',
  ),
  databaseReadUrl: settings.optionalDatabase(
    'a standby of that server, or what spreads connections over several: it answers reads that say how fresh they have to be (docs/roles.md)',
    'DATABASE_READ_URL',
  ),
  schedulers: trusted('schedulers whose allocations count: addresses'),
  scoringPublishers: trusted('monitors whose measurements the metrics lookup returns: addresses'),
  creditPublishers: trusted('credit services whose purchases, charges and prices count: addresses'),
  knownCoreNodes: trusted('other core nodes whose published keys for random values count: addresses'),
  creditEnforcement: {
    ...settings.flag(false, 'whether to refuse what an owner has no credit for; by default as the peers do'),
    fallback: undefined,
    required: false,
  } as Setting<boolean | undefined>,
  images: settings.list(
    Object.keys(DEPLOYED_IMAGES),
    'disks of the deployed network that compute nodes replace with images of their own (SKERRY_COMPUTE_IMAGES): hashes',
  ),
  allocationWaitMs: settings.integer(
    0,
    60_000,
    1_000,
    'how long POST /instances waits for the scheduler before it answers without an address, in ms; 0 to answer at once',
  ),
  uploadLimitBytes: settings.integer(
    1,
    Number.MAX_SAFE_INTEGER,
    UPLOAD_LIMIT_BYTES,
    'largest upload, in bytes',
  ),
  uploads: settings.integer(1, 100_000, 200, 'parallel uploads'),
  uploadsPerClient: settings.integer(
    1,
    100_000,
    8,
    'parallel uploads of one client that is not in SKERRY_CORE_RATE_EXEMPT',
  ),
  unpinnedBytes: settings.integer(
    0,
    Number.MAX_SAFE_INTEGER,
    4 * 1024 ** 3,
    'files without a signed message that no message keeps, in bytes',
  ),
  unpinnedBytesPerClient: settings.integer(
    0,
    Number.MAX_SAFE_INTEGER,
    256 * 1024 ** 2,
    'such files of one client, in bytes',
  ),
  operatorToken: settings.optionalSecret(
    "token that the node's operator sends as X-Auth-Token to have costs calculated again; by default nobody can",
  ),
  ...rateSettings({ heavy: 'expensive requests' }),
  rateProcesses: settings.integer(
    0,
    1_000,
    0,
    'processes that the requests of one client are spread over: each allows its part; 0 for all that answer, 1 where a balancer keeps a client with one process',
  ),
  drainMs: settings.integer(
    0,
    12_000,
    10_000,
    'how long running requests may take after the node begins to stop, in ms',
  ),
  pendingHorizonSeconds: settings.integer(
    1,
    2_592_000,
    3_600,
    'how long a message waits for a missing file or message before it is rejected, in seconds',
  ),
  verifyWorkers: settings.integer(
    0,
    256,
    0,
    'threads that verify signatures; 0 for one fewer than there are cores',
  ),
  signatureBatches: settings.flag(
    true,
    'whether signatures of senders that are known already are checked many at once, where that can be compiled',
  ),
  cacheDir: settings.directory('cache', 'core', 'directory for what checks signatures many at once'),
  fileGraceMinutes: settings.integer(
    60,
    365 * DAY_MINUTES,
    DAY_MINUTES,
    'how long to keep a file that no message keeps, in minutes',
  ),
  scrubDays: settings.integer(
    0,
    3_650,
    30,
    'days in which the node reads each file in its directory again and compares it with its hash; 0 to never do so',
  ),
  scrubMibPerSecond: settings.integer(1, 10_000, 8, 'how much it reads for that at most, in MiB a second'),
  diskReserveMib: settings.integer(
    0,
    1_048_576,
    0,
    "disk space to keep free, in MiB; below it the node refuses writes. 0 for a value from the disk's size (1024 from 20 GiB on, less on smaller disks)",
  ),
  s3Endpoint: {
    ...settings.optionalText(
      'S3-compatible object store for the files instead of a directory: http(s)://host[:port]',
    ),
    parse: parseEndpoint,
  },
  s3Bucket: settings.optionalText('its bucket, which must exist'),
  s3Region: settings.text('us-east-1', 'its region'),
  s3AccessKeyId: settings.optionalText('access key of the bucket'),
  s3SecretAccessKey: settings.optionalSecret('secret access key of the bucket'),
  s3PublicEndpoint: {
    ...settings.optionalText(
      'where those who download reach the object store, http(s)://host[:port]: GET /storage/raw sends them there for files from 4 MiB on. Without it the node sends every file itself',
    ),
    parse: parseEndpoint,
  },
  ipfsRpcUrl: settings.optionalUrl(
    'RPC address of a kubo daemon that stores IPFS files (http://127.0.0.1:5001); by default the node stores them itself',
  ),
  ipfsRpcAuthorization: settings.optionalSecret('Authorization header for that daemon'),
  ipfsGateways: settings.urls(
    [],
    'where to request missing IPFS blocks: trustless gateways and API roots of core nodes, comma-separated',
  ),
  ipfsTimeoutMs: settings.integer(100, 600_000, 10_000, 'how long to wait for IPFS, in ms'),
  ipfsPinBytes: settings.integer(
    1,
    Number.MAX_SAFE_INTEGER,
    UPLOAD_LIMIT_BYTES,
    'largest IPFS file or directory to keep for a message, in bytes',
  ),
  ipfsPinSeconds: settings.integer(1, 604_800, 3_600, 'time limit of one attempt to fetch it, in seconds'),
  ipfsPinWaitMs: settings.integer(
    0,
    60_000,
    1_000,
    'how long POST /ipfs/pin waits before it answers that the file is pending, in ms',
  ),
  lostKeys,
  vrfKeyEpoch: settings.integer(
    1,
    1_000_000,
    1,
    'raise by one to replace the key for random values at the next start',
  ),
  indexerFile: settings.optionalText('file that lists the chains to index (docs/indexer.md)'),
  anchorFile: settings.optionalText(
    'file that lists the contracts to read archives from, and whether to pack archives (docs/anchoring.md)',
  ),
  allowPrivate: settings.flag(
    false,
    'whether to send programs to compute nodes, and ask core nodes of the node list, at private addresses; for devnets and private networks',
  ),
  webhookTimeoutMs: settings.integer(100, 30_000, 15_000, 'time limit of one webhook delivery, in ms'),
  webhookAllowHttp: settings.flag(false, 'whether to allow http for webhooks; for development'),
  webhookAllowAddresses: settings.addressRanges(
    [],
    'non-public addresses and ranges that webhooks may use; for development',
  ),
  peers: settings.listOf(
    parsePeer,
    [],
    'core nodes to stay in step with: http(s)://host:port, or a multiaddr for gossip only; comma-separated',
  ),
  gossip: settings.flag(true, 'whether to pass on accepted messages at once, over libp2p'),
  p2pHost: settings.optionalText(
    'address at which gossip listens, where it is not that of the API; "::" for every address',
  ),
  p2pPort: settings.port(0, 'TCP port for gossip (libp2p); 0 for any, or none without peers and node list'),
  p2pAnnounce: settings.listOf(
    parsePlace,
    [],
    'where others reach gossip, if not at the addresses that it listens at: multiaddrs such as /dns4/HOST/tcp/PORT, comma-separated',
  ),
  p2pTopic: settings.text('skerry-messages', 'gossip topic, shared by the nodes of a network'),
  nodeListOwner: {
    ...settings.optionalText("address whose aggregate corechannel lists the network's nodes, for gossip"),
    parse: parseEvmAddress,
  },
  syncIntervalSeconds: settings.integer(1, 86_400, 120, 'time between two sessions with a peer, in seconds'),
  maxStreams: settings.integer(1, 100_000, 1_000, 'open event streams'),
  streamReserve: settings.integer(
    0,
    100_000,
    100,
    'event streams reserved for the clients in SKERRY_CORE_RATE_EXEMPT',
  ),
  streamsPerClient: settings.integer(1, 100_000, 20, 'open event streams of any other client'),
  streamStallMs: settings.integer(
    100,
    3_600_000,
    30_000,
    'how long an event stream reader may leave data unread, in ms',
  ),
  maxSockets: settings.integer(1, 1_000_000, 10_000, 'open WebSockets'),
  socketReserve: settings.integer(
    0,
    1_000_000,
    100,
    'WebSockets reserved for the clients in SKERRY_CORE_RATE_EXEMPT',
  ),
  socketsPerClient: settings.integer(1, 1_000_000, 20, 'open WebSockets of any other client'),
});

export type CoreConfig = ConfigOf<typeof coreConfig>;

/** API roots of peers. Those that are named by a multiaddr are gossiped with alone. */
export const peerUrlsOf = ({ peers }: Pick<CoreConfig, 'peers'>) =>
  peers.filter((peer) => !peer.startsWith('/'));
