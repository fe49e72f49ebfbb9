import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { describe, test } from 'node:test';
import { makeCertificate } from '@skerry/kit/testing/certificate';
import { startNameServer } from '@skerry/kit/testing/dns';
import { until } from '@skerry/kit/testing/until';
import { answerWith, startReceiver } from '../testing/setup.ts';
import { createSender } from './send.ts';

const HEADERS = { 'content-length': '2' };
/** For all that answer. */
const PATIENCE_MS = 60_000;

describe('sending', () => {
  const now = Date.now;

  test('URLs that lead inside are refused before anything is connected, whatever their spelling', async () => {
    await using receiver = await startReceiver();
    const { port } = new URL(receiver.url);
    const sender = createSender({ now, allowHttp: true, timeoutMs: PATIENCE_MS });
    for (const host of [
      '127.0.0.1',
      '127.1',
      '0x7f.0.0.1',
      '2130706433',
      '017700000001',
      '0',
      'localhost',
      'a.localhost',
      'LOCALHOST.',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
      '169.254.169.254',
    ]) {
      const url = new URL(`http://${host}:${port}/`);
      // What is remembered of a URL is never that it was let through once.
      for (let attempt = 1; attempt <= 2; attempt++) {
        const attempted = await sender.send(url, HEADERS, '{}');
        assert.equal(attempted.ok, false, host);
        assert.equal(!attempted.ok && attempted.failure.code, 'WEBHOOK_URL_REFUSED', host);
      }
    }
    assert.equal(receiver.received.length, 0);
    sender.close();
  });

  test('https alone, unless it is configured otherwise', () => {
    const strict = createSender({ now });
    assert.throws(() => strict.check(new URL('http://8.8.8.8/')), { code: 'WEBHOOK_URL_REFUSED' });
    strict.check(new URL('https://8.8.8.8/'));
    createSender({ now, allowHttp: true }).check(new URL('http://8.8.8.8/'));
  });

  test('a name with one address inside is refused; one that changes its mind is judged at each connection', async () => {
    await using receiver = await startReceiver();
    const { port } = new URL(receiver.url);
    using mixed = await startNameServer(['93.184.216.34', '127.0.0.1']);
    const strict = { now, allowHttp: true, timeoutMs: PATIENCE_MS };
    const first = createSender({ ...strict, dnsServers: [mixed.address] });
    const url = new URL(`http://rebind.example.org:${port}/`);
    const refused = await first.send(url, HEADERS, '{}');
    assert.equal(!refused.ok && refused.failure.code, 'WEBHOOK_URL_REFUSED');
    // Allowed when it is looked up for the first delivery, inside at the next: the connection is made to what was judged.
    using rebinding = await startNameServer(['127.0.0.2'], ['127.0.0.1']);
    const second = createSender({
      ...strict,
      allowedAddresses: ['127.0.0.2'],
      dnsServers: [rebinding.address],
    });
    const outcomes = [await second.send(url, HEADERS, '{}'), await second.send(url, HEADERS, '{}')];
    assert.deepEqual(
      outcomes.map((one) => !one.ok && one.failure.code),
      ['WEBHOOK_UNREACHABLE', 'WEBHOOK_URL_REFUSED'],
    );
    assert.equal(rebinding.asked, 2);
    assert.equal(receiver.received.length, 0);
    first.close();
    second.close();
  });

  const local = { now, allowHttp: true, allowedAddresses: ['127.0.0.0/8'], timeoutMs: PATIENCE_MS };

  test('many webhooks at one host: connections serve again, however many there were at once', async () => {
    let made = 0;
    const answers: (() => void)[] = [];
    const AT_ONCE = 40;
    const server = createHttpServer((_, response) => {
      answers.push(() => response.writeHead(204).end());
      // All of a round are under way before the first is answered.
      if (answers.length === AT_ONCE) for (const answer of answers.splice(0)) answer();
    });
    server.on('connection', () => made++);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const sender = createSender({
      now,
      allowHttp: true,
      allowedAddresses: ['127.0.0.1'],
      timeoutMs: PATIENCE_MS,
    });
    try {
      for (let round = 0; round < 3; round++) {
        const sent = Array.from({ length: AT_ONCE }, (_, n) =>
          sender.send(new URL(`http://127.0.0.1:${port}/${n}`), HEADERS, '{}'),
        );
        for (const attempted of await Promise.all(sent)) assert.ok(attempted.ok);
      }
      // Most of each further round would need new ones if few were kept.
      assert.ok(made < 2 * AT_ONCE, `${made} connections`);
    } finally {
      sender.close();
      server.close();
      await once(server, 'close');
    }
  });

  test('each request says what its URL and its delivery say, and nothing of the one before', async () => {
    const got: unknown[] = [];
    const server = createHttpServer(({ method, url, headers: { connection: _, ...headers } }, response) => {
      got.push({ method, url, headers });
      response.writeHead(204).end();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const sender = createSender(local);
    const url = new URL(`http://127.0.0.1:${port}/a b/?c=d&e#f`);
    const first = { ...HEADERS, 'webhook-id': 'evt_1', 'webhook-attempt': '1' };
    const second = { ...HEADERS, 'webhook-id': 'evt_2' };
    for (const headers of [first, second]) assert.ok((await sender.send(url, headers, '{}')).ok);
    const host = `127.0.0.1:${port}`;
    assert.deepEqual(
      got,
      [first, second].map((headers) => ({
        ...{ method: 'POST', url: '/a%20b/?c=d&e', headers: { host, ...headers } },
      })),
    );
    sender.close();
    server.close();
    await once(server, 'close');
  });

  test('many hosts leave no more connections behind than there is room for', async () => {
    const server = createHttpServer((_request, response) => response.writeHead(204).end()).listen(
      0,
      '0.0.0.0',
    );
    await once(server, 'listening');
    // It closes none by itself.
    server.keepAliveTimeout = PATIENCE_MS;
    const { port } = server.address() as AddressInfo;
    const settings = { allowHttp: true, allowedAddresses: ['127.0.0.0/8'], timeoutMs: PATIENCE_MS };
    const sender = createSender({ now, ...settings, idleConnectionsMax: 3 });
    try {
      for (let host = 1; host <= 12; host++) {
        const attempted = await sender.send(new URL(`http://127.0.0.${host}:${port}/`), HEADERS, '{}');
        assert.ok(attempted.ok);
      }
      const count = () =>
        new Promise<number>((resolve, reject) =>
          server.getConnections((error, open) => (error ? reject(error) : resolve(open))),
        );
      await until('the others are closed', count, (open) => open <= 3, { limitMs: PATIENCE_MS / 2 });
    } finally {
      sender.close();
      server.closeAllConnections();
      server.close();
    }
  });

  test('redirects are failures and are not followed', async () => {
    await using inside = await startReceiver();
    await using receiver = await startReceiver();
    const sender = createSender(local);
    for (const status of [301, 302, 303, 307, 308]) {
      receiver.answer = answerWith(status, { location: inside.url });
      const attempted = await sender.send(new URL(receiver.url), HEADERS, '{}');
      assert.equal(!attempted.ok && attempted.failure.status, status);
    }
    assert.equal(inside.received.length, 0);
    sender.close();
  });

  test('slow lorises, endless bodies, huge heads, silence: each ends in time', async () => {
    // Those who are late are so at the limit; nobody waits for it with the others.
    const late = { timeoutMs: 500, code: 'WEBHOOK_TIMED_OUT' };
    const wrong = { timeoutMs: PATIENCE_MS, code: 'WEBHOOK_UNREACHABLE' };
    const shapes: Readonly<Record<string, [typeof late, (write: (text: string) => void) => void]>> = {
      silence: [late, () => {}],
      'a head byte by byte': [
        late,
        (write) => {
          const head = [...'HTTP/1.1 200 OK'];
          for (const [at, text] of head.entries()) setTimeout(() => write(text), at * 100);
        },
      ],
      'a head that does not end': [
        wrong,
        (write) => {
          write('HTTP/1.1 200 OK\r\n');
          for (let n = 0; n < 40; n++) write(`x-${n}: ${'a'.repeat(1000)}\r\n`);
        },
      ],
      'no HTTP': [wrong, (write) => write('SSH-2.0-OpenSSH_9.9\r\n')],
    };
    for (const [name, [{ timeoutMs, code }, speak]] of Object.entries(shapes)) {
      const server = createServer((socket) => {
        socket.on('error', () => {});
        socket.once('data', () => speak((text) => void socket.write(text)));
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const sender = createSender({ ...local, timeoutMs });
      const { port } = server.address() as { port: number };
      const attempted = await sender.send(new URL(`http://127.0.0.1:${port}/`), HEADERS, '{}');
      assert.equal(!attempted.ok && attempted.failure.code, code, name);
      sender.close();
      server.close();
    }
    await using receiver = await startReceiver();
    receiver.answer = (response) => {
      response.writeHead(200);
      const more = (error?: Error | null) => void (error || response.write(Buffer.alloc(65_536), more));
      response.on('error', () => {});
      more();
    };
    const sender = createSender(local);
    const endless = await sender.send(new URL(receiver.url), HEADERS, '{}');
    assert.equal(endless.ok, true, 'the status was a success, and the rest is cut off');
    sender.close();
  });

  test('a certificate of nobody is refused', async () => {
    const { key, cert } = await makeCertificate('DNS:localhost');
    await using receiver = await startReceiver({ key, cert });
    const settings = { now, allowedAddresses: ['127.0.0.0/8', '::1'], timeoutMs: PATIENCE_MS };
    const url = new URL(receiver.url);
    const stranger = createSender(settings);
    const refused = await stranger.send(url, HEADERS, '{}');
    assert.equal(!refused.ok && refused.failure.code, 'WEBHOOK_UNREACHABLE');
    const trusting = createSender({ ...settings, ca: cert });
    assert.equal((await trusting.send(url, HEADERS, '{}')).ok, true);
    stranger.close();
    trusting.close();
  });
});
