import { isIP } from 'node:net';
import { type ConfigOf, defineConfig, rateSettings, settings } from '@skerry/kit';
import { DEPLOYED_IMAGES, IMAGES, parseEvmAddress, parseIpv6Prefix, parseNodeUrl } from '@skerry/protocol';
import { parsePortRange } from './network/host-ports.ts';
import { parseIpv4Pool } from './network/ipv4.ts';

const HARD_CPU_MAX = 4_096;
const HARD_MEMORY_MIB_MAX = 64 * 1024 * 1024;
const HARD_DISK_GIB_MAX = 1024 * 1024;

/** With a port where it is not 53, as Node's `Resolver` takes it. */
const RESOLVER = /^(?:\[(.+)\](?::[0-9]+)?|([0-9.]+):[0-9]+)$/;

function parseResolver(text: string): string {
  const [, ipv6, ipv4] = RESOLVER.exec(text) ?? [];
  if (isIP(ipv6 ?? ipv4 ?? text) === 0)
    throw new Error(`expected addresses such as 9.9.9.9 or [2620:fe::fe]:53, comma-separated, not "${text}"`);
  return text;
}

function parseNameServer(text: string): string {
  if (isIP(text) === 0) throw new Error(`expected IP addresses, comma-separated, not "${text}"`);
  return text;
}

