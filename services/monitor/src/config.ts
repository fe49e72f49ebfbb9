import { type ConfigOf, defineConfig, type Setting, settings } from '@skerry/kit';
import { parseEvmAddress, parseItemHash } from '@skerry/protocol';
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
  coreUrl: settings.coreUrl('the core node to read from and publish to'),
  dataDir: settings.directory('data', 'monitor', "directory for the key and the current hour's measurements"),
  hourSeconds: settings.integer(5, 86_400, 3_600, 'length of an hour, in seconds; shorter on a devnet'),
  concurrency: settings.integer(1, 1_000, 20, 'nodes to measure in parallel'),
  nodeListOwner: optional(
    parseEvmAddress,
    'address whose aggregate "corechannel" lists the nodes; by default the monitor maintains its own',
  ),
  coreNodes: parsed<string[], readonly MeasuredNode[]>(
    settings.list([], 'core nodes to measure besides the list: URL or ID@URL, comma-separated'),
    (texts) => texts.map(parseCoreNode),
  ),
  announcedNodes: settings.flag(
    true,
    'whether to measure compute nodes that announce themselves, besides those on the list',
  ),
  referenceFile: optional(
    parseItemHash,
    'hash of the file to fetch, on a network that has one already; by default the monitor stores one of 6.7 kB',
  ),
  computeFamily: settings.choice(['ipv6', 'any'], 'ipv6', 'address family for measuring compute nodes'),
  software: settings.list(
    ['skerry'],
    'names of compute node software in the Server header, whose versions are published; add a name to measure other software',
  ),
  asnFile: settings.optionalText('table of autonomous systems: "PREFIX ASN NAME" per line; read every hour'),
  caFile: settings.optionalText('file with more certificate authorities to trust, PEM; for private networks'),
  allowPrivate: settings.flag(false, 'whether to contact nodes at private addresses; for devnets'),
  serverAddress: settings.text(
    '',
    'public address of this monitor, published so that readers know from where it measures; empty to publish none',
  ),
  releases: parsed<string[], readonly Release[]>(
    settings.list([], "releases to keep in this key's version table: SOFTWARE@VERSION, comma-separated"),
    (texts) => texts.map(parseRelease),
  ),
  scoresEveryHours: settings.integer(
    0,
    10_000,
    0,
    'hours between publications of scores from its own measurements; 0 for none',
  ),
  tags: settings.list([], 'tags of published messages, such as "mainnet"'),
});

export type MonitorConfig = ConfigOf<typeof monitorConfig>;
