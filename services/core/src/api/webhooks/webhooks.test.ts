import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage, signMessage } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { sql } from 'kysely';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

const SECRET = 'kept-from-everybody-5f0c';
const content = { url: 'https://example.org/hook', events: ['message.new'], secret: SECRET };

describe('webhooks', () => {
  let core: TestCore;
  let logged = '';
  before(async () => {
    const write = (line: string) => {
      logged += line;
    };
    core = await createTestCore({ log: createLogger('core', 'trace', { write }) });
  });
  after(() => core[Symbol.asyncDispose]());

  /** Every table, every row, as text; bytes also as the text that they may be. */
  async function dumpDatabase(): Promise<string> {
    const { db } = core.rooms;
    const tables = await sql<{ name: string }>`
      select table_name as name from information_schema.tables where table_schema = 'public'`.execute(db);
    const dumps = await Promise.all(
      tables.rows.map(async ({ name }) => {
        const { rows } = await sql<object>`select * from ${sql.table(name)}`.execute(db);
        return rows.flatMap((row) =>
          Object.values(row).map((value) =>
            Buffer.isBuffer(value) ? value.toString('latin1') : JSON.stringify(value),
          ),
        );
      }),
    );
    return dumps.flat().join('\n');
  }

  const holdsSecret = (text: string) =>
    [
      SECRET,
      Buffer.from(SECRET).toString('base64').replace(/=+$/, ''),
      Buffer.from(SECRET).toString('hex'),
    ].some((form) => text.includes(form));

  test('the secret is in no table, list, event, log line or answer; the node itself can read it', async () => {
    const { body, itemHash } = signMessage({ type: 'WEBHOOK', content }, signers.alice);
    const answers: unknown[] = [];
    for (const path of ['/webhooks', '/webhooks']) {
      const answer = await core.post(path, body);
      assert.equal(answer.status, 200, path);
      answers.push(answer.body);
    }
    assert.deepEqual(answers[0], { webhook_id: itemHash, status: 'success' });
    assert.deepEqual(answers[1], answers[0], 'sent twice it is the same webhook');
    const rows = await core.rooms.db.selectFrom('webhooks').selectAll().execute();
    assert.deepEqual(
      rows.map((row) => [row.webhook_id, row.owner, row.url]),
      [[itemHash, signers.alice.address, content.url]],
    );
    assert.equal(core.rooms.secrets.open(rows[0]!.secret, itemHash), SECRET);
    for (const path of [
      ...[`/messages/${itemHash}`, `/messages/${itemHash}/status`, `/messages/${itemHash}/content`],
      ...[
        '/messages',
        `/messages?hashes=${itemHash}`,
        '/messages.json',
        '/posts.json',
        '/events',
        '/state/digest',
      ],
      ...[
        `/aggregates?address=${signers.alice.address}`,
        '/openapi.json',
        `/messages?addresses=${signers.alice.address}`,
      ],
    ])
      answers.push((await core.get(path)).body);
    for (const path of ['/metrics', '/metrics.json', '/health'])
      answers.push((await core.api.inject({ url: path })).payload);
    assert.equal((await core.get(`/messages/${itemHash}`)).status, 404);
    assert.equal((await core.get('/messages')).body.pagination.total, 0);
    assert.equal(holdsSecret(JSON.stringify(answers)), false);
    assert.equal(holdsSecret(await dumpDatabase()), false);
    assert.ok(logged.length > 0);
    assert.equal(holdsSecret(logged), false);
  });

  test('a type that no message has is refused', async () => {
    for (const [types, status] of [
      [['POST', 'post'], 400],
      [['POST', 'STORE'], 200],
    ] as const) {
      const sent = { type: 'WEBHOOK', content: { ...content, filters: { types } } };
      const answer = await core.post('/webhooks', signMessage(sent, signers.bob).body);
      assert.equal(answer.status, status);
      if (status === 400) assert.match(answer.body.error, /unknown type "post"; known: POST, STORE/);
    }
  });

  test('where messages are kept none is taken, in no form: the refusal names the route', async () => {
    const draft = { type: 'WEBHOOK', content: { ...content, url: 'https://example.org/elsewhere' } };
    const action = { type: 'WEBHOOK', content: { action: 'list' } };
    const network = buildNetworkMessage(draft, signers.alice).body;
    const published = { topic: 'ALEPH-TEST', data: JSON.parse(network).message };
    for (const [path, body] of [
      ['/messages', signMessage(draft, signers.alice).body],
      ['/messages', signMessage(action, signers.alice).body],
      ['/messages', network],
      ['/ipfs/pubsub/pub', JSON.stringify(published)],
    ] as const) {
      const answer = await core.post(path, body);
      assert.equal(answer.body.code, 'UNKNOWN_MESSAGE_TYPE', `${path} ${body}`);
      assert.match(answer.body.error, /no messages of type WEBHOOK: .* POST \/api\/v0\/webhooks/);
      assert.equal(holdsSecret(JSON.stringify(answer.body)), false);
    }
    const urls = await core.rooms.db.selectFrom('webhooks').select('url').execute();
    assert.ok(urls.every(({ url }) => url !== draft.content.url));
  });

  test('no refusal repeats it, nor does a fault of the node', async () => {
    const send = (more: object) =>
      core.send(signers.alice, { type: 'WEBHOOK', content: { ...content, ...more } }, '/webhooks');
    const network = buildNetworkMessage({ type: 'WEBHOOK', content }, signers.alice).body;
    const { body } = signMessage({ type: 'WEBHOOK', content }, signers.alice);
    const refused = [
      await send({ url: 'x' }),
      await send({ events: [SECRET] }),
      await send({ secret: SECRET.repeat(20) }),
      await send({ secret: [SECRET] }),
      await send({ address: signers.bob.address }),
      await send({ [SECRET]: 1, secret: 1 }),
      await core.post('/messages', network),
      await core.post('/webhooks', body.replace('example', 'EXAMPLE')),
      await core.post('/webhooks', body.slice(0, -1)),
    ];
    await core.loseDatabase();
    refused.push(await core.post('/webhooks', signMessage({ type: 'WEBHOOK', content }, signers.alice).body));
    for (const [index, { status, body: answer }] of refused.entries()) {
      assert.ok(status >= 400, String(index));
      // A field's name is what the caller wrote as a name, not a value.
      if (index !== 5) assert.equal(holdsSecret(JSON.stringify(answer)), false, JSON.stringify(answer));
    }
    assert.equal(holdsSecret(logged), false);
  });
});
