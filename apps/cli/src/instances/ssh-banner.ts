import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '@skerry/protocol/forms';
import { plainText, renderDuration } from '../output/text.ts';

const CONNECT_MAX_MS = 5_000;
/**
 * An emulated machine on a busy node may take this long to greet. A connection that is given up earlier keeps a place of
 * the ones that its server allows before login (MaxStartups of sshd_config), until it allows no more.
 */
const GREETING_MAX_MS = 60_000;
const TRY_INTERVAL_MS = 300;
const BANNER_BYTES_MAX = 64;

/** Undefined when an ssh server answered; else what happened instead. */
async function findTrouble(host: string, port: number, leftMs: number): Promise<string | undefined> {
  const socket = connect({ host, port });
  const giveUp = () => socket.destroy(new Error('no answer'));
  let timeout = setTimeout(giveUp, Math.min(CONNECT_MAX_MS, leftMs));
  socket.once('connect', () => {
    clearTimeout(timeout);
    timeout = setTimeout(giveUp, Math.min(GREETING_MAX_MS, leftMs));
  });
  try {
    let text = '';
    // RFC 4253, section 4.2: lines may come before the one that begins with SSH-; servers of guests send none.
    while (text.length < BANNER_BYTES_MAX && !text.includes('\n')) {
      const [chunk] = (await Promise.race([
        once(socket, 'data'),
        once(socket, 'close').then(() => [undefined]),
      ])) as [Buffer | undefined];
      if (chunk === undefined) return 'it closed the connection';
      text += chunk.toString('latin1');
    }
    return text.startsWith('SSH-') ? undefined : refusalOf(text);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code ?? message;
  } finally {
    clearTimeout(timeout);
    socket.on('error', () => {});
    socket.destroy();
  }
}

/** An ssh server with too many logins under way says so in place of its greeting. */
const refusalOf = (text: string) =>
  `the answer is not from an ssh server: "${plainText(text.slice(0, BANNER_BYTES_MAX).split(/\r?\n/)[0]!)}"`;

/**
 * Tries until an ssh server answers: a machine that has just started needs a moment.
 * @param onTrouble told what happened at each try
 * @throws AppError TIMED_OUT
 */
export async function waitForSshBanner(
  host: string,
  port: number,
  timeoutMs: number,
  onTrouble: (why: string) => void = () => {},
): Promise<void> {
  const deadlineMs = Date.now() + timeoutMs;
  for (;;) {
    const why = await findTrouble(host, port, deadlineMs - Date.now());
    if (why === undefined) return;
    onTrouble(why);
    await delay(TRY_INTERVAL_MS);
    // A try with hardly any time left would see its own haste, and hide what the last one saw.
    if (Date.now() + TRY_INTERVAL_MS >= deadlineMs) {
      throw new AppError(
        'TIMED_OUT',
        `ssh on [${host}]:${port} did not answer in ${renderDuration(timeoutMs)} (${why})`,
      );
    }
  }
}
