import type { AggregateContent } from '../content/aggregate.ts';
import type { ForgetContent } from '../content/forget.ts';
import { type InstanceContent, isSshKey, parseInstanceContent } from '../content/instance.ts';
import { innerTagsOf, type PostContent } from '../content/post.ts';
import type { Program } from '../content/program.ts';
import { MIB_PER_GIB } from '../content/sizes.ts';
import type { StoreContent } from '../content/store.ts';
import { readTags } from '../content/tags.ts';
import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import type { NetworkAggregateContent } from './content/aggregate.ts';
import type { NetworkForgetContent } from './content/forget.ts';
import type { NetworkInstanceContent } from './content/instance.ts';
import { MACHINE_DEFAULTS, type NetworkVolume } from './content/machine.ts';
import type { NetworkPostContent } from './content/post.ts';
import type { NetworkProgramContent } from './content/program.ts';
import type { NetworkStoreContent } from './content/store.ts';
import { NETWORK_PARSERS, type NetworkContents, parseNetworkType } from './content.ts';

/** What contents of the network form mean, in the contents that the core node works on. `address` is kept as written. */
export interface ConvertedContents {
  readonly POST: PostContent;
  readonly AGGREGATE: AggregateContent;
  readonly STORE: StoreContent;
  readonly FORGET: ForgetContent;
  readonly PROGRAM: Program;
  readonly INSTANCE: InstanceContent;
}

export type ConvertedMessage = {
  [T in keyof ConvertedContents]: {
    readonly type: T;
    /** As signed. */
    readonly original: NetworkContents[T];
    readonly content: ConvertedContents[T];
  };
}[keyof ConvertedContents];

/** Only the fields that have a value: left out, undefined and null are the same. */
function withoutEmpty<T extends object>(fields: T): { [K in keyof T]: NonNullable<T[K]> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(entries) as { [K in keyof T]: NonNullable<T[K]> };
}

