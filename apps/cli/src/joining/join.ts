import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { AppError } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import type { Context } from '../context.ts';
import { gatherEnvironment } from '../doctor/doctor.ts';
import { type Examined, examine } from '../doctor/examine.ts';
import { renderChecks, renderSummary } from '../doctor/render.ts';
import { EXIT } from '../exit-codes.ts';
import { loadService } from '../network/daemon.ts';
import { readSettingsFile } from '../network/settings-file.ts';
import { findScheduler } from '../networks/services.ts';
import { type Answers, checkAnswers, variablesOf } from './answers.ts';
import { type Joined, look, type Standing } from './counted.ts';
import { nextSteps } from './next-steps.ts';
import { askAnswers, askRole, confirmPlan } from './questions.ts';
import { findSettingsFile, type Role, type RoleSettings, readRole } from './roles.ts';
import { hideSecrets, shellSettings } from './shell-settings.ts';
import { describeTrust, servicesVariables, trustVariables } from './trust.ts';
import { hasUnit, startUnit, unitOf, writeSettings } from './units.ts';
import { waitUntil } from './wait.ts';

export interface JoinOptions {
  readonly role?: Role;
  readonly announceUrl?: string;
  readonly prefix?: string;
  readonly domain?: string;
  readonly settings?: string;
  readonly scheduler?: string;
  readonly timeout: number;
  readonly yes?: boolean;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly foreground?: boolean;
}

const DEFAULT_PORTS: Readonly<Record<Role, number>> = { compute: 4020, core: 4024, gateway: 80, monitor: 0 };

/** What will be done, before anything is. */
interface Plan {
  readonly role: Role;
  readonly coreUrl: string;
  readonly file: string;
  readonly variables: Readonly<Record<string, string>>;
  /** The same without secrets. */
  readonly shown: Readonly<Record<string, string>>;
  readonly settings: RoleSettings;
  readonly examined: Examined;
  /** How the daemon is started: by systemd, by this command, or by hand. */
  readonly start: 'unit' | 'foreground' | 'by-hand';
}

const commandOf = ({ role, file }: Pick<Plan, 'role' | 'file'>) =>
  `skerry ${role} --settings ${shellWord(file)}`;

async function makePlan(context: Context, coreUrl: string, options: JoinOptions): Promise<Plan> {
  const role = options.role ?? (await askRole(context));
  const { announceUrl, prefix, domain } = options;
  const said: Answers = { coreUrl, announceUrl, prefix, domain };
  const answers = checkAnswers(role, await askAnswers(context, role, said, DEFAULT_PORTS[role]));
  if (role === 'gateway' && answers.domain === undefined)
    throw new AppError(
      'INVALID_PARAMETERS',
      'a gateway needs the domain whose wildcard record leads to it: --domain',
    );
  const file = options.settings ?? (await findSettingsFile(context, role));
  const given = await gatherEnvironment(context, role, file);
  const { config: spec } = await loadService(role);
  const own = shellSettings(spec, context.environment, (await readSettingsFile(file)) ?? {});
  const variables = { ...own, ...variablesOf(role, answers, { ...given, ...own }) };
  const environment = { ...given, ...variables };
  const read = await readRole(role, environment);
  const settings = { ...read, announceUrl: answers.announceUrl ?? read.announceUrl };
  using progress = context.output.progress();
  const examined = await examine({
    ...{ settings, coreUrl, environment },
    another: 'as the argument of join',
    say: (what) => progress.show(what),
  });
  const { info } = examined.facts.network ?? {};
  const all = {
    ...variables,
    ...(role === 'core' && info
      ? { ...trustVariables(info.trust), ...servicesVariables(info, environment) }
      : {}),
  };
  return {
    ...{ role, coreUrl, file, settings, examined },
    variables: all,
    shown: hideSecrets(spec, all),
    start: options.foreground ? 'foreground' : (await hasUnit(role)) ? 'unit' : 'by-hand',
  };
}

function describePlan(plan: Plan): string {
  const { role, coreUrl, file, shown, examined, start } = plan;
  const { info } = examined.facts.network ?? {};
  const how = {
    unit: `systemctl enable --now ${unitOf(role)}`,
    foreground: commandOf(plan),
    'by-hand': commandOf(plan),
  };
  return [
    ...(role === 'core' && info ? [describeTrust(info, coreUrl), ''] : []),
    `Settings for ${file}:`,
    ...Object.entries(shown).map(([name, value]) => `  ${name}=${value}`),
    start === 'by-hand' ? `Then run, since systemd has no unit ${unitOf(role)} here:` : 'Then this is run:',
    `  ${how[start]}`,
  ].join('\n');
}

