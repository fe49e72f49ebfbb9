import { type ConfigOf, defineConfig, type Setting, settings } from '@skerry/kit';

const UPLOAD_LIMIT_BYTES = 4 * 1024 ** 3;
const DAY_MINUTES = 24 * 60;

const NOBODY = 'none';
const { parse: parseList } = settings.list([], '');

/** Whom the node trusts. Left open, it is whom its peers trust (docs/operating.md). */
const trusted = (describe: string): Setting<string[] | undefined> => ({
  parse: (text) => (text === NOBODY ? [] : parseList(text)),
  fallback: undefined,
  required: false,
  describe: `${describe}, comma-separated; "${NOBODY}" for nobody, those of the peers if not set`,
  secret: false,
});

/** Settings of the core node. */
export const coreConfig = defineConfig('SKERRY_CORE', {
  port: settings.port(4024, 'HTTP port'),
  host: settings.text('localhost', 'address to listen on; "::" for every address'),
  name: settings.text('skerry', 'what the node calls itself'),
  dataDir: settings.directory('data', 'core', 'where the database and the files are'),
  databaseUrl: settings.optionalSecret(
    'a PostgreSQL server to use instead of the embedded one (postgres://...)',
    'DATABASE_URL',
  ),
  schedulers: trusted('addresses of the schedulers whose allocations count'),
  scoringPublishers: trusted('addresses of the monitors whose measurements the metrics lookup serves'),
  creditPublishers: trusted('addresses of the credit services whose purchases, charges and prices count'),
  knownCoreNodes: trusted('addresses of other core nodes whose published keys for random values count'),
  creditEnforcement: {
    ...settings.flag(false, 'whether what an owner has no credit for is refused; as the peers do if not set'),
    fallback: undefined,
    required: false,
  } as Setting<boolean | undefined>,
  allocationWaitMs: settings.integer(
    0,
    60_000,
    1_000,
    'how long POST /instances waits for the scheduler, in ms',
  ),
  uploadLimitBytes: settings.integer(
    1,
    Number.MAX_SAFE_INTEGER,
    UPLOAD_LIMIT_BYTES,
    'the largest file that is taken, in bytes',
  ),
  uploads: settings.integer(1, 100_000, 200, 'files that are received at the same time'),
  uploadsPerClient: settings.integer(
    1,
    100_000,
    8,
    'of them, those that one client may send that SKERRY_CORE_RATE_EXEMPT does not list',
  ),
  unpinnedBytes: settings.integer(
    0,
    Number.MAX_SAFE_INTEGER,
    4 * 1024 ** 3,
    'files that came without a signed message and that none keeps, in bytes',
  ),
  unpinnedBytesPerClient: settings.integer(
    0,
    Number.MAX_SAFE_INTEGER,
    256 * 1024 ** 2,
    'of them, those of one client, in bytes',
  ),
  rateLimits: settings.flag(true, 'whether requests are counted and refused beyond their rate'),
  rateGeneral: settings.integer(1, 1_000_000, 100, 'general requests of one client in a minute'),
  rateAuthenticated: settings.integer(1, 1_000_000, 300, 'signed requests of one client in a minute'),
  rateHeavy: settings.integer(
    1,
    1_000_000,
    10,
    'requests of one client in a minute that make the node compute',
  ),
  rateExempt: settings.addressRanges(
    ['127.0.0.0/8', '::1'],
    'clients that are not limited: addresses and ranges, comma-separated; "none" for none',
  ),
  trustedProxies: settings.addressRanges(
    [],
    'proxies whose X-Forwarded-For is believed: addresses and ranges, comma-separated',
  ),
  drainMs: settings.integer(
    0,
    12_000,
    10_000,
    'how long running requests may go on when the node stops, in ms',
  ),
  pendingHorizonSeconds: settings.integer(
    1,
    2_592_000,
    3_600,
    'how long a message may lack a file or another message before it is rejected, in seconds',
  ),
  verifyWorkers: settings.integer(
    0,
    256,
    0,
    'threads that verify signatures; 0 for one less than there are cores',
  ),
  fileGraceMinutes: settings.integer(
    60,
    365 * DAY_MINUTES,
    DAY_MINUTES,
    'how long a file that no message keeps stays before it is removed, in minutes',
  ),
  diskReserveMib: settings.integer(
    0,
    1_048_576,
    0,
    'below so much free disk nothing new is taken, in MiB; 0 for what the size of the disk asks for (1024 from 20 GiB on, less on smaller ones)',
  ),
  s3Endpoint: settings.optionalText(
    'an S3-compatible object store for the files instead of a directory: http(s)://host[:port]',
  ),
  s3Bucket: settings.optionalText('its bucket, which must exist'),
  s3Region: settings.text('us-east-1', 'its region'),
  s3AccessKeyId: settings.optionalText('the access key of the bucket'),
  s3SecretAccessKey: settings.optionalSecret('the secret of the access key'),
  ipfsRpcUrl: settings.optionalText(
    "a kubo daemon's RPC address (http://127.0.0.1:5001) that keeps what is on IPFS; the node does it itself without one",
  ),
  ipfsRpcAuthorization: settings.optionalSecret('the Authorization header that the daemon asks for'),
  ipfsGateways: settings.list(
    [],
    'where the node asks for blocks of IPFS that it lacks: trustless gateways and API roots of core nodes, comma-separated',
  ),
  ipfsTimeoutMs: settings.integer(100, 600_000, 10_000, 'how long IPFS may be silent, in ms'),
  ipfsPinBytes: settings.integer(
    1,
    Number.MAX_SAFE_INTEGER,
    UPLOAD_LIMIT_BYTES,
    'the largest file or directory of IPFS that is kept for a message, in bytes',
  ),
  ipfsPinSeconds: settings.integer(1, 604_800, 3_600, 'how long one try to fetch it may take, in seconds'),
  ipfsPinWaitMs: settings.integer(
    0,
    60_000,
    1_000,
    'how long POST /ipfs/pin waits for the file before it answers that it is pending, in ms',
  ),
  vrfKeyEpoch: settings.integer(
    1,
    1_000_000,
    1,
    'raise by one to retire the key for random values at the next start, and make a new one',
  ),
  indexerFile: settings.optionalText('a file that says which chains are indexed (docs/indexer.md)'),
  anchorFile: settings.optionalText(
    'a file that says which contracts name archives of messages, and whether this node makes some (docs/anchoring.md)',
  ),
  allowPrivate: settings.flag(
    false,
    'whether programs are sent to compute nodes at private addresses; for devnets and private networks',
  ),
  webhookTimeoutMs: settings.integer(
    100,
    30_000,
    15_000,
    'how long one delivery to a webhook may take, in ms',
  ),
  webhookAllowHttp: settings.flag(false, 'whether webhooks may be http; for development'),
  webhookAllowAddresses: settings.addressRanges(
    [],
    'addresses and ranges that webhooks may be at although they are not public; for development',
  ),
  peers: settings.list(
    [],
    'core nodes to keep in step with: http(s)://host:port, or a multiaddr to gossip with only; comma-separated',
  ),
  gossip: settings.flag(true, 'whether accepted messages are passed on at once, over libp2p'),
  p2pPort: settings.port(
    0,
    'TCP port for gossip (libp2p); 0: any, and none at all while there are no peers and no node list',
  ),
  p2pTopic: settings.text('skerry-messages', 'the topic of gossip: nodes of one network share it'),
  nodeListOwner: settings.optionalText(
    'the address whose aggregate corechannel lists the nodes of the network; they are gossiped with',
  ),
  syncIntervalSeconds: settings.integer(
    1,
    86_400,
    120,
    'how long after a session with a peer the next one begins, in seconds',
  ),
  maxStreams: settings.integer(1, 100_000, 1_000, 'event streams open at the same time'),
  streamReserve: settings.integer(
    0,
    100_000,
    100,
    'of them, those kept for the clients of SKERRY_CORE_RATE_EXEMPT',
  ),
  streamsPerClient: settings.integer(1, 100_000, 20, 'event streams that one other client may have open'),
  streamStallMs: settings.integer(
    100,
    3_600_000,
    30_000,
    'how long a reader of an event stream may leave unread what it was given, in ms',
  ),
});

export type CoreConfig = ConfigOf<typeof coreConfig>;
