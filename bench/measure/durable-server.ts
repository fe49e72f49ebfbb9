import { startTestServer, type TestServer } from '@skerry/database/testing';
import type { Logger } from '@skerry/kit';

/** As a node's own server has them. */
export const DURABLE = {
  ...{ fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on', autovacuum: 'on' },
  shared_buffers: '128MB',
};

/** A server that writes as safely as that of a node, gone on disposal. */
export const startDurableServer = (log: Logger): Promise<TestServer> => startTestServer(log, DURABLE);
