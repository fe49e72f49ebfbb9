import type { DaemonEvent } from './daemon.ts';
import type { DaemonName } from './plan.ts';

const [INFO, WARN, ERROR] = [30, 40, 50];

/** What the devnet itself has to say, in the shape of the daemons' own lines. */
export interface OwnRecord {
  readonly level: number;
  readonly msg: string;
}

export const warningOf = (msg: string): OwnRecord => ({ level: WARN, msg });

/** What is told of something that happened to a daemon. Pure. */
export function recordOf(name: DaemonName, event: DaemonEvent): OwnRecord {
  switch (event.kind) {
    case 'ready': {
      const after = `${Math.round(event.afterMs / 1000)} s`;
      return { level: INFO, msg: [`${name} is ready after ${after}`, ...event.urls].join(' ') };
    }
    case 'ended': {
      const how = event.signal ?? `exit code ${event.code}`;
      const when = `${(event.restartAfterMs / 1000).toFixed(1)} s`;
      return warningOf(`${name} exited (${how}); restarting it in ${when}`);
    }
    case 'failing':
      return { level: ERROR, msg: `${name} does not start up; still trying: ${event.why}` };
    case 'given-up':
      return { level: ERROR, msg: `${name} will not be restarted: ${event.why}` };
  }
}
