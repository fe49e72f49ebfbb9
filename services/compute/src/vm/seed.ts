import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { renameDurably, syncFile } from '@skerry/kit';
import { AppError, parseSshKey } from '@skerry/protocol';
import ipaddr from 'ipaddr.js';
import { run } from '../host/run.ts';
import { type Ipv4Link, LINK_LENGTH } from '../network/ipv4.ts';
import type { Volume } from './machine.ts';

/** What a guest is told at its first start. */
export interface Seed {
  readonly instanceId: string;
  readonly hostname: string;
  /** Of those who may log in. */
  readonly sshKeys: readonly string[];
  readonly mac: string;
  /** The guest's address with its network's length: `2001:db8::1/124`. */
  readonly address: string;
  /** The private IPv4 link that the node translates. */
  readonly ipv4: Ipv4Link;
  readonly nameServers: readonly string[];
  readonly volumes: readonly Pick<Volume, 'isReadOnly' | 'mount'>[];
}

/** Every node's side of every link (RFC 4291, 2.5.6): a guest's way out is the same wherever it runs. */
export const GATEWAY = 'fe80::1';

const HOSTNAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/;
const NAME_SERVERS_MAX = 3;

/**
 * The files of a NoCloud seed. All are JSON, which every YAML reader reads and where nothing has to be quoted by hand;
 * what comes from strangers is checked beside that. Throws INVALID_SSH_KEY, INVALID_PARAMETERS.
 */
export function seedFiles(seed: Seed): Record<'meta-data' | 'user-data' | 'network-config', string> {
  const keys = seed.sshKeys.length === 0 ? {} : { ssh_authorized_keys: seed.sshKeys.map(parseSshKey) };
  check(HOSTNAME.test(seed.hostname), 'a host name must be letters, digits and hyphens');
  check(MAC.test(seed.mac), 'a MAC address must be six pairs of hexadecimal digits');
  check(ipaddr.IPv6.isValidCIDR(seed.address), 'an address must be IPv6 with a prefix length');
  check(
    [seed.ipv4.guest, seed.ipv4.gateway].every((one) => ipaddr.IPv4.isValidFourPartDecimal(one)),
    'an IPv4 link must be two addresses',
  );
  const nameServers = seed.nameServers.slice(0, NAME_SERVERS_MAX);
  check(
    nameServers.every((one) => ipaddr.isValid(one)),
    'a name server must be an IP address',
  );
  return {
    // `local`: all that the seed says can be done before the network is up.
    'meta-data': json({ 'instance-id': seed.instanceId, 'local-hostname': seed.hostname, dsmode: 'local' }),
    'user-data': `#cloud-config\n${json({
      users: [{ name: 'root', lock_passwd: false, ...keys }],
      ...mountCommands(seed.volumes),
      disable_root: false,
      ssh_pwauth: false,
      write_files: [
        { path: '/etc/resolv.conf', content: nameServers.map((one) => `nameserver ${one}\n`).join('') },
        { path: '/etc/hosts', content: hostsFile(seed) },
      ],
    })}`,
    'network-config': json({
      version: 2,
      ethernets: {
        eth0: {
          match: { macaddress: seed.mac },
          addresses: [seed.address, `${seed.ipv4.guest}/${LINK_LENGTH}`],
          gateway6: GATEWAY,
          gateway4: seed.ipv4.gateway,
          'accept-ra': false,
        },
      },
    }),
  };
}

/** Writes the seed as an ISO 9660 volume labelled `cidata`, where cloud-init's NoCloud source looks for it. */
export async function writeSeed(seed: Seed, path: string, signal?: AbortSignal): Promise<void> {
  const files = seedFiles(seed);
  const directory = await mkdtemp(`${path}.`);
  try {
    const content = join(directory, 'seed');
    await mkdir(content);
    for (const [name, text] of Object.entries(files)) await writeFile(join(content, name), text);
    const iso = join(directory, 'seed.iso');
    await run('genisoimage', ['-quiet', '-output', iso, '-volid', 'cidata', '-joliet', '-rock', content], {
      signal,
    });
    await syncFile(iso);
    await renameDurably(iso, path);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The guest's first disk is its own, the second one the seed; then come volumes, in their order. */
const FIRST_VOLUME = 'c'.charCodeAt(0);

/** At every boot, before anything else that cloud-init does. */
function mountCommands(volumes: Seed['volumes']): { bootcmd?: string[][] } {
  const bootcmd = volumes.flatMap(({ isReadOnly, mount }, index) => {
    const device = `/dev/vd${String.fromCharCode(FIRST_VOLUME + index)}`;
    return mount === null
      ? []
      : [
          ['mkdir', '-p', mount],
          ['mount', '-o', isReadOnly ? 'ro' : 'rw', device, mount],
        ];
  });
  return bootcmd.length === 0 ? {} : { bootcmd };
}

function hostsFile({ address, hostname }: Seed): string {
  const own = address.slice(0, address.indexOf('/'));
  return `127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n${own} ${hostname}\n`;
}

function json(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

function check(isRight: boolean, expected: string): void {
  if (!isRight) throw new AppError('INVALID_PARAMETERS', expected);
}
