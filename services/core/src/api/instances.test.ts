import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { ANY_TIME, type InstanceView, nodeIdOf, proveInstance, verifyShared } from '@skerry/protocol';
import { createTestCore, instanceContent, SSH_KEY, signers, type TestCore } from '../testing/core.ts';

const nodeOf = (address: string) => ({ node_id: nodeIdOf(address), node_address: address });

describe('instances', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore({ allocationWaitMs: 30_000 });
  });
  after(() => core[Symbol.asyncDispose]());

  const networkPost = (type: string, content: object) => ({ type: 'POST', content: { type, content } });
  const allocation = (instanceId: string, address: string | null, atMs: number) =>
    networkPost('net-allocation', {
      instance_id: instanceId,
      ...(address === null
        ? { node_id: null, node_address: null, ipv6: '' }
        : { ...nodeOf(address), ipv6: 'fd00:1::1' }),
      reason: address === null ? { code: 'NO_CAPACITY', message: 'no node has room' } : null,
      decided_at_ms: atMs,
    });
  const status = (instanceId: string, phase: string, atMs: number) =>
    networkPost('net-instance-status', {
      instance_id: instanceId,
      phase,
      reason: null,
      observed_at_ms: atMs,
      restart_id: null,
    });

  /** Creates an instance and plays the scheduler as soon as its event is there. */
  async function create(content: object = instanceContent, address: string | null = signers.node.address) {
    const { body, itemHash } = signMessage({ type: 'INSTANCE', content }, signers.alice);
    const creating = core.post('/instances', body);
    for (;;) {
      const { status: found } = await core.get(`/instances/${itemHash}`);
      if (found === 200) break;
    }
    await core.send(signers.scheduler, allocation(itemHash, address, 1));
    return creating;
  }

  test('creation answers with the address as soon as the scheduler has decided', async () => {
    const { status: code, body } = await create();
    assert.equal(code, 200);
    assert.deepEqual(body, {
      item_hash: body.instance_id,
      status: 'success',
      instance_id: body.instance_id,
      ipv6: 'fd00:1::1',
    });
    const { body: view } = await core.get(`/instances/${body.instance_id}`);
    assert.equal(view.owner, signers.alice.address);
    assert.deepEqual(
      [
        view.name,
        view.description,
        view.cpu,
        view.memory,
        view.disk,
        view.image,
        view.status,
        view.phase,
        view.ssh_key,
      ],
      ['web', 'a test', 1, 512, 4, 'debian:12', 'stopped', 'scheduled', SSH_KEY],
    );
    assert.equal(view.node_id, nodeIdOf(signers.node.address));
    assert.equal(view.created_at, view.updated_at);
  });

  test('where no node has room the answer comes without an address and the instance says why', async () => {
    const { body } = await create(instanceContent, null);
    assert.equal(body.ipv6, '');
    const { body: view } = await core.get(`/instances/${body.instance_id}`);
    assert.deepEqual([view.phase, view.reason.code, view.node_id], ['scheduled', 'NO_CAPACITY', null]);
  });

  test('bodies=shared: whoever reads can fold the instance anew, and sees what does not follow', async () => {
    const id = (await create()).body.instance_id;
    await core.send(signers.node, status(id, 'preparing', 5));
    await core.send(signers.node, status(id, 'running', 10));
    await core.send(signers.alice, { type: 'INSTANCE_UPDATE', content: { instance_id: id, name: 'a' } });
    await core.send(signers.alice, {
      type: 'INSTANCE_CONTROL',
      content: { instance_id: id, action: 'stop' },
    });
    const schedulers = new Set([signers.scheduler.address]);
    const { shared, sources, ...view } = (await core.get(`/instances/${id}?bodies=shared`)).body;
    assert.equal(shared.length, 5, 'the last word on each part alone');
    assert.deepEqual(
      sources,
      shared.map((text: string) => verifyShared(text, ANY_TIME).itemHash),
    );
    const whole = { verified: 5, isWhole: true, differences: [], onBehalf: [] };
    assert.deepEqual(proveInstance({ view, shared }, schedulers), whole);
    const listed = (await core.get('/instances?bodies=shared')).body.instances;
    assert.deepEqual(
      listed.find((one: { instance_id: string }) => one.instance_id === id),
      { ...view, shared },
    );
    assert.deepEqual((await core.get(`/instances/${id}`)).body, view);

    const lie = { ...view, phase: 'failed', name: 'b' };
    assert.deepEqual(proveInstance({ view: lie, shared }, schedulers).differences, [
      { name: 'name', said: '"b"', computed: '"a"' },
      { name: 'phase', said: '"failed"', computed: '"running"' },
    ]);
    assert.ok(
      proveInstance({ view, shared }, new Set()).differences.some(({ name }) => name === 'node_id'),
      'an allocation counts by whom the reader believes',
    );
    const changed = shared.map((text: string) => text.replace('"phase":"running"', '"phase":"stopped"'));
    assert.throws(() => proveInstance({ view, shared: changed }, schedulers), { code: 'INVALID_SIGNATURE' });
    assert.throws(() => proveInstance({ view, shared: shared.slice(1) }, schedulers), {
      code: 'INVALID_CONTENT',
    });
    assert.equal(proveInstance({ view, shared: [null, ...shared] }, schedulers).isWhole, false);
  });

  test('an event says which message changed the instance, and bodies=shared gives it: a reader folds each state anew', async () => {
    const { next_cursor: start } = (await core.get('/events?cursor=latest')).body;
    const id = (await create()).body.instance_id;
    const change = { type: 'INSTANCE_UPDATE', content: { instance_id: id, name: 'a' } };
    const sent = [
      await core.send(signers.node, status(id, 'preparing', 5)),
      await core.send(signers.alice, change),
      await core.send(signers.node, status(id, 'running', 10)),
    ].map(({ body }) => body.item_hash);
    const forgotten = { type: 'FORGET', content: { hashes: [sent[1]] } };
    await core.send(signers.alice, forgotten);
    const listed = `/events?cursor=${start}&kinds=instance`;
    const events: { cause: string | null; shared: string | null; data: InstanceView }[] = (
      await core.get(`${listed}&bodies=shared`)
    ).body.events;
    assert.deepEqual([events[0]!.cause, ...events.slice(2).map(({ cause }) => cause)], [id, ...sent, null]);
    assert.equal(events.at(-1)!.shared, null, 'what was taken back is the word of the node');
    const schedulers = new Set([signers.scheduler.address]);
    for (const [at, { cause, data }] of events.slice(0, -1).entries()) {
      const shared = events.slice(0, at + 1).map((event) => event.shared);
      const verdict = proveInstance({ view: data, shared }, schedulers);
      assert.deepEqual([verdict.isWhole, verdict.differences], [true, []], String(at));
      assert.equal(verifyShared(shared.at(-1)!, Number.MAX_SAFE_INTEGER).itemHash, cause);
    }
    const plain = (await core.get(listed)).body.events;
    assert.deepEqual(
      plain,
      events.map(({ shared: _, ...event }) => event),
    );
  });

  test('a status counts only by the allocated node, an allocation only by a trusted scheduler', async () => {
    const id = (await create()).body.instance_id;
    assert.equal((await core.send(signers.otherNode, status(id, 'failed', 50))).status, 200);
    assert.equal((await core.get(`/instances/${id}`)).body.phase, 'scheduled');
    await core.send(signers.bob, allocation(id, signers.otherNode.address, 60));
    assert.equal((await core.get(`/instances/${id}`)).body.node_id, nodeIdOf(signers.node.address));
    await core.send(signers.node, status(id, 'running', 10));
    const { body: running } = await core.get(`/instances/${id}`);
    assert.deepEqual([running.phase, running.status], ['running', 'running']);
    await core.send(signers.node, status(id, 'starting', 9));
    assert.equal(
      (await core.get(`/instances/${id}`)).body.phase,
      'running',
      'an older status that arrives late changes nothing',
    );
    // The other node had spoken before it was chosen: its word counts from now on.
    await core.send(signers.scheduler, allocation(id, signers.otherNode.address, 70));
    assert.equal((await core.get(`/instances/${id}`)).body.phase, 'failed');
  });

  test('the owner updates and controls; nobody else; the path must name the signed instance', async () => {
    const id = (await create()).body.instance_id;
    const path = `/instances/${id}`;
    const update = {
      type: 'INSTANCE_UPDATE',
      content: { instance_id: id, name: 'renamed', firewall: { allowedPorts: [443], proxyProtocol: true } },
    };
    const control = (action: string) => ({ type: 'INSTANCE_CONTROL', content: { instance_id: id, action } });
    assert.equal((await core.send(signers.alice, update, path, 'PUT')).status, 200);
    assert.equal((await core.send(signers.alice, control('stop'), `${path}/control`)).status, 200);
    let view = (await core.get(path)).body;
    assert.deepEqual(
      [view.name, view.description, view.firewall, view.desired],
      ['renamed', 'a test', { allowedPorts: [443], proxyProtocol: true }, 'stopped'],
    );
    const restart = await core.send(
      signers.alice,
      { ...control('restart'), timestamp: Math.floor(Date.now() / 1000) + 5 },
      `${path}/control`,
    );
    view = (await core.get(path)).body;
    assert.deepEqual([view.desired, view.restart_id], ['running', restart.body.item_hash]);

    const other = (await create()).body.instance_id;
    const refusals: [Promise<{ status: number; body: { code: string } }>, number, string][] = [
      [core.send(signers.bob, update, path, 'PUT'), 403, 'NOT_PERMITTED'],
      [core.send(signers.bob, control('stop'), `${path}/control`), 403, 'NOT_PERMITTED'],
      [core.send(signers.alice, control('stop'), `/instances/${other}/control`), 400, 'ID_MISMATCH'],
      [core.send(signers.alice, update, `/instances/${other}`, 'PUT'), 400, 'ID_MISMATCH'],
      [core.send(signers.alice, update, `/instances/${'0'.repeat(64)}`, 'PUT'), 404, 'INSTANCE_NOT_FOUND'],
      [core.send(signers.alice, control('explode'), `${path}/control`), 400, 'INVALID_CONTENT'],
      [core.send(signers.alice, control('stop'), path, 'PUT'), 400, 'UNKNOWN_MESSAGE_TYPE'],
      [
        core.send(
          signers.alice,
          { type: 'INSTANCE_CONTROL', content: { instance_id: '0'.repeat(64), action: 'stop' } },
          `/instances/${'0'.repeat(64)}/control`,
        ),
        404,
        'INSTANCE_NOT_FOUND',
      ],
    ];
    for (const [response, code, name] of refusals) {
      const { status: got, body } = await response;
      assert.deepEqual([got, body.code], [code, name]);
    }
    assert.equal((await core.get(path)).body.name, 'renamed');
    const strangers = signMessage(control('stop'), signers.bob);
    assert.equal((await core.post(`${path}/control`, strangers.body)).status, 403);
    const { body: kept } = await core.get(`/messages/${strangers.itemHash}/status`);
    assert.deepEqual([kept.status, kept.reason.code], ['rejected', 'NOT_PERMITTED']);
    assert.equal((await core.get(path)).body.desired, 'running');
  });

  test('content out of range is refused', async () => {
    const bad: [object, string][] = [
      [{ ...instanceContent, cpu: 0 }, 'INVALID_CONTENT'],
      [{ ...instanceContent, cpu: 1.5 }, 'INVALID_CONTENT'],
      [{ ...instanceContent, memory: 1 }, 'INVALID_CONTENT'],
      [{ ...instanceContent, disk: 10_240_000 }, 'INVALID_CONTENT'],
      [{ ...instanceContent, image: '../etc/passwd' }, 'INVALID_CONTENT'],
      [{ ...instanceContent, name: '' }, 'INVALID_CONTENT'],
      [{ ...instanceContent, name: 'a\nb' }, 'INVALID_CONTENT'],
      [{ ...instanceContent, firewall: { allowedPorts: [0] } }, 'INVALID_CONTENT'],
      [{ ...instanceContent, firewall: { allowedPorts: [80, 80] } }, 'INVALID_CONTENT'],
      [{ ...instanceContent, firewall: { allowedPorts: '80' } }, 'INVALID_CONTENT'],
      [{ ...instanceContent, ssh_key: `${SSH_KEY}\nssh-rsa AAAA` }, 'INVALID_SSH_KEY'],
      [{ ...instanceContent, ssh_key: '-----BEGIN OPENSSH PRIVATE KEY-----' }, 'INVALID_SSH_KEY'],
      [{ ...instanceContent, colour: 'red' }, 'UNKNOWN_FIELD'],
      [{ ...instanceContent, firewall: { allowedPorts: [], extra: 1 } }, 'UNKNOWN_FIELD'],
    ];
    for (const [content, code] of bad) {
      const { status: got, body } = await core.send(
        signers.alice,
        { type: 'INSTANCE', content },
        '/instances',
      );
      assert.deepEqual([got, body.code], [400, code], JSON.stringify(content));
    }
  });

  test('the list filters by owner, status and node, and tells where events go on', async () => {
    const id = (await create({ ...instanceContent, name: 'listed' })).body.instance_id;
    await core.send(signers.node, status(id, 'running', Date.now()));
    const { body } = await core.get(
      `/instances?address=${signers.alice.address}&status=running&node_id=${nodeIdOf(signers.node.address)}`,
    );
    assert.ok(body.instances.some((instance: { instance_id: string }) => instance.instance_id === id));
    assert.ok(body.instances.every((instance: { status: string }) => instance.status === 'running'));
    assert.equal(body.pagination.total, body.instances.length);
    const { body: later } = await core.get(`/events?cursor=${body.cursor}`);
    assert.deepEqual(later.events, []);
    assert.equal((await core.get(`/instances?address=${signers.bob.address}`)).body.pagination.total, 0);
    assert.equal((await core.get('/instances?status=asleep')).status, 400);
  });
});
