import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '@skerry/protocol';
import { renderDuration } from '../output/text.ts';

const TRY_TIMEOUT_MS = 5_000;
const TRY_INTERVAL_MS = 300;
const BANNER_BYTES_MAX = 64;

/** Undefined when an ssh server answered; else what happened instead. */
async function findTrouble(host: string, port: number, timeoutMs: number): Promise<string | undefined> {
  const socket = connect({ host, port });
  const timeout = setTimeout(() => socket.destroy(new Error('no answer')), timeoutMs);
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
    return text.startsWith('SSH-') ? undefined : 'the answer is not from an ssh server';
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code ?? message;
  } finally {
    clearTimeout(timeout);
    socket.on('error', () => {});
    socket.destroy();
  }
}

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
    const why = await findTrouble(host, port, Math.min(TRY_TIMEOUT_MS, timeoutMs));
    if (why === undefined) return;
    if (Date.now() + TRY_INTERVAL_MS >= deadlineMs) {
      throw new AppError(
        'TIMED_OUT',
        `ssh on [${host}]:${port} did not answer in ${renderDuration(timeoutMs)} (${why})`,
      );
    }
    onTrouble(why);
    await delay(TRY_INTERVAL_MS);
  }
}
