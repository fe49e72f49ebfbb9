import type { Socket } from 'node:net';
import { cutOff } from './cut-off.ts';

/** Calls back when little enough is on its way to either side that the kernel may have it; see Stalls. */
type WhenTaken = (then: () => void) => void;

/** One direction: back-pressure holds the source, the end of the source ends the target's side only (half-close). */
function pump(source: Socket, target: Socket, whenTaken: WhenTaken): void {
  // A side can end while the other is still being connected: Node tells of it even when the socket is paused.
  if (source.readableEnded) {
    target.end();
    return;
  }
  // As `pipe` does, with fewer listeners: what it makes and removes for each connection costs more than the bytes.
  source.on('data', (chunk) => {
    if (!target.write(chunk)) source.pause();
  });
  target.on('drain', () => source.resume());
  source.once('end', () => whenTaken(() => target.end()));
  source.resume();
}

/**
 * Both directions are over: close quietly. Otherwise the other side must learn that the stream is cut, which an orderly
 * close would hide: reset.
 */
function endWith(one: Socket, other: Socket): void {
  one.on('close', () => {
    const complete = one.readableEnded && one.writableFinished;
    if (!complete) cutOff(other);
  });
}

/**
 * Passes bytes both ways between two open connections until both directions have ended, one of them breaks, or nothing
 * moves for `idleTimeoutMs`. Both sockets must allow half-open connections.
 */
export function relay(
  client: Socket,
  instance: Socket,
  { idleTimeoutMs, whenTaken }: { idleTimeoutMs: number; whenTaken: WhenTaken },
): void {
  pump(client, instance, whenTaken);
  pump(instance, client, whenTaken);
  endWith(client, instance);
  endWith(instance, client);
  // Every byte of either direction touches the instance's socket, so one timer is enough. What only looks whether the client is there
  // touches the client's.
  client.setTimeout(0);
  instance.setTimeout(idleTimeoutMs, () => cutOff(client));
}
