import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { createOutput } from '../output/output.ts';
import { replying } from '../testing/replying.ts';
import { countOpen, lookAtConnections } from './drains.ts';
import { waitUntil } from './wait.ts';

const output = createOutput(process.stdout, process.stderr, { json: true, colours: false });
const metrics = (tls: number, http: number, quic?: number) =>
  [
    `skerry_gateway_tls_open_connections ${tls}`,
    `skerry_gateway_http_open_connections ${http}`,
    ...(quic === undefined ? [] : [`skerry_gateway_quic_open_flows ${quic}`]),
    'skerry_gateway_tls_connections_total{outcome="ok"} 7',
  ].join('\n');

/** Looks that answer one after the other; one that is an error fails. */
function waiting(answers: (string | Error)[], limitMs = 60_000) {
  const left = [...answers];
  return waitUntil(output, {
    ...{ what: 'it is over', limitMs, hint: 'look', everyMs: 1 },
    look: async () => {
      const text = left.length > 1 ? left.shift()! : left[0]!;
      if (text instanceof Error) throw text;
      return { text };
    },
    isOver: ({ text }) => text === 'over',
  });
}

test('what could not be looked at is looked at again, until the time is over', async () => {
  const silence = new DOMException('no answer', 'TimeoutError');
  const gone = new AppError('UPSTREAM_UNAVAILABLE', 'it does not answer');
  assert.deepEqual(await waiting([silence, 'going', gone, 'over']), { text: 'over' });
  await assert.rejects(waiting([gone], 20), {
    code: 'TIMED_OUT',
    message: /not known: it does not answer$/,
  });
  const dead = new AppError('DAEMON_FAILED', 'it has ended');
  await assert.rejects(waiting(['going', dead]), { code: 'DAEMON_FAILED' });
});

test('a gateway is empty where it says so of every kind of connection, and not where it says nothing', async () => {
  assert.equal(countOpen(metrics(0, 0, 0)), 0);
  assert.equal(countOpen(metrics(0, 0)), 0);
  assert.equal(countOpen(metrics(1, 2, 3)), 6);
  for (const text of ['', 'hello', 'skerry_gateway_quic_open_flows 0'])
    assert.throws(() => countOpen(text), { code: 'UNEXPECTED_ANSWER' });
  await using gateway = await replying((url, response) => {
    response.statusCode = url.pathname === '/ok' ? 200 : 503;
    response.end(metrics(0, 0, 0));
    return response;
  });
  assert.equal((await lookAtConnections(`${gateway.url}/ok`)).open, 0);
  await assert.rejects(lookAtConnections(`${gateway.url}/metrics`), { message: /answers 503/ });
});
