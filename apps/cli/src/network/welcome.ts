import { type DaemonName, type DevnetUrls, PORTS } from '@skerry/devnet';
import type { AppError } from '@skerry/protocol';
import { COMMAND_VARIABLES } from '../config.ts';
import { LOCAL } from '../networks/store.ts';
import { alignColumns, renderDuration } from '../output/text.ts';
import type { Ability } from './ability.ts';

export interface NetworkFacts {
  readonly urls: Partial<DevnetUrls>;
  /** Where a browser finds the console; undefined where no core node runs. */
  readonly consoleUrl?: string | undefined;
  /** Of every core node. */
  readonly coreUrls: readonly string[];
  readonly failures: ReadonlyMap<DaemonName, AppError>;
  readonly dataDir: string;
  /** How people call this command where it is installed. */
  readonly command: string;
  /** What the compute node can do. */
  readonly ability: Ability;
  /** The network that commands work on without a word, where that is not the one of this machine. */
  readonly otherNetwork?: string | undefined;
  /** What the credit service sells, in one line. */
  readonly credit: string;
  /** How long an hour of measurements is, in milliseconds; a real one where left out. */
  readonly hourMs?: number | undefined;
}

const DOMAIN = 'skerry.localhost';

const portOf = (url: string) => new URL(url).port;

function rowsOf({ urls, consoleUrl, coreUrls, failures, ability, credit }: NetworkFacts): string[][] {
  const row = (name: DaemonName, url: string | undefined, about: string) => [
    `  ${name}`,
    url ?? 'not running',
    url === undefined ? (failures.get(name)?.message ?? '') : about,
  ];
  const { gatewayHttp, gatewayHttps, gatewayApi } = urls;
  const names =
    gatewayHttp === undefined || gatewayHttps === undefined
      ? ''
      : `https://NAME.${DOMAIN}:${portOf(gatewayHttps)}/ and http://NAME.${DOMAIN}:${portOf(gatewayHttp)}/`;
  return [
    ...(consoleUrl === undefined
      ? []
      : [['  console', consoleUrl, 'open it in a browser: it shows the network, and checks what it shows']]),
    row('core', urls.core, 'stores, exchanges and serves messages'),
    ...coreUrls.slice(1).map((url, at) => [`  core-${at + 2}`, url, 'stays in step with the others']),
    row('scheduler', urls.scheduler, 'chooses a compute node for each instance'),
    row('compute', urls.compute, ability.text),
    row('gateway', gatewayApi, names),
    row('credit', urls.credit, credit),
    row('status', urls.status, 'shows whether every service answers'),
  ];
}

/** Where a door is not at its usual port, the commands must be told. */
function exportsOf({ otherNetwork }: NetworkFacts): string[] {
  if (otherNetwork === undefined) return [];
  return [`  export ${COMMAND_VARIABLES.network}=${LOCAL}      (commands work on ${otherNetwork} now)`];
}

/** What this machine can do: nobody is sent to what cannot work here. */
function thingsToTry({ urls, ability, command }: NetworkFacts): string[] {
  const httpPort = urls.gatewayHttp === undefined ? PORTS.gatewayHttp.fallback : portOf(urls.gatewayHttp);
  const httpsPort = urls.gatewayHttps === undefined ? PORTS.gatewayHttps.fallback : portOf(urls.gatewayHttps);
  if (ability.machines)
    return [
      `  ${command} instance create --name web --image debian:12 --cpu 1 --memory 512 --disk 4 --allow 22,80,443 --wait`,
      `  ${command} instance ssh web -- uname -a`,
      `  curl http://NAME.${DOMAIN}:${httpPort}/      (NAME: the four words; leads to port 80 of the machine)`,
      `  curl -k https://NAME.${DOMAIN}:${httpsPort}/  (port 443, with the machine's own certificate)`,
    ];
  if (ability.programs)
    return [
      `  echo 'def main(variables, request): return {"hello": variables.get("name", "world")}' > hello.py`,
      `  ${command} program run "$(${command} program create hello.py)" --var name=Ada`,
    ];
  return [`  ${command} file put README.md      (stored, and served by this core node)`];
}

const whenScored = ({ hourMs }: NetworkFacts) =>
  hourMs === undefined
    ? 'after an hour, or within a minute with "skerry up --hour 20s"'
    : `after an hour, which is ${renderDuration(hourMs)} here`;

export function renderWelcome(facts: NetworkFacts, bold: (text: string) => string): string {
  const { failures, dataDir, command } = facts;
  return [
    '',
    bold(failures.size === 0 ? 'The network is up.' : 'The network is up, but some services are not.'),
    alignColumns(rowsOf(facts)),
    `  data and logs: ${dataDir}`,
    '',
    'Try this in another shell:',
    ...exportsOf(facts),
    `  ${command} key new`,
    ...thingsToTry(facts),
    `  ${command} score latest      (${whenScored(facts)})`,
    '',
    `Press Ctrl-C to stop the network, or run "${command} down"; with --machines its virtual machines end, too.`,
    '',
  ].join('\n');
}

/** Virtual machines are processes of their own: what runs in them does not end with the network around them. */
export function renderFarewell(running: number, command = 'skerry down --machines'): string {
  if (running === 0) return 'stopped';
  const [machines, keep, them] =
    running === 1 ? ['virtual machine', 'keeps', 'it'] : ['virtual machines', 'keep', 'them'];
  return `stopped; ${running} ${machines} ${keep} running, and the next "skerry up" will manage ${them} again ("${command}" shuts ${them} down)`;
}

/** What renderWelcome tells, for programs. */
export function welcomeRecord({
  urls,
  consoleUrl,
  coreUrls,
  failures,
  dataDir,
  ability,
  credit,
}: NetworkFacts): Record<string, unknown> {
  return {
    status: 'up',
    ...(consoleUrl === undefined ? {} : { console: consoleUrl }),
    urls,
    core_urls: coreUrls,
    data_dir: dataDir,
    compute: ability.text,
    credit,
    failures: Object.fromEntries([...failures].map(([name, error]) => [name, error.message])),
  };
}
