import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dataPlaneSuite, tlsSuite } from './suite.ts';
import { TsDataPlane } from './ts/plane.ts';
import { findTcpHandles } from './ts/tcp-handles.ts';

test('this Node has the TCP streams that the TypeScript plane is fastest with', () => {
  assert.notEqual(findTcpHandles(), null);
});

dataPlaneSuite('TypeScript data plane', (options) => new TsDataPlane(options));
tlsSuite('TypeScript data plane on sockets', (options) => new TsDataPlane(options, null));
