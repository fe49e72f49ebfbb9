import { findAnnouncedUrlFault } from '@skerry/compute';
import { isPublicAddress } from '@skerry/kit';
import { shellWord } from '@skerry/protocol/text/shell-word';
import type { Role } from '../joining/roles.ts';
import { type Check, checksOf } from './check.ts';
import { decideOutside } from './decide-outside.ts';
import type { Facts, MachineFacts, NetworkFacts, PortFacts } from './facts.ts';

/** Everything here is pure: facts in, checks out. */

const OPERATING = 'docs/operating.md';
const JOINING = 'docs/joining.md';
const OTHERS_MASK = 0o077;
/** Messages are judged by their dates: peers compare clocks within a minute (docs/peers.md). */
const CLOCK_FAIL_SECONDS = 60;
const CLOCK_WARN_SECONDS = 5;
const LOOPBACK = /^(localhost|127\..*|::1)$/;

interface Needs {
  readonly memoryMib: number;
  readonly diskGib: number;
}
/** Below `least` the role does not work, below `good` it works badly. */
const NEEDS: Readonly<Record<Role, { readonly least: Needs; readonly good: Needs }>> = {
  compute: { least: { memoryMib: 1_500, diskGib: 6 }, good: { memoryMib: 4_000, diskGib: 30 } },
  core: { least: { memoryMib: 400, diskGib: 2 }, good: { memoryMib: 2_000, diskGib: 20 } },
  gateway: { least: { memoryMib: 200, diskGib: 0 }, good: { memoryMib: 500, diskGib: 1 } },
  monitor: { least: { memoryMib: 200, diskGib: 0 }, good: { memoryMib: 500, diskGib: 1 } },
};

const machine = checksOf('This server');
const settings = checksOf('Settings');
const network = checksOf('The network');

function decideRoom(role: Role, { memoryMib, diskFreeGib }: MachineFacts): Check[] {
  const { least, good } = NEEDS[role];
  const judge = (has: number, low: number, enough: number) =>
    has < low ? machine.fail : has < enough ? machine.warn : machine.ok;
  const add = (what: string, isEnough: boolean) =>
    isEnough ? {} : { mend: `Give the server more ${what}.` };
  return [
    judge(memoryMib, least.memoryMib, good.memoryMib)(
      'MEMORY',
      `${memoryMib} MiB of memory (${least.memoryMib} needed, ${good.memoryMib} recommended)`,
      add('memory', memoryMib >= good.memoryMib),
    ),
    judge(diskFreeGib, least.diskGib, good.diskGib)(
      'DISK',
      `${diskFreeGib} GiB of disk free (${least.diskGib} needed, ${good.diskGib} recommended)`,
      add(
        `disk, or put the data elsewhere (SKERRY_${role.toUpperCase()}_DATA_DIR)`,
        diskFreeGib >= good.diskGib,
      ),
    ),
  ];
}

const COMMAND = /^(?:sudo )?apt-get /;
/** A command stays as it is typed; anything else becomes a sentence. */
const asMend = (text: string) =>
  COMMAND.test(text) ? `Install them: ${text}` : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** `what; how to mend it` as the compute node's own examination says it. */
function obstacle(code: string, outcome: 'warn' | 'fail', sentence: string): Check {
  const [text = '', ...rest] = sentence.split('; ');
  const mend = rest.join('; ');
  return machine[outcome](code, text, {
    ...(mend === '' ? {} : { mend: asMend(mend) }),
    docs: `${OPERATING}#what-each-service-needs`,
  });
}

function decideHost({ host }: MachineFacts): Check[] {
  if (!host) return [];
  const kvm =
    host.kvmObstacle === undefined
      ? machine.ok('KVM', '/dev/kvm opens; the node tries it with a guest before it relies on it')
      : machine.warn(
          'KVM',
          `no hardware virtualisation (${host.kvmObstacle}): virtual machines are emulated, many times slower`,
          {
            mend: 'Turn on virtualisation in the firmware or at the provider, then: modprobe kvm_intel || modprobe kvm_amd',
            docs: `${OPERATING}#acceleration-and-images`,
          },
        );
  return [
    ...(host.obstacles.length === 0
      ? [machine.ok('VIRTUAL_MACHINES', 'programs, firewall and network interfaces for virtual machines')]
      : host.obstacles.map((sentence) => obstacle('VIRTUAL_MACHINES', 'fail', sentence))),
    kvm,
    ...(host.programObstacles.length === 0
      ? [machine.ok('PROGRAMS', 'sandboxes and control groups for programs')]
      : host.programObstacles.map((sentence) => obstacle('PROGRAMS', 'warn', sentence))),
  ];
}