/**
 * The daemon below this command: its log is this command's, and it ends with it. The channel ends it also where this process is
 * killed (kit's runService).
 */
function startHere({ role, file }: Plan, { environment }: Context): ChildProcess {
  const [, script = ''] = process.argv;
  const child = spawn(process.execPath, [script, role, '--settings', file], {
    stdio: ['ignore', 2, 2, 'ipc'],
    env: environment,
  });
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => child.kill(name));
  return child;
}

async function start(plan: Plan, context: Context, limitMs: number): Promise<ChildProcess | undefined> {
  if (plan.start === 'foreground') return startHere(plan, context);
  if (plan.start === 'unit') await startUnit(plan.role, context.output, limitMs);
  else context.output.demand('Run this in another terminal, or as a service', commandOf(plan));
  return undefined;
}

/** Waits until the network counts the node. Throws TIMED_OUT, and DAEMON_FAILED where the daemon below this command ends. */
async function waitUntilCounted(
  joined: Joined,
  limitMs: number,
  { output }: Context,
  child?: ChildProcess,
): Promise<Standing> {
  const { role } = joined.settings;
  return waitUntil(output, {
    what: 'the network counts this node',
    limitMs,
    isOver: ({ state }) => state !== 'waiting',
    hint: `see "skerry doctor --role ${role}" and "journalctl -u ${unitOf(role)}"`,
    async look() {
      if (child && (child.exitCode !== null || child.signalCode !== null))
        throw new AppError(
          'DAEMON_FAILED',
          `the ${role} daemon ended with ${child.exitCode}; its last words are above`,
        );
      return look(joined);
    },
  });
}

function report(context: Context, plan: Plan, standing?: Standing): void {
  const { role, file, shown, coreUrl, settings, examined, start } = plan;
  const value = {
    ...{ role, settings_file: file, settings: shown, checks: examined.checks, core: coreUrl },
    ...(standing && {
      counted: standing.state === 'counted',
      state: standing.state,
      id: standing.id ?? null,
      address: standing.address ?? null,
      text: standing.text,
    }),
  };
  const text = standing
    ? [
        `This ${role} node has joined: ${standing.text}.`,
        '',
        'Next:',
        ...nextSteps(settings, standing, { coreUrl, isUnit: start === 'unit' }).map((one) => `  ${one}`),
      ]
    : [describePlan(plan), '', 'Nothing was changed (--dry-run).'];
  context.output.result(value, text.join('\n'));
}

async function untilEnd(child: ChildProcess): Promise<number> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode ?? EXIT.ok;
}

/** Makes this server a member of a network. Exit code 1 where it lacks something that the role needs. */
export async function joinNetwork(context: Context, coreUrl: string, options: JoinOptions): Promise<number> {
  const { output } = context;
  const plan = await makePlan(context, coreUrl, options);
  const { role, examined, file, variables } = plan;
  output.note(`${renderChecks(examined.checks, output.paint)}\n`);
  if (!examined.isReady && !options.force) {
    output.note(`${renderSummary(role, examined.checks)} Mend it, or join all the same with --force.`);
    if (output.json) output.result({ role, ready: false, checks: examined.checks }, '');
    return EXIT.failed;
  }
  if (options.dryRun) {
    report(context, plan);
    return EXIT.ok;
  }
  output.note(`${describePlan(plan)}\n`);
  if (!options.yes) await confirmPlan(context, 'Go on?');
  await writeSettings(file, variables);
  const child = await start(plan, context, options.timeout);
  const joined = {
    settings: plan.settings,
    coreUrl,
    // A network whose core node says nothing of a scheduler still has the node's announcement.
    schedulerUrl: await findScheduler(coreUrl, options.scheduler).catch(() => undefined),
  };
  try {
    report(context, plan, await waitUntilCounted(joined, options.timeout, context, child));
  } catch (error) {
    child?.kill('SIGTERM');
    throw error;
  }
  return child ? await untilEnd(child) : EXIT.ok;
}
