import { findAnnouncedUrlFault } from '@skerry/compute';
import type { Environment } from '../config.ts';
import type { RoleSettings } from '../joining/roles.ts';
import type { Check } from './check.ts';
import { decide } from './decide.ts';
import type { Attempt, Facts } from './facts.ts';
import { listOwnAddresses, readMachineFacts } from './machine.ts';
import { placesOf, readName, readNetwork, readPort, tryPrefix, tryUrl } from './outside.ts';
import { findDaemon } from './own-daemon.ts';

export interface Examined {
  readonly checks: readonly Check[];
  readonly facts: Facts;
  /** Whether the role has all that it needs. */
  readonly isReady: boolean;
}

export interface ExamineOptions {
  readonly settings: RoleSettings;
  readonly coreUrl: string | undefined;
  readonly environment: Environment;
  /** How another core node is named: `with --core`. */
  readonly another: string;
  /** Told what is looked at. */
  readonly say: (what: string) => void;
}

/** Looks at the server for what a role needs. */
export async function examine({
  settings,
  coreUrl,
  environment,
  another,
  say,
}: ExamineOptions): Promise<Examined> {
  const { role, host, config, ipv6Prefix } = settings;
  say('looking at this server');
  const machine = await readMachineFacts(settings, environment);
  const ports = await Promise.all(settings.ports.map((port) => readPort(port)));
  const { isThere: isRunning } = await findDaemon(settings, ports);
  say('asking the network');
  const network = coreUrl === undefined ? undefined : await readNetwork(coreUrl);
  const isAnnounceable =
    role !== 'compute' ||
    findAnnouncedUrlFault(config as unknown as Parameters<typeof findAnnouncedUrlFault>[0]) === undefined;
  const { name, urls } = placesOf(settings, isAnnounceable);
  const askedUrl = network?.failure === undefined ? network?.url : undefined;
  const places: Attempt[] = [];
  for (const { url, port } of askedUrl === undefined ? [] : urls) {
    say(`asking the core node to connect to ${url}`);
    const isFree = ports.find((one) => one.port === port)?.state === 'free';
    places.push(await tryUrl(askedUrl!, url, isFree ? { host, port } : undefined));
  }
  const isPrefixAsked = askedUrl !== undefined && ipv6Prefix !== undefined;
  if (isPrefixAsked) say(`asking the core node to connect to ${ipv6Prefix}`);
  const facts: Facts = {
    ...{ settings, machine, ports, another, isRunning, network, places },
    ownAddresses: listOwnAddresses(),
    prefix: isPrefixAsked ? await tryPrefix(askedUrl, ipv6Prefix, isRunning) : undefined,
    name: name === undefined ? undefined : await readName(name),
  };
  const checks = decide(facts);
  return { checks, facts, isReady: checks.every(({ outcome }) => outcome !== 'fail') };
}