/** Tags are free values in this form. */
function tagsOrNone(value: unknown): string[] | undefined {
  const tags = readTags(value);
  return tags.length > 0 ? tags : undefined;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

export function convertPost(post: NetworkPostContent): PostContent {
  const ref = typeof post.ref === 'string' ? post.ref : post.ref?.item_hash;
  return {
    type: post.type,
    address: post.address,
    ...(post.content === undefined ? {} : { content: post.content }),
    ...withoutEmpty({ ref: ref === '' ? undefined : ref, tags: tagsOrNone(innerTagsOf(post.content)) }),
  };
}

export function convertAggregate(aggregate: NetworkAggregateContent): AggregateContent {
  const { key, content, address } = aggregate;
  return { key: typeof key === 'string' ? key : key.name, content, address };
}

export function convertStore(store: NetworkStoreContent): StoreContent {
  const { item_type, item_hash, size, content_type, address } = store;
  const optional = {
    size,
    content_type,
    ref: store.ref === '' ? undefined : store.ref,
    tags: tagsOrNone(store.tags),
  };
  return { item_type, item_hash, address, ...withoutEmpty(optional) };
}

/** @returns each target once; up to two lists of them, so more than the specification's form may hold */
export function convertForget(forget: NetworkForgetContent): ForgetContent {
  const hashes = [...new Set([...forget.hashes, ...(forget.aggregates ?? [])])];
  if (hashes.length === 0) {
    throw new AppError('INVALID_CONTENT', 'a FORGET names at least one message in hashes or aggregates');
  }
  return { hashes, address: forget.address, ...withoutEmpty({ reason: forget.reason }) };
}

/** The name in a machine's metadata as far as it can be shown, or one made of its hash. */
function nameOf(metadata: unknown, kind: string, itemHash: string, maxChars: number): string {
  const named = memberOf(metadata, 'name');
  const printable = typeof named === 'string' ? named.replace(/\p{Cc}+/gu, ' ').trim() : '';
  let name = '';
  for (const char of printable) {
    if (name.length + char.length > maxChars) break;
    name += char;
  }
  return name === '' ? `${kind}-${itemHash.slice(0, 8)}` : name;
}

function descriptionOf(metadata: unknown, maxChars: number): string | undefined {
  const description = memberOf(metadata, 'description');
  return typeof description === 'string' && description.length <= maxChars ? description : undefined;
}

const SSH_PORT = 22;

/** Published ports of a protocol, each once. */
const portsOf = ({ resources }: NetworkInstanceContent, wanted: 'tcp' | 'udp'): number[] => [
  ...new Set(
    resources.published_ports?.filter(({ protocol }) => protocol === wanted).map(({ port }) => port),
  ),
];

const allowed = (ports: readonly number[]) => [...new Set(ports)].slice(0, LIMITS.instancePortsMax);

/** Published ports, and ssh. Where none is published the default firewall holds. */
function firewallOf(content: NetworkInstanceContent): InstanceContent['firewall'] {
  const [tcp, udp] = [portsOf(content, 'tcp'), portsOf(content, 'udp')];
  if (tcp.length + udp.length === 0) return undefined;
  return {
    allowedPorts: allowed([SSH_PORT, ...tcp]),
    ...(udp.length === 0 ? {} : { allowedUdpPorts: allowed(udp) }),
  };
}

/** Disks that a machine can have beside its own. */
const VOLUMES_MAX = 16;

/** What all volumes together take that are made for the instance; files of the network take nothing of its disk. */
export const volumesMib = (volumes: readonly NetworkVolume[]): number =>
  volumes.reduce((sum, volume) => sum + ('size_mib' in volume ? volume.size_mib : 0), 0);

/** Virtual cores, memory in MiB, disk in GiB. */
export const sizeOfInstance = ({ resources, rootfs, volumes }: NetworkInstanceContent) => ({
  cpu: resources.vcpus ?? MACHINE_DEFAULTS.vcpus,
  memory: resources.memory ?? MACHINE_DEFAULTS.memoryMib,
  disk: Math.ceil((rootfs.size_mib + volumesMib(volumes ?? [])) / MIB_PER_GIB),
});

/** @throws AppError INVALID_CONTENT where its size is none that instances here can have, INVALID_SSH_KEY */
export function convertInstance(content: NetworkInstanceContent, itemHash: string): InstanceContent {
  const optional = {
    description: descriptionOf(content.metadata, LIMITS.instanceDescriptionChars),
    firewall: firewallOf(content),
  };
  if ((content.volumes?.length ?? 0) > VOLUMES_MAX)
    throw new AppError('INVALID_CONTENT', `content.volumes has more than ${VOLUMES_MAX} volumes`);
  const instance = {
    name: nameOf(content.metadata, 'instance', itemHash, LIMITS.instanceNameChars),
    ...sizeOfInstance(content),
    image: content.rootfs.parent.ref,
    // Without one it is taken as deployed nodes take it: what its image runs needs nobody to log in.
    ssh_key: content.authorized_keys?.[0] ?? '',
    address: content.address,
    ...withoutEmpty(optional),
  };
  return parseInstanceContent(instance, true);
}

/** What an instance's message asks for and its conversion leaves out, one sentence each, for the owner to read. */
export function listInstanceShortfalls(content: NetworkInstanceContent): string[] {
  const keys = content.authorized_keys?.length ?? 0;
  const unusable = content.authorized_keys?.filter((line) => !isSshKey(line)).length ?? 0;
  const [tcp, udp] = [portsOf(content, 'tcp'), portsOf(content, 'udp')];
  const { allowedPorts = [], allowedUdpPorts = [] } = firewallOf(content) ?? {};
  const closed = [
    ...tcp.filter((port) => !allowedPorts.includes(port)),
    ...udp.filter((port) => !allowedUdpPorts.includes(port)),
  ].length;
  const shortfalls: [boolean, string][] = [
    [keys === 0, 'nobody can log in: there is no key in authorized_keys'],
    [unusable > 0, `${unusable} of ${keys} authorized keys are no public keys, and are left out`],
    [closed > 0, `${closed} of ${tcp.length + udp.length} published ports are left out`],
    [
      content.volumes?.some((volume) => 'parent' in volume && volume.parent) ?? false,
      'a volume with a parent begins empty',
    ],
    [Object.keys(content.variables ?? {}).length > 0, 'variables are not put into the instance'],
    [(content.requirements?.gpu?.length ?? 0) > 0, 'no graphics processor is attached'],
    [
      Boolean(content.requirements?.node?.node_hash),
      'the node is chosen by the scheduler and not by node_hash',
    ],
    [
      Boolean(content.environment.trusted_execution),
      'the memory is not encrypted: there is no trusted execution',
    ],
    [content.environment.internet === false, 'the instance can reach the internet although it asked not to'],
  ];
  return shortfalls.filter(([applies]) => applies).map(([, sentence]) => sentence);
}

export function convertProgram(content: NetworkProgramContent, itemHash: string): Program {
  const { code, runtime, resources, environment, metadata } = content;
  return {
    name: nameOf(metadata, 'program', itemHash, LIMITS.programNameChars),
    description: descriptionOf(metadata, LIMITS.programDescriptionChars) ?? '',
    code: {
      kind: 'file',
      ref: code.ref,
      encoding: code.encoding,
      entrypoint: code.entrypoint,
      useLatest: code.use_latest ?? false,
    },
    runtime: { kind: 'image', ref: runtime.ref, useLatest: runtime.use_latest ?? true },
    vcpus: resources.vcpus ?? MACHINE_DEFAULTS.vcpus,
    memoryMib: resources.memory ?? MACHINE_DEFAULTS.memoryMib,
    timeoutSeconds: resources.seconds ?? MACHINE_DEFAULTS.seconds,
    variables: content.variables ?? {},
    internet: environment.internet ?? false,
  };
}

/**
 * Reads a content of the network form and says what it means here.
 *
 * @throws AppError UNKNOWN_MESSAGE_TYPE, INVALID_CONTENT, UNKNOWN_FIELD, INVALID_SSH_KEY
 */
export function convertNetworkContent(type: string, itemHash: string, value: unknown): ConvertedMessage {
  const known = parseNetworkType(type);
  switch (known) {
    case 'POST': {
      const original = NETWORK_PARSERS.POST(value);
      return { type: known, original, content: convertPost(original) };
    }
    case 'AGGREGATE': {
      const original = NETWORK_PARSERS.AGGREGATE(value);
      return { type: known, original, content: convertAggregate(original) };
    }
    case 'STORE': {
      const original = NETWORK_PARSERS.STORE(value);
      return { type: known, original, content: convertStore(original) };
    }
    case 'FORGET': {
      const original = NETWORK_PARSERS.FORGET(value);
      return { type: known, original, content: convertForget(original) };
    }
    case 'PROGRAM': {
      const original = NETWORK_PARSERS.PROGRAM(value);
      return { type: known, original, content: convertProgram(original, itemHash) };
    }
    case 'INSTANCE': {
      const original = NETWORK_PARSERS.INSTANCE(value);
      return { type: known, original, content: convertInstance(original, itemHash) };
    }
  }
}
