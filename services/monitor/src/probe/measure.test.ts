import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createReach } from '@skerry/kit';
import { makeCertificate } from '@skerry/kit/testing/certificate';
import { parseMetricsReport } from '@skerry/protocol';
import { loadSystems, parseSystems } from '../asn.ts';
import { type Handler, nodeAt, probeOptionsOf, startNode, startPair } from '../testing/scene.ts';
import { trustAlso } from './authorities.ts';
import { measureNode, type ProbeOptions } from './measure.ts';
import { parsePing, ping } from './ping.ts';

const VM = probeOptionsOf().diagnosticVm;
const POOL = 'fd00:1:2:3::/64';

const compute: Handler = (request, response) => {
  response.setHeader('server', 'proxy/9 skerry/1.2.3');
  const json = (body: unknown, status = 200) => {
    response.statusCode = status;
    response.end(JSON.stringify(body));
  };
  if (request.url === '/about/login') json({ success: false }, 401);
  else if (request.url === `/vm/${VM}`) json('ok');
  else if (request.url === '/status/check/fastapi') json({ index: true });
  else if (request.url === '/about/usage/system')
    json({ properties: { cpu: { features: ['sev', 7, 'sev_es'] } } });
  else if (request.url === '/status/config')
    json({ node_hash: 'a'.repeat(64), networking: { IPV6_ADDRESS_POOL: POOL } });
  else json({}, 404);
};

const core: Handler = (request, response) => {
  if (request.url === '/metrics.json')
    response.end(
      JSON.stringify({
        pyaleph_build_info: { version: '1.0.0' },
        pyaleph_status_sync_pending_txs_total: 3,
        pyaleph_status_sync_pending_messages_total: 'many',
        pyaleph_status_chain_eth_height_remaining_total: null,
      }),
    );
  else response.end('{}');
};

async function measure(handler: Handler, kind: 'core' | 'compute', own: Partial<ProbeOptions> = {}) {
  await using node = await startNode(handler);
  const record = await measureNode(nodeAt(kind, node.url), probeOptionsOf(own));
  return { record: JSON.parse(JSON.stringify(record)), requests: node.requests };
}

describe('a measurement', () => {
  test('of a core node: every field, one request after another, over IPv4', async () => {
    const { record, requests } = await measure(core, 'core');
    for (const field of ['base_latency', 'metrics_latency', 'aggregate_latency', 'file_download_latency'])
      assert.ok(record[field] > 0, field);
    assert.equal(record.base_latency, record.base_latency_ipv4);
    const { version, txs_total, asn, as_name, measured_at } = record;
    assert.deepEqual(
      [version, txs_total, asn, as_name, measured_at],
      ['1.0.0', 3, 64_512, 'Test', 1_780_272_000.5],
    );
    assert.ok(!('pending_messages' in record) && !('eth_height_remaining' in record));
    assert.ok(requests.every(({ running }) => running === 0));
    const { aggregateOwner, referenceFile } = probeOptionsOf();
    assert.deepEqual(requests.map(({ path }) => path).slice(-3), [
      '/metrics.json',
      `/api/v0/aggregates/${aggregateOwner}.json?keys=corechannel&limit=50`,
      `/api/v0/storage/raw/${referenceFile}`,
    ]);
    assert.equal(parseMetricsReport({ metrics: { ccn: [record] } }).core.length, 1);
  });

  test('of a compute node: every field, one request after another', async () => {
    const { record, requests } = await measure(compute, 'compute');
    for (const field of ['base_latency', 'base_latency_ipv4', 'diagnostic_vm_latency', 'full_check_latency'])
      assert.ok(record[field] > 0, field);
    const { version, features, ipv4, ipv6_pool, config_node_hash, codes } = record;
    assert.deepEqual(
      { version, features, ipv4, ipv6_pool, config_node_hash, codes },
      {
        version: '1.2.3',
        features: ['sev', 'sev_es'],
        ipv4: '127.0.0.1',
        ipv6_pool: POOL,
        config_node_hash: 'a'.repeat(64),
        codes: [2002],
      },
    );
    assert.ok(requests.every(({ running }) => running === 0));
    assert.equal(requests.filter(({ path }) => path === '/about/login').length, 2);
  });

  test('of a compute node that is only on IPv4: what is measured over IPv6 is left out', async () => {
    const { record } = await measure(compute, 'compute', { computeFamily: 6 });
    assert.ok(record.base_latency_ipv4 > 0);
    for (const field of ['base_latency', 'diagnostic_vm_latency', 'full_check_latency'])
      assert.ok(!(field in record), field);
    assert.deepEqual(record.codes, [2002, 2004, 2006, 2007]);
  });

  test('each address family is forced', async () => {
    // The same port on both families: what comes to the second came over IPv6.
    const [fourth, sixth] = await startPair(compute);
    await using _fourth = fourth;
    await using _sixth = sixth;
    const url = `http://localhost:${fourth.port}/`;
    const pinged: string[] = [];
    const options = probeOptionsOf({ computeFamily: 6, ping: async (address) => void pinged.push(address) });
    const record = await measureNode(nodeAt('compute', url), options);
    const logins = (node: typeof fourth) =>
      node.requests.filter(({ path }) => path === '/about/login').length;
    if (record.ipv6 === undefined) assert.equal(logins(sixth), 0);
    else {
      assert.deepEqual([logins(fourth), logins(sixth)], [1, 1]);
      assert.deepEqual(pinged, ['fd00:1:2:3:1:1234:5678:9ab1']);
      assert.ok(!sixth.requests.every(({ path }) => path !== `/vm/${VM}`));
      assert.ok(fourth.requests.every(({ path }) => path !== `/vm/${VM}`));
    }
  });
});

