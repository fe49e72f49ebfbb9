import { findProgram, installPackages, isDebian, type Logger, runBriefly } from '@skerry/kit';
import { AppError } from '@skerry/protocol';

const PROGRAM = 'haproxy';
const PACKAGE = 'haproxy';
const INSTALL_TRIES_MAX = 4;
/** What the configuration asks for. */
const VERSION_MIN = [2, 6] as const;

export interface InstallChoice {
  readonly installPackages: boolean;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const SETTING = 'SKERRY_GATEWAY_DATA_PLANE=haproxy';

/** Why this machine's HAProxy cannot be used, with how to mend it; undefined where it can. Pure. */
export function findObstacle(
  path: string | undefined,
  /** What `haproxy -v` says. */
  said: string,
  isOnDebian: boolean,
): string | undefined {
  const how = isOnDebian ? `sudo apt-get install --no-install-recommends ${PACKAGE}` : 'install it';
  if (path === undefined) return `${SETTING} needs HAProxy, which is missing: ${how}`;
  const [, major, minor] = /HAProxy version (\d+)\.(\d+)/i.exec(said) ?? [];
  const [majorMin, minorMin] = VERSION_MIN;
  const isNew = Number(major) > majorMin || (Number(major) === majorMin && Number(minor) >= minorMin);
  if (isNew) return undefined;
  const first = said.trim().split('\n', 1)[0];
  return `${SETTING} needs HAProxy ${VERSION_MIN.join('.')} or newer; ${path} says: ${first}`;
}

/**
 * Path of HAProxy; as root on Debian, and where it is allowed, installed first.
 *
 * Throws INVALID_CONFIG where it is missing or too old, with how to mend that.
 */
export async function findHaproxy({
  installPackages: mayInstall,
  log,
  signal,
}: InstallChoice): Promise<string> {
  const isOnDebian = await isDebian();
  let path = await findProgram(PROGRAM);
  if (path === undefined && isOnDebian && mayInstall && process.geteuid?.() === 0) {
    log.warn(
      `installing HAProxy: apt-get install --no-install-recommends ${PACKAGE} (SKERRY_GATEWAY_INSTALL_PACKAGES=no turns this off)`,
    );
    await installPackages([PACKAGE], { triesMax: INSTALL_TRIES_MAX, log, signal });
    path = await findProgram(PROGRAM);
  }
  const said = path === undefined ? '' : (await runBriefly(path, ['-v'], { signal })).said;
  const obstacle = findObstacle(path, said, isOnDebian);
  if (path === undefined || obstacle !== undefined) throw new AppError('INVALID_CONFIG', obstacle ?? '');
  return path;
}
