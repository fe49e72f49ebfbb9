import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  buildNetworkMessage,
  buildStoredMessage,
  CoreClient,
  createSigner,
  generatePrivateKey,
  publishMessage,
  signMessage,
} from '@skerry/client';
import { ANY_TIME, envelopeText, LIMITS, verifyShared } from '@skerry/protocol';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { type Lie, lying } from '../testing/lying.ts';
import { createTestDir } from '../testing/run.ts';

const CONTENT = {
  ...{ cpu: 1, memory: 512, disk: 4, image: 'debian:12', firewall: { allowedPorts: [22, 80] } },
  ssh_key: `ssh-ed25519 ${'A'.repeat(68)} me`,
};

/** What each command would sign for an instance that is named `web`. */
const SIGNING = [
  ['instance', 'delete', 'web', '--yes'],
  ['instance', 'stop', 'web'],
  ['instance', 'restart', 'web'],
  ['instance', 'update', 'web', '--description', 'x'],
  ['instance', 'reinstall', 'web', '--yes'],
  ['instance', 'erase', 'web', '--yes'],
  ['instance', 'logs', 'web'],
  ['domain', 'attach', 'www.example.org', 'web'],
] as const;

describe('an instance that is named', () => {
  const key = generatePrivateKey();
  const [owner, other] = [createSigner(key), createSigner(generatePrivateKey())];
  let home: Awaited<ReturnType<typeof createTestDir>>;
  let core: Awaited<ReturnType<typeof startCore>>;
  let ids: Record<'web' | 'db' | 'theirs', string>;
  before(async () => {
    home = await createTestDir();
    core = await startCore(home.path);
    const create = async (signer: typeof owner, name: string) =>
      (await clientOf(signer).postMessage({ type: 'INSTANCE', content: { ...CONTENT, name } })).item_hash;
    ids = {
      web: await create(owner, 'web'),
      db: await create(owner, 'db'),
      theirs: await create(other, 'web'),
    };
    const imported = await skerryHere({ SKERRY_HOME: home.path }, ['key', 'import', '-'], key);
    assert.equal(imported.code, 0, imported.err);
  });
  after(async () => {
    await core[Symbol.asyncDispose]();
    await home[Symbol.asyncDispose]();
  });
  const clientOf = (signer: typeof owner) => new CoreClient({ url: core.url, signer });
  const run = (url: string, ...args: string[]) =>
    skerryHere({ SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: url }, args);

  /** A node that tells of another instance where `web` is asked for, and changes what it tells of that one alone. */
  const told =
    (id: string, change: (one: { shared?: string[] }) => object): Lie =>
    (path, answer) => {
      if (path.startsWith('/api/v0/instances?')) {
        const instances = [{ ...answer.instances[0], instance_id: id, name: 'web', owner: owner.address }];
        return { ...answer, instances };
      }
      return path.startsWith(`/api/v0/instances/${id}`) ? change(answer) : answer;
    };

  test('is the one that its owner signed with this name, or nothing is signed for it', async () => {
    const named = { name: 'web' };
    const update = { type: 'INSTANCE_UPDATE', content: { instance_id: ids.db, name: 'web' } };
    // Its sender is no owner of it: any node would refuse the message.
    const { message, signature } = JSON.parse(signMessage(update, other).body);
    const forged = envelopeText(JSON.stringify(message), signature, other.address);
    assert.equal(verifyShared(forged, ANY_TIME).sender, other.address);
    for (const [what, lie] of Object.entries({
      'as it is': told(ids.db, (one) => one),
      'under the name': told(ids.db, (one) => ({ ...one, ...named })),
      'without what proves it': told(ids.db, ({ shared: _, ...one }) => ({ ...one, ...named })),
      'with messages that it does not give': told(ids.db, (one) => ({ ...one, ...named, shared: [null] })),
      'as a stranger renamed it': told(ids.db, ({ shared = [], ...one }) => ({
        ...{ ...one, ...named, shared: [...shared, forged] },
      })),
      'with a text that nobody signed': told(ids.db, ({ shared = [], ...one }) => ({
        ...{ ...one, ...named, shared: shared.map((text) => text.replace('\\"db\\"', '\\"web\\"')) },
      })),
      "somebody else's": told(ids.theirs, (one) => one),
      "somebody else's as one's own": told(ids.theirs, (one) => ({ ...one, owner: owner.address })),
    })) {
      await using liar = await lying(core.url, lie);
      for (const args of what === 'under the name' ? SIGNING : SIGNING.slice(0, 1)) {
        const { code, out, err } = await run(liar.url, ...args);
        assert.deepEqual([code, out], [5, ''], `${what}: ${args.join(' ')}: ${err}`);
        assert.match(
          err,
          /\(UNEXPECTED_ANSWER\)\nhint: nothing was signed; use its full id, .*list --json/,
          what,
        );
      }
      assert.deepEqual(liar.sent, [], what);
    }
  });

  test('has the firewall that its owner signed, where a part of it is signed again', async () => {
    const lie = (one: object) => ({ ...one, firewall: { allowedPorts: [22, 80, 3306] } });
    await using liar = await lying(core.url, told(ids.db, lie));
    const update = (...args: string[]) => run(liar.url, 'instance', 'update', ids.db, ...args);
    const { code, err } = await update('--proxy-protocol');
    assert.equal(code, 5, err);
    assert.match(
      err,
      /its firewall is said to be .*3306.*\(UNEXPECTED_ANSWER\)\nhint: .*--no-proxy-protocol/s,
    );
    assert.equal(liar.sent.length, 0);
    await update('--allow', '22', '--no-proxy-protocol');
    const [sent = ''] = liar.sent;
    assert.ok(sent.includes('"firewall":{"allowedPorts":[22],"proxyProtocol":false}'), sent);
  });

  test('is changed, and deleted, where it is proven, also once its owner has renamed it', async () => {
    const succeed = async (...args: string[]) => {
      const { code, out, err } = await run(core.url, 'instance', ...args, '--json');
      assert.equal(code, 0, `${args.join(' ')}: ${err}`);
      return JSON.parse(out);
    };
    await succeed('update', 'web', '--proxy-protocol');
    const renamed = await succeed('update', 'web', '--name', 'shop');
    assert.deepEqual(renamed.firewall, { allowedPorts: [22, 80], proxyProtocol: true });
    assert.equal((await succeed('stop', 'shop')).desired, 'stopped');
    const { instance_id: id } = await succeed('delete', ids.web.slice(0, 16), '--yes');
    assert.equal(id, ids.web);
  });

  test('is proven also where its message is too long for lists, its content a file, and no key in it', async () => {
    const draftOf = (name: string) => ({
      type: 'INSTANCE',
      content: {
        allow_amend: false,
        resources: { vcpus: 1, memory: 512, seconds: 30 },
        payment: { type: 'credit', chain: 'ETH' },
        environment: { internet: true, aleph_api: true, hypervisor: 'qemu' },
        rootfs: {
          ...{ parent: { ref: 'debian:12', use_latest: true }, persistence: 'host', size_mib: 4_096 },
        },
        volumes: [],
        metadata: { name, note: 'x'.repeat(LIMITS.listedBodyBytes) },
      },
      sync: true,
    });
    await publishMessage(core.url, buildNetworkMessage(draftOf('long'), owner).body);
    const { content, body } = buildStoredMessage(draftOf('filed'), owner);
    const headers = { 'content-type': 'application/octet-stream' };
    const stored = await fetch(`${core.url}/api/v0/storage/add_file`, {
      ...{ method: 'POST', headers, body: content },
    });
    assert.ok(stored.ok, await stored.text());
    await publishMessage(core.url, body);
    for (const name of ['long', 'filed']) {
      const { code, err } = await run(core.url, 'instance', 'stop', name);
      assert.equal(code, 0, `${name}: ${err}`);
    }
  });

  test('is proven also where what changed it last is too long to be told with it', async () => {
    const made = { type: 'INSTANCE', content: { ...CONTENT, name: 'before' } };
    const { item_hash: id } = await clientOf(owner).postMessage(made);
    const change = { instance_id: id, name: 'padded', firewall: { allowedPorts: [22, 8_443] } };
    const { message } = JSON.parse(signMessage({ type: 'INSTANCE_UPDATE', content: change }, owner).body);
    const text = `${JSON.stringify(message).slice(0, -1)}${' '.repeat(LIMITS.listedBodyBytes)}}`;
    const sent = await fetch(`${core.url}/api/v0/messages`, {
      ...{ method: 'POST', body: envelopeText(text, owner.sign(text), owner.address) },
    });
    assert.ok(sent.ok, await sent.text());
    const { code, out, err } = await run(
      core.url,
      ...['instance', 'update', 'padded', '--proxy-protocol', '--json'],
    );
    assert.equal(code, 0, err);
    assert.deepEqual(JSON.parse(out).firewall, { allowedPorts: [22, 8_443], proxyProtocol: true });
  });

  test('by the beginning of its id is that one, also under a name that a delegate gave it', async () => {
    await using liar = await lying(
      core.url,
      told(ids.db, (one) => ({ ...one, name: 'renamed' })),
    );
    const named = await run(liar.url, 'instance', 'stop', 'web');
    assert.deepEqual([named.code, liar.sent], [5, []]);
    const { code, err } = await run(liar.url, 'instance', 'stop', ids.db.slice(0, 16));
    assert.equal(code, 0, err);
    assert.equal(liar.sent.length, 1);
    assert.ok(liar.sent[0]!.includes(ids.db));
    // Whose it is takes proof as before.
    const theirs = told(ids.theirs, (one) => ({ ...one, owner: owner.address }));
    await using other = await lying(core.url, theirs);
    const refused = await run(other.url, 'instance', 'stop', ids.theirs.slice(0, 16));
    assert.deepEqual([refused.code, other.sent], [5, []]);
  });
});