describe('bad nodes', () => {
  const only =
    (handler: Handler): Handler =>
    (request, response) =>
      request.url === '/metrics.json' ? handler(request, response) : core(request, response);

  test('a redirect is followed nowhere', async () => {
    await using secret = await startNode((_request, response) => response.end('{}'));
    const { record } = await measure(
      only((_request, response) => response.writeHead(302, { location: secret.url }).end()),
      'core',
    );
    assert.ok(!('metrics_latency' in record));
    assert.equal(secret.requests.length, 0);
  });

  test('too large, not JSON, broken off, wrong status, too long a header, another protocol', async () => {
    const handlers: Handler[] = [
      (_request, response) => response.end(Buffer.alloc(5 * 1024 ** 2)),
      (_request, response) => {
        response.writeHead(200, { 'content-length': '10' });
        response.write('12', () => response.destroy());
      },
      (_request, response) => response.writeHead(500).end('{}'),
      (_request, response) => response.writeHead(200, { 'x-long': 'x'.repeat(20_000) }).end('{}'),
      (request) => request.socket.destroy(),
      ({ socket }) => socket.end('HTTP/1.1 101 Other\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'),
    ];
    for (const handler of handlers) {
      const { record } = await measure(only(handler), 'core');
      assert.ok(!('metrics_latency' in record) && !('version' in record));
      assert.ok(record.file_download_latency > 0, 'one failure does not spoil the rest');
    }
    const { record } = await measure(
      only((_request, response) => response.end('{"pyaleph_build_info":{"version":"a b\\n"},"__proto__":7')),
      'core',
    );
    assert.ok(record.metrics_latency > 0 && !('version' in record));
  });

  test('who never finishes is cut off', async () => {
    const stop = new AbortController();
    await using node = await startNode(
      only((_request, response) => {
        response.writeHead(200);
        response.write('{', () => stop.abort());
      }),
    );
    const record = await measureNode(nodeAt('core', node.url), probeOptionsOf({ signal: stop.signal }));
    assert.equal(record.metrics_latency, undefined);
  });

  test('a version is only believed of software that is known', async () => {
    for (const server of ['other/1.0', 'skerry', 'skerry/', `skerry/${'1'.repeat(99)}`, '/1.0']) {
      const waits: number[] = [];
      const { record } = await measure(
        (_request, response) => response.setHeader('server', server).end(),
        'compute',
        { pause: async (milliseconds) => waits.push(milliseconds) > 0 },
      );
      assert.ok(!('version' in record), server);
      assert.deepEqual(waits, [1_000, 2_000]);
    }
  });

  test('private addresses are not asked unless the setting says so', async () => {
    const { record, requests } = await measure(core, 'core', { mayReach: createReach(false) });
    assert.equal(requests.length, 0);
    assert.ok(!('base_latency' in record));
    const mayReach = createReach(false);
    const refused = [
      '127.0.0.1',
      '10.1.2.3',
      '192.168.1.1',
      '169.254.169.254',
      '::1',
      'fd00::1',
      'fe80::1',
      '::ffff:127.0.0.1',
      '::ffff:10.0.0.1',
      '100.64.0.1',
    ];
    assert.deepEqual(refused.filter(mayReach), []);
    assert.deepEqual(['193.0.2.1', '8.8.8.8', '2a00:db8::1'].map(mayReach), [true, true, true]);
    // A name that leads to such an address is no way around.
    await using node = await startNode(core);
    await measureNode(nodeAt('core', `http://localhost:${node.port}/`), probeOptionsOf({ mayReach }));
    assert.equal(node.requests.length, 0);
  });

  test('a wrong certificate is no answer; a right one is', async () => {
    const tls = await makeCertificate('DNS:localhost', 'IP:127.0.0.1');
    await using node = await startNode(core, { tls });
    const unknown = await measureNode(nodeAt('core', node.url), probeOptionsOf());
    assert.equal(unknown.base_latency, undefined);
    assert.equal(node.requests.length, 0);
    const trusted = trustAlso(tls.cert);
    const known = await measureNode(nodeAt('core', node.url), probeOptionsOf({ trusted }));
    assert.ok((known.base_latency as number) > 0);
  });

  test('who is trusted beside the usual authorities takes nothing from them', async () => {
    const [usual, own] = [await makeCertificate('IP:127.0.0.1'), await makeCertificate('IP:127.0.0.1')];
    const trusted = trustAlso(own.cert, [usual.cert]);
    for (const tls of [usual, own]) {
      await using node = await startNode(core, { tls });
      const record = await measureNode(nodeAt('core', node.url), probeOptionsOf({ trusted }));
      assert.ok((record.base_latency as number) > 0);
    }
  });

  test('what makes the monitor itself fail is told as such', async () => {
    const options = probeOptionsOf({
      findSystem: () => {
        throw new Error('broken');
      },
    });
    const record = await measureNode(nodeAt('compute', 'http://127.0.0.1:1/'), options);
    assert.deepEqual(record.codes, [2999]);
  });
});