function decideMachine({ settings: { role, dataDir }, machine: facts }: Facts): Check[] {
  const { platform, nodeVersion, isDataWritable, missingPrograms, keys } = facts;
  const open = keys.filter(({ mode }) => (mode & OTHERS_MASK) !== 0);
  return [
    platform === 'linux'
      ? machine.ok('SYSTEM', `Linux, Node ${nodeVersion}`)
      : machine.fail('SYSTEM', `${platform} instead of Linux`, {
          docs: `${OPERATING}#what-each-service-needs`,
        }),
    ...decideRoom(role, facts),
    isDataWritable
      ? machine.ok('DATA', `data in ${dataDir}`)
      : machine.fail('DATA', `${dataDir} cannot be written by this user`, {
          mend: `Run this as root (sudo), or: chown -R $(id -u) ${shellWord(dataDir)}`,
        }),
    ...missingPrograms.map(([program, name]) =>
      machine.fail('MISSING_PROGRAM', `the program ${program} is missing`, {
        mend: `Install it: apt-get install ${name}`,
      }),
    ),
    ...decideHost(facts),
    ...(open.length === 0
      ? keys.length === 0
        ? []
        : [
            machine.ok(
              'KEYS',
              `${keys.length} key file${keys.length === 1 ? '' : 's'}, closed to other users`,
            ),
          ]
      : open.map(({ path }) =>
          machine.fail('KEYS', `other users can read the key ${path}`, {
            mend: `Close it: chmod 600 ${shellWord(path)}`,
          }),
        )),
  ];
}

function decidePort({ port, variable, state, describe }: PortFacts, isRunning: boolean): Check {
  const name = `port ${port} (${describe})`;
  if (state === 'free') return settings.ok('PORT', `${name} is free`);
  if (state === 'taken' && isRunning) return settings.ok('PORT', `${name}: the daemon listens already`);
  if (state === 'taken')
    return settings.fail('PORT_IN_USE', `${name} is in use`, {
      mend: `Set ${variable} to another port, or see who has this one: ss -ltnp sport = :${port}`,
    });
  if (state === 'absent')
    return settings.fail('NO_SUCH_ADDRESS', `${name}: this server does not have the address to listen on`, {
      mend: `Set ${variable.replace(/_[A-Z]*_?PORT$/, '_HOST')} to "::" for every address.`,
    });
  return settings.fail('PORT_FORBIDDEN', `${name} needs more rights`, {
    mend: 'Run this as root (sudo); the systemd unit has the right.',
  });
}

/** What the URL and the prefix of a compute node must not be. */
function decideCompute({ settings: { role, config, ipv6Prefix } }: Facts): Check[] {
  if (role !== 'compute') return [];
  const fault = findAnnouncedUrlFault(config as unknown as Parameters<typeof findAnnouncedUrlFault>[0]);
  return [
    fault === undefined
      ? settings.ok('ANNOUNCE_URL', 'others can use the URL that they are told, as far as its form shows')
      : settings.fail('ANNOUNCE_URL', fault.split('; ')[0]!, {
          mend: 'Say where others reach this node: --announce-url http://ADDRESS:4020',
          docs: 'docs/guides/compute-node.md',
        }),
    ipv6Prefix === undefined
      ? settings.warn(
          'PREFIX',
          'no IPv6 /64: instances get private addresses, which only this server reaches',
          {
            mend: 'Say which /64 is routed to this server: --prefix 2001:db8:1:2::/64',
            docs: `${JOINING}#the-ipv6-prefix`,
          },
        )
      : settings.ok('PREFIX', `instances get addresses of ${ipv6Prefix}`),
  ];
}

/** Others reach its API, perhaps through a proxy; gossip they reach by itself, or not at all. */
function decideGossip({ settings: { role, announceUrl, host, config } }: Facts): Check[] {
  if (role !== 'core' || announceUrl === undefined || config.gossip === false) return [];
  const place = (config.p2pHost as string | undefined) ?? host;
  const isOwn = LOOPBACK.test(place);
  if (!isOwn && config.p2pPort !== 0)
    return [settings.ok('GOSSIP', `gossip listens at TCP port ${config.p2pPort}`)];
  const text = isOwn
    ? `gossip listens at ${place}, where no other node reaches it`
    : 'gossip listens at another port at each start, which no firewall can open';
  return [
    settings.warn('GOSSIP', `${text}: new messages come with the next session`, {
      mend: 'Set SKERRY_CORE_P2P_HOST=:: and SKERRY_CORE_P2P_PORT=4025, and open that TCP port.',
      docs: 'docs/peers.md#gossip',
    }),
  ];
}

