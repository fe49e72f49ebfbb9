import { type ConfigOf, defineConfig, settings } from '@skerry/kit';

const HARD_CPU_MAX = 4_096;
const HARD_MEMORY_MIB_MAX = 64 * 1024 * 1024;
const HARD_DISK_GIB_MAX = 1024 * 1024;

/** Settings of the compute node: `SKERRY_COMPUTE_*`. */
export const computeConfig = defineConfig('SKERRY_COMPUTE', {
  port: settings.port(4020, 'HTTP port'),
  host: settings.text('localhost', 'address to listen on; "::" for every address'),
  coreUrl: settings.url('http://localhost:4024', 'the core node to follow and to publish through'),
  dataDir: settings.directory(
    'data',
    'compute',
    'disks of instances, the key and the prefix of this node; must not be lost',
  ),
  cacheDir: settings.directory('cache', '', 'built images; may be shared by several nodes of one machine'),
  ipv6Prefix: settings.optionalText(
    'the /64 that instances get addresses from; a random private one by default, kept in the data directory',
  ),
  ipv4Pool: settings.optionalText(
    'the private /20 that instances get IPv4 addresses from, translated at this machine; one that is not in use by default, kept in the data directory',
  ),
  hostPortFirst: settings.integer(
    1024,
    65535,
    24_000,
    "first of this machine's IPv4 ports that lead to ports of instances",
  ),
  hostPortLast: settings.integer(1024, 65535, 32_767, 'last of them'),
  lanOpen: settings.flag(false, 'instances may reach the private networks that this machine is in'),
  openNetworks: settings.addressRanges(
    [],
    'private networks that instances may reach all the same: addresses and ranges, comma-separated',
  ),
  guestConnections: settings.integer(
    0,
    1_000_000,
    4_096,
    'connections that an instance may have begun at a time, and as many that others began with it; 0 for no limit',
  ),
  guestMbit: settings.integer(
    0,
    1_000_000,
    250,
    'what an instance may send, and what it may receive, in megabits a second; 0 for no limit',
  ),
  announceIpv4: settings.optionalText("this machine's public IPv4 address; the one it sends from by default"),
  announceUrl: settings.optionalText(
    'the address under which others reach the HTTP interface; the listening one by default',
  ),
  schedulers: settings.list(
    [],
    'addresses that may point this node to instances (POST /control/allocations)',
  ),
  probeIpv4: settings.text('1.1.1.1:443', 'where /status/check/host tries IPv4'),
  probeIpv6: settings.text('[2606:4700:4700::1111]:443', 'where it tries IPv6'),
  probeName: settings.text('one.one.one.one', 'the name that it resolves'),
  releasedGraceHours: settings.integer(
    0,
    87_600,
    72,
    'how long the disk of an instance is kept after its owner forgot it, or had it replaced',
  ),
  movedGraceHours: settings.integer(
    0,
    87_600,
    720,
    'how long the disk of an instance is kept that another node runs now',
  ),
  imageLimitGib: settings.integer(1, 2_048, 16, 'largest file of the network that is fetched as an image'),
  domainZone: settings.optionalText(
    'custom domains point to instances by a CNAME to their own name with this zone behind it; none are served by default',
  ),
  domainResolvers: settings.list(
    ['9.9.9.9', '1.1.1.1'],
    'resolvers that find the name servers of custom domains',
  ),
  allowPrivate: settings.flag(
    false,
    'whether name servers of custom domains are asked at private addresses; for private networks',
  ),
  nameServers: settings.list(['2606:4700:4700::1111', '1.1.1.1'], 'resolvers that guests are told to use'),
  rateLimits: settings.flag(true, 'whether requests are counted and refused beyond their rate'),
  rateGeneral: settings.integer(1, 1_000_000, 100, 'general requests of one client in a minute'),
  rateAuthenticated: settings.integer(1, 1_000_000, 300, 'signed requests of one client in a minute'),
  rateHeavy: settings.integer(1, 1_000_000, 10, 'calls of programs of one client in a minute'),
  rateExempt: settings.addressRanges(
    ['127.0.0.0/8', '::1'],
    'services of this network, which are not limited and are believed about their callers: addresses and ranges, comma-separated; the core node that is followed is always one',
  ),
  trustedProxies: settings.addressRanges(
    [],
    'proxies whose X-Forwarded-For is believed: addresses and ranges, comma-separated',
  ),
  cpu: settings.optionalInteger(0, HARD_CPU_MAX, 'virtual cores to offer; all of the machine by default'),
  memoryMib: settings.optionalInteger(
    0,
    HARD_MEMORY_MIB_MAX,
    'memory to offer; what is free at the start, less a reserve, by default',
  ),
  diskGib: settings.optionalInteger(
    0,
    HARD_DISK_GIB_MAX,
    'disk to offer; what is free at the start, less a reserve, by default',
  ),
  accel: settings.choice(
    ['auto', 'kvm', 'tcg'],
    'auto',
    'how guests run: by hardware, by software emulation, or decided by a self-test',
  ),
  mirror: settings.url('http://deb.debian.org/debian', 'Debian archive that images are built from'),
  securityMirror: settings.url('http://deb.debian.org/debian-security', 'Debian archive of security updates'),
  ubuntuMirror: settings.url('http://archive.ubuntu.com/ubuntu', 'Ubuntu archive that images are built from'),
  ubuntuSecurityMirror: settings.url(
    'http://security.ubuntu.com/ubuntu',
    'Ubuntu archive of security updates',
  ),
  installPackages: settings.flag(true, 'as root on Debian: install missing programs with apt-get'),
  programs: settings.flag(true, 'whether the node runs programs'),
  programMemoryMib: settings.integer(
    256,
    HARD_MEMORY_MIB_MAX,
    1_024,
    'memory that programs may have together, those that are kept warm included, in MiB',
  ),
  programIdleSeconds: settings.integer(
    1,
    86_400,
    900,
    'how long a program is kept warm after its last call, in seconds',
  ),
  programSpares: settings.integer(
    0,
    16,
    1,
    'sandboxes of each runtime that are started ahead, for programs that are not warm',
  ),
  prepareImages: settings.list([], 'images to build at the start instead of on first use'),
});

export type ComputeConfig = ConfigOf<typeof computeConfig>;

/** Administration programs live where an ordinary user's PATH does not look. */
const ADMIN_DIRECTORIES = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin', '/bin'];

/** Where programs are looked for, in order. */
export function programDirectories(): string[] {
  const given = (process.env.PATH ?? '').split(':').filter((part) => part !== '');
  return [...new Set([...given, ...ADMIN_DIRECTORIES])];
}

/** What programs that this service runs inherit. They speak plain English, because some of their words are read. */
export function programEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: programDirectories().join(':'), LC_ALL: 'C.UTF-8' };
}
