import { type ConfigSpec, variableName, variablesOf } from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import type { Environment } from '../config.ts';
import { isPlain } from './settings-text.ts';

/** What the environment of whoever joins sets of the daemon: its unit, and whoever starts it in another shell, do not see that. */

type Spec = ConfigSpec<Record<string, unknown>>;

/**
 * The daemon's own settings in an environment that its file does not have so. What it starts with is what was looked at only where they are
 * written, too. Pure. Throws INVALID_PARAMETERS, without the value: it may be a secret.
 *
 * @param inFile what the settings file says
 */
export function shellSettings(
  spec: Spec,
  environment: Environment,
  inFile: Environment,
): Readonly<Record<string, string>> {
  const said = variablesOf(spec).flatMap((name) => {
    const value = environment[name];
    // Any other name may be of another program: DATABASE_URL.
    return name.startsWith('SKERRY_') && value !== undefined && value !== inFile[name]
      ? [[name, value] as const]
      : [];
  });
  for (const [name, value] of said)
    if (!isPlain(value))
      throw new AppError(
        'INVALID_PARAMETERS',
        `${name} of your environment has characters that no settings file takes as they are`,
        { details: { hint: `write ${name} to the settings file yourself, in quotes, and unset it here` } },
      );
  return Object.fromEntries(said);
}

/** The same settings for people, without secrets. Pure. */
export function hideSecrets(
  spec: Spec,
  variables: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const secret = new Set(
    Object.entries(spec.settings)
      .filter(([, one]) => one.secret)
      .map(([key]) => variableName(spec.prefix, key)),
  );
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, secret.has(name) ? '(hidden)' : value]),
  );
}
