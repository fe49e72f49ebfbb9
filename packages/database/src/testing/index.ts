export { startArchivedServer } from './archive.ts';
export { createTestDatabase, databaseUrlOf, type TestDatabase } from './database.ts';
export { startTestPooler } from './pooler.ts';
export { endTestServer, startTestServer, type TestServer, urlOf } from './server.ts';
export { clusterDirectoryOf, startTestCluster, type TestCluster } from './standby.ts';
export {
  findFreePort,
  ownAddress,
  startTcpStandby,
  startTcpTestServer,
  type TcpTestServer,
} from './tcp-server.ts';
