import { hash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import type { Query } from './measure/queries.ts';

/** A server that does nothing but ask the database and pass its JSON on. */
export interface BareServer extends AsyncDisposable {
  readonly url: string;
}

/** @param queryOf the statement of a path */
export async function startBareServer(
  databaseUrl: string,
  connections: number,
  queryOf: (path: string) => Query,
): Promise<BareServer> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: connections });
  const server = createServer(async (request, response) => {
    const { sql, parameters } = queryOf(request.url!);
    // Prepared once for each connection, as the core node's are.
    const { rows } = await pool.query<{ json: string }>({
      name: hash('sha1', sql),
      text: sql,
      values: [...parameters],
    });
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.end(`{"metrics":${rows[0]!.json}}`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await pool.end();
    },
  };
}