test('ping: the round trip in seconds', async () => {
  assert.equal(parsePing('64 bytes from ::1: icmp_seq=1 ttl=64 time=0.045 ms\n'), 0.000045);
  assert.equal(parsePing('64 bytes from ::1: icmp_seq=1 ttl=64 time=12 ms\n'), 0.012);
  assert.equal(parsePing('1 packets transmitted, 0 received'), undefined);
  // A documentation address answers nobody; a stop ends the wait.
  assert.equal(await ping('2001:db8::1', AbortSignal.abort()), undefined);
});

test('systems: the longest prefix counts, in both families', () => {
  const find = parseSystems(
    '# table\n192.0.2.0/24 64500 Wide\n192.0.2.128/25\tAS64501\n\n2001:db8::/32 64502 Six one\n',
  );
  assert.deepEqual(find('192.0.2.1'), { asn: 64_500, name: 'Wide' });
  assert.deepEqual(find('192.0.2.200'), { asn: 64_501, name: null });
  assert.deepEqual(find('::ffff:192.0.2.1'), { asn: 64_500, name: 'Wide' });
  assert.deepEqual(find('2001:db8:ff::1'), { asn: 64_502, name: 'Six one' });
  assert.equal(find('198.51.100.1'), undefined);
  assert.equal(find('nonsense'), undefined);
  for (const bad of ['192.0.2.0/33 1 x', 'x', '192.0.2.0/24 y', '192.0.2.0/24 4294967296'])
    assert.throws(() => parseSystems(bad), { code: 'INVALID_CONFIG' });
});

test('a table of systems that cannot be read is named, with its setting', async () => {
  const message = 'cannot read the ASN table /nowhere/asn.txt, which SKERRY_MONITOR_ASN_FILE names (ENOENT)';
  await assert.rejects(loadSystems('/nowhere/asn.txt'), { code: 'INVALID_CONFIG', message });
});
