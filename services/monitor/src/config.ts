import { type ConfigOf, defineConfig, type Setting, settings } from '@skerry/kit';
import { DIAGNOSTIC_VM, parseEvmAddress, parseItemHash } from '@skerry/protocol';
import { type MeasuredNode, parseCoreNode } from './node-list.ts';
import { parseRelease, type Release } from './scores.ts';

const parsed = <T, U>(setting: Setting<T>, parse: (value: T) => U): Setting<U> => ({
  ...setting,
  parse: (text) => parse(setting.parse(text)),
  fallback: setting.fallback as Setting<U>['fallback'],
});

const optional = (parse: (text: string) => string, describe: string): Setting<string | undefined> => ({
  ...settings.optionalText(describe),
  parse,
});

/** Settings of the monitor. */
export const monitorConfig = defineConfig('SKERRY_MONITOR', {
  coreUrl: settings.url('http://localhost:4024', 'the core node to read from and publish to'),
  dataDir: settings.directory('data', 'monitor', 'where the key and the measurements of this hour are'),
  hourSeconds: settings.integer(5, 86_400, 3_600, 'how long an hour is, in seconds; shorter on a devnet'),
  concurrency: settings.integer(1, 1_000, 20, 'nodes that are measured at the same time'),
  nodeListOwner: optional(
    parseEvmAddress,
    'whose aggregate "corechannel" lists the nodes; without it the monitor keeps one of its own',
  ),
  coreNodes: parsed<string[], readonly MeasuredNode[]>(
    settings.list([], 'core nodes to measure beside the list: URL or ID@URL, comma-separated'),
    (texts) => texts.map(parseCoreNode),
  ),
  announcedNodes: settings.flag(true, 'whether compute nodes that announce themselves are measured'),
  diagnosticVm: parsed(
    settings.text(DIAGNOSTIC_VM, 'the program that every compute node runs'),
    parseItemHash,
  ),
  referenceFile: optional(parseItemHash, 'the file of 6.7 kB to fetch; without it the monitor stores one'),
  computeFamily: settings.choice(
    ['ipv6', 'any'],
    'ipv6',
    'the address family that compute nodes are measured over',
  ),
  software: settings.list(['skerry'], 'names of compute node software in the Server header'),
  asnFile: settings.optionalText('table of autonomous systems: "PREFIX ASN NAME" a line; read every hour'),
  caFile: settings.optionalText('certificate authorities to trust beside the usual ones, PEM'),
  allowPrivate: settings.flag(false, 'whether nodes at private addresses are asked; for devnets'),
  serverAddress: settings.text('', 'the public address of this monitor, as it is published'),
  releases: parsed<string[], readonly Release[]>(
    settings.list(
      [],
      'releases that the version table of this key is to have: SOFTWARE@VERSION, comma-separated',
    ),
    (texts) => texts.map(parseRelease),
  ),
  scoresEveryHours: settings.integer(
    0,
    10_000,
    0,
    'hours between two publications of scores from its own measurements; 0 for none',
  ),
  tags: settings.list([], 'tags of what is published, such as "mainnet"'),
});

export type MonitorConfig = ConfigOf<typeof monitorConfig>;
