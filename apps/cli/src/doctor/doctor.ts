import type { Environment } from '../config.ts';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { checkAnswers, variablesOf, withoutGossip } from '../joining/answers.ts';
import { isNamedByVariable, listDevnetRoles, readDevnetSettings } from '../joining/devnet.ts';
import { findSettingsFile, ROLES, type Role, readRole } from '../joining/roles.ts';
import { hasUnit, readUnitEnvironment } from '../joining/units.ts';
import { readSettingsFile } from '../network/settings-file.ts';
import { LOCAL } from '../networks/store.ts';
import { type Examined, examine } from './examine.ts';
import { renderChecks, renderSummary } from './render.ts';

export interface DoctorOptions {
  readonly role?: Role[];
  readonly settings?: string;
  readonly announceUrl?: string;
  readonly prefix?: string;
  readonly domain?: string;
}

/** The roles that have settings on this server. */
export async function findRoles(context: Context): Promise<Role[]> {
  const found: Role[] = [];
  for (const role of ROLES)
    if (await readSettingsFile(await findSettingsFile(context, role)).catch(() => ({}))) found.push(role);
  return found;
}

/** Whether somebody says how a node is to join: then none of "skerry up" is meant. */
const isJoining = ({ network }: Context, { settings, announceUrl, prefix, domain }: DoctorOptions) =>
  network.isNamed ||
  network.name !== LOCAL ||
  [settings, announceUrl, prefix, domain].some((said) => said !== undefined);

/** The roles that are looked at where nobody says which. */
async function findLookedAt(context: Context, options: DoctorOptions): Promise<readonly Role[]> {
  const settled = await findRoles(context);
  const found = settled.length > 0 || isJoining(context, options) ? settled : await listDevnetRoles(context);
  return found.length > 0 ? found : ['compute'];
}

/** The settings of the daemon that "skerry up" runs, where no other is set up here. */
async function readOwnDevnet(
  context: Context,
  role: Role,
  options: DoctorOptions,
): Promise<Environment | undefined> {
  if (isJoining(context, options) || isNamedByVariable(context, role) || (await hasUnit(role)))
    return undefined;
  const given = await readSettingsFile(await findSettingsFile(context, role));
  return given === undefined ? readDevnetSettings(context, role) : undefined;
}

/**
 * What the daemon of a role would start with: its file, and what is said now above it. A unit does not see the environment of
 * whoever asks; a daemon that is started by hand does.
 */
export async function gatherEnvironment(
  { environment }: Pick<Context, 'environment'>,
  role: Role,
  file: string,
): Promise<Environment> {
  const given = (await readSettingsFile(file)) ?? {};
  if (!(await hasUnit(role))) return { ...given, ...environment };
  const others = Object.entries(environment).filter(([name]) => !/^(SKERRY|XDG)_/.test(name));
  return { ...Object.fromEntries(others), ...(await readUnitEnvironment(role)), ...given };
}

async function examineRole(context: Context, role: Role, options: DoctorOptions): Promise<Examined> {
  const isChosen = context.network.isNamed || context.network.name !== LOCAL;
  const answers = checkAnswers(role, {
    coreUrl: isChosen ? context.coreUrl : undefined,
    announceUrl: options.announceUrl,
    prefix: options.prefix,
    domain: options.domain,
  });
  const file = options.settings ?? (await findSettingsFile(context, role));
  const devnet = await readOwnDevnet(context, role, options);
  if (devnet) context.output.note(`no ${role} node is set up here: that of "skerry up" is looked at`);
  const given = devnet ? { ...context.environment, ...devnet } : await gatherEnvironment(context, role, file);
  const said = variablesOf(role, answers, given);
  // A join would set it; the doctor says whether it is set.
  const environment = { ...given, ...withoutGossip(said) };
  const settings = await readRole(role, environment);
  using progress = context.output.progress();
  return await examine({
    settings: { ...settings, announceUrl: answers.announceUrl ?? settings.announceUrl },
    coreUrl: isChosen ? context.coreUrl : settings.coreUrl,
    environment,
    another: 'with --core',
    say: (what) => progress.show(what),
  });
}

/** Exit code 1 where a role lacks something that it needs. */
export async function runDoctor(context: Context, options: DoctorOptions): Promise<number> {
  const { output } = context;
  const results: { role: Role; ready: boolean; checks: Examined['checks'] }[] = [];
  for (const role of options.role ?? (await findLookedAt(context, options))) {
    const { checks, isReady } = await examineRole(context, role, options);
    results.push({ role, ready: isReady, checks });
  }
  const title = (role: Role) => (results.length > 1 ? [output.paint('bold', `${role} node`), ''] : []);
  const text = results.map(({ role, checks }) =>
    [...title(role), renderChecks(checks, output.paint), '', renderSummary(role, checks)].join('\n'),
  );
  output.result(results, text.join('\n\n'));
  return results.every(({ ready }) => ready) ? EXIT.ok : EXIT.failed;
}
