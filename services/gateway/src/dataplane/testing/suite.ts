import { describe, test } from 'node:test';
import type { Difference } from '../haproxy/differences.ts';
import type { CreateDataPlane } from '../port.ts';
import { Subject } from './subject.ts';
import { httpBodiesSuite } from './suite/http-bodies.ts';
import { httpFailuresSuite } from './suite/http-failures.ts';
import { httpJournalSuite } from './suite/http-journal.ts';
import { httpRoutingSuite } from './suite/http-routing.ts';
import { http2Suite } from './suite/http2.ts';
import { tlsJournalSuite } from './suite/tls-journal.ts';
import { tlsLimitsSuite } from './suite/tls-limits.ts';
import { tlsNamesSuite } from './suite/tls-names.ts';
import { tlsRelaySuite } from './suite/tls-relay.ts';

/**
 * What every data plane must do with TLS, on real sockets.
 *
 * @param differences what it does otherwise, each with its reason in words
 */
export function tlsSuite(
  name: string,
  create: CreateDataPlane,
  differences: Readonly<Partial<Record<Difference, string>>> = {},
): void {
  describe(name, () => {
    const subject = new Subject(create, differences);
    tlsNamesSuite(subject);
    tlsRelaySuite(subject);
    tlsLimitsSuite(subject);
    tlsJournalSuite(subject);
    test('every declared difference is looked at', () => subject.checkAllSeen());
  });
}

/** The same, and plain HTTP, of which every data plane has the same code (`ts/http/`). */
export function dataPlaneSuite(name: string, create: CreateDataPlane): void {
  tlsSuite(name, create);
  describe(`${name}: plain HTTP`, () => {
    httpRoutingSuite(create);
    httpBodiesSuite(create);
    httpFailuresSuite(create);
    http2Suite(create);
    httpJournalSuite(create);
  });
}
