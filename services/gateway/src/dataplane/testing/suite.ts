import { describe } from 'node:test';
import type { CreateDataPlane } from '../port.ts';
import { httpBodiesSuite } from './suite/http-bodies.ts';
import { httpFailuresSuite } from './suite/http-failures.ts';
import { httpJournalSuite } from './suite/http-journal.ts';
import { httpRoutingSuite } from './suite/http-routing.ts';
import { http2Suite } from './suite/http2.ts';
import { tlsLimitsSuite } from './suite/tls-limits.ts';
import { tlsNamesSuite } from './suite/tls-names.ts';
import { tlsRelaySuite } from './suite/tls-relay.ts';

/** What every data plane must do, on real sockets. */
export function dataPlaneSuite(name: string, create: CreateDataPlane): void {
  describe(name, () => {
    tlsNamesSuite(create);
    tlsRelaySuite(create);
    tlsLimitsSuite(create);
    httpRoutingSuite(create);
    httpBodiesSuite(create);
    httpFailuresSuite(create);
    http2Suite(create);
    httpJournalSuite(create);
  });
}
