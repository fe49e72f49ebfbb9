import { type HttpServer, VERSION } from '@skerry/kit';
import { sql } from 'kysely';
import Type from 'typebox';
import type { Rooms } from './rooms.ts';

const InfoView = Type.Object({
  node_multi_addresses: Type.Array(Type.String()),
  name: Type.String(),
  version: Type.String(),
});

/** What the node says of itself (specification, "Reachability check"): answered without touching the database. */
export async function infoRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  const info = { node_multi_addresses: [], name: rooms.settings.nodeName, version: VERSION };
  app.get(
    '/info/public.json',
    { schema: { summary: 'Reachability and version', response: { 200: InfoView } } },
    async () => info,
  );
  app.get('/version', { schema: { summary: 'Software version' } }, async () => ({ version: VERSION }));
}

/** Whether the node can do its work, with the reason where it cannot. */
export async function healthRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  app.get('/health', { schema: { summary: 'Whether the node can answer and keep messages' } }, async () => {
    await sql`select 1`.execute(rooms.db);
    return { status: 'ok', version: VERSION };
  });
}
