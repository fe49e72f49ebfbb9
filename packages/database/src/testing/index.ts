export { createTestDatabase, databaseUrlOf, type TestDatabase } from './database.ts';
export { startTestPooler } from './pooler.ts';
export { startTestServer, type TestServer, urlOf } from './server.ts';
export { startTcpTestServer } from './tcp-server.ts';
