export { createTestDatabase, databaseUrlOf, type TestDatabase } from './database.ts';
export { startTestServer, type TestServer, urlOf } from './server.ts';