/** Settings of the compute node: `SKERRY_COMPUTE_*`. */
export const computeConfig = defineConfig(
  'SKERRY_COMPUTE',
  {
    port: settings.port(4020, 'HTTP port'),
    host: settings.host(),
    coreUrl: settings.coreUrl('the core node to follow and publish to'),
    dataDir: settings.directory(
      'data',
      'compute',
      "directory for instance disks, this node's key and its prefix; back it up",
    ),
    cacheDir: settings.directory(
      'cache',
      '',
      'directory for built images; several nodes on one server can share it',
    ),
    ipv6Prefix: {
      ...settings.optionalText(
        'the /64 for instance addresses; by default a random private one, kept in the data directory',
      ),
      parse: parseIpv6Prefix,
    },
    ipv4Pool: {
      ...settings.optionalText(
        'the private /20 for instance IPv4 addresses, translated by this server; by default an unused one, kept in the data directory',
      ),
      parse: parseIpv4Pool,
    },
    hostPorts: {
      ...settings.text(
        '24000-32767',
        'ports of this server that can be forwarded to instances over IPv4: FIRST-LAST, from 1024 on',
      ),
      parse: (text) => {
        parsePortRange(text);
        return text;
      },
    },
    lanOpen: settings.flag(false, "whether instances can reach this server's private networks"),
    openNetworks: settings.addressRanges(
      [],
      'private networks that instances can reach anyway: addresses and ranges, comma-separated',
    ),
    guestConnections: settings.integer(
      0,
      1_000_000,
      4_096,
      'outgoing connections per instance, and incoming ones; 0 for no limit',
    ),
    guestMbit: settings.integer(
      0,
      1_000_000,
      250,
      'megabits per second that an instance can send, and receive; 0 for no limit',
    ),
    guestDiskRateMib: settings.integer(
      0,
      1_000_000,
      200,
      'MiB per second that an instance can read and write, on all its disks together; 0 for no limit',
    ),
    guestDiskOperations: settings.integer(
      0,
      10_000_000,
      4_000,
      'reads and writes per second of an instance, on all its disks together; 0 for no limit',
    ),
    announceIpv4: settings.optionalText(
      "this server's public IPv4 address; by default the one it sends from",
    ),
    announceUrl: {
      ...settings.optionalText(
        'the URL at which others reach the HTTP interface; by default the listening address',
      ),
      // As those read it who are told.
      parse: parseNodeUrl,
    },
    drain: settings.flag(
      false,
      'whether the node wants to be empty: it gets nothing new, and its instances move away as far as there is room',
    ),
    schedulers: settings.listOf(
      parseEvmAddress,
      [],
      'addresses that may send instances to this node (POST /control/allocations)',
    ),
    probeIpv4: settings.text(
      '1.1.1.1:443',
      'address with which /status/check/host tests IPv4; another one where the network blocks it',
    ),
    probeIpv6: settings.text('[2606:4700:4700::1111]:443', 'address with which it tests IPv6'),
    probeName: settings.text('one.one.one.one', 'name that it resolves'),
    releasedGraceHours: settings.integer(
      0,
      87_600,
      72,
      "how long to keep an instance's disk after its owner deleted or replaced it",
    ),
    movedGraceHours: settings.integer(
      0,
      87_600,
      720,
      "how long to keep an instance's disk after it moved to another node",
    ),
    imageLimitGib: settings.integer(
      1,
      2_048,
      16,
      'largest stored file to fetch as an image, and the size of all files that an instance names as volumes',
    ),
    domainZone: settings.optionalDomain(
      'zone for custom domains, which point to instances by a CNAME to their own name in this zone; by default none are served',
    ),
    domainResolvers: settings.listOf(
      parseResolver,
      ['9.9.9.9', '1.1.1.1'],
      'resolvers for finding the name servers of custom domains',
    ),
    allowPrivate: settings.flag(
      false,
      'whether to query name servers of custom domains at private addresses; for private networks',
    ),
    nameServers: settings.listOf(
      parseNameServer,
      ['2606:4700:4700::1111', '1.1.1.1'],
      'resolvers for guests',
    ),
    ...rateSettings({
      heavy: 'program calls',
      exempt:
        "this network's services, which are not limited and may name their callers: addresses and ranges, comma-separated; always includes the followed core node",
    }),
    usageReaders: settings.addressRanges(
      ['127.0.0.0/8', '::1'],
      'who may read what each guest uses (/about/usage/guests and /metrics): addresses and ranges, comma-separated',
    ),
    cpu: settings.optionalInteger(0, HARD_CPU_MAX, "virtual cores to offer; by default all of the server's"),
    memoryMib: settings.optionalInteger(
      0,
      HARD_MEMORY_MIB_MAX,
      "memory to offer, in MiB; by default the server's, minus 1 GiB and what programs may have",
    ),
    diskGib: settings.optionalInteger(
      0,
      HARD_DISK_GIB_MAX,
      'disk space to offer, in GiB; by default what is free at start or used by instances, minus 5 GiB and what volumes of programs may have',
    ),
    accel: settings.choice(
      ['auto', 'kvm', 'tcg'],
      'auto',
      'how to run guests: in hardware, in software emulation, or decided by a self-test',
    ),
    debianMirror: settings.url('http://deb.debian.org/debian', 'Debian mirror for building images'),
    debianSecurityMirror: settings.url(
      'http://deb.debian.org/debian-security',
      'Debian mirror for security updates',
    ),
    ubuntuMirror: settings.url('http://archive.ubuntu.com/ubuntu', 'Ubuntu mirror for building images'),
    ubuntuSecurityMirror: settings.url(
      'http://security.ubuntu.com/ubuntu',
      'Ubuntu mirror for security updates',
    ),
    installPackages: settings.flag(true, 'as root on Debian: install missing programs with apt-get'),
    programs: settings.flag(true, 'whether this node runs programs'),
    programRuntimes: settings.table(
      ['nodejs', 'python3', 'wasm'],
      // Deployed nodes' image of Debian 12 with Python, which their SDKs name by default.
      { '63f07193e6ee9d207b7d1fcf8286f9aee34e6f12f101d2ec77c1229f92964696': 'python3' },
      'runtimes for programs that name a disk image as theirs: HASH=RUNTIME, comma-separated',
    ),
    programMemoryMib: settings.integer(
      256,
      HARD_MEMORY_MIB_MAX,
      1_024,
      'memory for all programs together, including idle ones, in MiB',
    ),
    programVolumesGib: settings.integer(
      0,
      HARD_DISK_GIB_MAX,
      8,
      'disk space for volumes of all programs together, in GiB; on a small disk at most a quarter of what is free at start beyond 5 GiB',
    ),
    programIdleSeconds: settings.integer(
      1,
      86_400,
      900,
      'how long to keep an idle program in memory, in seconds',
    ),
    programSpares: settings.integer(
      0,
      16,
      1,
      'spare sandboxes per runtime, for programs that are not in memory',
    ),
    images: settings.table(
      IMAGES,
      DEPLOYED_IMAGES,
      'images for instances that name a disk of the deployed network: HASH=IMAGE, comma-separated; instances are accepted with these if SKERRY_CORE_IMAGES has the hash',
    ),
    prepareImages: settings.list(
      [],
      'images to build at start, so that the first instance need not wait: names, comma-separated',
    ),
  },
  {
    mirror: 'debianMirror',
    securityMirror: 'debianSecurityMirror',
    hostPortFirst: 'hostPorts',
    hostPortLast: 'hostPorts',
  },
);

export type ComputeConfig = ConfigOf<typeof computeConfig>;