/** Instances have addresses of IPv6 alone; those of private networks are not judged. */
function decideWayToInstances({ ownAddresses, settings: { config } }: Facts): Check[] {
  if (config.allowPrivate === true) return [];
  return ownAddresses.some((address) => address.includes(':') && isPublicAddress(address))
    ? [machine.ok('IPV6', 'this server has a public IPv6 address, over which it reaches instances')]
    : [
        machine.warn('IPV6', 'this server has no public IPv6 address: it reaches no instance elsewhere', {
          mend: 'Have your provider give it one; instances have addresses of IPv6 alone.',
          docs: 'docs/guides/gateway.md',
        }),
      ];
}

function decideGateway(facts: Facts): Check[] {
  const { role, domain } = facts.settings;
  if (role !== 'gateway') return [];
  return domain === undefined || /(^|\.)localhost$/.test(domain)
    ? [
        settings.warn('DOMAIN', `host names end in ${domain ?? 'nothing'}, which works on this server only`, {
          mend: 'Say the domain whose wildcard record leads here: --domain apps.example.org',
          docs: 'docs/guides/gateway.md',
        }),
      ]
    : [settings.ok('DOMAIN', `host names end in ${domain}`), ...decideWayToInstances(facts)];
}

function decideClock({ clockSeconds }: NetworkFacts): Check[] {
  if (clockSeconds === undefined) return [];
  const off = Math.abs(clockSeconds);
  const mend = { mend: 'Set the clock: timedatectl set-ntp true', docs: 'docs/peers.md#clocks' };
  const text = `this clock is ${Math.round(off)} s ${clockSeconds > 0 ? 'ahead of' : 'behind'} the core node's`;
  if (off > CLOCK_FAIL_SECONDS) return [network.fail('CLOCK', text, mend)];
  if (off > CLOCK_WARN_SECONDS) return [network.warn('CLOCK', text, mend)];
  return [network.ok('CLOCK', "this clock agrees with the core node's")];
}

/** Whom a core node that joins would believe. */
function decideTrust(role: Role, { info, url }: NetworkFacts): Check[] {
  if (role !== 'core' || !info) return [];
  const { schedulers, credit_publishers: credit, scoring_publishers: scoring } = info.trust;
  const named = { schedulers, 'credit publishers': credit, 'scoring publishers': scoring };
  const empty = Object.entries(named).filter(([, { value }]) => value.length === 0);
  return empty.length === 0
    ? [network.ok('TRUST', 'the network says whom to trust: schedulers, credit and scoring publishers')]
    : [
        network.warn('TRUST', `${url} trusts nobody as ${empty.map(([name]) => name).join(', ')}`, {
          mend: `Ask its operator, then set the lists yourself; see them with: skerry node status --core ${shellWord(url)}`,
          docs: `${OPERATING}#whom-a-node-trusts`,
        }),
      ];
}

function decideNetwork({ settings: { role }, network: facts, another }: Facts): Check[] {
  if (!facts)
    return [
      network.warn('CORE_NODE', 'no core node of a network is named', {
        mend: 'Name one: skerry doctor --core URL',
      }),
    ];
  if (facts.failure !== undefined)
    return [
      network.fail('CORE_NODE', `the core node ${facts.url} does not answer: ${facts.failure}`, {
        mend: `Name another ${another}, or try it: curl ${shellWord(`${facts.url}/api/v0/version`)}`,
      }),
    ];
  const { name = '', version = '' } = facts.info ?? {};
  return [
    network.ok('CORE_NODE', `${facts.url} answers (${name}, version ${version})`),
    ...decideClock(facts),
    ...decideTrust(role, facts),
  ];
}

/** All checks of a role, in the order in which they are told. */
export function decide(facts: Facts): Check[] {
  return [
    ...decideMachine(facts),
    ...facts.ports.map((port) => decidePort(port, facts.isRunning)),
    ...decideCompute(facts),
    ...decideGossip(facts),
    ...decideGateway(facts),
    ...decideNetwork(facts),
    ...decideOutside(facts),
  ];
}
