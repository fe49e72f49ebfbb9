import { after } from 'node:test';
import { dataPlaneSuite } from './suite.ts';
import { TsDataPlane } from './ts/plane.ts';

dataPlaneSuite('TypeScript data plane', (options) => new TsDataPlane(options));

// Node 26.10 does not end after these tests: it turns for ever in Environment::CleanupHandles, over two sockets that it
// holds to be closing already. Why is not found yet (docs/operating.md); daemons end by process.exit and do not meet it.
after(() => void setImmediate(() => process.exit()));
