import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CORES_MAX, choosePorts, type Devnet, type DevnetPorts, startDevnet } from '@skerry/devnet';
import { AppError } from '@skerry/protocol/forms';
import { withoutCommandVariables } from '../config.ts';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { describeFailure } from '../failure.ts';
import { devnetIn, downMachinesAt, type LocalNetwork, noteBegun, noteLocal } from '../networks/local.ts';
import { LOCAL } from '../networks/store.ts';
import { outliveFullDisk, whenLost } from '../output/lost.ts';
import { confirmPrograms, countRunning, findComputeAbility, findCreditAbility } from './ability.ts';
import { findConsoleUrl } from './console-url.ts';
import { listenForStop, SIGINT_EXIT_CODE, untilAborted } from './stop.ts';
import { createTerminal, type Terminal } from './terminal.ts';
import { renderFarewell, renderWelcome, welcomeRecord } from './welcome.ts';

export interface UpOptions {
  readonly corePort?: number;
  readonly schedulerPort?: number;
  readonly computePort?: number;
  readonly creditPort?: number;
  readonly httpPort?: number;
  readonly httpsPort?: number;
  readonly gatewayPort?: number;
  readonly statusPort?: number;
  readonly hour?: number;
  readonly cores?: number;
  readonly dataDir?: string;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
}

/** Whoever installed the package has the command on the path; a checkout has it where npx looks. */
const NAME = import.meta.filename.endsWith('.js') ? 'skerry' : 'npx skerry';
const COMMAND = fileURLToPath(new URL('../../bin/skerry.js', import.meta.url));

function portsOf(options: UpOptions, context: Context): DevnetPorts {
  const { corePort, schedulerPort, computePort, creditPort, httpPort, httpsPort, gatewayPort, statusPort } =
    options;
  return choosePorts(
    {
      core: corePort,
      scheduler: schedulerPort,
      compute: computePort,
      credit: creditPort,
      gatewayHttp: httpPort,
      gatewayHttps: httpsPort,
      gatewayApi: gatewayPort,
      status: statusPort,
    },
    context.environment,
  );
}

function checkCores(cores: number): number {
  if (Number.isInteger(cores) && cores <= CORES_MAX) return cores;
  throw new AppError('INVALID_PARAMETERS', `--cores must be 1 to ${CORES_MAX}, not ${cores}`);
}

async function welcome(
  context: Context,
  devnet: Devnet,
  { dataDir, hourMs }: { readonly dataDir: string; readonly hourMs: number | undefined },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const { output } = context;
  // What is said to be up can be used.
  const ability = await confirmPrograms(
    await findComputeAbility(devnet.urls.compute, signal),
    devnet.urls,
    signal,
  );
  const credit = await findCreditAbility(devnet.urls.credit, signal);
  const { urls, coreUrls, failures } = devnet;
  const { name } = context.network;
  const otherNetwork = name === undefined || name === LOCAL ? undefined : name;
  const consoleUrl = urls.core && (await findConsoleUrl(urls.core));
  const facts = {
    command: NAME,
    urls,
    consoleUrl,
    coreUrls,
    failures,
    dataDir,
    ability,
    credit,
    otherNetwork,
    hourMs,
  };
  if (output.json) output.result(welcomeRecord(facts), '');
  else terminal.say(renderWelcome(facts, (text) => output.paint('bold', text)));
}

/** Without its first core node there is no network. */
const coreUrlOf = ({ coreUrls }: Devnet): string => coreUrls[0]!;

export async function up(context: Context, options: UpOptions): Promise<number> {
  const { output, paths, environment } = context;
  const dataDir = options.dataDir === undefined ? devnetIn(paths.data) : resolve(options.dataDir);
  const ports = portsOf(options, context);
  const terminal = createTerminal(output, options.quiet ? 'quiet' : options.verbose ? 'verbose' : 'usual');
  let devnet: Devnet | undefined;
  let local: LocalNetwork | undefined;
  // What is told here is in the logs, too.
  using _ = whenLost(output.stdout, outliveFullDisk);
  using stop = listenForStop(() => {
    devnet?.kill();
    process.exit(SIGINT_EXIT_CODE);
  });
  await using _begun = await noteBegun(paths.data, dataDir);
  terminal.say(`starting a network in ${dataDir}`);
  try {
    devnet = await startDevnet({
      command: [process.execPath, COMMAND],
      environment: withoutCommandVariables(environment),
      dataDir,
      ports,
      hourSeconds: options.hour === undefined ? undefined : options.hour / 1000,
      chain: true,
      cores: checkCores(options.cores ?? 1),
      onLine: terminal.line,
      onEvent(name, event) {
        terminal.event(name, event);
        if (event.kind === 'ended') void local?.noteRestart(name, Date.now());
      },
      onWait: () => terminal.say('waiting for the daemons of a previous network to stop'),
      signal: stop.signal,
    });
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'SHUTTING_DOWN' && stop.signal.aborted)) throw error;
    terminal.say(renderFarewell(0));
    return EXIT.ok;
  }
  await using running = devnet;
  const place = { dataDir, urls: devnet.urls };
  await using noted = await noteLocal(paths.data, coreUrlOf(devnet), place).catch((error: unknown) => {
    terminal.say(`commands will not find this network by themselves: ${describeFailure(error).body.error}`);
    return undefined;
  });
  local = noted;
  await welcome(context, devnet, { dataDir, hourMs: options.hour }, terminal, stop.signal);
  terminal.say(
    devnet.chain
      ? `messages are confirmed on a chain at ${devnet.chain.url}`
      : 'messages are not confirmed: no chain, because anvil is not installed or did not start',
  );
  await untilAborted(stop.signal);
  terminal.say('stopping (press Ctrl-C again to stop at once)');
  const machines = await countRunning(devnet.urls.compute);
  await running[Symbol.asyncDispose]();
  terminal.say(renderFarewell(machines, downMachinesAt(paths.data, dataDir)));
  return EXIT.ok;
}
