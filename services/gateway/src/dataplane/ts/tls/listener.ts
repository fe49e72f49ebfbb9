import { createServer, type Server } from 'node:net';
import { YieldingShares } from '@skerry/kit';
import { Faults } from '../faults.ts';
import { LINGER_MS } from '../linger.ts';
import { Uploads } from '../uploads.ts';
import { TlsConnection, type TlsOptions } from './connection.ts';
import { Crowd } from './crowd.ts';
import { Stages } from './stages.ts';

export interface TlsListener {
  readonly server: Server;
  readonly connections: { readonly size: number; [Symbol.iterator](): Iterator<TlsConnection> };
}

/** A server that reads the server name of each connection and passes the bytes, untouched, to the instance of that name. */
export function createTlsListener(options: TlsOptions): TlsListener {
  const { limits, onTrouble } = options;
  const timeoutsMs = {
    undecided: limits.helloTimeoutMs,
    connecting: limits.connectTimeoutMs,
    open: limits.idleTimeoutMs,
    lingering: LINGER_MS,
  };
  const faults = new Faults(
    onTrouble,
    'the end of a connection whose time was over met a fault: it is closed',
  );
  const stages = new Stages<TlsConnection>(timeoutsMs, faults);
  const { maxConnections: total, maxPerClient: perClient } = limits;
  const places = new YieldingShares({ total, reserve: 0, perClient });
  const uploads = new Uploads();
  const context = {
    ...options,
    stages,
    crowd: new Crowd<TlsConnection>(),
    places,
    uploads,
    kept: { bytes: 0 },
  };
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    new TlsConnection(context, socket).start(),
  );
  return { server, connections: stages };
}
