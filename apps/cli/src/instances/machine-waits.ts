import { setTimeout as delay } from 'node:timers/promises';
import { type MachineClient, readLogFrame } from '@skerry/client';
import type { BackupView, LogLineView } from '@skerry/protocol/api/compute/machines';
import { AppError, isErrorCode } from '@skerry/protocol/forms';
import { renderDuration } from '../output/text.ts';

/** What is waited for at a compute node: each with its limit, and a word of why it ended. */

const POLL_MS = 500;
/** A disk of hundreds of gigabytes is copied within it. */
const BACKUP_LIMIT_MS = 6 * 3_600_000;
/** Until a log stream has begun. */
const OPEN_LIMIT_MS = 30_000;
/** So often the node is asked whether it is there; a stream ends where nothing has come since the last time. */
const SILENCE_MS = 30_000;
/** Of a log: a line is shorter. */
const FRAME_BYTES_MAX = 4 * 1024 ** 2;

/** Waits until the node has made a backup. Throws TIMED_OUT, BACKUP_NOT_FOUND, UPSTREAM_UNAVAILABLE. */
export async function waitForBackup(
  machine: Pick<MachineClient, 'listBackups' | 'url'>,
  id: string,
  limitMs = BACKUP_LIMIT_MS,
): Promise<BackupView> {
  const endMs = performance.now() + limitMs;
  for (;;) {
    const backup = (await machine.listBackups()).find((one) => one.backup_id === id);
    if (!backup) throw new AppError('BACKUP_NOT_FOUND', 'the node no longer has the backup');
    if (backup.state === 'done') return backup;
    if (backup.state === 'failed')
      throw new AppError(
        'UPSTREAM_UNAVAILABLE',
        `the backup failed: ${backup.reason?.message ?? 'no reason given'}`,
      );
    if (performance.now() >= endMs)
      throw new AppError(
        'TIMED_OUT',
        `${machine.url} has not made the backup ${id} within ${renderDuration(limitMs)}: it says that it is ${backup.state}`,
      );
    await delay(POLL_MS);
  }
}

/** A line of a log, and of what it is. */
export type Line = Pick<LogLineView, 'MESSAGE' | 'file'>;

/** RFC 6455, section 7.4.1, and the registry of it: as nodes close a stream. */
const WHY_CLOSED: Readonly<Record<number, string>> = {
  1001: 'it stops',
  1006: 'the connection was lost',
  1013: 'the lines came faster than they were read',
};

/** Prints lines as they come. Nobody but its caller ends it: throws TIMED_OUT, what the node refuses with, and UPSTREAM_UNAVAILABLE where the node or the connection ends it. */
export async function followLogs(
  machine: Pick<MachineClient, 'openLogs' | 'url'>,
  print: (line: Line) => void,
  limitMs = OPEN_LIMIT_MS,
): Promise<never> {
  // Node's own cannot ask whether anybody is there (RFC 6455, section 5.5.2).
  const [{ url, frame }, { WebSocket }] = await Promise.all([machine.openLogs(), import('ws')]);
  const socket = new WebSocket(url, { maxPayload: FRAME_BYTES_MAX, perMessageDeflate: false });
  const { promise, reject } = Promise.withResolvers<never>();
  const fail = (why: string) => reject(new AppError('UPSTREAM_UNAVAILABLE', `${machine.url} ${why}`));
  const late = `${machine.url} did not begin the log stream within ${renderDuration(limitMs)}`;
  const timer = setTimeout(() => reject(new AppError('TIMED_OUT', late)), limitMs);
  let isHeard = true;
  const watch = setInterval(() => {
    if (socket.readyState !== socket.OPEN) return;
    if (!isHeard)
      fail(`ended the log stream: nothing came for ${renderDuration(SILENCE_MS)}, ${WHY_CLOSED[1006]}`);
    isHeard = false;
    socket.ping();
  }, SILENCE_MS);
  const hear = () => {
    isHeard = true;
  };
  socket.on('open', () => socket.send(frame));
  socket.on('error', () => fail('does not offer a log stream, or lost it'));
  socket.on('close', (code, reason) => {
    const text = String(reason);
    fail(
      `ended the log stream: ${text === '' ? (WHY_CLOSED[code] ?? `code ${code}`) : JSON.stringify(text.slice(0, 200))}`,
    );
  });
  socket.on('pong', hear);
  socket.on('ping', hear);
  socket.on('message', (data) => {
    hear();
    clearTimeout(timer);
    try {
      const { status, reason, code, type, message } = readLogFrame(String(data));
      // Nodes of the deployed network say no code.
      if (status === 'failed')
        throw new AppError(isErrorCode(code) ? code : 'NOT_PERMITTED', reason ?? 'the node refused');
      if (message !== undefined) print({ MESSAGE: message, file: type ?? 'stdout' });
    } catch (error) {
      reject(error);
    }
  });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    clearInterval(watch);
    socket.terminate();
  }
}
